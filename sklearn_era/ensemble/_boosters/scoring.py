"""Early stopping with a scorer that takes eras."""

from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)

from ...effects import GroupDRO
from .._fit_state import FitState, ScoringEras


class EraScoringMixin(BaseHistGradientBoosting):
    """The methods that scikit-learn calls to score during a fit, with eras."""

    _fit_state: FitState
    _scorer: Any
    era_weighting: Any

    def _get_small_trainset(self, X_binned_train, y_train, sample_weight_train, seed):
        """Return the training rows for a scorer: whole eras, if it takes eras."""
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
        X, y, weights, indices = subset
        if weights is not None and isinstance(self.era_weighting, GroupDRO):
            # Scores use the given weights, however few rows there are.
            weights = weights.copy()
        return X, y, weights, indices

    def _score_with_raw_predictions(self, X, y, sample_weight, raw_predictions=None):
        """Pass eras to a scorer that takes them."""
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
        """Return the eras for the scorer; None if it takes none."""
        eras = self._fit_state.scoring_eras
        return eras if eras and eras.are_asked_for_by(self._scorer) else None
