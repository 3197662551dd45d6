"""Splits, features and scores of a model by era, and which values eras share."""

from sklearn_era.inspection._calibration_display import EraCalibrationDisplay
from sklearn_era.inspection._era_score_display import EraScoreDisplay
from sklearn_era.inspection._heat_maps import EraShapDisplay, EraStabilityDisplay
from sklearn_era.inspection._permutation import era_permutation_importance
from sklearn_era.inspection._plot_tree import plot_tree
from sklearn_era.inspection._shap_values import ShapValues, shap_values
from sklearn_era.inspection._split_agreement_display import SplitAgreementDisplay
from sklearn_era.inspection._split_statistics import (
    era_feature_importances,
    split_statistics,
)
from sklearn_era.inspection._stability import era_stability
from sklearn_era.inspection._support_match import domain_classifier_auc, support_match
from sklearn_era.inspection._tree_text import export_graphviz, export_text

__all__ = [
    "EraCalibrationDisplay", "EraScoreDisplay", "EraShapDisplay",
    "EraStabilityDisplay", "ShapValues", "SplitAgreementDisplay",
    "domain_classifier_auc", "era_feature_importances", "era_permutation_importance",
    "era_stability", "export_graphviz", "export_text", "plot_tree", "shap_values",
    "split_statistics", "support_match",
]  # fmt: skip
