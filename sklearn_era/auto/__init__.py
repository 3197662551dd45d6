"""Averages of models that find out by themselves how to use eras.

``_candidates`` are the models, one of them ``_linear``; ``_member_search`` fits them in
folds of whole eras, ``_weights`` weighs them by their ``_row_losses`` there,
``_fallback`` decides whether the plain model is better, ``_estimator`` fits members
with weight to all rows, and ``_update`` takes in later eras.
"""

from ._estimator import AutoEraClassifier, AutoEraRegressor

__all__ = ["AutoEraClassifier", "AutoEraRegressor"]
