"""Grown trees: walked down, and packed for other packages."""
