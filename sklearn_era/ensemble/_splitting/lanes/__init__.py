"""Loops over the candidate splits of a node, each in the lane of a vector.

- ``gains``: the pooled gains of the splits of a feature;
- ``eras``, ``masked_rows``: the rows of some eras on the left side of each split;
  ``directions``: which side of each split predicts more in an era, and no more;
- ``kernels``: these loops, by way of ``functions``, compiled for each of the
  ``instruction_sets`` that the processor may have, by ``cpu_levels``.
"""
