import numpy as np
from numpy.typing import NDArray

def count_codes(
    addresses: NDArray[np.intp],
    strides: NDArray[np.intp],
    itemsize: int,
    rows: NDArray[np.intp] | None,
    n_rows: int,
    counts: NDArray[np.uint32],
    n_threads: int,
) -> None: ...
def map_codes(
    addresses: NDArray[np.intp],
    strides: NDArray[np.intp],
    itemsize: int,
    rows: NDArray[np.intp] | None,
    columns_out: NDArray[np.intp],
    tables: NDArray[np.uint8],
    binned: NDArray[np.uint8],
    n_threads: int,
) -> None: ...
