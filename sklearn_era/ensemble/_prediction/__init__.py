"""Predict rows, and average the predictions for ``partial_dependence``.

``blocks`` predicts rows in blocks, ``packed_trees`` packs the trees for each call,
``trees`` adds up the leaf values, and ``shapley`` divides the sum among features.
"""
