"""Grown trees: walked down, and packed for other packages.

- ``walk``: features, leaves, and sums from the leaves to the root;
- ``packed``: the trees of an estimator as a handful of arrays, and back.
"""
