# The features that a node of a small node's subtree looks at.

from sklearn.utils._typedefs cimport uint64_t

from .category_scan cimport can_split_categories
from .keys cimport code_of, keys_of, small_rows
from .node cimport small_node
from .scan cimport scan_context, sorted_feature
from ..candidates.categories cimport MIN_CATEGORY_SUPPORT


cdef struct feature_draw:
    int n_features
    int n_drawn
    uint64_t random_state
    int * deck              # (n_features,), in a random order


cdef inline bint find_varying(
    sorted_feature * features,   # (n_features,), IN and OUT
    int n_features,
    const small_rows * rows,
    const small_node * node,
) noexcept nogil:
    """Find the features that are not constant in a node; return False if all are."""
    cdef:
        int n_rows = node.stop - node.start
        # Weights are counted in units of their mean: all together, they are as many.
        bint may_split_categories = n_rows >= 2 * MIN_CATEGORY_SUPPORT
        sorted_feature * feature
        bint some_vary = False
        int i
    for i in range(n_features):
        feature = &features[i]
        feature.keys = keys_of(rows, i, node.start)
        feature.varies = (
            may_split_categories or not feature.is_categorical
        ) and code_of(feature.keys[0]) != code_of(feature.keys[n_rows - 1])
        some_vary |= feature.varies
    return some_vary


cdef inline void draw_features(
    feature_draw * draw,
    sorted_feature * features,   # (n_features,), IN and OUT
    const scan_context * context,
) noexcept nogil:
    """Draw features for a node without replacement, by the first steps of a shuffle.

    Where none of them can split the node, draw on until one does: as scikit-learn's
    trees, which else would end early on columns of few values.
    """
    cdef:
        int n = draw.n_features
        bint can_split = False
        sorted_feature * feature
        int i, j
    if draw.n_drawn == n:
        return
    for i in range(n):
        features[i].is_drawn = False
    for i in range(n):
        if i >= draw.n_drawn and can_split:
            break
        j = i + <int> (next_random(&draw.random_state) % <uint64_t> (n - i))
        draw.deck[i], draw.deck[j] = draw.deck[j], draw.deck[i]
        feature = &features[draw.deck[i]]
        feature.is_drawn = True
        can_split = can_split or feature.varies and (
            not feature.is_categorical or can_split_categories(context, feature)
        )


cdef inline uint64_t next_random(uint64_t * state) noexcept nogil:
    """Return the next number of the generator SplitMix64: Steele, Lea & Flood (2014).
    """
    cdef uint64_t mixed
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    mixed = state[0]
    mixed = (mixed ^ (mixed >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    mixed = (mixed ^ (mixed >> 27)) * <uint64_t> 0x94D049BB133111EB
    return mixed ^ (mixed >> 31)
