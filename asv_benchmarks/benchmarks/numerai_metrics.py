"""Numerai's scores of many eras, ours and by numerai-tools."""

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from sklearn_era._optional import import_optional
from sklearn_era.numerai.metrics import (
    correlation_contribution,
    feature_neutral_corr,
    max_feature_exposure,
    numerai_corr,
)

REPEATS = 3
# Eras that numerai-tools scores, evenly spread: each takes it as long as the next.
MAX_ERAS_OF_REFERENCE = 20
N_FEATURES = 100


class Rows(NamedTuple):
    """Rows of eras, in order."""

    predictions: np.ndarray
    meta_model: np.ndarray
    targets: np.ndarray
    features: np.ndarray
    eras: np.ndarray
    ids: np.ndarray

    def of_era(self, era: int) -> "Rows":
        first, last = np.searchsorted(self.eras, [era, era + 1])
        return Rows(*(column[first:last] for column in self))


@lru_cache(maxsize=1)
def make_rows(n_eras: int, n_rows: int, n_features: int = N_FEATURES) -> Rows:
    rng = np.random.default_rng(0)
    n = n_eras * n_rows
    features = rng.integers(0, 5, size=(n, n_features), dtype=np.int8)
    signal = rng.standard_normal(n)
    predictions = signal + rng.standard_normal(n)
    meta_model = signal + rng.standard_normal(n)
    noise = rng.standard_normal(n) + 0.05 * signal
    targets = np.digitize(noise, [-1.64, -0.67, 0.67, 1.64]) / 4
    eras = np.repeat(np.arange(n_eras), n_rows)
    ids = np.array([f"n{i:015x}" for i in range(n)])
    return Rows(predictions, meta_model, targets, features, eras, ids)


def _reference(metric: str) -> Callable[[Rows], Any]:
    """What scores one era by numerai-tools, from the frames that it takes."""
    pandas = import_optional("pandas", extra="numerai")
    scoring = import_optional("numerai_tools.scoring", extra="numerai")

    def frame(rows: Rows) -> Any:
        return pandas.DataFrame({"prediction": rows.predictions}, rows.ids)

    def features(rows: Rows) -> Any:
        return pandas.DataFrame(rows.features, rows.ids)

    def series(rows: Rows, name: str) -> Any:
        return pandas.Series(getattr(rows, name), rows.ids, name=name)

    if metric == "corr":
        return lambda rows: scoring.numerai_corr(frame(rows), series(rows, "targets"))
    if metric == "contribution":
        return lambda rows: scoring.correlation_contribution(
            frame(rows), series(rows, "meta_model"), series(rows, "targets")
        )
    if metric == "feature_neutral_corr":
        return lambda rows: scoring.feature_neutral_corr(
            frame(rows), features(rows), series(rows, "targets")
        )
    return lambda rows: scoring.max_feature_correlation(
        series(rows, "predictions"), features(rows)
    )


OURS: dict[str, Callable[[Rows], Any]] = {
    "corr": lambda rows: numerai_corr(rows.predictions, rows.targets, rows.eras),
    "contribution": lambda rows: correlation_contribution(
        rows.predictions, rows.meta_model, rows.targets, rows.eras
    ),
    "feature_neutral_corr": lambda rows: feature_neutral_corr(
        rows.predictions, rows.targets, rows.features, rows.eras
    ),
    "max_feature_exposure": lambda rows: max_feature_exposure(
        rows.predictions, rows.features, rows.eras
    ),
}


class Score:
    """Seconds for all eras."""

    param_names = ("metric", "n_eras", "n_rows")
    params = (list(OURS), [200], [5_000])
    timeout = 3600

    def setup(self, metric, n_eras, n_rows):
        self.rows = make_rows(n_eras, n_rows)
        self.score = OURS[metric]

    def time_score(self, *point):
        self.score(self.rows)


class Ratio(Score):
    """An era's time by numerai-tools over ours, measured in turns."""

    def setup(self, metric, n_eras, n_rows):
        if find_spec("numerai_tools") is None:
            raise NotImplementedError
        super().setup(metric, n_eras, n_rows)
        self.reference = _reference(metric)

    def track_times_as_fast_as_numerai_tools(self, metric, n_eras, n_rows):
        step = max(1, n_eras // MAX_ERAS_OF_REFERENCE)
        some = [self.rows.of_era(era) for era in range(0, n_eras, step)]
        ours = theirs = np.inf
        for _ in range(REPEATS):
            start = perf_counter()
            self.score(self.rows)
            ours = min(ours, (perf_counter() - start) / n_eras)
            start = perf_counter()
            for rows in some:
                self.reference(rows)
            theirs = min(theirs, (perf_counter() - start) / len(some))
        return theirs / ours

    track_times_as_fast_as_numerai_tools.unit = "numerai-tools' time / ours"
