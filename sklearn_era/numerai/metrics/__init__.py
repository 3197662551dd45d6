"""Numerai's scores, and what they are made of; NumPy and SciPy is all they need.

``scores`` by ``ranks`` and ``neutralization``; ``_era_rows``: rows era by era, checked.
"""

from sklearn_era.numerai.metrics.neutralization import neutralize, neutralize_ranks
from sklearn_era.numerai.metrics.ranks import gaussianize, rank_normalize
from sklearn_era.numerai.metrics.scores import (
    correlation_contribution,
    feature_exposures,
    feature_neutral_corr,
    max_feature_exposure,
    numerai_corr,
)

__all__ = [
    "correlation_contribution",
    "feature_exposures",
    "feature_neutral_corr",
    "gaussianize",
    "max_feature_exposure",
    "neutralize",
    "neutralize_ranks",
    "numerai_corr",
    "rank_normalize",
]
