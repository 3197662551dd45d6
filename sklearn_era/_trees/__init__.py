"""Functions that read fitted trees, in ``traversal``: features, thresholds, sums."""
