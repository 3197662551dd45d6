"""Predictions by fitted rules, and their rates on any rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, softmax
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from .._eras import check_eras, encode_eras
from .._scikit_learn import check_sample_weight
from ._preprocessing import ColumnsMixin
from ._rates import WeightedRule, rate_rules, rates_frame


class RulePredictionMixin(ColumnsMixin):
    """Scores, probabilities and classes, and the table of rules."""

    classes_: NDArray[Any]
    intercept_: NDArray[np.float64]
    _bin_mapper: Any
    _rules: list[WeightedRule]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the score F of each row: the log-odds of the class, or of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            ``intercept + sum_m coefficient_m r_m(x)``; a column per class if there are
            more than two.
        """
        check_is_fitted(self)
        values, _ = self._columns_of(X, reset=False)
        X_binned = self._bin_mapper.transform(values)
        n_classes = self.classes_.size
        scores = np.tile(self.intercept_, (X_binned.shape[0], 1))
        for rule in self._rules:
            covered = rule.rule.covers(X_binned)
            scores[:, rule.class_index] += np.where(
                covered, rule.coefficient, -rule.coefficient
            )
        return scores[:, 1] if n_classes == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`: ``sigmoid(F)``; with more than two classes,
            divided by their sum.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            probability = expit(scores)
            return np.stack([1.0 - probability, probability], axis=1)
        return softmax(log_expit(scores), axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The class with the largest score; of two, the second if F > 0.
        """
        scores = self.decision_function(X)
        indices = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[indices]

    def rule_table(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eras: Any = None,
        as_frame: bool = False,
    ) -> Any:
        """Measure the rules on any rows, as `rules_` does on the training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        y : array-like of shape (n_samples,)
            Their classes.

        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        eras : array-like of shape (n_samples,), default=None
            Era of each row, for rates by era.

        as_frame : bool, default=False
            Whether to return a data frame, with a row a rule.

        Returns
        -------
        table : :class:`~sklearn.utils.Bunch` or DataFrame
            Rules with the largest coefficients come first, class by class.

            text : ndarray of shape (n_rules,), dtype=object
                The text of each rule.
            class_label : ndarray of shape (n_rules,)
                Its class; of two classes, always the second.
            coefficient : ndarray of shape (n_rules,)
                In log-odds.
            coverage : ndarray of shape (n_rules,)
                The share of all rows that it covers.
            tpr, fpr : ndarray of shape (n_rules,)
                The share of its class's rows, and of all others, that it covers; NaN if
                there are no such rows.
            tpr_by_era, fpr_by_era : ndarray of shape (n_rules, n_eras)
                The same in each era, if there are eras. In a data frame, columns "tpr
                A" and "fpr A" of an era A.
            era_labels : ndarray of shape (n_eras,)
                The sorted labels of eras.

        Raises
        ------
        ValueError
            If `y` has a class that is unknown to the fit.
        MissingPackageError
            If pandas is not installed, with ``as_frame=True``.
        """
        check_is_fitted(self)
        values, _ = self._columns_of(X, reset=False)
        y = _check_y(y, estimator=self)
        check_consistent_length(values, y)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y holds {unknown.tolist()[0]!r}, which is no class of the fit; those "
                f"are {', '.join(map(repr, self.classes_.tolist()))}."
            )
        weights = check_sample_weight(
            sample_weight, values, dtype=np.float64, ensure_non_negative=True
        )
        table = rate_rules(
            self._rules,
            self._bin_mapper.transform(values),
            np.searchsorted(self.classes_, y),
            self.classes_,
            weights,
            None if eras is None else encode_eras(check_eras(eras, X)),
        )
        return rates_frame(table) if as_frame else table
