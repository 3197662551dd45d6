"""Score a model in each era; aggregate, compare and forecast the scores of eras."""

from typing import TYPE_CHECKING

from .._warnings import renamed
from ._comparison import EraComparison, compare_predictions
from ._era_scores import EraScores, era_scores
from ._forecast import EraScoreForecast
from ._pooled import PooledScore
from ._scorer import EraScorer, make_era_scorer
from ._standard_errors import era_standard_errors

__all__ = [
    "EraComparison", "EraScoreForecast", "EraScorer", "EraScores", "PooledScore",
    "compare_predictions", "era_scores", "era_standard_errors", "make_era_scorer",
]  # fmt: skip

if not TYPE_CHECKING:
    _NEW = "era_scores(...).mean(), .worst() or .aggregate(...)"
    __getattr__ = renamed(__name__, {"era_score": _NEW, "aggregate_era_scores": _NEW})
