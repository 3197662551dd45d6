"""Forests of trees whose splits compare eras.

- ``estimators``: parameters and predictions; ``docstrings``: their documentation;
- ``fit``: ``checks``, bins, and for each tree (``iteration``) a draw of eras and rows
  (``sampling``) and its growth (``tree_grower``);
- ``class_forest``: the trees of one class;
- ``out_of_bag``: scores of each row by the trees that did not draw it;
- ``presets``: the forests of the papers.
"""
