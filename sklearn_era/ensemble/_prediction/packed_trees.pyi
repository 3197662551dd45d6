import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

def check_trees(
    predictors: list[list[TreePredictor]],
    X_shape: tuple[int, int],
    out_shape: tuple[int, int],
    known_cat_bitsets: NDArray[np.uint32],
    f_idx_map: NDArray[np.uint32],
    categories: str,
) -> None: ...
