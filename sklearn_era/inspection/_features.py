"""Find the features of a fitted model among the columns of X."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils import Bunch
from sklearn.utils.validation import _check_feature_names_in

from .._trees.traversal import is_sent_left
from .._typing import Estimator
from ..ensemble._binning import rare_categories


def feature_names(estimator: Estimator) -> NDArray[Any]:
    """Return names of the columns of X; ``x0``, ``x1``, ... if the fit got no names."""
    return np.asarray(_check_feature_names_in(estimator), dtype=object)


def as_frames(result: Bunch, pandas: Any) -> Bunch:
    """Replace arrays in `result` by pandas' Series and DataFrames; return `result`."""
    names, index = result.feature_names, pandas.Index(result.era_labels, name="era")
    for name in result.keys() - {"feature_names", "era_labels"}:
        if isinstance(result[name], dict):
            result[name] = pandas.DataFrame(result[name])
        elif np.ndim(result[name]) == 2:
            result[name] = pandas.DataFrame(result[name], index=index, columns=names)
        elif np.ndim(result[name]) == 1:
            result[name] = pandas.Series(result[name], index=names, name=name)
    return result


def left_categories(
    estimator: Estimator, predictor: TreePredictor, split: int
) -> tuple[Any, ...] | None:
    """Return the categories that a split sends left, or None if it has a threshold."""
    node = predictor.nodes[split]
    if not node["is_categorical"]:
        return None
    encoder, feature = rare_categories.encoder_of(estimator), node["feature_idx"]
    codes = rare_categories.codes_of_categories(encoder, feature)
    is_left = is_sent_left(predictor, node, codes)
    return tuple(encoder.categories_[feature][: codes.size][is_left].tolist())
