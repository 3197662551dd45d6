"""The features that a tree may split on: a random share, drawn for each tree."""

import numpy as np

from ..._eras import number_of_share


def draw_tree_features(
    rng: np.random.Generator,
    n_features: int,
    share: float,
    interaction_cst: list[set[int]] | None,
) -> list[set[int]] | list[frozenset[int]] | None:
    """Draw the features of one tree, and put them as interaction constraints.

    scikit-learn's grower builds histograms of the features that the constraints allow,
    and of no others: what a tree costs shrinks nearly as their number does.

    Parameters
    ----------
    rng : numpy.random.Generator
        What also draws the features of each split (`max_features`). It is left alone
        where all features are drawn.
    n_features : int
        Number of features in training, counted as scikit-learn trains on them:
        categorical ones first.
    share : float
        Share of the features to draw, in (0, 1].
    interaction_cst : list of set of int, or None
        The constraints of the whole model, each feature in one group at least.

    Returns
    -------
    tree_interaction_cst : list of set of int, or None
        The groups, as far as they were drawn; without constraints, one group.
    """
    n_drawn = number_of_share(share, n_features)
    if n_drawn == n_features:
        return interaction_cst
    # A shuffled mask, as scikit-learn draws the features of a split.
    is_drawn = np.zeros(n_features, dtype=bool)
    is_drawn[:n_drawn] = True
    rng.shuffle(is_drawn)
    drawn = frozenset(np.flatnonzero(is_drawn).tolist())
    if interaction_cst is None:
        return [drawn]
    # Pairs of which one feature was drawn are all the same group: keep one.
    groups = dict.fromkeys(drawn & group for group in interaction_cst)
    groups.pop(frozenset(), None)
    return list(groups)


__all__ = ["draw_tree_features"]
