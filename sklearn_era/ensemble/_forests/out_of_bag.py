"""Predict and score each row by the trees that did not draw it ("out of bag")."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils.parallel import Parallel, delayed

from ..._eras import Array
from ..._warnings import warn_user
from .checks import what_trees_draw


class OutOfBagMixin(gradient_boosting.BaseHistGradientBoosting):
    """The part of a forest's fit that scores rows by trees which did not draw them."""

    def _forget_out_of_bag(self) -> None:
        for name in ("score", "era_scores", "prediction", "decision_function"):
            self.__dict__.pop(f"oob_{name}_", None)

    def _score_out_of_bag(self, training: Any, n_threads: int) -> None:
        """With `oob_score`, set the attributes ``oob_...``: predictions of rows by the
        trees that did not draw them, and scores of these predictions.
        """
        if not self.oob_score:
            return
        means = self._predict_out_of_bag(training, n_threads)
        is_known = ~np.isnan(means[:, 0])
        if not is_known.all():
            columns, remedy = training.era_columns, "Grow more trees."
            what, numbers = what_trees_draw(self, is_known.size, columns)
            if max(numbers) == 1:
                remedy = (
                    f"More trees are no help: bootstrap={self.bootstrap!r} draws all "
                    f"rows, as the number of {what} is 1. Pass more rows or eras, or "
                    "set another bootstrap."
                )
            warn_user(
                f"{np.count_nonzero(~is_known)} of {is_known.size} rows were drawn for "
                f"every one of the {len(self._predictors)} trees: they have no out-of-"
                f"bag prediction (NaN) and no part in the scores. {remedy}"
            )
        if is_classifier(self):
            y_true, y_pred = self._out_of_bag_classes(training, means, is_known)
        else:
            self.oob_prediction_ = _as_passed(means[:, 0], training.order)
            y_true, y_pred = training.targets[:, 0], means[:, 0]
        known = np.flatnonzero(is_known)
        self.oob_score_ = self._score_rows(training, y_true, y_pred, known)
        if training.era_columns:
            of_eras = (x[is_known[x]] for x in training.era_columns[0].rows)
            self.oob_era_scores_ = np.array(
                [self._score_rows(training, y_true, y_pred, rows) for rows in of_eras]
            )

    def _predict_out_of_bag(self, training: Any, n_threads: int) -> Array:
        """Return out-of-bag means over trees; NaN for rows that all trees drew."""
        n_grown = len(self._predictors)
        totals = np.zeros(training.targets.shape, order="F")
        n_trees = np.zeros(totals.shape[0], dtype=np.intp)
        # In the order of the trees, so that sums do not depend on threads.
        for is_left_out, values in Parallel(
            n_jobs=n_threads, require="sharedmem", return_as="generator"
        )(delayed(self._predict_left_out)(training, i) for i in range(n_grown)):
            totals[is_left_out] += values
            n_trees += is_left_out
        with np.errstate(divide="ignore", invalid="ignore"):
            # Leaves hold a share of the mean over all trees.
            return totals * (n_grown / n_trees)[:, np.newaxis]

    def _predict_left_out(
        self, training: Any, iteration: int
    ) -> tuple[NDArray[np.bool_], Array]:
        """Return a mask of the rows that an iteration did not draw, and predictions of
        these rows.
        """
        _, drawn = self._draw(training, iteration)
        is_left_out = np.ones(training.X_binned.shape[0], dtype=bool)
        is_left_out[drawn.rows] = False
        X_left_out = training.X_binned[is_left_out]
        missing = self._bin_mapper.missing_values_bin_idx_
        values = [
            predictor.predict_binned(X_left_out, missing, 1)
            for predictor in self._predictors[iteration]
        ]
        return is_left_out, np.stack(values, axis=-1)

    def _out_of_bag_classes(
        self, training: Any, means: Array, is_known: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the true class and the predicted class of each row. The prediction has
        no meaning in rows where `is_known` is False. Set `oob_decision_function_`.
        """
        probabilities = np.full((means.shape[0], self.classes_.size), np.nan)
        probabilities[is_known] = self._probabilities(means[is_known])
        self.oob_decision_function_ = _as_passed(probabilities, training.order)
        targets = training.targets
        codes = targets[:, 0] if targets.shape[1] == 1 else targets.argmax(axis=1)
        predicted = np.zeros(is_known.size, dtype=np.intp)
        predicted[is_known] = probabilities[is_known].argmax(axis=1)
        return self.classes_[codes.astype(np.intp)], self.classes_[predicted]

    def _score_rows(
        self, training: Any, y_true: NDArray[Any], y_pred: NDArray[Any],
        rows: NDArray[np.integer],
    ) -> float:  # fmt: skip
        """Return the score of some rows; NaN if they are too few to have a score."""
        weights = training.sample_weight
        if weights is not None and not callable(self.oob_score):
            rows = rows[weights[rows] > 0]
            weights = weights[rows]
        y_true, y_pred = y_true[rows], y_pred[rows]
        of_variance = not (callable(self.oob_score) or is_classifier(self))
        if y_true.size < 1 + of_variance:
            return np.nan
        if callable(self.oob_score):
            return float(self.oob_score(y_true, y_pred))
        # As scikit-learn's scores, whose checks take milliseconds for each era.
        if not of_variance:
            return float(np.average(y_true == y_pred, weights=weights))
        means = y_pred, np.average(y_true, weights=weights)
        rest, total = (np.average((y_true - x) ** 2, weights=weights) for x in means)
        return float(1 - rest / total if total else rest == 0)


def _as_passed(values: Array, order: NDArray[np.uint32] | None) -> Array:
    """Return `values` of a data set's rows in the order in which the rows were passed
    to it; `order` is the data set's, or None if the two orders are the same.
    """
    if order is None:
        return values
    passed = np.empty_like(values)
    passed[order] = values
    return passed
