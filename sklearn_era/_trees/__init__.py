"""Grown trees: ``walk`` has features, leaves, and sums from leaves to the root."""
