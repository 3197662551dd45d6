"""Predict rows by a booster, also rows of training eras."""

from collections.abc import Iterator
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting

from ..._typing import Eras, Table
from .._docstrings import CLASSES, PROBABILITIES, predicts
from .known_eras import in_eras

_KIND = "array-like of shape (n_samples,) or str"
_ERAS = (_KIND, "Era of each row, as in ``predict``.")
_STAGED = (_KIND, f"{_ERAS[1][:-1]}; each stage uses the final intercepts.")
_DECISION = """\
decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
    The raw predictions; one column per class if there are more than two."""
_STAGES = """\
stages : iterator of ndarray of shape (n_samples,){}
    The {}, one array per iteration."""


class EraPredictionMixin(gradient_boosting.BaseHistGradientBoosting):
    """Add an argument ``eras`` to the methods by which both boosters predict."""

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

    @predicts(
        "Predict the target, or the class, of rows.",
        CLASSES.format("predicted values or classes"),
        _KIND,
        """Era of each row, or the name of the column of eras in X, for a model with
    `era_effects`. Rows of a training era get the era's intercept. Other rows, and all
    rows without `eras`, get the forecast; with ``Intercepts(forecast="auto")``, it is
    for as many eras ahead as numbers and dates show. Unknown labels that resemble a
    known one raise a warning. After a fit to two named columns, times and groups,
    `eras` may be left out if X has both.""",
    )
    def predict(self, X: Table, *, eras: Eras | None = None) -> NDArray[Any]:
        return super(EraPredictionMixin, in_eras(self, X, eras)).predict(X)

    @predicts(
        "Predict the target, or the class, of rows after each iteration.",
        _STAGES.format("", "predicted values or classes"),
        *_STAGED,
    )
    def staged_predict(
        self, X: Table, *, eras: Eras | None = None
    ) -> Iterator[NDArray[Any]]:
        return super(EraPredictionMixin, in_eras(self, X, eras)).staged_predict(X)

    def score(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        eras: Eras | None = None,
    ) -> float:  # fmt: skip
        """Score predictions: by R^2 for a regressor, by accuracy for a classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to predict.
        y, sample_weight : array-like of shape (n_samples,)
            The targets and, optionally, the weights of rows.
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
    """Add an argument ``eras`` to the predictions that only classifiers have."""

    @predicts("Predict the probability of each class.", PROBABILITIES, *_ERAS)
    def predict_proba(self, X: Table, *, eras: Eras | None = None) -> NDArray[Any]:
        return super(EraClassPredictionMixin, in_eras(self, X, eras)).predict_proba(X)

    @predicts(
        "Predict the probability of each class after each iteration.",
        _STAGES.format(" or (n_samples, n_classes)", "probabilities"),
        *_STAGED,
    )
    def staged_predict_proba(
        self, X: Table, *, eras: Eras | None = None
    ) -> Iterator[NDArray[Any]]:
        estimator = in_eras(self, X, eras)
        return super(EraClassPredictionMixin, estimator).staged_predict_proba(X)

    @predicts("Compute the raw predictions of rows.", _DECISION, *_ERAS)
    def decision_function(self, X: Table, *, eras: Eras | None = None) -> NDArray[Any]:
        estimator = in_eras(self, X, eras)
        return super(EraClassPredictionMixin, estimator).decision_function(X)

    @predicts(
        "Compute the raw predictions of rows after each iteration.",
        _STAGES.format(" or (n_samples, n_classes)", "raw predictions"),
        *_STAGED,
    )
    def staged_decision_function(
        self, X: Table, *, eras: Eras | None = None
    ) -> Iterator[NDArray[Any]]:
        estimator = in_eras(self, X, eras)
        return super(EraClassPredictionMixin, estimator).staged_decision_function(X)
