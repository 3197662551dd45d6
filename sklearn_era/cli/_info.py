"""Describe the model in a file, for people and model cards."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

from sklearn_era._era_labels import label_texts
from sklearn_era._era_routing import known_labels, question_of
from sklearn_era.cli import _ui
from sklearn_era.cli._scores import LEAST_ERAS, describe_average, promise, range_of
from sklearn_era.model_files._estimators import first_booster, inner_models

# By the attribute that holds them: eras of the fit, of intercepts, of weights.
_ERAS = ("_known_eras", "_era_labels", "_weighted_eras", "era_labels_")
_MOST_NAMES = 100


def describe_model(model: Any, metadata: Any) -> Iterator[str]:
    """Yield lines on a model: columns, rows, eras, parameters, and stored scores."""
    of = "" if metadata.target is None else f" of '{metadata.target}'"
    yield f"{metadata.estimator}{of}"
    versions = (" ".join(pair) for pair in metadata.versions.items())
    yield f"  written by: {', '.join(versions)}"
    names = metadata.feature_names or [*range(model.n_features_in_)]
    categorical = {*metadata.categorical_features}
    shown = [f"{x} (categories)" if x in categorical else str(x) for x in names]
    if (n_more := len(shown) - _MOST_NAMES) > 0:
        shown[_MOST_NAMES:] = [f"and {n_more:,} more"]
    yield f"  columns: {len(names):,}: {', '.join(shown)}"
    if (classes := getattr(model, "classes_", None)) is not None:
        yield f"  classes: {', '.join(map(str, classes))}"
    if hasattr(booster := first_booster(model), "_predictors"):
        n_rows = int(booster._predictors[0][0].nodes["count"][0])
        yield f"  rows in the first tree: {n_rows:,}"
    yield from _describe_eras(model, booster, metadata.era)
    if metadata.groups is not None:
        labels = known_labels(model)[1]
        number = "" if labels is None else f"{labels.size:,} "
        told = "" if metadata.group is None else f"; for {metadata.group} groups"
        yield f"  groups: {number}of column '{metadata.groups}'{told}"
    if (horizon := metadata.horizon) is not None:
        far = _ui.count(horizon, "era") if isinstance(horizon, int) else horizon
        yield f"  horizon: {far} ahead"
    yield f"  parameters: {' '.join(repr(model).split())}"
    for inner in inner_models(model) or [model]:
        if hasattr(inner, "_predictors"):
            yield f"  {type(inner).__name__}: {_ui.describe_fit(inner)}"
    yield from describe_average(model, forecasts=True)
    yield from _describe_scores(model)


def _describe_eras(model: Any, booster: Any, column: str | None) -> Iterator[str]:
    found = [vars(x).get(name) for x in (model, booster) for name in _ERAS]
    labels = next((x for x in found if x is not None), None)
    if labels is None:
        if column is not None:
            yield f"  eras: of column '{column}'; the model keeps no labels"
        return
    texts = label_texts(labels)
    of = "" if column is None else f" of column '{column}'"
    order = getattr(model, "era_order_", None)
    known = f", {order}" if order else ""
    is_all = not inner_models(model) or hasattr(model, "_known_eras")
    kind = "eras" if is_all else "eras left out"
    yield f"  {kind}: {len(texts):,}{of}, {texts[0]} to {texts[-1]}{known}"


def _describe_scores(model: Any) -> Iterator[str]:
    """Yield lines on the scores by era that a model stores. An average stores its own
    scores and the scores of its plain model, a search the scores of its chosen
    candidate, and a forest its out-of-bag scores.
    """
    scores: dict[str, Any] = {}
    of_all: Any = getattr(model, "era_scores_", None)
    if hasattr(model, "members_"):
        scores = {"plain": -of_all[0], "average": -of_all[-1]}
        kind = f"loss in eras left out, of {model._left_out['y'].size:,} rows"
    elif isinstance(of_all, np.ndarray):
        scores = {"score": of_all[model.best_index_]}
        kind = "score of the chosen candidate in eras left out"
    elif hasattr(model, "oob_era_scores_"):
        scores, kind = {"score": model.oob_era_scores_}, "score out of bag"
    else:
        return
    yield f"  {kind}: {', '.join(scores)}"
    rows = zip(label_texts(model.era_labels_), *scores.values(), strict=True)
    for label, *values in rows:
        yield f"    {label}: {', '.join(f'{value:.4g}' for value in values)}"
    if not hasattr(model, "members_") and model.era_labels_.size >= LEAST_ERAS:
        lowest = 0.0 if hasattr(model, "classes_") else -np.inf
        known, ends = scores["score"], (lowest, 1.0)  # accuracy or R², out of bag
        if of_all is not None:
            known = model
            ends = range_of(model._default_scorer() or get_scorer(model.scoring))
        horizon, labels = question_of(model)["horizon"] or 1, model.era_labels_
        told = promise(known, horizon, labels, form=".4g", ends=ends)
        yield f"  {told}"
