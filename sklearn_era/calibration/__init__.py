"""Make prediction intervals, sets of classes and probabilities for unseen eras."""

from ._conformal import EraConformalClassifier, EraConformalRegressor, coverage_score
from ._era_calibration import era_calibration
from ._recalibration import EraCalibratedClassifier

__all__ = [
    "EraCalibratedClassifier", "EraConformalClassifier", "EraConformalRegressor",
    "coverage_score", "era_calibration",
]  # fmt: skip
