# The features that a node of a small node's subtree looks at.

from libc.string cimport memset

from sklearn.utils._typedefs cimport uint8_t, uint64_t

from .keys cimport code_of
from .node cimport small_node
from .node_rows cimport keys_of, small_rows


cdef struct feature_lists:
    # Lists of features that can split nodes. Level 0 has all of them, and level i + 1
    # those of a node of level i, for its children to choose from. Nodes are made depth
    # first, so a list stays until both children have used it.
    int n_features
    const uint8_t * is_categorical   # (n_features,)
    int * lists            # (n_levels, n_features)
    int * n_listed         # (n_levels,)
    # The draw for a node.
    int n_drawn
    uint64_t random_state
    int * deck             # (n_features,), in a random order
    uint8_t * is_drawn     # (n_features,)
    uint8_t * can_split    # (n_features,), the node, of those listed


cdef inline void list_all(feature_lists * features) noexcept nogil:
    """Make the list of level 0, and draw all features."""
    cdef int i
    for i in range(features.n_features):
        features.lists[i] = i
        features.deck[i] = i
        features.is_drawn[i] = True
        features.can_split[i] = True
    features.n_listed[0] = features.n_features


cdef inline const int * listed(
    const feature_lists * features, int level
) noexcept nogil:
    return features.lists + level * <Py_ssize_t> features.n_features


cdef inline void list_varying(
    feature_lists * features,
    const small_rows * rows,
    const small_node * node,
    bint lists_categories,   # whether the node has the rows for two of them
) noexcept nogil:
    """List the features that are not constant in a node, for the next level.

    What is constant in a node is so in all below it, and not looked at again.
    """
    cdef:
        const int * parents = listed(features, node.level)
        int * own = <int *> listed(features, node.level + 1)
        const unsigned int * keys
        int n_own = 0
        int i
    for i in range(features.n_listed[node.level]):
        if features.is_categorical[parents[i]] and not lists_categories:
            continue
        keys = keys_of(rows, parents[i], node.start)
        if code_of(keys[0]) != code_of(keys[node.stop - node.start - 1]):
            own[n_own] = parents[i]
            n_own += 1
    features.n_listed[node.level + 1] = n_own


cdef inline void draw_features(feature_lists * features, int level) noexcept nogil:
    """Draw features for a node without replacement, by the first steps of a shuffle.

    Where none of them can split the node, whose list is that of `level`, draw on until
    one does: as scikit-learn's trees, which else would end early on columns of few
    values.
    """
    cdef:
        const int * varying = listed(features, level)
        int i, j
    if features.n_drawn == features.n_features or features.n_listed[level] == 0:
        return
    memset(features.is_drawn, False, features.n_features)
    for i in range(features.n_features):
        if i >= features.n_drawn and some_drawn(
            features, varying, features.n_listed[level]
        ):
            break
        j = i + <int> (
            next_random(&features.random_state)
            % <uint64_t> (features.n_features - i)
        )
        features.deck[i], features.deck[j] = features.deck[j], features.deck[i]
        features.is_drawn[features.deck[i]] = True


cdef inline bint some_drawn(
    const feature_lists * features, const int * some, int n_some
) noexcept nogil:
    cdef int i
    for i in range(n_some):
        if features.is_drawn[some[i]] and features.can_split[some[i]]:
            return True
    return False


cdef inline uint64_t next_random(uint64_t * state) noexcept nogil:
    """The next number of the generator SplitMix64: Steele, Lea & Flood (2014)."""
    cdef uint64_t mixed
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    mixed = state[0]
    mixed = (mixed ^ (mixed >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    mixed = (mixed ^ (mixed >> 27)) * <uint64_t> 0x94D049BB133111EB
    return mixed ^ (mixed >> 31)
