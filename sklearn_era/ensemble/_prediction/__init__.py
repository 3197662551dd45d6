"""Predictions: in ``blocks`` of rows; averaged over rows for ``partial_dependence``."""
