"""Lines on the scores of a model: of an average's members, and on held-out data."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from sklearn_era._era_axes import TIME_FIRST, read_known
from sklearn_era._era_routing import ask, told_eras
from sklearn_era.metrics import EraScoreForecast, era_scores
from sklearn_era.model_selection import EraSplit
from sklearn_era.model_selection._out_of_era import respond

LEAST_ERAS = 3  # for a forecast of the next one


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
    if model.era_labels_.size >= LEAST_ERAS:
        forecast = EraScoreForecast().fit(model)
        low, high = forecast.interval()
        text = f"{-forecast.mean_:.4g}, with 80 % from {-high:.4g} to {-low:.4g}"
        yield f"  its loss in the next era: {text}"


def score_held_out(
    estimator: Any, X: pd.DataFrame, y: NDArray[Any], eras: Any, group: str = "new",
    horizon: Any = 1,
) -> Iterator[str]:  # fmt: skip
    """Hold out eras or rows, score a clone, and yield lines to print."""
    is_classes, n_test = is_classifier(estimator), 1
    if eras is None:
        rows, by = np.arange(y.size), y if is_classes else None
        train, test = train_test_split(rows, test_size=0.2, random_state=0, stratify=by)
        held_out = f"{test.size:,} of {y.size:,} rows, drawn at random"
    else:
        order = estimator.get_params(deep=False)["era_order"]
        _, encoded, follow = read_known(eras, y, order, "the score of later eras")
        if (labels := encoded.labels).size == 1:
            raise ValueError("there is only one era.")
        n_test, asked = max(1, labels.size // 5), {"era_order": "ordered"}
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
    X, y, eras = X.iloc[test], y[test], None if eras is None else eras[test]
    known = told_eras(model, eras)
    predicted = ask(model, "predict", X, known)
    metrics: dict[str, Any] = {"R²": (r2_score, predicted)}
    if is_classes:
        labels = np.union1d(model.classes_, y)
        metrics = {"accuracy": (accuracy_score, predicted)}
        loss = partial(log_loss, labels=labels)
        metrics["log loss"] = loss, respond(model, X, labels, known)
    for name, (metric, predicted) in metrics.items():
        line = f"  {name}: {metric(y, predicted):.4f}"
        if n_test == 1:
            yield line
            continue
        times = encoded.take(test).decode()
        found = era_scores(y, predicted, eras=times, metric=metric)
        # R² of a single row is NaN.
        if not np.isnan(scores := found.scores).all():
            worst = (np.nanargmax if name == "log loss" else np.nanargmin)(scores)
            line += f"; by era {np.nanmean(scores):.4f} ± {np.nanstd(scores):.4f}"
            line += f", worst {scores[worst]:.4f} in era {found.eras[worst]}"
        yield line
        if np.isfinite(scores).sum() >= LEAST_ERAS:
            order = np.arange(scores.size) if follow else None
            forecast = EraScoreForecast().fit(scores, eras=order)
            low, high = forecast.interval()
            text = f"{forecast.mean_:.4f}, with 80 % from {low:.4f} to {high:.4f}"
            yield f"    in the next era: {text}"
