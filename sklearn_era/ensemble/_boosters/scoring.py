"""Pass eras to the scorer of early stopping, if the scorer takes eras."""

from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting

from ...effects import GroupDRO
from ...model_selection._search_scores import of_classes
from .._fit_state import ScoringEras, asks_for_eras


class EraScoringMixin(gradient_boosting.BaseHistGradientBoosting):
    """Override the methods that score during a fit, to pass eras to the scorer."""

    _scorer: Any

    def _get_small_trainset(self, X_binned_train, y_train, sample_weight_train, seed):
        """Return training rows to score: whole eras, if the scorer takes eras."""
        asked_for = self._asked_for_eras()
        rows = asked_for.draw_training_rows(seed) if asked_for else None
        X, y, weights, indices = X_binned_train, y_train, sample_weight_train, rows
        if rows is None:
            X, y, weights, indices = super()._get_small_trainset(X, y, weights, seed)
        else:
            X, y = np.ascontiguousarray(X[rows]), y[rows]
            weights = None if weights is None else weights[rows]
        if asked_for:
            asked_for.X_train, asked_for.rows = X, rows
        if weights is not None and isinstance(self.era_weighting, GroupDRO):
            # Scores use the given weights, however few rows there are.
            weights = weights.copy()
        return X, y, weights, indices

    def _score_with_raw_predictions(self, X, y, sample_weight, raw_predictions=None):
        """Return the score; a scorer that takes eras gets the eras of X."""
        asked_for, scorer = self._asked_for_eras(), self._scorer
        self._scorer = of_classes(scorer)
        if asked_for:
            eras = asked_for.of(X)
            self._scorer = lambda *args, **kwargs: scorer(*args, **kwargs, eras=eras)
        try:
            return super()._score_with_raw_predictions(
                X, y, sample_weight, raw_predictions
            )
        finally:
            self._scorer = scorer

    def _should_stop(self, scores):
        """Return whether early stopping ends the fit; NaN is the worst score. Raise
        ValueError if the fit would end and all scores are NaN. Ignore the scores of the
        first iterations, in which groups have no intercepts yet.
        """
        state = getattr(self, "_fit_state", None)  # None if called out of a fit
        if state is not None and state.era_intercepts is not None:
            scores = scores[state.era_intercepts.n_first_trees :]
        is_undefined = np.isnan(scores)
        stops = super()._should_stop(np.where(is_undefined, -np.inf, scores).tolist())
        if stops and is_undefined.all():
            raise ValueError(
                f"scoring={self.scoring!r} is NaN in all {len(scores)} iterations, and "
                "early stopping cannot choose by it. Score rows of several classes "
                "(change validation_eras or validation_fraction, or pass X_val and "
                "y_val), take another scoring, such as 'loss', or set "
                "early_stopping=False."
            )
        return stops

    def _asked_for_eras(self) -> ScoringEras | None:
        """Return the eras for the scorer; None if it takes none, or outside a fit."""
        state = getattr(self, "_fit_state", None)
        return state.scoring_eras if state and asks_for_eras(self._scorer) else None
