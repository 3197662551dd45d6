"""Export fitted models to LightGBM's text, the format of ``Booster.save_model``.
Predictions are bit-identical, as the decimals of ``repr`` are read as the same numbers.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn._loss import loss as losses
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)

from sklearn_era._trees.traversal import column_of_feature
from sklearn_era.ensemble._binning.read_columns import column_name
from sklearn_era.interop._categories import categories_of_features, listed_categories
from sklearn_era.interop._sklearn import check_model

# Bits of a split's `decision_type`: bit 0 for categories; bit 1 if missing values go
# left; bits 2 and 3 for the kind of missing values, where 2 is NaN.
_CATEGORICAL = 1
_NAN_IS_MISSING = 2 << 2
_MISSING_GO_LEFT = 1 << 1

# LightGBM treats values of X up to this size as zero: `1e-35f` in C++.
_ZERO_THRESHOLD = float(np.float32(1e-35))

# The highest category of an array: a split has a bit for each number up to it.
_HIGHEST_CATEGORY = 100_000

# Characters that LightGBM refuses in feature names, beside white space: names are
# written to JSON without escapes, and separated by spaces.
_FORBIDDEN_IN_NAMES = frozenset('",:[]{}')


def to_lightgbm_text(
    model: BaseEstimator, *, feature_names: Sequence[str] | None = None,
    node_statistics: bool = True,
) -> str:  # fmt: skip
    """Write the text of a LightGBM model with the same predictions as a fitted model.

    ``lightgbm.Booster(model_str=text)`` reads the text, from LightGBM 4.0 on; to write
    it, LightGBM is not needed. The first trees are single leaves with the baseline,
    so that LightGBM adds up the same doubles in the same order: raw predictions
    (``raw_score=True``) are bit-identical, and so is ``Booster.predict`` for losses
    with an identity link, ``"squared_error"``, ``"absolute_error"`` and ``"quantile"``.

    For other losses LightGBM applies the inverse link: the exponential for ``"gamma"``
    and ``"poisson"``, and for classifiers the logistic function or softmax, with the
    probability of ``model.classes_[1]`` or of each of ``model.classes_``. The last
    digit may then differ, as exponentials of NumPy and of the C library do.

    Parameters
    ----------
    model : HistGradientBoostingRegressor, HistGradientBoostingClassifier or \
            EraForestRegressor
        A fitted estimator, of `sklearn_era.ensemble` or of scikit-learn.
    feature_names : sequence of str of length n_features, default=None
        The names to write. By default the names in the fit; if the fit had no names,
        ``Column_0``, ``Column_1``, ...
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
        If `model` is not a histogram gradient boosting model, or is not fitted.
    ValueError
        If the model is an `EraForestClassifier`, has a custom loss, a threshold that
        LightGBM treats as zero, or categories that LightGBM cannot hold; or if LightGBM
        would refuse the name of a feature.

    Notes
    -----
    LightGBM reads values of X nearer to zero than 1e-35 as zero. It converts arrays of
    integers to single precision, which rounds integers beyond 2**24: pass such integers
    as float64, or in a data frame.

    Categories of text, and of columns that were categorical by their dtype, are written
    with their order: pass these columns to LightGBM in a pandas frame, with the dtype
    "category" and any order. In columns that `categorical_features` lists, numbers keep
    their value, a whole number from 0 to 100,000: pass these columns as numbers.
    Missing and unknown categories get the same predictions as in `model`, except that
    LightGBM reads 2.5 as 2.

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
    categories = _number_categories(model)
    columns = column_of_feature(model)[: len(categories)]
    # Ranges of numeric features are not in the model.
    infos = ["none"] * len(names)
    for column, feature in zip(columns, categories, strict=True):
        infos[column] = ":".join(map(str, feature.numbers.tolist())) or "none"
    levels = [feature.levels for feature in categories if feature.levels is not None]
    objective = _objective(model)
    trees = list(_tree_texts(model, names, categories, node_statistics))
    # Sizes are bytes, since all is ASCII.
    return f"""tree
version=v4
num_class={model.n_trees_per_iteration_}
num_tree_per_iteration={model.n_trees_per_iteration_}
label_index=0
max_feature_idx={model.n_features_in_ - 1}
objective={objective}
feature_names={" ".join(names)}
feature_infos={" ".join(infos)}
tree_sizes={" ".join(str(len(tree)) for tree in trees)}

{"".join(trees)}end of trees

parameters:
end of parameters

pandas_categorical:{json.dumps(levels)}
"""


def _feature_names(
    model: BaseHistGradientBoosting, feature_names: Sequence[str] | None
) -> list[str]:
    """Return the features' names, or raise ValueError if LightGBM cannot take them."""
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


class _Categories(NamedTuple):
    """The categories of a feature: their bins, and their numbers in LightGBM. `levels`
    lists the categories of a pandas column in the order of these numbers, or is None.
    """

    bins: NDArray[np.intp]
    numbers: NDArray[np.intp]
    levels: list[Any] | None


def _number_categories(model: BaseHistGradientBoosting) -> list[_Categories]:
    """Return the `_Categories` of each categorical feature. A number keeps its value in
    LightGBM; text, and categories of columns with the dtype "category", are counted
    from 0. Raise ValueError for a category that cannot be written.
    """
    numbered = []
    by_dtype = isinstance(model.categorical_features, str)
    for i, (categories, bins) in enumerate(categories_of_features(model)):
        name = column_name(model, column_of_feature(model)[i])
        if by_dtype or categories.dtype.kind not in "biuf":
            _check_levels(categories, name)
            levels = categories.tolist()
            numbered.append(_Categories(bins, np.arange(bins.size), levels))
            continue
        is_whole = (categories >= 0) & (categories <= _HIGHEST_CATEGORY)
        is_whole &= categories % 1 == 0
        if not is_whole.all():
            raise ValueError(
                f"Feature {name} has the category {categories[~is_whole][0]}, and only "
                f"whole numbers from 0 to {_HIGHEST_CATEGORY:,} can be written: fit "
                "the model to such numbers, or to a data frame where the column has "
                "the dtype 'category', with categorical_features='from_dtype'."
            )
        numbered.append(_Categories(bins, categories.astype(np.intp), None))
    return numbered


def _check_levels(categories: NDArray[Any], name: str) -> None:
    """Raise ValueError for categories that JSON does not keep, such as dates."""
    levels = categories.tolist()
    try:
        is_kept = json.loads(json.dumps(levels)) == levels
    except TypeError:
        is_kept = False
    if not is_kept or categories.dtype.kind in "mM":
        raise ValueError(
            f"Feature {name} has categories such as {categories[0]!r}, which cannot be "
            "written: fit the model to text."
        )


def _objective(model: BaseHistGradientBoosting) -> str:
    """Return LightGBM's objective, or raise ValueError if it has none for the loss."""
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
    model: BaseHistGradientBoosting, names: list[str], categories: list[_Categories],
    node_statistics: bool,
) -> Iterator[str]:  # fmt: skip
    """Yield the text of each tree, in ASCII; the first trees predict the baseline."""
    baseline = (
        ["num_leaves=1", "num_cat=0", f"leaf_value={value!r}", "shrinkage=1"]
        for value in model._baseline_prediction.ravel().tolist()
    )
    columns = column_of_feature(model)
    shrinkage = getattr(model, "learning_rate", 1)  # 1 for a forest
    trees = (
        [*_tree_lines(tree, columns, names, categories, node_statistics),
         "is_linear=0", f"shrinkage={shrinkage!r}"]
        for tree in chain.from_iterable(model._predictors)
    )  # fmt: skip
    for index, lines in enumerate(chain(baseline, trees)):
        yield "\n".join([f"Tree={index}", *lines]) + "\n\n\n"


def _tree_lines(
    tree: Any, columns: NDArray[np.intp], names: list[str],
    categories: list[_Categories], node_statistics: bool,
) -> list[str]:  # fmt: skip
    """Return the lines of one tree: arrays of its splits and of its leaves."""
    is_leaf = tree.nodes["is_leaf"] != 0
    splits, leaves = tree.nodes[~is_leaf], tree.nodes[is_leaf]
    # LightGBM numbers splits from 0 up, and leaves from -1 down, each in our order.
    number = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
    by_category = splits["is_categorical"] != 0
    bitsets = [_bitset(tree, s, categories) for s in splits[by_category]]
    lines = [f"num_leaves={leaves.size}", f"num_cat={len(bitsets)}"]
    if splits.size:
        features = columns[splits["feature_idx"]]
        thresholds = splits["num_threshold"].copy()
        thresholds[by_category] = np.arange(len(bitsets))
        _refuse_tiny_thresholds(thresholds, features, names)
        goes_left = splits["missing_go_to_left"] != 0
        left, right = number[splits["left"]], number[splits["right"]]
        # There, LightGBM sends missing and unknown categories to the right.
        turned = by_category & goes_left
        kinds = np.where(by_category, _CATEGORICAL, _MISSING_GO_LEFT * goes_left)
        lines += [
            f"split_feature={_join(features)}", f"threshold={_join(thresholds)}",
            f"decision_type={_join(_NAN_IS_MISSING + kinds)}",
            f"left_child={_join(np.where(turned, right, left))}",
            f"right_child={_join(np.where(turned, left, right))}",
        ]  # fmt: skip
        if node_statistics:
            lines.append(f"split_gain={_join(splits['gain'])}")
            lines.append(f"internal_count={_join(splits['count'])}")
    if bitsets:
        ends = np.cumsum([0, *(words.size for words in bitsets)])
        lines.append(f"cat_boundaries={_join(ends)}")
        lines.append(f"cat_threshold={_join(np.concatenate(bitsets))}")
    lines.append(f"leaf_value={_join(leaves['value'])}")
    if node_statistics:
        lines.append(f"leaf_count={_join(leaves['count'])}")
    return lines


def _bitset(tree: object, split: Any, categories: list[_Categories]) -> NDArray[Any]:
    """Return the categories of a split as a bitset of 32-bit words: bit k is 1 if
    LightGBM is to send its category k to the left.
    """
    bins, numbers, _ = categories[split["feature_idx"]]
    numbers = numbers[listed_categories(tree, split, bins)]
    bits = np.zeros(32 * (numbers.max(initial=0) // 32 + 1), dtype=np.uint8)
    bits[numbers] = 1
    return np.packbits(bits, bitorder="little").view("<u4")


def _join(values: NDArray[Any]) -> str:
    return " ".join(map(repr, values.tolist()))


def _refuse_tiny_thresholds(
    thresholds: NDArray[Any], features: NDArray[np.intp], names: list[str]
) -> None:
    is_tiny = (np.abs(thresholds) <= _ZERO_THRESHOLD) & (thresholds != 0)
    for i in np.flatnonzero(is_tiny)[:1]:
        raise ValueError(
            f"Feature {names[features[i]]!r} is split at {float(thresholds[i])!r}, and "
            "LightGBM takes values this close to zero for zero: fit the model to the "
            "feature in another unit."
        )
