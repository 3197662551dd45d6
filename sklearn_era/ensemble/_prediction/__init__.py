"""Predictions, and their averages over rows for ``partial_dependence``.

Rows come in ``blocks``, and ``trees`` adds up ``packed_trees``.
"""
