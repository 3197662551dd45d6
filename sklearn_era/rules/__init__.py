"""Ensembles of decision rules that hold beyond the data they were found in."""

from sklearn_era.rules._display import RuleDisplay
from sklearn_era.rules._estimator import RuleEnsembleClassifier

__all__ = ["RuleDisplay", "RuleEnsembleClassifier"]
