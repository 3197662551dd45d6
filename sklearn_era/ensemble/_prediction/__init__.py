"""Predictions, and their averages over rows for ``partial_dependence``.

Rows come in ``blocks``, and ``trees`` sums up the values of ``packed_trees``;
``shapley`` shares the sum out among features.
"""
