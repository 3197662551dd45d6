from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era.ensemble._hist_gradient_boosting.criteria import Criterion

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

class EraSplitter:
    def __init__(
        self,
        era_codes: NDArray[np.int32],
        n_eras: int,
        criterion: Criterion,
        positive_weights: NDArray[np.float32] | None = None,
        weights: NDArray[np.float32] | None = None,
    ) -> None: ...
    def start_tree(self, splitter: Any, histogram_builder: Any) -> None: ...
    def find_node_split(self, node: Any) -> EraSplitInfo | None: ...
