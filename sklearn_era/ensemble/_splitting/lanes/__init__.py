"""Loops over the candidates of a node, one split in each lane of a vector register.

- ``kernels``: the pooled gains of a feature's splits, and comparisons of eras; called
  by way of ``functions``, and compiled for each of the ``instruction_sets``;
- ``eras``, ``masked_rows``: sums of eras on the left side of each split.
"""
