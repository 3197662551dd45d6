"""Subtrees of small nodes, by rows in sorted order.

- ``grower``: grows the subtree of a small node without Python;
- ``node``: its nodes, their rows as sorted keys, and their records;
- ``scan``: the active features of a node, and the candidates of one;
  ``eras``: the sums over eras of one.
"""
