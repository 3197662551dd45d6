"""Several eras at a time, one in each lane of a vector.

- ``table``: the sums of these eras by bin;
- ``scan``: the loops over lanes, by way of ``functions``, compiled for each of the
  ``instruction_sets`` that ``cpu_levels`` says the processor may have.
"""
