"""What a split is worth: formulas, without rows or threads.

- ``criterion``: criteria and their parameters as a C struct; ``objects``: as Python's;
- ``node_formulas`` (a node), ``sides`` (both sides of a split in an era), ``moments``
  (of numbers over eras): the equations that criteria share, with their sources;
- ``era``, ``directional``, ``time_robust``, ``invariant``, ``vrex``, ``held_out``: one
  file a criterion, with its sums over eras and its key;
- ``dispatch``: the table of these for the compiler; ``split_sums``: the sums of all
  statistics of a split; ``ranking``: which of two splits is the better one.
"""
