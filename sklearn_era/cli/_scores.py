"""Lines on the scores of a model: of an average's members, and on held-out data."""

import warnings
from collections.abc import Iterator
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
from sklearn_era._era_routing import told_eras, with_eras
from sklearn_era.cli._ui import InputError, check_known, check_packages, one_sentence
from sklearn_era.metrics import EraScoreForecast
from sklearn_era.model_selection import EraSplit
from sklearn_era.model_selection._era_split import steps_of
from sklearn_era.model_selection._search_scores import ScorerByEra
from sklearn_era.numerai.metrics import numerai_corr

LEAST_ERAS = 3  # for a forecast of the next one
_OWN = {"numerai_corr": make_scorer(numerai_corr)}
_SOURCES = {"sklearn", "sklearn_era"}
_UNBOUNDED = {"positive_likelihood_ratio", "mutual_info_score"}
_WORDS = {"r2": "R²", "roc": "ROC", "auc": "AUC", "poisson": "Poisson"}
_SCORERS_OF_LOSSES = {
    "poisson": "neg_mean_poisson_deviance", "gamma": "neg_mean_gamma_deviance",
    "absolute_error": "neg_mean_absolute_error",
}  # fmt: skip


def find_scorers(name: str | None, y: NDArray[Any], is_classes: bool) -> dict[str, Any]:
    """Return the scorer of --scoring, by the name to show; InputError if it is none, or
    cannot score what a constant predicts of the target.
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
    try:
        with warnings.catch_warnings(action="ignore"):
            scorer(
                (DummyClassifier if is_classes else DummyRegressor)().fit(X, y), X, y
            )
    except ValueError as error:
        raise InputError(
            f"--scoring: '{name}' cannot score this target: {one_sentence(error)}"
        ) from error
    return {_shown(name): scorer}


def _usual_scorers(model: Any, y: Any) -> dict[str, Any]:
    """Return the scorers for a kind of model, and for its loss."""
    names, params, q = ["r2"], model.get_params(), "quantile"
    loss = params.get("loss", params.get("estimator__loss"))
    if is_classifier(model):
        is_binary = np.union1d(model.classes_, y).size < 3
        names = ["accuracy", "neg_log_loss", "roc_auc" if is_binary else "roc_auc_ovr"]
    elif loss in _SCORERS_OF_LOSSES:
        names += [_SCORERS_OF_LOSSES[loss]]
    scorers = {_shown(x): get_scorer(x) for x in names}
    if loss == q:
        share = {"alpha": params.get(q, params.get(f"estimator__{q}"))}
        pinball = make_scorer(mean_pinball_loss, greater_is_better=False, **share)
        scorers["mean pinball loss"] = pinball
    return scorers


def _shown(name: str) -> str:
    words = name.removeprefix("neg_").split("_")
    return " ".join(_WORDS.get(word, word) for word in words)


def best_of(scorer: Any) -> float:
    """Return what a score cannot exceed: 0 of minus a loss, or 1."""
    metric: Any = getattr(scorer, "_score_func", None)
    source = getattr(metric, "__module__", "")
    if source.partition(".")[0] not in _SOURCES or metric.__name__ in _UNBOUNDED:
        return np.inf
    return 0.0 if scorer._sign < 0 else 1.0


def promise(
    scores: Any, horizon: Any, labels: Any, *, best: float, eras: Any = None,
    form: str = ".4f", sign: int = 1,
) -> str:  # fmt: skip
    """Tell what scores promise for an era so much later, shown times a sign, -1 for
    losses; none is above the best.
    """
    highest = np.nanmax(getattr(scores, "era_scores_", scores))
    # A loss of 0 has no logarithm, and for other scores bounds are no gain.
    bounds = (None, 0) if best == 0 > highest else None
    forecast = EraScoreForecast(bounds=bounds).fit(scores, eras=eras)
    steps = steps_of(horizon, labels)
    # `mean_` is that of the next era: of a later one, this is the median.
    (middle, _), ends = (forecast.interval(x, horizon=steps) for x in (1e-9, 0.8))
    middle = forecast.mean_ if steps == 1 else middle
    found = (sign * min(x, best) + 0.0 for x in (middle, *ends[::sign]))
    shown, low, high = (f"{x:{form}}" for x in found)
    unit = " eras" if isinstance(horizon, int) else ""
    when = "the next era" if horizon == 1 else f"the era {horizon}{unit} after the last"
    return f"in {when}: {shown}, with 80 % from {low} to {high}"


def describe_average(model: Any) -> Iterator[str]:
    """Lines on an average: its weights, and its gain over the plain model."""
    if not hasattr(model, "members_"):
        return
    of_all = sorted(model.weights_.items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{name} {weight:.2f}" for name, weight in of_all if weight)
    yield f"  weights: {shown}"
    if len(of_all) == 1:
        yield "  there was no time for other models: the plain model is kept"
        return
    gain, error = (model.cv_results_[f"{x}_difference"][-1] for x in ("mean", "se"))
    if np.isnan(error):
        yield "  a gain in one era left out may be chance: the plain model is kept"
        return
    text = f"{gain:.4g} ± {error:.2g} less than the plain model's in eras left out"
    if not gain > error:
        text += ", no more than its error: the plain model is kept"
    yield f"  loss of the average: {text}"
    if (labels := model.era_labels_).size >= LEAST_ERAS:
        options: Any = {"form": ".4g", "best": 0.0, "sign": -1}
        yield f"  its loss {promise(model, model.horizon, labels, **options)}"


def score_held_out(
    estimator: Any, X: pd.DataFrame, y: NDArray[Any], eras: Any,
    scorers: dict[str, Any], group: str = "new", horizon: Any = 1,
) -> Iterator[str]:  # fmt: skip
    """Hold out eras or rows, score a clone, and yield lines to print."""
    is_classes, encoded, follow = is_classifier(estimator), None, False
    if eras is None:
        rows, by = np.arange(y.size), y if is_classes else None
        train, test = train_test_split(rows, test_size=0.2, random_state=0, stratify=by)
        held_out = f"{test.size:,} of {y.size:,} rows, drawn at random"
    else:
        order = estimator.get_params(deep=False)["era_order"]
        _, encoded, follow = read_known(eras, y, order, "the score of later eras")
        if (labels := encoded.labels).size == 1:
            raise ValueError("there is only one era.")
        n_test = max(1, labels.size // 5)
        asked: dict[str, Any] = {"era_order": "ordered"}
        drawn, n_folds = f"from era {labels[-n_test]} on", 2
        split: Any = GroupShuffleSplit(1, test_size=n_test, random_state=0)
        if encoded.groups is not None:
            n_groups, asked = encoded.groups.labels.size, {"group": group}
            n_folds = min(5, n_groups) if group == "new" else 1
            drawn += f", of {group} groups"
        if follow:
            split = EraSplit(
                1, n_folds, test_size=n_test, horizon=horizon,
                **{"era_order": TIME_FIRST, **asked},
            )  # fmt: skip
        elif horizon != 1:
            raise ValueError(f"horizon={horizon!r} is for eras that follow each other.")
        else:
            drawn = "drawn at random"
        train, test = next(iter(split.split(y, groups=eras)))
        held_out = f"{n_test:,} of {labels.size:,} eras, {drawn}"
    yield f"Score on held-out data ({held_out}; a model fitted to the rest):"
    model = clone(estimator).set_params(verbose=0)
    model.fit(X.iloc[train], y[train], eras=None if eras is None else eras[train])
    X, y, known = X.iloc[test], y[test], encoded and encoded.take(test)
    eras = None if eras is None else eras[test]
    scorers = scorers or _usual_scorers(model, y)
    yield from score_lines(model, X, y, eras, known, scorers, horizon, follow)


def score_lines(
    model: Any, X: pd.DataFrame, y: Any, eras: Any, encoded: Any,
    scorers: dict[str, Any], horizon: Any = None, follow: bool = False,
) -> Iterator[str]:  # fmt: skip
    """Score a model, also by era; with a horizon, tell what that promises. Of several
    scores, those that are undefined are left out.
    """
    if (own_eras := told_eras(model, eras)) is not None:
        model = with_eras(model, own_eras)
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
            line += f"; by era {mean:.4f} ± {np.nanstd(scores):.4f}, worst "
            line += f"{sign * scores[worst]:.4f} in era {encoded.labels[worst]}"
        yield line
        if horizon is not None and np.isfinite(scores).sum() >= LEAST_ERAS:
            order = np.arange(scores.size) if follow else None
            options: Any = {"eras": order, "best": best_of(scorer), "sign": sign}
            yield f"    {promise(scores, horizon, encoded.labels, **options)}"
