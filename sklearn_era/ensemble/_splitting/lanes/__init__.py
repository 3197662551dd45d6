"""Loops over the candidates of a node, one split in each lane of a vector register."""
