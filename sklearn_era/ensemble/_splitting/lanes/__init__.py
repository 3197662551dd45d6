"""Loops over the candidate splits of a node, each in the lane of a vector.

- ``kernels``: the pooled gains of the splits of a feature, and comparisons of eras, by
  way of ``functions``; compiled for each of the ``instruction_sets`` there may be;
- ``eras``, ``masked_rows``: the rows of some eras on the left side of each split.
"""
