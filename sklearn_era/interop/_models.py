"""Checks of models before their conversion."""

from typing import Any

from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.utils.validation import check_is_fitted

from sklearn_era.ensemble import EraForestClassifier


def check_model(model: Any, classes: Any = BaseHistGradientBoosting) -> None:
    """Raise an error unless `model` is a fitted booster or `EraForestRegressor`."""
    refuse_forest_classifier(model)
    if not isinstance(model, classes):
        raise TypeError(
            "model must be a HistGradientBoostingRegressor, "
            "HistGradientBoostingClassifier or EraForestRegressor, got "
            f"{type(model).__module__}.{type(model).__qualname__}; of a pipeline, pass "
            "the last step, of EraSearchCV its best_estimator_, and of AutoEra each of "
            "its members_, whose predictions it averages by weights_."
        )
    check_is_fitted(model)


def refuse_forest_classifier(model: Any) -> None:
    """Refuse a forest classifier: its trees add up to proportions, not log-odds."""
    if isinstance(model, EraForestClassifier):
        raise ValueError(
            "An EraForestClassifier cannot be converted: its trees add up to "
            "proportions of classes, and the sums would be taken for log-odds; convert "
            "what its method to_regressor(label) returns, which predicts the "
            "probability of a class."
        )
