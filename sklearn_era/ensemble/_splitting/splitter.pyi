from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._criteria.objects import Criterion
from .._exchange import Exchange
from .candidates.split_info import EraSplitInfo
from .histograms import HistogramStore

class EraSplitter:
    hessians_are_constant: bool
    hessians: NDArray[np.float32]
    store: HistogramStore
    n_splittable: int
    n_uncovered: int
    @property
    def n_samples(self) -> int: ...
    def __init__(
        self,
        era_codes: NDArray[np.int32],
        n_eras: int,
        row_order: NDArray[np.uint32] | None,
        criterion: Criterion,
        positive_weights: NDArray[np.float32] | None = None,
        weights: NDArray[np.float32] | None = None,
        has_weights: bool = True,
        store_budget: int | None = None,
        exchange: Exchange = ...,
        penalties: NDArray[np.float64] | None = None,
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
