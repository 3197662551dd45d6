"""What a split is worth: formulas, without rows or threads.

- ``parameters``: what an estimator's parameters stand for: a plan, and a criterion;
- ``criterion``: criteria and their parameters as a C struct, and as Python objects;
- ``node_formulas`` (a node), ``era_statistics`` (an era of a split), ``aggregation``
  (over eras): the equations, with their sources;
- ``split_sums``: what all eras say of a candidate split, in a few running sums;
  ``lane_sums``: of many splits, in the lanes of vectors;
- ``exchanged_sums``: what processes that hold other eras tell each other of it;
- ``ranking``: how each criterion ranks a candidate by them, one function each.
"""
