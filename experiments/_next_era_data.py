"""Scores by era of the natural sets: out of era in training, and of test eras."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss, mean_squared_error, r2_score, roc_auc_score

from experiments._natural_eras_controls import folds_of, losses, staged
from experiments._natural_eras_data import Scenario
from experiments._natural_eras_measure import Split, score_rows
from experiments.common import measure_cells, respond, seed_of
from experiments.natural_eras import MODELS, booster
from sklearn_era.metrics import era_standard_errors

PLAIN, TUNED, AUTO = "plain", "tuned", "AutoEra"
# Boosters of a tuned model, and shares of their trees; the plain model comes first.
GRID: list[dict[str, Any]] = [
    {"max_leaf_nodes": 31, "max_iter": 100},
    {"max_leaf_nodes": 15, "max_iter": 150},
    {"max_leaf_nodes": 8, "max_iter": 300},
    {"max_leaf_nodes": 4, "max_iter": 400},
    {"max_leaf_nodes": 15, "max_iter": 150, "learning_rate": 0.05},
]
SHARES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3)
OUT_OF_ERA, TEST = "out of era", "test"
# The metrics as functions whose standard errors are in closed form.
_LOG_LOSS = partial(log_loss, labels=[0, 1])
METRICS: dict[str, dict[str, Callable[..., float]]] = {
    "regression": {"score": r2_score, "loss": mean_squared_error},
    "classification": {"score": roc_auc_score, "loss": _LOG_LOSS},
}

Values = NDArray[np.float64]


class _Folds(Split):
    """A split of a scenario whose rows to train on are in folds of whole eras."""

    def __init__(
        self, name: str, scenario: Scenario, split: int, data_dir: Any, quick: bool
    ) -> None:
        self.seed = seed_of("natural eras", name, split, 0)
        most_rows = 1_000 if quick else scenario.most_rows
        super().__init__(scenario, split, data_dir, self.seed, most_rows)
        self.folds = [
            (self.train[fitted], self.train[left_out])
            for fitted, left_out in folds_of(self.labels[self.train])
        ]
        self.out = np.concatenate([left_out for _, left_out in self.folds])

    def scores(
        self, p: Values, rows: Any, with_errors: bool, **cell: Any
    ) -> list[dict]:
        """Scores of the eras by each metric, and the errors if they are wanted."""
        y, eras = self.y[rows], self.eras[rows]
        labels, n_rows = np.unique(eras, return_counts=True)
        found = []
        for metric, known in METRICS[self.task].items():
            values = np.array(
                [self._score(metric, y[eras == era], p[eras == era]) for era in labels]
            )
            errors = np.full(labels.size, np.nan)
            if with_errors:
                errors = era_standard_errors(y, p, eras=eras, metric=known).scores
                errors[np.isnan(values)] = np.nan
            columns = {"era": labels, "n_rows": n_rows, "value": values}
            frame = pd.DataFrame({**cell, "metric": metric, **columns, "error": errors})
            found += frame.to_dict("records")
        return found

    def _score(self, metric: str, y: Values, p: Values) -> float:
        if metric == "score":
            return score_rows(self.task, y, p)
        return float(losses(self.task, y, p).mean())

    def of_model(self, out: Values, on_test: Values, **cell: Any) -> list[dict]:
        """Scores of what was predicted out of era, and of the test eras."""
        return [
            *self.scores(out, self.out, True, part=OUT_OF_ERA, **cell),
            *self.scores(on_test, self.test, True, part=TEST, **cell),
        ]

    def staged(self, parameters: dict, fitted: Any, asked: Any) -> Values:
        """Predict after shares of a booster's trees, of shape (7, n_rows)."""
        model = self.fit(booster(**parameters)(self.task, self.seed), fitted)
        stages = staged(model, self.X[asked], step=1)
        return np.array([stages[round(share * len(stages)) - 1] for share in SHARES])

    def of_auto(self) -> list[dict]:
        model = self.fit(MODELS["AutoEra"](self.task, self.seed), self.train)
        left = model._left_out
        codes = np.unique(self.labels[self.out], return_inverse=True)[1]
        np.testing.assert_array_equal(left["codes"], codes)
        parts = left["predicted"].items()
        p = np.sum([model.weights_[x] * each[-1] for x, each in parts], axis=0)
        if self.task == "classification":  # of the class that the row has
            p = np.where(self.y[self.out] == 1, p, 1 - p)
        on_test = respond(model, self.X[self.test])
        return self.of_model(p, on_test, model=AUTO, candidate=0)

    def of_grid(self) -> list[dict]:
        """Scores of all candidates out of era, and of the best ones in test eras."""
        out, on_test = [], []
        for parameters in GRID:
            parts = [self.staged(parameters, *fold) for fold in self.folds]
            out += [*np.concatenate(parts, axis=1)]
            on_test += [*self.staged(parameters, self.train, self.test)]
        cell = {"model": TUNED, "part": OUT_OF_ERA}
        found = [
            self.scores(p, self.out, False, candidate=number, **cell)
            for number, p in enumerate(out)
        ]
        best = {0}
        for metric, sign in {"score": 1, "loss": -1}.items():
            means = [
                np.nanmean([sign * x["value"] for x in rows if x["metric"] == metric])
                for rows in found
            ]
            best.add(int(np.argmax(means)))
        for number in best:
            own = {"model": TUNED, "candidate": number}
            found[number] = self.of_model(out[number], on_test[number], **own)
        return [row for rows in found for row in rows]


def _measure(
    auto: bool,
    scenario: str,
    split: int,
    quick: bool,
    scenarios: Mapping[str, Scenario],
    data_dir: Path | None,
) -> list[dict]:
    """Scores by era of AutoEra, or of the grid."""
    rows = _Folds(scenario, scenarios[scenario], split, data_dir, quick)
    return rows.of_auto() if auto else rows.of_grid()


def collect(
    scenarios: Mapping[str, Scenario],
    *,
    data_dir: Path | None,
    quick: bool,
    cache: Path | None,
    n_jobs: int | None,
) -> pd.DataFrame:
    """Scores by era of all models."""
    cells = (
        {"auto": auto, "scenario": name, "split": split, "quick": quick}
        for auto in (False, True)
        for name, scenario in scenarios.items()
        for split in range(1 if quick else scenario.n_splits)
    )
    given = {"scenarios": scenarios, "data_dir": data_dir}
    return measure_cells(_measure, cells, cache=cache, n_jobs=n_jobs, **given)
