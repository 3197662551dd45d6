"""Inspect splits, features and scores by era, and the values that eras share."""

from ._calibration_display import EraCalibrationDisplay
from ._era_score_display import EraScoreDisplay
from ._heat_maps import EraShapDisplay, EraStabilityDisplay
from ._permutation import era_permutation_importance
from ._plot_tree import plot_tree
from ._shap_values import ShapValues, shap_values
from ._split_agreement_display import SplitAgreementDisplay
from ._split_statistics import era_feature_importances, split_statistics
from ._stability import era_stability
from ._support_match import domain_classifier_auc, support_match
from ._tree_text import export_graphviz, export_text

__all__ = [
    "EraCalibrationDisplay", "EraScoreDisplay", "EraShapDisplay",
    "EraStabilityDisplay", "ShapValues", "SplitAgreementDisplay",
    "domain_classifier_auc", "era_feature_importances", "era_permutation_importance",
    "era_stability", "export_graphviz", "export_text", "plot_tree", "shap_values",
    "split_statistics", "support_match",
]  # fmt: skip
