"""Draw the features that a tree may split on, at random for each tree."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.grower import TreeGrower

from ..._eras import number_of_share
from ..._trees.traversal import column_of_feature
from ..._warnings import warn_user


def draw_tree_features(
    rng: np.random.Generator, n_features: int, share: float,
    interaction_cst: list[set[int]] | None,
    penalties: NDArray[np.float64] | None = None,
) -> list[set[int]] | list[frozenset[int]] | None:  # fmt: skip
    """Draw the features of a tree; return them as interaction constraints, so that
    scikit-learn's grower builds no histograms of other features. Features are numbered
    as in scikit-learn's training, categorical ones first; a penalty of 1 or more
    excludes a feature. If all features are drawn, the generator is not used.
    """
    usable = np.arange(n_features)
    if penalties is not None:
        usable = usable[penalties < 1.0]
    n_drawn = number_of_share(share, usable.size)
    if n_drawn == usable.size:
        return interaction_cst
    # A shuffled mask, as scikit-learn draws the features of a split.
    is_drawn = np.zeros(usable.size, dtype=bool)
    is_drawn[:n_drawn] = True
    rng.shuffle(is_drawn)
    drawn = frozenset(usable[is_drawn].tolist())
    if interaction_cst is None:
        return [drawn]
    # Pairs of which one feature was drawn are all the same group: keep one.
    groups = dict.fromkeys(drawn & group for group in interaction_cst)
    groups.pop(frozenset(), None)
    return list(groups)


class SortedFeaturesGrower(TreeGrower):
    """scikit-learn's grower, with the allowed features of a node in ascending order.
    Otherwise a hash table's order would decide ties, and the draws by `max_features`.
    """

    def _compute_best_split_and_push(self, node: Any) -> None:
        if node.allowed_features is not None:
            node.allowed_features = np.sort(node.allowed_features)
        super()._compute_best_split_and_push(node)


def warn_if_interaction_sets_moved(booster: BaseEstimator) -> None:
    """Warn if feature numbers in `interaction_cst` differ from X's column numbers."""
    columns = column_of_feature(booster)
    is_moved = (np.diff(columns) < 0).any()
    if is_moved and not isinstance(booster.interaction_cst, str | None):
        warn_user(
            "interaction_cst counts features in the order in which scikit-learn trains "
            "on them, categorical features first, and not in the order of the columns "
            f"of X: feature i is column {columns.tolist()}[i]. Put the categorical "
            "columns of X first, so that both orders are the same."
        )
