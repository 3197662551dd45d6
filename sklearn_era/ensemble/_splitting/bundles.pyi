from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def bundle_features(
    n_codes: Sequence[int],
    has_missing: Sequence[bool],
    is_categorical: Sequence[bool],
) -> list[slice]: ...
def masks_of_splits(
    n_codes: Sequence[int], has_missing: Sequence[bool]
) -> NDArray[np.int64]: ...
