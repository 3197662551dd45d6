"""Functions that read fitted trees, in ``traversal``: features, leaves and sums."""
