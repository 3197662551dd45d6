import numpy as np
from numpy.typing import NDArray

from ..splitter import EraSplitter

MAX_ROWS: int
MIN_SUPPORT: int

def is_pure_node(
    gradients: NDArray[np.float32],
    hessians: NDArray[np.float32],
    sample_indices: NDArray[np.uint32],
) -> bool: ...
def root_value(
    sum_gradients: float, sum_hessians: float, l2_regularization: float
) -> float: ...
def rows_worth_sorting(
    era_splitter: EraSplitter, n_bins: NDArray[np.uint32], n_threads: int
) -> int: ...
