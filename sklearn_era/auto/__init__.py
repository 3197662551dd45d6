"""Fit averages of models, which find out by themselves how to use eras.

``_candidates`` lists the models, of which ``_linear`` defines one. ``_member_search``
fits the models in folds of whole eras. ``_weights`` finds their weights from the losses
in these folds (``_row_losses``). ``_fallback`` decides whether the plain model is
better. ``_estimator`` fits the members with weight to all rows, and ``_update`` adds
the rows of later eras.
"""

from ._estimator import AutoEraClassifier, AutoEraRegressor

__all__ = ["AutoEraClassifier", "AutoEraRegressor"]
