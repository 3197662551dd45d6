"""The boosters: scikit-learn's ``fit`` with eras.

- ``estimators``: the parameters, and the two classes;
- ``hooks``: what the patched ``fit`` calls, in the order of the calls;
- ``held_out_eras``: rows and eras of early stopping; ``scoring``: their scores;
- ``callbacks``: what scikit-learn's callbacks hear of a fit;
- ``tree_features``: the features that are drawn for a tree.
"""
