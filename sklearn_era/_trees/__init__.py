"""Read features, thresholds and sums of fitted trees, by the module ``traversal``."""
