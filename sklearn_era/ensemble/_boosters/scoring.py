"""Early stopping by a scorer that asks for eras."""

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.utils._metadata_requests import _routing_enabled

from ..._eras import EncodedEras
from .._fit_state import FitState

# Training rows that a scorer sees, or a few more to fill an era up: as in scikit-learn.
N_ROWS_SCORED = 10_000


class ScoringEras:
    """Eras of the two sets of rows which a scorer sees in the course of a fit."""

    def __init__(self, eras: EncodedEras | None, eras_val: NDArray[Any] | None):
        self._eras = eras
        self._eras_val = eras_val
        self._X_train: Any = None
        self._rows: NDArray[np.intp] | None = None
        self._scorer: Any = None
        self._is_asked_for = False

    def draw_training_rows(self, seed: int) -> NDArray[np.intp] | None:
        """Rows of random whole eras, enough to score by; None for all rows.

        Of rows drawn one by one, an era of many would have a handful left, and its
        score would be noise.
        """
        if self._eras is None or self._eras.codes.size <= N_ROWS_SCORED:
            return None
        order = np.random.default_rng(seed).permutation(self._eras.labels.size)
        n_rows = np.cumsum(self._eras.counts[order])
        drawn = order[: np.searchsorted(n_rows, N_ROWS_SCORED) + 1]
        return np.flatnonzero(np.isin(self._eras.codes, drawn))

    def keep_training_rows(self, X: Any, rows: NDArray[np.intp] | None) -> None:
        """Remember which training rows a scorer gets, None for all, and as what X."""
        self._X_train = X
        self._rows = rows

    def are_asked_for_by(self, scorer: Any) -> bool:
        """As `asks_for_eras`, but looked up once for a scorer."""
        if scorer is not self._scorer:
            self._scorer = scorer
            self._is_asked_for = asks_for_eras(scorer)
        return self._is_asked_for

    def of(self, X: Any) -> NDArray[Any]:
        """Era labels of `X`, which is one of the two sets; ValueError if not given."""
        if X is self._X_train:
            if self._eras is None:
                raise _missing("eras")
            codes = self._eras.codes
            return self._eras.labels[codes if self._rows is None else codes[self._rows]]
        if self._eras_val is None:
            raise _missing("eras_val")
        return self._eras_val


def _missing(name: str) -> ValueError:
    return ValueError(
        f"scoring asks for eras, but {name} was not provided: pass it to fit, or use a "
        "scoring without eras."
    )


def asks_for_eras(scorer: Any) -> bool:
    """Whether `scorer` takes eras: by its metadata request, else by its signature."""
    if _routing_enabled() and hasattr(scorer, "get_metadata_routing"):
        request = scorer.get_metadata_routing().score.requests.get("eras")
        return request is True or isinstance(request, str)
    try:
        return "eras" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):  # no callable, or one without a signature
        return False


class EraScoringMixin(BaseHistGradientBoosting):
    """What scikit-learn calls to score in the course of a fit, with eras."""

    _fit_state: FitState
    _scorer: Any

    def _get_small_trainset(self, X_binned_train, y_train, sample_weight_train, seed):
        """The training rows that a scorer sees: whole eras, if it asks for eras."""
        state = getattr(self, "_fit_state", None)  # None if called out of a fit
        asked_for = self._asked_for_eras() if state else None
        rows = asked_for.draw_training_rows(seed) if asked_for else None
        if rows is None:
            subset = super()._get_small_trainset(
                X_binned_train, y_train, sample_weight_train, seed
            )
        else:
            subset = (
                np.ascontiguousarray(X_binned_train[rows]),
                y_train[rows],
                None if sample_weight_train is None else sample_weight_train[rows],
                rows,
            )
        if asked_for:
            asked_for.keep_training_rows(subset[0], rows)
        return subset

    def _score_with_raw_predictions(self, X, y, sample_weight, raw_predictions=None):
        """Hand eras to a scorer that asks for them."""
        asked_for, scorer = self._asked_for_eras(), self._scorer
        if asked_for:
            eras = asked_for.of(X)
            self._scorer = lambda *args, **kwargs: scorer(*args, **kwargs, eras=eras)
        try:
            return super()._score_with_raw_predictions(
                X, y, sample_weight, raw_predictions
            )
        finally:
            self._scorer = scorer

    def _asked_for_eras(self) -> ScoringEras | None:
        """What the scorer is told of eras; None for one that does not ask."""
        eras = self._fit_state.scoring_eras
        return eras if eras and eras.are_asked_for_by(self._scorer) else None


__all__ = ["EraScoringMixin", "ScoringEras", "asks_for_eras"]
