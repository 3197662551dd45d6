"""Numerai's scores, and what they are made of; NumPy and SciPy is all they need.

- ``scores``: the scores; ``ranks``, ``neutralization``, ``feature_exposure``: what they
  are made of;
- ``id_matching``: predictions and targets that are not of the same rows; ``_era_rows``:
  rows era by era, and checks.
"""

from sklearn_era.numerai.metrics.feature_exposure import (
    feature_exposures,
    max_feature_exposure,
)
from sklearn_era.numerai.metrics.id_matching import MatchedRows, match_ids
from sklearn_era.numerai.metrics.neutralization import neutralize
from sklearn_era.numerai.metrics.ranks import gaussianize, rank_normalize
from sklearn_era.numerai.metrics.scores import (
    churn,
    correlation_contribution,
    feature_neutral_corr,
    numerai_corr,
)

__all__ = [
    "MatchedRows",
    "churn",
    "correlation_contribution",
    "feature_exposures",
    "feature_neutral_corr",
    "gaussianize",
    "match_ids",
    "max_feature_exposure",
    "neutralize",
    "numerai_corr",
    "rank_normalize",
]
