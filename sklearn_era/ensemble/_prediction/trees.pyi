from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

READABLE: str

def add_trees(
    X: NDArray[Any],
    predictors: list[list[TreePredictor]],
    known_cat_bitsets: NDArray[np.uint32],
    f_idx_map: NDArray[np.uint32],
    raw_predictions: NDArray[np.float64],
    n_threads: int,
) -> None: ...
