import numpy as np
from numpy.typing import NDArray

class EraSplitInfo:
    priority: tuple[float, float, float]
    gain: float
    feature_idx: int
    bin_idx: int
    missing_go_to_left: bool
    sum_gradient_left: float
    sum_gradient_right: float
    sum_hessian_left: float
    sum_hessian_right: float
    n_samples_left: int
    n_samples_right: int
    value_left: float
    value_right: float
    is_categorical: bool
    left_cat_bitset: NDArray[np.uint32] | None
