import numpy as np
from numpy.typing import NDArray

from ..splitter import EraSplitter

MAX_ROWS: int
MIN_SUPPORT: int

class SubtreeGrower:
    def __init__(
        self,
        X_binned: NDArray[np.uint8],
        gradients: NDArray[np.float32],
        hessians: NDArray[np.float32],
        *,
        n_bins_non_missing: NDArray[np.uint32],
        has_missing_values: NDArray[np.uint8],
        is_categorical: NDArray[np.uint8],
        missing_values_bin_idx: int,
        max_depth: int | None,
        min_samples_leaf: int,
        min_hessian_to_split: float,
        min_gain_to_split: float,
        l2_regularization: float,
        max_features: int,
        seed: int,
        max_rows: int,
        era_splitter: EraSplitter | None,
    ) -> None: ...
    def grow(
        self,
        partition: NDArray[np.uint32],
        starts: NDArray[np.int32],
        stops: NDArray[np.int32],
        depths: NDArray[np.int32],
        sum_gradients: NDArray[np.float64],
        sum_hessians: NDArray[np.float64],
        values: NDArray[np.float64],
    ) -> tuple[NDArray[np.void], NDArray[np.uint32], NDArray[np.int64]]: ...
    def is_pure(self, sample_indices: NDArray[np.uint32]) -> bool: ...
