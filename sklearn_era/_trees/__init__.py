"""Grown trees: ``traversal`` has features, leaves, and sums from leaves to the root."""
