"""Brute force: what every split of a fitted tree has to be."""
