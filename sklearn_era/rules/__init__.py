"""Ensembles of decision rules that generalise to other eras."""

from sklearn_era.rules._display import RuleDisplay
from sklearn_era.rules._estimator import RuleEnsembleClassifier

__all__ = ["RuleDisplay", "RuleEnsembleClassifier"]
