"""Pass eras to the transformers of a pipeline, and to predictions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context, get_config
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_regressor,
)
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object

from ._era_arguments import warn_of_row_order
from ._era_axes import read_again
from ._era_columns import (
    era_columns_in,
    names_columns,
    take_era_column,
    without_era_column,
)
from ._era_labels import find, label_texts
from ._eras import check_eras, encode_eras
from ._label_columns import EraColumns
from ._typing import Eras, Table
from ._warnings import listed, warn_user

# The labels of times and groups, of models around others and of boosters.
_KNOWN = ("_known_eras", "_known_groups"), ("_era_labels", "_group_labels")
_INNER = "estimator_", "best_estimator_", "regressor_", "transformer_"
_PREDICTIONS = "predict", "predict_proba", "predict_log_proba", "decision_function"


class PredictsByEra:
    """Mixin that by default requests eras for ``fit`` and predictions, not for
    ``score``.
    """

    _hands_eras_on: ClassVar = True  # to a model within, if any, and no more
    __metadata_request__fit: ClassVar = {"eras": True}
    __metadata_request__predict: ClassVar = {"eras": True}
    __metadata_request__predict_proba: ClassVar = {"eras": True}
    __metadata_request__score: ClassVar = {"eras": False}

    def get_metadata_routing(self) -> Any:
        """Return the requests of metadata, as scikit-learn's metadata routing asks."""
        return requests_of(self)


def requests_of(model: Any) -> Any:
    """Return a model's own requests of metadata, without eras for predictions that
    would refuse them, as the model within takes none.
    """
    requests = model._get_metadata_request()
    for method in _PREDICTIONS:
        of_method = getattr(requests, method)
        if of_method.requests.get("eras") and not takes_eras(model, method):
            of_method.add_request(param="eras", alias=False)
    return requests


def prepares_by_era(model: BaseEstimator, *, in_fit: bool = False) -> bool:
    """Return whether a pipeline hands eras to a transformer. The pipeline is the model
    itself, its `regressor` or, unless `in_fit`, its `estimator` or one of its members.
    """
    if isinstance(model, Pipeline):
        *steps, last = (step for _, step in model.steps)
        return prepares_by_era(last, in_fit=in_fit) or any(
            get_routing_for_object(step).consumes("transform", ["eras"])
            for step in steps
        )
    inner = [getattr(model, "regressor", None)]
    if not in_fit and takes(getattr(model, "predict", id), "eras"):
        names = "best_estimator_", "estimator"  # a search may have replaced parts
        inner += [next((getattr(model, x) for x in names if hasattr(model, x)), None)]
        inner += getattr(model, "members_", {}).values()
    return any(x is not None and prepares_by_era(x, in_fit=in_fit) for x in inner)


def routed(estimator: BaseEstimator) -> AbstractContextManager[None]:
    """Return a context that routes metadata if a transformer takes eras in the fit."""
    is_routed = prepares_by_era(estimator, in_fit=True) or None
    return config_context(enable_metadata_routing=is_routed)


def with_requests(model: BaseEstimator, *, copy: bool = True) -> Any:
    """Return a copy of a model, or itself unless `copy`, in which predictors request
    weights, unless they are in a pipeline before its last step; transformers do not.
    Return the model as it is if the user routes metadata, or if no transformer takes
    eras in the fit.
    """
    is_routed = get_config()["enable_metadata_routing"]
    if is_routed or not prepares_by_era(model, in_fit=True):
        return model
    model = clone(model) if copy else model
    parts = {"": model, **model.get_params()}
    kept, earlier = [], []  # parts of fitted models, and steps before the last one
    for name, part in parts.items():
        path = f"{name}__" if name else ""
        if isinstance(part, FrozenEstimator):
            kept.append(path)
        elif isinstance(part, Pipeline):
            earlier += [f"{path}{step}__" for step, _ in part.steps[:-1]]
    with config_context(enable_metadata_routing=True):
        for name, part in parts.items():
            is_kept = any(f"{name}__".startswith(x) for x in kept)
            if is_kept or not hasattr(part, "set_fit_request"):
                continue
            requests = part._get_metadata_request().fit.requests
            if requests.get("sample_weight", False) is None:
                is_last = not any(f"{name}__".startswith(x) for x in earlier)
                part.set_fit_request(sample_weight=is_last and hasattr(part, "predict"))
    return model


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Return whether a function takes an argument: by this name, or by ``**kwargs``."""
    parameters = inspect.signature(function).parameters
    return argument in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def takes_eras(model: BaseEstimator, method: str) -> bool:
    """Return whether predictions of a model, or transformers inside it, take eras. A
    model that only hands eras on takes them if the model within does.
    """
    last = _last(model, of_all=True)
    respond = getattr(last, method, getattr(last, "predict_proba", id))
    if prepares_by_era(model) or "eras" in inspect.signature(respond).parameters:
        return True
    if not takes(respond, "eras"):
        return False
    # By ``**kwargs``, StackingRegressor takes what its final model does, and models of
    # LightGBM or Keras take parameters; models around others hand eras on.
    routing: Any = get_routing_for_object(last)
    if isinstance(routing, MetadataRouter):
        return bool(routing.consumes(method, ["eras"]))
    is_outer = hasattr(last, "estimator") or hasattr(last, "regressor")
    named = "eras" in inspect.signature(last.fit).parameters
    return named or (is_outer and takes(last.fit, "eras"))


def eras_for_prediction(model: BaseEstimator, eras: Eras | None) -> Any:
    """Return `eras` if the model may use them to predict left-out rows, else None.
    Pipelines with a transformer that takes eras use them. If `eras` are times and
    groups, boosters with `era_effects` and models derived from `PredictsByEra` do, too.
    """
    last = _last(model, of_all=True)
    has_levels = getattr(last, "era_effects", None) is not None
    is_told = isinstance(eras, EraColumns) and (
        has_levels or isinstance(last, PredictsByEra)
    )
    return eras if is_told or prepares_by_era(model) else None


def is_scored_by_era(model: BaseEstimator) -> bool:
    """Return whether predictions of a model take eras, and it or the model within
    requests them for ``score``.
    """
    asked: Any = _last(model), _last(model, of_all=True)
    requests = [
        x._get_metadata_request().score.requests.get("eras")
        for x in asked
        if hasattr(x, "_get_metadata_request")
    ]
    return any(requests) and takes_eras(model, "predict")


def _last(model: Any, *, of_all: bool = False) -> Any:
    """Return the innermost model. Enter pipelines, `TransformedTargetRegressor`, frozen
    models and, if `of_all`, all models that only hand eras on.
    """
    if isinstance(model, FrozenEstimator):
        return _last(model.estimator, of_all=of_all)
    if hasattr(model, "steps"):
        return _last(model[-1], of_all=of_all)
    names = ["regressor_"] * isinstance(model, TransformedTargetRegressor)
    if of_all and getattr(model, "_hands_eras_on", False):
        names += ["estimator_", "best_estimator_"]
    inner = [getattr(model, name) for name in names if hasattr(model, name)]
    return _last(inner[0], of_all=of_all) if inner else model


def ask(model: BaseEstimator, method: str, X: Table, eras: Eras | None) -> Any:
    """Return the predictions of a model's method; `eras` are None or the rows' eras.
    Raise ValueError if the method takes no eras.
    """
    respond = getattr(model, method)
    if eras is None:
        return respond(X)
    X, eras = take_era_column(X, eras, model=model)
    if not takes_eras(model, method):
        raise ValueError(
            f"eras: the {method} of {type(model).__name__} takes none; leave eras out."
        )
    check_eras(eras, X)
    # A booster without intercepts is the same in all eras, and refuses them.
    is_the_same = getattr(_last(model), "era_effects", "unknown") is None
    prepares = prepares_by_era(model)
    if is_the_same and not prepares:
        return respond(X)
    with config_context(enable_metadata_routing=prepares or None):
        return respond(X, eras=eras)


def of_all_classes(p: NDArray[Any], known: Any, classes: Any) -> NDArray[np.float64]:
    """Return an array with a column for each of `classes`: the probabilities in `p` for
    a class in `known`, and 0 for any other class.
    """
    found = np.zeros((p.shape[0], classes.size))
    # Boosters of one class have two columns.
    found[:, np.searchsorted(classes, known)] = p[:, : known.size]
    return found


def question_of(model: BaseEstimator) -> dict[str, Any]:
    """Return a dict of the `group` and the `horizon` that a model is for. They are
    attributes of the model's `cv` if this is an `EraSplit`, otherwise of the model;
    None stands for a missing attribute.
    """
    cv = getattr(model, "cv", None)
    asked: Any = cv if hasattr(cv, "question") else model
    return {name: getattr(asked, name, None) for name in ("group", "horizon")}


def take_fitted_columns(
    model: BaseEstimator, X: Table, eras: Eras | None
) -> tuple[Any, Any]:
    """Return (X, eras): X without the columns that held the eras in the fit, and the
    labels of the eras. If `eras` is None, the labels come from these columns, but only
    if transformers or a model of known groups need them; otherwise they are None. If
    the labels have two columns, times come first.
    """
    pair = vars(model).get("_pair")
    if eras is None:
        is_of_known = pair is not None and question_of(model)["group"] == "known"
        name = era_columns_in(model, X, is_known=is_of_known)
        if name is not None and (is_of_known or prepares_by_era(model)):
            eras = name
        else:
            X = take_era_column(X, name)[0]
    elif not names_columns(eras, X):
        X = without_era_column(model, X)
    X, eras = take_era_column(X, eras, model=model)
    if warn_of_row_order(eras, X):  # models inside are not to warn again
        eras = cast(Any, eras).set_axis(cast(Any, X).index)
    if pair and not isinstance(eras, EraColumns | None):
        eras = read_again(model, eras, X)[0]
    return X, eras


def take_eras_to_predict(model: Any, X: Any, eras: Any) -> tuple[Any, Any]:
    """Return (X, eras) as `take_fitted_columns` does, but None for labels that were not
    passed if the predictions take no eras. Warn of rows in new groups if the model is
    for known groups, unless `eras` are `EraColumns`: an outer model has warned already.
    """
    is_read, is_passed = isinstance(eras, EraColumns), eras is not None
    X, eras = take_fitted_columns(model, X, eras)
    if isinstance(eras, EraColumns) and not is_read:
        warn_of_new_groups(model, eras, question_of(model)["group"])
    is_used = is_passed or eras is None or takes_eras(model, "predict")
    return X, eras if is_used else None


def known_labels(model: Any) -> tuple[Any, Any]:
    """Return (times, groups), the labels in a model's fit; None for labels that the
    model does not keep. A model without labels of times may keep the labels of eras
    that were left out: return these in place of the times.
    """
    for times, groups in _KNOWN:
        if hasattr(model, times):
            return getattr(model, times), getattr(model, groups, None)
    inner = (getattr(model, name) for name in _INNER if hasattr(model, name))
    for one in (*inner, *getattr(model, "members_", {}).values()):
        if (found := known_labels(one))[0] is not None:
            return found
    return getattr(model, "era_labels_", None), None


def warn_of_new_groups(model: Any, eras: EraColumns, group: str | None) -> None:
    """Warn of rows in groups that the fit has not seen, if `group` is "known"."""
    known = known_labels(model)[1]
    if group != "known" or known is None:
        return
    encoded = encode_eras(eras.columns[1])
    is_new = find(known, encoded.labels) < 0
    if n_rows := int(is_new[encoded.codes].sum()):
        new = encoded.labels[is_new]
        warn_user(
            f"{n_rows:,} of {encoded.codes.size:,} rows are of {new.size:,} group(s) "
            f"that the fit has not seen ({listed(label_texts(new))}), and the model "
            "is for known ones, group='known': they have no level of their own, and "
            "intervals may be too narrow. Fit a model with group='new' for them."
        )


def score(
    self: BaseEstimator, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None,
    *, eras: Eras | None = None,
) -> float:  # fmt: skip
    """Score predictions, by R^2 for a regressor and by accuracy for a classifier.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows to predict.
    y, sample_weight, eras : array-like of shape (n_samples,)
        The targets of the rows, and their weights and eras, which are optional.

    Returns
    -------
    score : float
        R^2 or accuracy; 1 is the best.
    """
    kind: Any = RegressorMixin if is_regressor(self) else ClassifierMixin
    return kind.score(with_eras(self, eras), X, y, sample_weight)


def with_eras(model: BaseEstimator, eras: Eras | None) -> Any:
    """Return a copy of a fitted model that predicts rows as rows of the given `eras`.
    Return the model itself if `eras` are None.
    """
    if eras is None:
        return model
    return with_answers(model, lambda method, X: ask(model, method, X, eras))


def with_answers(model: BaseEstimator, answer: Callable[..., Any]) -> Any:
    """Return a copy of a fitted model whose predictions are ``answer(method, X)``."""
    copied = object.__new__(type(model))
    copied.__dict__.update(vars(model))
    for method in _PREDICTIONS:
        if getattr(model, method, None) is not None:
            respond: Any = partial(answer, method)
            respond.__name__ = method
            setattr(copied, method, respond)
    return copied
