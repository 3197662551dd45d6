"""Whole subtrees of nodes with few rows, whose values are kept in order.

- ``grower``: grows the subtree of a node without Python;
- ``keys``, ``node``: the rows, their values as sorted keys, a node of them;
  ``features``: the features that may split it;
- ``scan``, ``category_scan``: the candidates of a feature, by numbers or categories;
  ``eras``: what the eras say of one;
- ``records``: the nodes of the tree that grew.
"""
