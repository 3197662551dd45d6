"""The boosters: scikit-learn's ``fit`` with eras.

- ``estimators``: the two classes and their parameters;
- ``hooks``: the methods that the patched ``fit`` calls, in the order of the calls;
- ``held_out_eras``: the rows of early stopping; ``scoring``: the eras of a scorer;
- ``predictions``: predictions for rows of known eras; ``known_eras``: their labels;
- ``era_effects``: intercepts of eras; ``era_values``: their Newton steps;
  ``level_forecast``: the level that they follow; ``group_intercepts``: intercepts of
  groups beside times; ``intercept_updates``: updates by eras after the fit;
- ``era_weights``: the weights of eras in each iteration;
- ``leaf_shrinkage``: the shrinkage of leaves that differ between eras;
  ``empirical_bayes``: the factors by which leaves and intercepts shrink;
- ``tree_features``: the features that a tree may split on.
"""
