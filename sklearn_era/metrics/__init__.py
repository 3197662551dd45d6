"""Scores of a model era by era, what to make of them, and scorers that use them."""

from sklearn_era.metrics._aggregation import aggregate_era_scores, era_score
from sklearn_era.metrics._era_scores import EraScores, era_scores
from sklearn_era.metrics._scorer import EraScorer, make_era_scorer

__all__ = [
    "EraScorer",
    "EraScores",
    "aggregate_era_scores",
    "era_score",
    "era_scores",
    "make_era_scorer",
]
