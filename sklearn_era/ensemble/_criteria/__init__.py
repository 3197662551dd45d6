"""Define the formulas of the criteria, which need neither rows nor threads.

- ``criterion``: a criterion and its parameters as a C struct; ``objects``: as a class;
- ``formulas``: shared equations with their sources: of a node, of both sides of a split
  in an era, and of aggregates over eras;
- ``era``, ``directional``, ``time_robust``, ``invariant``, ``vrex``: one criterion
  each, with its sums over eras and its key;
- ``dispatch``: selects a criterion's functions at compile time; ``split_sums``: all
  sums of a split; ``ranking``: which of two splits is the better one; ``penalties``:
  subtracts a feature's penalty from the keys of the feature's splits.
"""
