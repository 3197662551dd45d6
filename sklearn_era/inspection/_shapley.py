"""Compute Shapley values of trees, of linear models and of averages of models."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax
from sklearn._loss.link import IdentityLink
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearModel
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import check_is_fitted, validate_data

from .._threads import openmp_threads
from .._trees.traversal import column_of_feature
from .._typing import Eras, Table
from ..auto import AutoEraClassifier, AutoEraRegressor
from ..auto._linear import LinearClassifier, LinearRegressor
from ..ensemble import EraForestClassifier
from ..ensemble._boosters.known_eras import in_eras
from ..ensemble._splitting.lanes.instruction_sets import lane_module

Array = NDArray[np.float64]
# Shapley values, bases by row (or one for all rows) and output, rows
Sums = tuple[Array, Array, Array]
# A function of raw predictions, and its slopes in them, of shape (n, n, n_outputs).
Response = Callable[[Array], tuple[Array, Array]]

# The path from the base to a row, in panels, with nodes of Gauss and Legendre in each;
# more panels where values do not add up.
_N_PANELS, _N_NODES, _TOLERANCE = (1, 4, 32, 256), 16, 1e-10


def explain(
    model: BaseEstimator, X: Table, background: Table | None, eras: Eras | None
) -> Sums:
    """Return the Shapley values of a model's raw predictions, the base values, and the
    rows as numbers. Values of an average are on the scale of its link. The base values
    include the intercepts of `eras`, if these are given.
    """
    if isinstance(model, BaseHistGradientBoosting):
        check_is_fitted(model)
        return _in_eras(model, X, eras, _of_trees(model, X, background))
    if not isinstance(model, AutoEraClassifier | AutoEraRegressor):
        raise ValueError(
            "model must be a HistGradientBoostingRegressor or "
            "HistGradientBoostingClassifier, of sklearn_era or of scikit-learn, an "
            "EraForestRegressor, EraForestClassifier, AutoEraRegressor or "
            f"AutoEraClassifier; got {model!r}. Of a pipeline, pass the last step, and "
            "X as it reaches that; of EraSearchCV its best_estimator_."
        )
    check_is_fitted(model)
    parts, rows_of = [], model._columns_of(X)
    others_of = None if background is None else model._columns_of(background)
    for name, member in model.members_.items():
        of_member: Any = _of_trees
        if not isinstance(member, BaseHistGradientBoosting):
            text = f"Member {name!r} of {type(model).__name__}"
            of_member = partial(_of_linear, text)
        rows = rows_of(name)
        found = of_member(member, rows, others_of and others_of(name))
        if getattr(member, "era_effects", None) is not None:
            found = _in_eras(member, rows, eras, found)
        parts.append(_of_sources(model, *found))
    responses = [_response_of(member) for member in model.members_.values()]
    weights = [model.weights_[name] for name in model.members_]
    has_link = model._fitted_plain().loss in ("log_loss", "poisson", "gamma")
    if all(respond is _identity for respond in responses) and not has_link:
        values, base = (
            np.asarray(sum(w * part[i] for w, part in zip(weights, parts, strict=True)))
            for i in (0, 1)
        )
        return values, base, parts[0][2]
    # One member's own raw predictions are on the scale of the link.
    if len(parts) == 1 and responses[0] in (_logistic, _exponential):
        return parts[0]
    return *_along_paths(model, weights, parts, responses), parts[0][2]


def _along_paths(
    model: BaseEstimator, weights: list[float], parts: list[Sums],
    responses: list[Response],
) -> tuple[Array, Array]:  # fmt: skip
    """Return Shapley values and the base of an average, on the scale of its link. A
    value is a sum over members: the member's own value times the mean slope of the
    average in the member's raw prediction, along the straight path from the members'
    bases to their raw predictions (Aumann and Shapley 1974).
    """
    starts = [base for _, base, _ in parts]
    steps = [values.sum(axis=1) for values, _, _ in parts]
    is_binary = is_classifier(model) and steps[0].shape[1] == 1

    def average(at: float) -> tuple[Array, list[Array]]:
        """Return the average at the share `at` of the path, and the average's slope in
        each member's raw prediction.
        """
        pairs = zip(responses, starts, steps, strict=True)
        found = [respond(start + at * step) for respond, start, step in pairs]
        mean = np.asarray(sum(w * p for w, (p, _) in zip(weights, found, strict=True)))
        of_link = mean * (1 - mean) if is_binary else mean
        if (of_link <= 0).any():
            raise ValueError(
                f"{type(model).__name__} predicts {'0 or 1' if is_binary else '0'} for "
                f"row {(of_link <= 0).any(axis=1).argmax()} of X or for the base, and "
                "its logarithm is infinite; leave the row out, or explain members_ one "
                "by one."
            )
        of_link = of_link[..., np.newaxis]
        slopes = [w * d / of_link for w, (_, d) in zip(weights, found, strict=True)]
        return logit(mean) if is_binary else np.log(mean), slopes

    (base, _), (end, _) = average(0.0), average(1.0)
    places, shares = np.polynomial.legendre.leggauss(_N_NODES)
    for n_panels in _N_PANELS:
        values: Any = 0.0
        for panel in range(n_panels):
            for place, share in zip(places, shares / 2 / n_panels, strict=True):
                slopes = average((panel + (place + 1) / 2) / n_panels)[1]
                for (own, _, _), slope in zip(parts, slopes, strict=True):
                    values = values + share * np.einsum("nfj,nkj->nfk", own, slope)
        if np.allclose(values.sum(axis=1), end - base, rtol=0, atol=_TOLERANCE):
            break
    return values, base


def _response_of(model: BaseEstimator) -> Response:
    """Return a function that turns a member's raw predictions into predictions (with
    two classes, the probability of the second) and their slopes in the raw predictions.
    """
    if isinstance(model, EraForestClassifier):
        return _identity if model.n_trees_per_iteration_ == 1 else _proportions
    if is_classifier(model):
        return _logistic if len(model.classes_) < 3 else _softmax
    if isinstance(model, LinearRegressor):
        return _identity if model.loss == "squared_error" else _exponential
    if isinstance(model, BaseHistGradientBoosting):
        return _identity if isinstance(model._loss.link, IdentityLink) else _exponential
    return _identity


def _identity(raw: Array) -> tuple[Array, Array]:
    return raw, np.ones((1, 1, 1))


def _exponential(raw: Array) -> tuple[Array, Array]:
    mean = np.exp(raw)
    return mean, mean[..., np.newaxis]


def _logistic(raw: Array) -> tuple[Array, Array]:
    p = expit(raw)
    return p, (p * expit(-raw))[..., np.newaxis]


def _softmax(raw: Array) -> tuple[Array, Array]:
    p = softmax(raw, axis=1)
    return p, p[..., np.newaxis] * (np.eye(p.shape[1]) - p[:, np.newaxis])


def _proportions(raw: Array) -> tuple[Array, Array]:
    total = raw.sum(axis=1, keepdims=True)
    p = raw / total
    return p, (np.eye(p.shape[1]) - p[..., np.newaxis]) / total[..., np.newaxis]


def _of_sources(model: BaseEstimator, values: Array, base: Array, data: Array) -> Sums:
    """Return `Sums` in which each encoded column's values are added to the values of
    the column that it encodes.
    """
    if values.shape[1] > (n := model.n_features_in_):
        values, encoded = values[:, :n].copy(), values[:, n:]
        sources = model.encoder_._columns
        sources = np.repeat(sources, encoded.shape[1] // len(sources))
        for i, j in enumerate(sources):
            values[:, j] += encoded[:, i]
    return values, base, data[:, :n]


def _of_trees(model: BaseEstimator, X: Table, background: Table | None) -> Sums:
    """Return `Sums` of Shapley values of a booster's or forest's raw predictions."""
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
    order = np.argsort(columns)
    return values.transpose(2, 1, 0), base[np.newaxis], data[:, order]


def _in_eras(model: Any, X: Table, eras: Eras | None, found: Sums) -> Sums:
    """Return `Sums` in which the bases include the intercepts of the rows' `eras`."""
    values, base, data = found
    return values, base + getattr(in_eras(model, X, eras), "_steps_of_rows", 0.0), data


def _of_linear(text: str, model: BaseEstimator, X: Any, background: Any) -> Sums:
    """Return `Sums` of a linear model: the terms of columns in its raw predictions,
    less their means over the background. Errors name the model by `text`.
    """
    lowest, highest = -np.inf, np.inf
    read: Callable[[Any], tuple[Array, Array]]
    if isinstance(model, LinearRegressor | LinearClassifier):
        read, intercept = model._terms, model._intercepts[-1]
        if isinstance(model, LinearRegressor):
            lowest, highest = model._range
            if model.loss != "squared_error":
                with np.errstate(divide="ignore"):
                    lowest, highest = np.log(model._range)
    elif isinstance(model, LinearModel | LogisticRegression) and (
        is_classifier(model) or np.ndim(model.coef_) == 1
    ):
        intercept = np.atleast_1d(model.intercept_)

        def read(rows: NDArray[Any]) -> Any:
            data = validate_data(model, rows, reset=False, dtype=np.float64)
            return data[..., np.newaxis] * np.atleast_2d(model.coef_).T, data
    else:
        raise ValueError(
            f"{text}, a {type(model).__name__}, has no exact values: it is neither "
            "linear nor made of trees. Explain the other members_ one by one, or fit "
            "without it."
        )
    if background is None:
        raise ValueError(
            f"{text} is linear, and has no paths; pass background, such as some "
            "hundred rows of the training set."
        )
    terms, data = read(X)
    others, _ = read(background)
    is_cut = np.zeros(len(terms), dtype=bool)
    for other in others if np.isfinite(highest) else ():
        # The mixes of both that are lowest and highest.
        is_cut |= (np.minimum(terms, other).sum(axis=1) + intercept < lowest)[:, 0]
        is_cut |= (np.maximum(terms, other).sum(axis=1) + intercept > highest)[:, 0]
    if is_cut.any():
        raise ValueError(
            f"{text} cuts off predictions at the range of training targets, which some "
            f"mixes of background and {is_cut.sum()} of {is_cut.size} rows of X leave, "
            f"the first of them row {is_cut.argmax()}; there it is no sum. Leave these "
            "rows out, or explain members_ one by one."
        )
    mean = others.mean(axis=0)
    return terms - mean, (intercept + mean.sum(axis=0))[np.newaxis], data
