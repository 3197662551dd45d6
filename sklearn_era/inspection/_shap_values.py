"""Shapley values of predictions, exact, and their sums by era."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn._loss.link import IdentityLink
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.linear_model._base import LinearModel
from sklearn.utils import Bunch
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_era._era_arguments import without_era_column
from sklearn_era._eras import era_means, read_eras
from sklearn_era._threads import openmp_threads
from sklearn_era._trees.traversal import column_of_feature
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.auto._linear import LinearRegressor
from sklearn_era.ensemble._splitting.lanes.instruction_sets import lane_module
from sklearn_era.inspection._features import feature_names

Array = NDArray[np.float64]
Sums = tuple[Array, Array, Array]  # values, by output too; base of outputs; rows


@dataclass(frozen=True, eq=False)
class ShapValues:
    """Shapley values of predictions, with the fields of ``shap.Explanation``.

    ``shap.Explanation(**result)`` has all of them, for the plots of that package.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or \
            (n_samples, n_features, n_classes)
        The parts of features in the prediction of each row.
    base_values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The rest: ``values.sum(axis=1) + base_values`` is the prediction.
    data : ndarray of shape (n_samples, n_features)
        The rows as numbers; categories by their codes.
    display_data : ndarray of shape (n_samples, n_features) or None
        The rows as given, if there are categories.
    feature_names, output_names : list of str
        Columns of X, and classes; None for a single output.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import shap_values
    >>> X = np.arange(40.0).reshape(20, 2)
    >>> model = HistGradientBoostingRegressor(max_iter=1).fit(X, X[:, 0])
    >>> shap_values(model, X).values.shape
    (20, 2)
    """

    values: Array
    base_values: Array
    data: Array
    display_data: NDArray[Any] | None
    feature_names: list[str]
    output_names: list[str] | None

    def keys(self) -> list[str]:
        """Return the names of the fields, as ``**result`` asks for them."""
        return [field.name for field in fields(self)]

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def by_era(self, eras: Any) -> Bunch:
        """Summarise the values of each feature in each era.

        Parameters
        ----------
        eras : array-like of shape (n_samples,)
            Era of each row.

        Returns
        -------
        summary : Bunch
            With the means `mean_abs` of absolute values and `mean` of values, and the
            standard deviation `std`, within an era, of shape (n_eras, n_features) or
            (n_eras, n_features, n_classes); `mean_abs_spread` and `mean_spread`, the
            standard deviations of both means over eras, each era counting once, of
            shape (n_features,) or (n_features, n_classes); and `era_labels`,
            `feature_names` and `output_names`.

        Raises
        ------
        ValueError
            If a label is missing, or there is not one for each row.
        """
        encoded = read_eras(eras, self.values, X_name="the explained X")

        def mean_of(numbers: Array) -> Array:
            return era_means(encoded.codes, np.ones(len(numbers)), numbers.T).T

        mean, mean_abs = mean_of(self.values), mean_of(np.abs(self.values))
        deviations = self.values - mean[encoded.codes]
        return Bunch(
            mean_abs=mean_abs, mean_abs_spread=mean_abs.std(axis=0), mean=mean,
            mean_spread=mean.std(axis=0), std=np.sqrt(mean_of(deviations**2)),
            era_labels=encoded.labels, feature_names=self.feature_names,
            output_names=self.output_names,
        )  # fmt: skip


def shap_values(model: Any, X: Any, *, background: Any = None) -> ShapValues:
    """Compute the exact Shapley values of a model's predictions.

    The value of a feature is the rise of the prediction v(S) of a set of known features
    with it, averaged over all orders in which features may become known [1]_ ::

        phi_i = sum_S |S|! (n - |S| - 1)! / n! (v(S + i) - v(S))

    Missing values and categories go the way that they go in ``predict``.

    Parameters
    ----------
    model : HistGradientBoostingRegressor, HistGradientBoostingClassifier, \
            EraForestRegressor, EraForestClassifier or AutoEraRegressor
        A fitted model; a booster may be scikit-learn's, and a member of
        `AutoEraRegressor` linear, if `background` is given.
    X : array-like of shape (n_samples, n_features)
        The rows to explain.
    background : array-like of shape (n_background, n_features), default=None
        Some hundred rows from which unknown features are taken: ``v(S) = mean_b f(x_S,
        b_not S)`` ("interventional") [3]_. None takes the shares of training rows on
        both sides of each split instead ("path-dependent", the TreeSHAP of [2]_).

    Returns
    -------
    result : ShapValues
        Values are those of the raw prediction: logarithms with the loss "poisson" or
        "gamma", log-odds of a classifier; mean proportions of `EraForestClassifier`, of
        the second class or of each of more than two, before they are scaled to add up
        to 1. With `era_effects`, ``base_values`` holds the forecast of a new era.

    Raises
    ------
    ValueError, NotFittedError
        If the prediction is no sum over trees: `AutoEraClassifier`, or an
        `AutoEraRegressor` with a log link, averages after its link; linear members need
        `background`, and may be cut off at the range of targets. If columns are not
        those of the fit, a path has more than 64 features, with `background`, or
        `model` is not fitted.

    References
    ----------
    .. [1] L. S. Shapley (1953), A value for n-person games. Contributions to the Theory
       of Games II.
    .. [2] S. M. Lundberg et al. (2020), From local explanations to global understanding
       with explainable AI for trees. Nature Machine Intelligence 2.
    .. [3] D. Janzing, L. Minorics, P. Bloebaum (2020), Feature relevance quantification
       in explainable AI: a causal problem. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import shap_values
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    >>> result = shap_values(model, X)
    >>> sums = result.values.sum(axis=1) + result.base_values
    >>> bool(np.allclose(sums, model.predict(X)))
    True
    """
    X, background = (without_era_column(model, rows) for rows in (X, background))
    values, base, data = _explain(model, X, background)
    base_values, names = np.tile(base, (len(values), 1)), None
    if base.size == 1:
        values, base_values = values[..., 0], base_values[:, 0]
    else:
        names = [str(label) for label in model.classes_]
    fitted = [model, *getattr(model, "members_", {}).values()]
    has_categories = any(np.any(getattr(x, "is_categorical_", None)) for x in fitted)
    to_numpy = getattr(X, "to_numpy", lambda: np.asarray(X))
    shown = to_numpy() if has_categories else None
    columns = [str(name) for name in feature_names(model)]
    return ShapValues(values, base_values, data, shown, columns, names)


def _explain(model: Any, X: Any, background: Any) -> Sums:
    if isinstance(model, BaseHistGradientBoosting):
        check_is_fitted(model)
        return _of_trees(model, X, background)
    if isinstance(model, AutoEraClassifier):
        raise ValueError(
            "AutoEraClassifier averages probabilities, which are no sums over trees; "
            "explain its members_ one by one, whose log-odds are."
        )
    if not isinstance(model, AutoEraRegressor):
        raise ValueError(
            "model must be a HistGradientBoostingRegressor or "
            "HistGradientBoostingClassifier, of sklearn_era or of scikit-learn, an "
            "EraForestRegressor, EraForestClassifier or AutoEraRegressor; got "
            f"{model!r}. Of a pipeline, pass the last step, and X as it reaches that; "
            "of EraSearchCV its best_estimator_."
        )
    check_is_fitted(model)
    parts = []
    rows_of = model._columns_of(X)
    others_of = rows_of if background is None else model._columns_of(background)
    for name, member in model.members_.items():
        X = rows_of(name)
        background = None if background is None else others_of(name)
        if not isinstance(member, BaseHistGradientBoosting):
            parts.append(_of_additive(name, member, X, background))
        elif isinstance(member._loss.link, IdentityLink):
            parts.append(_of_trees(member, X, background))
        else:
            raise ValueError(
                f"AutoEraRegressor averages predictions by loss={member.loss!r}, the "
                "exponentials of sums over trees, and no sums; explain its members_ "
                "one by one, whose logarithms are."
            )
    parts = [_of_sources(model, *part) for part in parts]
    weights = [model.weights_[name] for name in model.members_]
    values, base = (
        np.asarray(sum(w * part[i] for w, part in zip(weights, parts, strict=True)))
        for i in (0, 1)
    )
    return values, base, parts[0][2]


def _of_sources(model: Any, values: Array, base: Array, data: Array) -> Sums:
    """Add the parts of encoded columns to those of the columns they are made of."""
    if values.shape[1] > (n := model.n_features_in_):
        values, encoded = values[:, :n].copy(), values[:, n:]
        sources = model.encoder_._columns
        sources = np.repeat(sources, encoded.shape[1] // len(sources))
        for i, j in enumerate(sources):
            values[:, j] += encoded[:, i]
    return values, base, data[:, :n]


def _of_trees(model: Any, X: Any, background: Any) -> Sums:
    """Those of a booster or forest, in raw predictions."""
    data, columns = model._preprocess_X(X, reset=False), column_of_feature(model)
    others = data[:0]
    if background is not None:
        others = model._preprocess_X(background, reset=False)
    values = np.zeros((model.n_trees_per_iteration_, data.shape[1], data.shape[0]))
    rows = (np.ascontiguousarray(some.T, np.float64) for some in (data, others))
    known = model._bin_mapper.make_known_categories_bitsets()
    kernel = lane_module("sklearn_era.ensemble._prediction.shapley")
    with openmp_threads(getattr(model, "n_jobs", None), type(model).__name__):
        n_threads = _openmp_effective_n_threads()
        base = kernel.add_shapley_values(
            *rows, model._predictors, *known, columns, values, n_threads
        )
    if background is None:
        base = base + model._baseline_prediction.ravel()
    else:
        base = model._raw_predict(background).mean(axis=0)
    return values.transpose(2, 1, 0), base, data[:, np.argsort(columns)]


def _of_additive(name: str, model: Any, X: Any, background: Any) -> Sums:
    """Values of a sum of functions of single columns: each less its background mean."""
    read: Callable[[Any], tuple[Array, Array]]
    if isinstance(model, LinearRegressor) and model.loss == "squared_error":
        lowest, highest = model._range
        read, intercept = model._terms, model._intercepts[-1][0]
    elif isinstance(model, LinearModel) and np.ndim(model.coef_) == 1:
        lowest, highest, intercept = -np.inf, np.inf, model.intercept_

        def read(rows: Any) -> Any:
            data = validate_data(model, rows, reset=False, dtype=np.float64)
            return data * model.coef_, data
    else:
        raise ValueError(
            f"Member {name!r} of AutoEraRegressor, a {type(model).__name__}, has no "
            "exact values: it is neither one of trees nor linear. Explain the other "
            "members_ one by one, or fit without it."
        )
    if background is None:
        raise ValueError(
            f"Member {name!r} of AutoEraRegressor is linear, and has no paths; pass "
            "background, such as some hundred rows of the training set."
        )
    terms, data = read(X)
    others, _ = read(background)
    is_cut = np.zeros(len(terms), dtype=bool)
    for other in others if np.isfinite(highest) else ():
        # The mixes of both that are lowest and highest.
        is_cut |= np.minimum(terms, other).sum(axis=1) + intercept < lowest
        is_cut |= np.maximum(terms, other).sum(axis=1) + intercept > highest
    if is_cut.any():
        raise ValueError(
            f"Member {name!r} of AutoEraRegressor cuts off predictions at the range of "
            f"training targets, which some mixes of background and {is_cut.sum()} of "
            f"{is_cut.size} rows of X leave, the first of them row {is_cut.argmax()}; "
            "there it is no sum. Leave these rows out, or explain members_ one by one."
        )
    mean = others.mean(axis=0)
    return (terms - mean)[..., np.newaxis], np.array([intercept + mean.sum()]), data
