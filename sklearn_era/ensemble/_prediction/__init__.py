"""Predictions: ``blocks`` of rows, by all ``trees``; ``partial_dependence`` averages."""
