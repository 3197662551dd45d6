"""Loops over the candidate splits of a node, each in the lane of a vector.

- ``gains``: the pooled gains of the splits of a feature;
- ``eras``, ``masked_rows``: the rows of some eras on the left side of each split;
- ``kernels``: these loops, by way of ``functions``, compiled for each of the
  ``instruction_sets`` that ``cpu_levels`` says the processor may have.
"""
