"""Loop over the candidates of a node, one split in each lane of a vector register.

- ``kernels``: loops that are called through the pointers in ``functions``, compiled for
  each of the ``instruction_sets``;
- ``gains``: the pooled gains of a feature's splits, and which of these are allowed;
- ``eras``, ``masked_rows``: sums of eras on the left side of each split.
"""
