"""Fit boosters by scikit-learn's ``fit``, with eras.

- ``estimators``: the two classes and their parameters;
- ``hooks``: the methods that the patched ``fit`` calls, in the order of the calls;
- ``held_out_eras``: the rows that early stopping holds out; ``scoring``: the eras that
  early stopping passes to a scorer;
- ``predictions``: predictions for rows of known eras; ``known_eras``: labels of eras;
- ``era_effects``: intercepts of eras; ``era_values``: Newton steps of the
  intercepts; ``level_forecast``: the level that intercepts follow;
  ``group_intercepts``: intercepts of groups beside times; ``intercept_updates``:
  updates of intercepts after the fit;
- ``era_weights``: the weights of eras in each iteration;
- ``leaf_shrinkage``: the shrinkage of leaves that differ between eras;
  ``empirical_bayes``: the factors by which leaves and intercepts shrink;
- ``line_search``: the best constants of leaves and of eras, for quantiles;
- ``tree_features``: the features that a tree may split on.
"""
