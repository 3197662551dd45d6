"""Grow forests of trees whose splits compare eras.

- ``estimators``: parameters and predictions; ``docstrings``: the forests' docstrings;
- ``fit``: first the ``checks`` and the bins; then, for each tree (``iteration``), the
  draw of eras and rows (``sampling``) and the growth of the tree (``tree_grower``);
- ``class_forest``: the trees of one class, as a forest;
- ``out_of_bag``: scores of each row by the trees that did not draw it;
- ``presets``: the forests of the papers.
"""
