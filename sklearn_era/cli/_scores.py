"""Make the lines to print on an average's weights, and on scores of held-out data."""

import warnings
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import (
    get_scorer,
    get_scorer_names,
    make_scorer,
    mean_pinball_loss,
)
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from sklearn_era._era_axes import TIME_FIRST, read_known
from sklearn_era._era_labels import label_texts
from sklearn_era._era_routing import (
    eras_for_prediction,
    known_labels,
    question_of,
    with_answers,
    with_eras,
)
from sklearn_era.auto._candidates import PLAIN
from sklearn_era.cli._ui import (
    InputError,
    check_known,
    check_packages,
    count,
    one_sentence,
    refused,
)
from sklearn_era.metrics import EraScoreForecast
from sklearn_era.model_selection import EraSplit
from sklearn_era.model_selection._out_of_era import respond
from sklearn_era.model_selection._search_scores import ScorerByEra
from sklearn_era.model_selection._times_and_groups import is_same, steps_of
from sklearn_era.numerai.metrics import numerai_corr

LEAST_ERAS = 3  # for a forecast of the next one
MODELS, MODELS_OF_AUTO = 10, 3  # that score unless --cv tells another number
_OWN = {"numerai_corr": make_scorer(numerai_corr)}
_SOURCES = {"sklearn", "sklearn_era"}
_UNBOUNDED = {"positive_likelihood_ratio", "mutual_info_score"}
_SHARES = {  # from 0 to 1
    "accuracy_score", "average_precision_score", "balanced_accuracy_score", "f1_score",
    "jaccard_score", "precision_score", "recall_score", "roc_auc_score",
    "top_k_accuracy_score",
}  # fmt: skip
OF_LOSSES = -np.inf, 0.0
_WORDS = {"r2": "R²", "roc": "ROC", "auc": "AUC", "poisson": "Poisson"}
_SCORERS_OF_LOSSES = {
    "poisson": "neg_mean_poisson_deviance", "gamma": "neg_mean_gamma_deviance",
    "absolute_error": "neg_mean_absolute_error",
}  # fmt: skip


def find_scorers(name: str | None, y: NDArray[Any], is_classes: bool) -> dict[str, Any]:
    """Return {printed name: scorer} for `name`, the value of --scoring, or {} if `name`
    is None. Raise InputError if there is no such scorer, or if the scorer cannot score
    a constant prediction of the target `y`.
    """
    if name is None:
        return {}
    known = [*get_scorer_names(), *_OWN]
    check_known(name, known, "--scoring: there is no score")
    if name in _OWN:
        check_packages("numerai", "numerai-tools")
    scorer, X = _OWN.get(name) or get_scorer(name), np.zeros((y.size, 1))
    if not is_classes and "predict" not in np.atleast_1d(scorer._response_method):
        raise InputError(
            f"--scoring: '{name}' is for classes, and the target has none."
        )
    constant = (DummyClassifier if is_classes else DummyRegressor)().fit(X, y)
    what = f"--scoring: '{name}' cannot score this target: "
    with refused(what), warnings.catch_warnings(action="ignore"):
        scorer(constant, X, y)
    return {_shown(name): scorer}


def _usual_scorers(model: Any, y: Any) -> dict[str, Any]:
    """Return the scorers for a model's kind and loss, by the names to print."""
    names, params = ["r2"], model.get_params()
    loss = params.get("loss", params.get("estimator__loss"))
    if is_classifier(model):
        is_binary = np.union1d(model.classes_, y).size < 3
        names = ["accuracy", "neg_log_loss", "roc_auc" if is_binary else "roc_auc_ovr"]
    elif loss in _SCORERS_OF_LOSSES:
        names += [_SCORERS_OF_LOSSES[loss]]
    scorers = {_shown(x): get_scorer(x) for x in names}
    if loss == "quantile":
        share = params.get("quantile", params.get("estimator__quantile"))
        pinball = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=share)
        scorers["mean pinball loss"] = pinball
    return scorers


def _shown(name: str) -> str:
    words = name.removeprefix("neg_").split("_")
    return " ".join(_WORDS.get(word, word) for word in words)


def range_of(scorer: Any) -> tuple[float, float]:
    """Return a scorer's lowest and highest possible value; losses are negative."""
    metric: Any = getattr(scorer, "_score_func", None)
    source = getattr(metric, "__module__", "")
    if source.partition(".")[0] not in _SOURCES or metric.__name__ in _UNBOUNDED:
        return -np.inf, np.inf
    if scorer._sign < 0:
        return OF_LOSSES
    is_share = metric.__name__ in _SHARES and not scorer._kwargs.get("adjusted")
    return 0.0 if is_share else -np.inf, 1.0


def promise(
    scores: Any, horizon: Any, labels: Any, *, ends: tuple[float, float],
    eras: Any = None, form: str = ".4f", sign: int = 1,
) -> str:  # fmt: skip
    """Return text with a forecast of the score `horizon` ahead, or with the reason why
    there is none. The forecast is made from `scores` by era, clipped to the range
    `ends`, and multiplied by `sign`, which is -1 for losses. `labels` has all eras.
    """
    highest = np.nanmax(getattr(scores, "era_scores_", scores))
    # A loss of 0 has no logarithm, and for other scores bounds are no gain.
    bounds = (None, 0) if ends == OF_LOSSES and highest < 0 else None
    try:
        forecast = EraScoreForecast(bounds=bounds).fit(scores, eras=eras)
        steps = steps_of(horizon, labels)
    except ValueError as error:
        return f"no forecast: {one_sentence(error)}"
    # `mean_` is that of the next era: of a later one, this is the median.
    (middle, _), outer = (forecast.interval(x, horizon=steps) for x in (1e-9, 0.8))
    middle = forecast.mean_ if steps == 1 else middle
    found = (sign * np.clip(x, *ends) + 0.0 for x in (middle, *outer[::sign]))
    shown, low, high = (f"{x:{form}}" for x in found)
    is_next = is_same(horizon, 1)
    when = "the next era" if is_next else f"the era {ahead(horizon)} the last"
    return f"in {when}: {shown}, with 80 % from {low} to {high}"


def ahead(horizon: Any) -> str:
    """Return the horizon in words: "4 eras after", "28D after"."""
    return f"{horizon}{' eras' if isinstance(horizon, int) else ''} after"


def describe_average(model: Any, *, forecasts: bool) -> Iterator[str]:
    """Yield lines on an average: its weights, its gain over the plain model and, with
    `forecasts`, a forecast of its loss. Yield no line on any other model.
    """
    if not hasattr(model, "members_"):
        return
    of_all = sorted(model.weights_.items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{name} {weight:.2f}" for name, weight in of_all if weight)
    yield f"  weights: {shown}"
    gain, error = (model.cv_results_[f"{x}_difference"][-1] for x in ("mean", "se"))
    if np.isnan(error):
        yield "  a gain in one era left out may be chance: the plain model is kept"
        return
    plain = "the plain model's"
    if known_labels(model)[1] is not None:
        plain += ", which knows no groups,"
    text = f"{gain:.4g} (se {error:.2g}) less than {plain} in eras left out"
    if not gain > error:
        text += ", no more than its error: the plain model is kept"
    yield f"  loss of the average: {text}"
    if forecasts and model.era_labels_.size >= LEAST_ERAS:
        horizon = question_of(model)["horizon"]
        options: Any = {"form": ".4g", "ends": OF_LOSSES, "sign": -1}
        told = promise(model, horizon, model._known_eras, **options)
        yield f"  its loss {told}"


def score_held_out(
    estimator: Any, X: pd.DataFrame, y: NDArray[Any], eras: Any,
    scorers: dict[str, Any], group: str = "new", horizon: Any = 1,
    n_models: int | None = None,
) -> Iterator[str]:  # fmt: skip
    """Fit clones to part of the rows, score the clones on held-out eras or rows, and
    yield lines to print. In ordered eras, each clone is scored on eras that come
    `horizon` after the rows that it is fitted to.
    """
    encoded, follow, told = None, False, "a model fitted to the rest"
    if eras is None:
        rows, by = np.arange(y.size), y if is_classifier(estimator) else None
        folds = [train_test_split(rows, test_size=0.2, random_state=0, stratify=by)]
        held_out = f"{folds[0][1].size:,} of {y.size:,} rows, drawn at random"
    else:
        order = estimator.get_params(deep=False)["era_order"]
        of_rows, encoded, follow = read_known(eras, y, order, "the score of later eras")
        if encoded.groups is not None:
            eras.calendar = of_rows.calendar
        if (labels := encoded.labels).size == 1:
            raise ValueError("there is only one era.")
        if follow:
            folds, size = _steps(estimator, y, eras, encoded, group, horizon, n_models)
            n_test = size * len(folds)
            held_out = f"from era {label_texts(labels)[-n_test]} on"
            if encoded.groups is not None:
                held_out += f", of {group} groups"
            when = "the next era"
            if horizon != 1:
                when = f"{count(size, 'era')}, from the one {ahead(horizon)} its last"
            told = f"{count(len(folds), 'model')}, each scored on {when}"
        else:
            n_test = max(1, labels.size // 5)
            split = GroupShuffleSplit(1, test_size=n_test, random_state=0)
            folds, held_out = [*split.split(y, groups=eras)], "drawn at random"
            if n_models is not None:
                raise ValueError(f"--cv {n_models} is for eras that follow each other.")
        held_out = f"{n_test:,} of {labels.size:,} eras, {held_out}"
    yield f"Score on held-out data ({held_out}; {told}):"
    models, test = [], np.concatenate([test for _, test in folds])
    options: dict[str, Any] = {"verbose": 0}
    if vars(estimator).get("time_budget") is not None:  # the members that it allowed
        tried = [name for name in estimator.weights_ if name != PLAIN]
        options |= {"members": tried, "time_budget": None}
    for train, own in folds:
        model = clone(estimator).set_params(**options)
        before, later = (None, None) if eras is None else (eras[train], eras[own])
        model.fit(X.iloc[train], y[train], eras=before)
        model = with_eras(model, eras_for_prediction(model, later))
        models.append((model, X.iloc[own]))
    X, y, known = X.iloc[test], y[test], encoded and encoded.take(test)
    model = _answering(models)
    scorers = scorers or _usual_scorers(model, y)
    of_all = None if encoded is None else encoded.labels
    yield from score_lines(model, X, y, known, scorers, horizon, of_all, follow)


def _steps(
    estimator: Any, y: Any, eras: Any, encoded: Any, group: str, horizon: Any,
    n_models: int | None,
) -> tuple[list[Any], int]:  # fmt: skip
    """Return (steps, size). `steps` is a list of pairs: the rows to fit to, and the
    rows to score. `size` is the number of eras that a step scores, which is the length
    of the horizon, but at most a fifth of all eras.
    """
    n_test = max(1, encoded.labels.size // 5)
    size = min(steps_of(horizon, encoded.labels), n_test)
    if n_models is None:
        most = MODELS_OF_AUTO if hasattr(estimator, "time_budget") else MODELS
        n_models = min(n_test // size, most)
    asked: dict[str, Any] = {"era_order": "ordered"}
    n_folds = 2  # which one column ignores
    if encoded.groups is not None:
        n_folds = min(5, encoded.groups.labels.size) if group == "new" else 1
        asked = {"group": group, "era_order": TIME_FIRST}
    split = EraSplit(n_models, n_folds, test_size=size, horizon=horizon, **asked)
    n_folds = split.get_n_splits(y, groups=eras) // n_models
    # One fold of groups a step, each in turn.
    every = enumerate(split.split(y, groups=eras))
    chosen = (fold for i, fold in every if i % n_folds == i // n_folds % n_folds)
    return [*chosen], size


def _answering(models: list[tuple[Any, Any]]) -> Any:
    """Return one model that stands for pairs of a model and its rows. It ignores the X
    that it is passed, and joins the predictions of each model for its own rows.
    """
    last, classes = models[-1][0], None
    if is_classifier(last):
        classes = reduce(np.union1d, (model.classes_ for model, _ in models))

    def answer(method: str, _: Any) -> Any:
        if method == "predict_proba":
            found = [respond(model, X, classes) for model, X in models]
        else:
            found = [getattr(model, method)(X) for model, X in models]
        return np.concatenate(found)

    answering = with_answers(last, answer)
    if classes is not None:
        answering.classes_ = classes
        # Models may have other classes: probabilities are of all.
        answering.decision_function = None
    return answering


def score_lines(
    model: Any, X: pd.DataFrame, y: Any, encoded: Any, scorers: dict[str, Any],
    horizon: Any = None, labels: Any = None, follow: bool = False,
) -> Iterator[str]:  # fmt: skip
    """Score a model by each scorer, also era by era, and yield lines to print. If there
    is a `horizon`, which needs the `labels` of all eras, a line forecasts the score.
    If there are several scorers, undefined scores have no line.
    """
    for name, scorer in scorers.items():
        by_era, sign = ScorerByEra(scorer, None), scorer._sign
        try:
            score = sign * by_era(model, X, y, era_codes=np.zeros(y.size, int))
        except ValueError:
            score = np.nan
            if len(scorers) == 1:
                raise
        if np.isnan(score) and len(scorers) > 1:
            continue
        line = f"  {name}: {score:.4f}"
        if encoded is None or encoded.labels.size == 1:
            yield line
            continue
        scores = by_era(model, X, y, era_codes=encoded.codes).scores
        # R² of a single row is NaN.
        if not np.isnan(scores).all():
            mean, worst = sign * np.nanmean(scores), int(np.nanargmin(scores))
            line += f"; by era {mean:.4f} (sd {np.nanstd(scores):.4f}), worst "
            era = label_texts(encoded.labels)[worst]
            line += f"{sign * scores[worst]:.4f} in era {era}"
        yield line
        if horizon is not None and np.isfinite(scores).sum() >= LEAST_ERAS:
            order = np.arange(scores.size) if follow else None
            options: Any = {"eras": order, "ends": range_of(scorer), "sign": sign}
            yield f"    {promise(scores, horizon, labels, **options)}"
