"""Sums by bin and era, of nodes with many rows.

- ``accumulate``: adds up what the eras say of each candidate: chunks of rows, bundles
  of features, eras;
- ``sums``: the sums by bin of one bundle and one era, or eight;
- ``stored``: such sums that a node keeps for its children, within a budget.
"""
