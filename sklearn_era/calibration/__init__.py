"""Intervals, sets of classes and probabilities for eras not yet seen."""

from ._conformal import EraConformalClassifier, EraConformalRegressor, coverage_score
from ._recalibration import EraCalibratedClassifier, EraCalibration, era_calibration

__all__ = [
    "EraCalibratedClassifier",
    "EraCalibration",
    "EraConformalClassifier",
    "EraConformalRegressor",
    "coverage_score",
    "era_calibration",
]
