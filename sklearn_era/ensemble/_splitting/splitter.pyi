from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._criteria.criterion import Criterion
from .histograms.stored import HistogramStore

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
    hessians_are_constant: bool
    hessians: NDArray[np.float32]
    store: HistogramStore
    n_splittable: int
    n_uncovered: int
    def __init__(
        self,
        era_codes: NDArray[np.int32],
        n_eras: int,
        row_order: NDArray[np.uint32] | None,
        criterion: Criterion,
        positive_weights: NDArray[np.float32] | None = None,
        weights: NDArray[np.float32] | None = None,
        store_budget: int | None = None,
    ) -> None: ...
    def start_tree(
        self,
        X_binned: NDArray[np.uint8],
        n_bins: int,
        gradients: NDArray[np.float32],
        hessians: NDArray[np.float32],
        hessians_are_constant: bool,
        n_threads: int,
    ) -> EraSplitter: ...
    def use_splitter(self, splitter: Any) -> None: ...
    def compute_histograms_brute(
        self, sample_indices: NDArray[np.uint32], allowed_features: Any = None
    ) -> Any: ...
    def compute_histograms_subtraction(
        self,
        parent_histograms: Any,
        sibling_histograms: Any,
        allowed_features: Any = None,
    ) -> Any: ...
    def find_node_split(self, node: Any) -> EraSplitInfo | None: ...
