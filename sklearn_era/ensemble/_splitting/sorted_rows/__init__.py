"""Whole subtrees of nodes with few rows, whose values are kept in order.

- ``small_nodes``: which nodes have few rows;
- ``grower``: grows the subtree of a node without Python;
- ``node``, ``node_rows``, ``keys``, ``features``: a node, its rows, their values as
  sorted keys, the features that may split it;
- ``scan``, ``category_scan``: the candidates of a feature, by numbers or categories;
  ``moving_eras``: what the eras say of them;
- ``records``: the nodes of the tree that grew.
"""
