"""Fit ensembles of decision rules that generalise to new eras."""

from sklearn_era.rules._estimator import RuleEnsembleClassifier

__all__ = ["RuleEnsembleClassifier"]
