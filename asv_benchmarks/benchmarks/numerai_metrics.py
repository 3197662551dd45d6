"""Numerai's scores over many eras."""

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from sklearn_era.numerai.metrics import (
    correlation_contribution,
    feature_neutral_corr,
    max_feature_exposure,
    numerai_corr,
)

N_FEATURES = 100


class Rows(NamedTuple):
    """Rows of eras, in order."""

    predictions: np.ndarray
    meta_model: np.ndarray
    targets: np.ndarray
    features: np.ndarray
    eras: np.ndarray


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
    return Rows(predictions, meta_model, targets, features, eras)


METRICS: dict[str, Callable[[Rows], Any]] = {
    "corr": lambda rows: numerai_corr(rows.targets, rows.predictions, eras=rows.eras),
    "contribution": lambda rows: correlation_contribution(
        rows.targets, rows.predictions, rows.meta_model, eras=rows.eras
    ),
    "feature_neutral_corr": lambda rows: feature_neutral_corr(
        rows.targets, rows.predictions, rows.features, eras=rows.eras
    ),
    "max_feature_exposure": lambda rows: max_feature_exposure(
        rows.predictions, rows.features, eras=rows.eras
    ),
}


class Score:
    """Seconds for all eras."""

    param_names = ("metric", "n_eras", "n_rows")
    params = (list(METRICS), [200], [5_000])
    timeout = 3600

    def setup(self, metric, n_eras, n_rows):
        if find_spec("numerai_tools") is None:
            raise NotImplementedError
        self.rows = make_rows(n_eras, n_rows)
        self.score = METRICS[metric]

    def time_score(self, *point):
        self.score(self.rows)
