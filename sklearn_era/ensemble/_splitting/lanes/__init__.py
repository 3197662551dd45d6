"""Several eras at a time, one in each lane of a vector; or splits, where they are few.

- ``table``: the sums of these eras by bin;
- ``first_look``: directions and estimates of gains, by words of many bins;
- ``masked_rows``: the sums of eras by split; ``masked_splits``: what they say of it;
- ``scan``: the loops over lanes, by way of ``functions``, compiled for each of the
  ``instruction_sets`` that ``cpu_levels`` says the processor may have.
"""
