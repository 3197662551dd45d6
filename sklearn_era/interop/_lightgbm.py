"""Export of fitted models to LightGBM's text format, that of ``Booster.save_model``.
Predictions are bit-identical: ``repr`` writes the shortest decimal that round-trips.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn._loss import loss as losses
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)

from sklearn_era.ensemble._binning.errors import column_name
from sklearn_era.interop._sklearn import check_model

# Bits of a split's `decision_type`: bit 0 for categories; bit 1 if missing values go
# left; bits 2 and 3 for the kind of missing values, where 2 is NaN.
_NAN_IS_MISSING = 2 << 2
_MISSING_GO_LEFT = 1 << 1

# LightGBM treats values of X up to this size as zero: `1e-35f` in C++.
_ZERO_THRESHOLD = float(np.float32(1e-35))

# Characters that LightGBM refuses in feature names, beside white space: names are
# written to JSON without escapes, and separated by spaces.
_FORBIDDEN_IN_NAMES = frozenset('",:[]{}')


def to_lightgbm_text(
    model: Any, *, feature_names: Sequence[str] | None = None,
    node_statistics: bool = True,
) -> str:  # fmt: skip
    """Write the text of a LightGBM model with the same predictions as a fitted model.

    ``lightgbm.Booster(model_str=text)`` reads it, from LightGBM 4.0 on; LightGBM need
    not be installed to write it. The first trees are single leaves with the baseline,
    so that LightGBM adds up the same doubles in the same order: raw predictions
    (``raw_score=True``) are bit-identical, and so is ``Booster.predict`` for losses
    with an identity link, ``"squared_error"``, ``"absolute_error"`` and ``"quantile"``.

    For other losses LightGBM applies the inverse link: the exponential for ``"gamma"``
    and ``"poisson"``, and for classifiers the logistic function or softmax, with the
    probability of ``model.classes_[1]`` or of each of ``model.classes_``. There the
    last digit may differ, like the exponentials of NumPy and the C library.

    Parameters
    ----------
    model : HistGradientBoostingRegressor, HistGradientBoostingClassifier or \
            EraForestRegressor
        A fitted estimator, of `sklearn_era.ensemble` or of scikit-learn.
    feature_names : sequence of str of length n_features, default=None
        The names to write. By default those of the fit, or ``Column_0``,
        ``Column_1``, ...
    node_statistics : bool, default=True
        Whether to write gains and numbers of rows, which LightGBM needs for feature
        importances and contributions (``pred_contrib``), but not to predict.

    Returns
    -------
    text : str
        The model text.

    Raises
    ------
    TypeError, sklearn.exceptions.NotFittedError
        If `model` is not a histogram gradient boosting model, or not fitted.
    ValueError
        If the model is an `EraForestClassifier`, has categorical features, a custom
        loss, or a threshold that LightGBM treats as zero; or if LightGBM would refuse
        the name of a feature.

    Notes
    -----
    LightGBM reads values of X nearer to zero than 1e-35 as zero. It converts arrays of
    integers to single precision, which rounds integers beyond 2**24: pass those as
    float64, or in a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.interop import to_lightgbm_text
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    >>> text = to_lightgbm_text(model)
    >>> text.count("Tree=")  # the baseline, and five trees
    6
    """
    check_model(model)
    names = _feature_names(model, feature_names)
    _refuse_categories(model)
    objective = _objective(model)
    trees = list(_tree_texts(model, names, node_statistics))
    # Sizes are bytes, since all is ASCII; ranges of values are not in the model.
    return f"""tree
version=v4
num_class={model.n_trees_per_iteration_}
num_tree_per_iteration={model.n_trees_per_iteration_}
label_index=0
max_feature_idx={model.n_features_in_ - 1}
objective={objective}
feature_names={" ".join(names)}
feature_infos={" ".join(["none"] * len(names))}
tree_sizes={" ".join(str(len(tree)) for tree in trees)}

{"".join(trees)}end of trees

parameters:
end of parameters

pandas_categorical:null
"""


def _feature_names(
    model: BaseHistGradientBoosting, feature_names: Sequence[str] | None
) -> list[str]:
    """Return the checked names to write."""
    n_features = model.n_features_in_
    if isinstance(feature_names, str):
        raise ValueError(
            f"feature_names={feature_names!r} is one name: pass a list of them."
        )
    if feature_names is None:
        default = [f"Column_{index}" for index in range(n_features)]
        feature_names = getattr(model, "feature_names_in_", default)
    names = [str(name) for name in feature_names]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names):,} names, but the model was fitted to "
            f"{n_features:,} features: pass a name for each, in the order of fit."
        )
    for name in names:
        found = [c for c in name if c in _FORBIDDEN_IN_NAMES or c.isspace()]
        if found or not name:
            what = f"the character {found[0]!r}" if found else "no character"
            raise ValueError(
                f"Feature {name!r} has {what} in its name, which LightGBM does not "
                "take: pass feature_names=, a list of other names."
            )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"{count} features have the name {name!r}, which LightGBM does not take: "
            "pass feature_names=, a list of different names."
        )
    return names


def _refuse_categories(model: BaseHistGradientBoosting) -> None:
    if model.is_categorical_ is None or not model.is_categorical_.any():
        return
    columns = np.flatnonzero(model.is_categorical_).tolist()
    shown = [column_name(model, column) for column in columns]
    more = f" and {len(shown) - 5:,} more" if len(shown) > 5 else ""
    raise ValueError(
        f"Feature {', '.join(shown[:5])}{more} is categorical, and LightGBM treats "
        "unknown and missing categories otherwise: fit the model to numbers, with "
        "categorical_features=None."
    )


def _objective(model: BaseHistGradientBoosting) -> str:
    """Return LightGBM's objective, which determines the link."""
    loss = model._loss
    if isinstance(loss, losses.HalfMultinomialLoss):
        return f"multiclass num_class:{model.n_trees_per_iteration_}"
    if isinstance(loss, losses.PinballLoss):
        return f"quantile alpha:{loss.closs.quantile!r}"
    # By the exact type: a user's loss may derive from one of these.
    known = {
        losses.HalfSquaredError: "regression", losses.AbsoluteError: "regression_l1",
        losses.HalfPoissonLoss: "poisson", losses.HalfGammaLoss: "gamma",
        losses.HalfBinomialLoss: "binary sigmoid:1",
    }  # fmt: skip
    if type(loss) not in known:
        raise ValueError(
            f"loss={model.loss!r} has no counterpart in LightGBM: fit the model with "
            "one of scikit-learn's losses by its name."
        )
    return known[type(loss)]


def _tree_texts(
    model: BaseHistGradientBoosting, names: list[str], node_statistics: bool
) -> Iterator[str]:
    """Yield the text of each tree, in ASCII, the baseline's first."""
    baseline = (
        ["num_leaves=1", "num_cat=0", f"leaf_value={value!r}", "shrinkage=1"]
        for value in model._baseline_prediction.ravel().tolist()
    )
    shrinkage = getattr(model, "learning_rate", 1)  # 1 for a forest
    trees = (
        _tree_lines(tree.nodes, names, shrinkage, node_statistics)
        for tree in chain.from_iterable(model._predictors)
    )
    for index, lines in enumerate(chain(baseline, trees)):
        yield "\n".join([f"Tree={index}", *lines]) + "\n\n\n"


def _tree_lines(
    nodes: NDArray[Any], names: list[str], shrinkage: float, node_statistics: bool
) -> list[str]:
    """Return the lines of one tree: arrays of its splits and of its leaves."""
    is_leaf = nodes["is_leaf"] != 0
    splits, leaves = nodes[~is_leaf], nodes[is_leaf]
    # LightGBM numbers splits from 0 up, and leaves from -1 down, each in our order.
    number = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
    lines = [f"num_leaves={leaves.size}", "num_cat=0"]
    if splits.size:
        _refuse_tiny_thresholds(splits, names)
        goes_left = splits["missing_go_to_left"] != 0
        lines += [
            f"split_feature={_join(splits['feature_idx'])}",
            f"threshold={_join(splits['num_threshold'])}",
            f"decision_type={_join(_NAN_IS_MISSING + _MISSING_GO_LEFT * goes_left)}",
            f"left_child={_join(number[splits['left']])}",
            f"right_child={_join(number[splits['right']])}",
        ]
        if node_statistics:
            lines.append(f"split_gain={_join(splits['gain'])}")
            lines.append(f"internal_count={_join(splits['count'])}")
    lines.append(f"leaf_value={_join(leaves['value'])}")
    if node_statistics:
        lines.append(f"leaf_count={_join(leaves['count'])}")
    return [*lines, "is_linear=0", f"shrinkage={shrinkage!r}"]


def _join(values: NDArray[Any]) -> str:
    return " ".join(map(repr, values.tolist()))


def _refuse_tiny_thresholds(splits: NDArray[Any], names: list[str]) -> None:
    sizes = np.abs(splits["num_threshold"])
    for split in splits[(sizes <= _ZERO_THRESHOLD) & (sizes != 0)]:
        raise ValueError(
            f"Feature {names[split['feature_idx']]!r} is split at "
            f"{float(split['num_threshold'])!r}, and LightGBM takes values this close "
            "to zero for zero: fit the model to the feature in another unit."
        )
