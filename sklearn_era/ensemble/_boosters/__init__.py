"""The boosters: scikit-learn's ``fit`` with eras.

- ``estimators``: the parameters, and the two classes;
- ``hooks``: what the patched ``fit`` calls, in the order of the calls;
- ``held_out_eras``: the rows of early stopping; ``scoring``: the eras of a scorer;
- ``predictions``: those for rows of known eras;
- ``era_effects``: intercepts of eras; ``era_weights``: what iterations weigh them by;
- ``leaf_shrinkage``: by how much leaves differ between eras;
- ``tree_features``: the features that a tree may split on.
"""
