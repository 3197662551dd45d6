"""What eras make of a fitted model: its splits, its features, its scores.

And what they make of the data before there is a model: which values eras share, and how
well rows tell their era.
"""

from sklearn_era.inspection._domain_classifier import domain_classifier_auc
from sklearn_era.inspection._era_score_display import EraScoreDisplay
from sklearn_era.inspection._importances import era_feature_importances
from sklearn_era.inspection._split_agreement_display import SplitAgreementDisplay
from sklearn_era.inspection._split_statistics import split_statistics
from sklearn_era.inspection._stability import era_stability
from sklearn_era.inspection._stability_display import EraStabilityDisplay
from sklearn_era.inspection._support_match import support_match
from sklearn_era.inspection._support_match_display import SupportMatchDisplay

__all__ = [
    "EraScoreDisplay",
    "EraStabilityDisplay",
    "SplitAgreementDisplay",
    "SupportMatchDisplay",
    "domain_classifier_auc",
    "era_feature_importances",
    "era_stability",
    "split_statistics",
    "support_match",
]
