"""Predictions, and their averages over rows for ``partial_dependence``.

Rows are predicted in ``blocks``: ``trees`` adds up the leaf values of ``packed_trees``,
and ``shapley`` divides the sum among features.
"""
