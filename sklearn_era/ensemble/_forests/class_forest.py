"""Make a forest that predicts the proportion of one class, from the class's trees."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

# Attributes that a fitted classifier has, and a regressor lacks or has differently.
_OF_CLASSES = (
    "_label_encoder", "_predictors", "classes_", "oob_decision_function_",
    "oob_era_scores_", "oob_score_",
)  # fmt: skip


def index_of_class(forest: BaseEstimator, label: object) -> int:
    """Return the index of the class `label`; None stands for the second of two classes.
    Raise ValueError for an unknown class, or for None if there are not two classes.
    """
    classes = forest.classes_.tolist()
    if label is None:
        if len(classes) == 2:
            return 1
        raise ValueError(
            f"The forest has {len(classes)} classes: pass the label of one of "
            f"{classes}."
        )
    if label not in classes:
        raise ValueError(f"label={label!r} is none of the classes {classes}.")
    return classes.index(label)


def trees_of_class(forest: BaseEstimator, index: int) -> list[list[TreePredictor]]:
    """Return, for each iteration, a list with the tree of the class number `index`."""
    if forest.n_trees_per_iteration_ > 1:
        return [[trees[index]] for trees in forest._predictors]
    if index == forest.classes_.size - 1 == 1:
        return forest._predictors
    # The one tree is that of the second class of two, or of an absent class if there is
    # only one. Leaves hold a share of the mean over trees.
    share = 1.0 / len(forest._predictors)
    return [
        [tree_of_values(tree, share - tree.nodes["value"])]
        for (tree,) in forest._predictors
    ]


def tree_of_values(tree: TreePredictor, values: NDArray[np.float64]) -> TreePredictor:
    """Return a copy of a tree, with `values` in place of its nodes' values."""
    nodes = tree.nodes.copy()
    nodes["value"] = values
    return TreePredictor(nodes, tree.binned_left_cat_bitsets, tree.raw_left_cat_bitsets)


def fill_regressor(regressor: BaseEstimator, forest: Any, index: int) -> Any:
    """Give a regressor the fitted attributes of a forest, with the trees of one class
    only; return the regressor.
    """
    for name, value in vars(forest).items():
        if name not in _OF_CLASSES and name not in forest.get_params(deep=False):
            setattr(regressor, name, value)
    regressor.n_trees_per_iteration_ = 1
    regressor._baseline_prediction = np.zeros((1, 1))
    regressor._predictors = trees_of_class(forest, index)
    return regressor
