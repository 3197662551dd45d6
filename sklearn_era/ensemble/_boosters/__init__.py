"""The boosters: scikit-learn's ``fit`` with eras.

- ``estimators``: the parameters, and the two classes;
- ``hooks``: what the patched ``fit`` calls, in the order of the calls;
- ``held_out_eras``: the rows of early stopping; ``scoring``: the eras of a scorer;
- ``era_effects``: intercepts of eras; ``leaf_shrinkage``: by how much leaves differ;
- ``tree_features``: the features that are drawn for a tree.
"""
