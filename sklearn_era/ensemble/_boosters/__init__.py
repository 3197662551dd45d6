"""The boosters: scikit-learn's ``fit`` with eras.

- ``estimators``: the parameters, and the two classes;
- ``hooks``: what the patched ``fit`` calls, in the order of the calls;
- ``held_out_eras``: the rows of early stopping; ``scoring``: the eras of a scorer;
- ``predictions``: those for rows of known eras, by the labels in ``known_eras``;
- ``era_effects``: intercepts of eras; ``level_forecast``: the level that they follow;
  ``intercept_updates``: those of eras whose labels come after the trees were grown;
- ``era_weights``: what iterations weigh eras by;
- ``leaf_shrinkage``: by how much leaves differ between eras;
- ``tree_features``: the features that a tree may split on.
"""
