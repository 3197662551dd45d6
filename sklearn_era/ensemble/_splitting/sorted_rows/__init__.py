"""Whole subtrees of nodes with few rows, whose values are kept in order.

- ``grower``: grows the subtree of a node without Python;
- ``node``: a node of it, its rows as sorted keys, and its record;
- ``scan``: the features that may split it, and the candidates of one;
  ``eras``: what the eras say of one.
"""
