"""Whole subtrees of nodes with few rows, whose values are kept in order.

- ``grower``: grows the subtree of a node without Python;
- ``node``, ``node_rows``, ``keys``, ``features``: a node, its rows, their values as
  sorted keys, the features that may split it;
- ``gain_scan``, ``era_scan``, ``category_scan``, ``moving_eras``: the candidates of a
  feature, for the plain gain, for criteria that compare eras, and for categories;
- ``records``: the nodes of the tree that grew.
"""
