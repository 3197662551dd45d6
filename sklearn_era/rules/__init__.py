"""Ensembles of decision rules that generalise to other eras."""

from sklearn_era.rules._estimator import RuleEnsembleClassifier

__all__ = ["RuleEnsembleClassifier"]
