import numpy as np
from numpy.typing import NDArray

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
