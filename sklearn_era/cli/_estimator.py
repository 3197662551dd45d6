"""The estimator of ``fit``: its parameters, and how well it does on other rows."""

import ast
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import train_test_split

from sklearn_era import ensemble
from sklearn_era.cli._errors import InputError, check_known
from sklearn_era.metrics import era_scores
from sklearn_era.model_selection import EraWalkForwardSplit


def parse_value(text: str) -> Any:
    """Read a value as JSON or a Python literal; what is neither is text."""
    if text.lower() in ("true", "false", "none"):
        text = text.capitalize()
    for parse in (json.loads, ast.literal_eval, float):
        with suppress(ValueError, TypeError, SyntaxError):
            return parse(text)
    return text


def make_estimator(is_classes: bool, pairs: Any, options: dict[str, Any]) -> Any:
    """An estimator of options, and of the NAME=VALUE pairs given beside them."""
    kind = "Classifier" if is_classes else "Regressor"
    estimator = getattr(ensemble, f"HistGradientBoosting{kind}")
    subject = f"--param: {estimator.__name__} has no parameter"
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not (name and equals):
            raise InputError(f"--param: '{pair}' is not NAME=VALUE.")
        check_known(name, estimator._get_param_names(), subject)
        if name in options:
            raise InputError(f"--param: '{name}' is given twice or has its own option.")
        options[name] = parse_value(text.strip())
    return estimator(**options)


def score_held_out(
    estimator: Any, X: pd.DataFrame, y: NDArray[Any], eras: NDArray[Any] | None
) -> Iterator[str]:
    """Hold out eras or rows, and score a clone: lines to print, or a ValueError."""
    is_classes, n_test = is_classifier(estimator), 0
    if eras is None:
        rows, by = np.arange(y.size), y if is_classes else None
        train, test = train_test_split(rows, test_size=0.2, random_state=0, stratify=by)
        held_out = f"{test.size:,} of {y.size:,} rows, drawn at random"
    else:
        if (labels := np.unique(eras)).size == 1:
            raise ValueError("there is only one era.")
        n_test = max(1, labels.size // 5)
        [(train, test)] = EraWalkForwardSplit(1, test_size=n_test).split(y, groups=eras)
        held_out = f"{n_test:,} of {labels.size:,} eras, from era {labels[-n_test]} on"
    yield f"Score on held-out data ({held_out}; a model fitted to the rest):"
    model = clone(estimator).set_params(verbose=0)
    model.fit(X.iloc[train], y[train], eras=None if eras is None else eras[train])
    X, y, eras = X.iloc[test], y[test], None if eras is None else eras[test]
    metrics: dict[str, Any] = {"R²": (r2_score, model.predict(X))}
    if is_classes:
        loss = partial(log_loss, labels=model.classes_)
        metrics = {"accuracy": (accuracy_score, model.predict(X))}
        metrics["log loss"] = loss, model.predict_proba(X)
    for name, (metric, predicted) in metrics.items():
        line = f"  {name}: {metric(y, predicted):.4f}"
        if n_test > 1:
            labels, scores, _ = era_scores(y, predicted, eras=eras, metric=metric)
            # R² of a single row is undefined.
            if not np.isnan(scores).all():
                worst = (np.nanargmax if name == "log loss" else np.nanargmin)(scores)
                line += f"; by era {np.nanmean(scores):.4f} ± {np.nanstd(scores):.4f}"
                line += f", worst {scores[worst]:.4f} in era {labels[worst]}"
        yield line
