from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..splitter import EraSplitter

MOST_ROWS: int
MIN_SUPPORT: int

class SubtreeGrower:
    def __init__(
        self,
        splitter: Any,
        gradients: NDArray[np.float32],
        hessians: NDArray[np.float32],
        *,
        max_depth: int | None,
        max_features: int,
        seed: int,
        max_rows: int,
        era_splitter: EraSplitter | None,
    ) -> None: ...
    def grow(self, root: Any) -> tuple[NDArray[np.void], NDArray[np.uint32]]: ...

def is_pure_node(
    gradients: NDArray[np.float32],
    hessians: NDArray[np.float32],
    sample_indices: NDArray[np.uint32],
) -> bool: ...
