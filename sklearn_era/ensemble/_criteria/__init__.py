"""What a split is worth: formulas, without rows or threads.

- ``criterion``: criteria and their parameters as a C struct; ``objects``: as Python's;
- ``formulas``: the equations that criteria share, with their sources: of a node, of
  both sides of a split in an era, and of a number of all eras;
- ``era``, ``directional``, ``time_robust``, ``invariant``, ``vrex``, ``held_out``: one
  file a criterion, with its sums over eras and its key;
- ``dispatch``: the table of these for the compiler; ``split_sums``: the sums of all
  statistics of a split; ``ranking``: which of two splits is the better one.
"""
