"""Grow the subtrees of small nodes, from rows in sorted order.

- ``grower``: grows the subtree of a small node without Python;
- ``node``: the rows of a small node, sorted by each feature, throughout its subtree;
- ``scan``: the features that a node may use, and the candidate splits of each;
  ``eras``: a candidate's sums over eras.
"""
