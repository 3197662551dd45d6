"""Forests of classes, which other packages' models of the same trees do not express."""

from typing import Any

from sklearn_era.ensemble import EraForestClassifier


def refuse_forest_classifier(model: Any) -> None:
    """Refuse a forest whose trees add up to proportions rather than to log-odds."""
    if isinstance(model, EraForestClassifier):
        raise ValueError(
            "An EraForestClassifier cannot be converted: its trees add up to "
            "proportions of classes, and the sums would be taken for log-odds; convert "
            "what its method to_regressor(label) returns, which predicts the "
            "probability of a class."
        )


__all__ = ["refuse_forest_classifier"]
