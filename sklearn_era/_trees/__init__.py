"""Grown trees, walked down: features, leaves, sums from the leaves to the root."""
