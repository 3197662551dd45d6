"""Choose the features that the nodes of a tree may use."""

import numpy as np

from libc.math cimport ceil
from libc.stdint cimport uint8_t

from .nodes cimport grown_node


cdef class NodeFeatures:
    """The features that nodes may use, allowed and drawn as by scikit-learn's grower.

    `usable` returns the given features whose penalty is below 1; all other parameters
    are the grower's.
    """

    def __init__(
        self, int n_features, usable, interaction_cst, bint sort_features,
        double feature_fraction_per_split, rng, draw_features, partition,
    ):
        self.usable = usable
        self.interaction_cst = interaction_cst
        self.sorts = sort_features
        self.share = feature_fraction_per_split
        self.rng = rng
        self.draw = draw_features
        self.partition = partition
        self.are_drawn = draw_features is not None or self.share < 1.0
        self.is_active = np.zeros(n_features, dtype=np.uint8)
        self.masked = -1
        self.numbers = {}
        self.allowed = []
        if interaction_cst is None:
            self.allowed.append((usable(np.arange(n_features)), ()))
        else:
            self.allow(tuple(range(len(interaction_cst))))

    @property
    def of_root(self):
        return self.allowed[0][0]

    cdef const uint8_t * active(self, const grown_node * node) except NULL:
        """Return a mask of the features that a node may use."""
        features = self.allowed[node.allowed][0]
        number = node.allowed
        if self.draw is not None:
            rows = self.partition[node.node.start : node.node.start + node.n_rows]
            features = self.draw(rows, node.node.pooled.sum_hessians)
            number = -1
        elif self.share < 1.0:
            n_drawn = max(1, int(ceil(self.share * features.size)))
            mask = np.full(features.size, False)
            mask[:n_drawn] = True
            self.rng.shuffle(mask)
            features = features[mask]
            number = -1
        if number < 0 or number != self.masked:
            self.is_active[:] = 0
            np.asarray(self.is_active)[features] = 1
            self.masked = number
        return &self.is_active[0]

    cdef int allowed_below(self, const grown_node * node) except -1:
        """Return the index in `allowed` of the features for a node's children."""
        if self.interaction_cst is None:
            return 0
        return self.allow(
            tuple([
                i for i in self.allowed[node.allowed][1]
                if node.choice.split.feature_idx in self.interaction_cst[i]
            ])
        )

    def allow(self, sets):
        """Return the index in `allowed` of the features in the interaction sets `sets`;
        add an entry if there is none for these sets.
        """
        if sets not in self.numbers:
            features = set().union(*(self.interaction_cst[i] for i in sets))
            if self.sorts:
                features = sorted(features)
            features = np.fromiter(features, dtype=np.intp, count=len(features))
            self.numbers[sets] = len(self.allowed)
            self.allowed.append((self.usable(features), sets))
        return self.numbers[sets]
