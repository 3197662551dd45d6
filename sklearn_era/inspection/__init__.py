"""What eras make of a fitted model: its splits, its features, its scores."""

from sklearn_era.inspection._decision_surface_display import DecisionSurfaceDisplay
from sklearn_era.inspection._era_score_display import EraScoreDisplay
from sklearn_era.inspection._importances import era_feature_importances
from sklearn_era.inspection._split_agreement_display import SplitAgreementDisplay
from sklearn_era.inspection._split_statistics import split_statistics

__all__ = [
    "DecisionSurfaceDisplay",
    "EraScoreDisplay",
    "SplitAgreementDisplay",
    "era_feature_importances",
    "split_statistics",
]
