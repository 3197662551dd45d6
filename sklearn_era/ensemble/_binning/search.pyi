import numpy as np
from numpy.typing import NDArray

def search_bins(
    X: NDArray[np.float64],
    thresholds: list[NDArray[np.float64]],
    is_categorical: NDArray[np.uint8],
    missing: int,
    n_threads: int,
    binned: NDArray[np.uint8],
) -> None: ...
