"""Sums by bin and era, of nodes with many rows.

- ``accumulate``: takes chunks of rows, bundles of features and eras to the candidates;
  ``contributions``: adds what these eras say of them, and ``masked`` where splits are
  few; ``first_look``: adds what leaves few bundles of many bins to compare;
- ``sums``: the sums by bin of one bundle and one era, or eight;
- ``stored``: such sums that a node keeps for its children, within a budget.
"""
