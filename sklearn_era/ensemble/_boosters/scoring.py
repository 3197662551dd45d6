"""Early stopping by a scorer that asks for eras."""

from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)

from .held_out_eras import ScoringEras


class EraScoringMixin(BaseHistGradientBoosting):
    """What scikit-learn calls to score in the course of a fit, with eras."""

    _scorer: Any
    _scoring_eras: ScoringEras

    def _get_small_trainset(self, X_binned_train, y_train, sample_weight_train, seed):
        """The training rows that a scorer sees: whole eras, if it asks for eras."""
        scoring_eras = getattr(self, "_scoring_eras", None)
        if scoring_eras is None:  # called out of a fit
            return super()._get_small_trainset(
                X_binned_train, y_train, sample_weight_train, seed
            )
        indices = None
        if scoring_eras.are_asked_for_by(self._scorer):
            indices = scoring_eras.draw_training_rows(seed)
        if indices is None:
            subset = super()._get_small_trainset(
                X_binned_train, y_train, sample_weight_train, seed
            )
        else:
            subset = (
                np.ascontiguousarray(X_binned_train[indices]),
                y_train[indices],
                None if sample_weight_train is None else sample_weight_train[indices],
                indices,
            )
        scoring_eras.keep_training_subset(X=subset[0], indices=subset[3])
        return subset

    def _score_with_raw_predictions(self, X, y, sample_weight, raw_predictions=None):
        """Hand eras to a scorer that asks for them."""
        scorer = self._scorer
        if not self._scoring_eras.are_asked_for_by(scorer):
            return super()._score_with_raw_predictions(
                X, y, sample_weight, raw_predictions
            )
        eras = self._scoring_eras.of(X)
        self._scorer = lambda *args, **kwargs: scorer(*args, **kwargs, eras=eras)
        try:
            return super()._score_with_raw_predictions(
                X, y, sample_weight, raw_predictions
            )
        finally:
            self._scorer = scorer


__all__ = ["EraScoringMixin"]
