"""Predictions of boosters, also for rows of training eras."""

from collections.abc import Iterator
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)

from .known_eras import in_eras


class EraPredictionMixin(BaseHistGradientBoosting):
    """Add ``eras`` to the predictions of both boosters; precedes their classes."""

    # As for `fit`; a score uses the forecast, unless eras are requested.
    __metadata_request__predict: ClassVar = {"eras": True}
    __metadata_request__predict_proba: ClassVar = {"eras": True}
    __metadata_request__decision_function: ClassVar = {"eras": True}
    __metadata_request__score: ClassVar = {"eras": False}

    def get_metadata_routing(self) -> Any:
        # Eras are for predictions of a model with intercepts alone.
        routing = super().get_metadata_routing()
        if self.era_effects is None:
            for method in ("predict", "predict_proba", "decision_function"):
                if "eras" in getattr(routing, method).requests:
                    getattr(routing, method).add_request(param="eras", alias=False)
        return routing

    def predict(self, X: Any, *, eras: Any = None) -> NDArray[Any]:
        """Predict the target, or the class, of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to predict.

        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, or the name of their column in X, for a model with
            `era_effects`. Rows of a training era get its intercept. All others, and all
            rows without `eras`, get the forecast; with ``Intercepts(forecast="auto")``,
            for as many eras ahead as numbers and dates show. Unknown labels that
            resemble a known one raise a warning.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The predicted values or classes.
        """
        return super(EraPredictionMixin, in_eras(self, X, eras)).predict(X)

    def staged_predict(self, X: Any, *, eras: Any = None) -> Iterator[NDArray[Any]]:
        """Predict the target, or the class, of rows after each iteration.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to predict.

        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, as in ``predict``; each stage uses the final intercepts.

        Returns
        -------
        stages : iterator of ndarray of shape (n_samples,)
            The predicted values or classes, an array an iteration.
        """
        return super(EraPredictionMixin, in_eras(self, X, eras)).staged_predict(X)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, eras: Any = None
    ) -> float:
        """Score predictions: by R^2 for a regressor, by accuracy for a classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to predict.

        y : array-like of shape (n_samples,)
            Their target.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, as in ``predict``. Meta-estimators pass it on after
            ``set_score_request(eras=True)``.

        Returns
        -------
        score : float
            The best score is 1.
        """
        estimator = in_eras(self, X, eras)
        return super(EraPredictionMixin, estimator).score(X, y, sample_weight)


class EraClassPredictionMixin(EraPredictionMixin):
    """Add ``eras`` to the predictions of the classifier, too."""

    def predict_proba(self, X: Any, *, eras: Any = None) -> NDArray[Any]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to predict.

        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, as in ``predict``.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return super(EraClassPredictionMixin, in_eras(self, X, eras)).predict_proba(X)

    def staged_predict_proba(
        self, X: Any, *, eras: Any = None
    ) -> Iterator[NDArray[Any]]:
        """Predict the probability of each class after each iteration.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to predict.

        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, as in ``predict``; each stage uses the final intercepts.

        Returns
        -------
        stages : iterator of ndarray of shape (n_samples, n_classes)
            In the order of `classes_`, an array an iteration.
        """
        estimator = in_eras(self, X, eras)
        return super(EraClassPredictionMixin, estimator).staged_predict_proba(X)

    def decision_function(self, X: Any, *, eras: Any = None) -> NDArray[Any]:
        """Compute the raw predictions of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to predict.

        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, as in ``predict``.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The raw predictions; one column per class if there are more than two.
        """
        estimator = in_eras(self, X, eras)
        return super(EraClassPredictionMixin, estimator).decision_function(X)

    def staged_decision_function(
        self, X: Any, *, eras: Any = None
    ) -> Iterator[NDArray[Any]]:
        """Compute the raw predictions of rows after each iteration.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to predict.

        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, as in ``predict``; each stage uses the final intercepts.

        Returns
        -------
        stages : iterator of ndarray of shape (n_samples,) or (n_samples, n_classes)
            The raw predictions, an array an iteration.
        """
        estimator = in_eras(self, X, eras)
        return super(EraClassPredictionMixin, estimator).staged_decision_function(X)
