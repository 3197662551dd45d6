"""Forests of trees whose splits compare eras: the fit, in the order of its steps.

1. ``estimators`` has the parameters and the predictions;
2. ``fit`` checks (``checks``), encodes eras, bins the rows, and for each tree
   (``iteration``)
3. draws the eras that it compares and its rows (``sampling``),
4. grows it (``tree_grower``), and computes the values of its nodes;
5. ``class_forest`` has the trees of one class;
6. ``out_of_bag`` scores each row by the trees that did not draw it.

``presets`` has the forests of the papers, and ``docstrings`` the documentation.
"""
