"""Subtrees of small nodes, by rows in sorted order."""
