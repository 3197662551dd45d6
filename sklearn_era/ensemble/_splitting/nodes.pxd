# A tree being grown, its nodes and their splits, pooled.

from libc.stdint cimport uint8_t
from .._arrays cimport BITSET_DTYPE_C, G_H_DTYPE_C, X_BINNED_DTYPE_C

from .._criteria.criterion cimport split_rank
from .._criteria.formulas cimport bounded, node_loss, node_value


cdef struct tree_data:
    # Data and limits of a tree. It does not own the memory.
    const X_BINNED_DTYPE_C * X_binned        # (n_samples, n_features), by columns
    Py_ssize_t n_samples
    int n_features
    const G_H_DTYPE_C * gradients
    const G_H_DTYPE_C * hessians             # NULL if they are 1
    const unsigned int * n_bins_non_missing  # (n_features,)
    const uint8_t * has_missing_values       # (n_features,)
    const uint8_t * is_categorical           # (n_features,)
    const signed char * monotonic_cst        # (n_features,)
    const double * penalties                 # (n_features,); NULL: all 0
    int missing_values_bin_idx
    int min_samples_leaf
    double min_hessian_to_split              # of each side
    double min_gain_to_split                 # exclusive
    double l2_regularization


cdef inline int describe_tree(
    splitter, const G_H_DTYPE_C [::1] gradients, const G_H_DTYPE_C [::1] hessians,
    const double [::1] penalties,    # None: none
    tree_data * tree,                # OUT
) except -1:
    """Set the data and limits of a tree, from a splitter with scikit-learn's
    attributes; raise ValueError for a categorical feature with a monotonic constraint.
    """
    cdef:
        const X_BINNED_DTYPE_C [::1, :] X_binned = splitter.X_binned
        const unsigned int [::1] n_bins_non_missing = splitter.n_bins_non_missing
        const uint8_t [::1] has_missing_values = splitter.has_missing_values
        const uint8_t [::1] is_categorical = splitter.is_categorical
        const signed char [::1] monotonic_cst = splitter.monotonic_cst
        int i
    for i in range(X_binned.shape[1]):
        if is_categorical[i] and monotonic_cst[i]:
            raise ValueError("Categorical features cannot have monotonic constraints.")
    tree.X_binned = &X_binned[0, 0]
    tree.n_samples = X_binned.shape[0]
    tree.n_features = X_binned.shape[1]
    tree.gradients = &gradients[0]
    tree.hessians = &hessians[0] if hessians.shape[0] > 1 else NULL
    tree.n_bins_non_missing = &n_bins_non_missing[0]
    tree.has_missing_values = &has_missing_values[0]
    tree.is_categorical = &is_categorical[0]
    tree.monotonic_cst = &monotonic_cst[0]
    tree.penalties = NULL if penalties is None else &penalties[0]
    tree.missing_values_bin_idx = splitter.missing_values_bin_idx
    # Doubled it fits an int, and no node has as many rows.
    tree.min_samples_leaf = min(splitter.min_samples_leaf, 2**30 - 1)
    tree.min_hessian_to_split = splitter.min_hessian_to_split
    tree.min_gain_to_split = splitter.min_gain_to_split
    tree.l2_regularization = splitter.l2_regularization
    return 0


cdef struct pooled_node:
    # The sums of a node.
    unsigned int n_samples
    double sum_gradients
    double sum_hessians
    double loss         # at its own (clipped) value
    double lower_bound  # of the children's values
    double upper_bound


cdef struct feature_split:
    # A candidate split; after a scan, the best candidate of its feature.
    bint found
    split_rank rank
    int feature_idx
    unsigned int bin_idx
    uint8_t missing_go_to_left
    uint8_t is_categorical
    BITSET_DTYPE_C left_cat_bitset
    unsigned int n_samples_left
    double sum_gradients_left
    double sum_hessians_left


cdef struct node_choice:
    feature_split split  # if there is one
    bint is_splittable   # by its gain
    bint is_uncovered    # splittable, but no split covers enough eras
    bint is_the_gains    # the split of the largest gain, if that restricts the others
    bint is_deferred     # `split` is the one of the largest gain; see `search_node`
    double largest_gain  # of the node's splits, or of the best one if that is free


cdef struct side_values:
    double left
    double right


cdef inline side_values values_of_sides(
    const tree_data * tree, const pooled_node * node,
    double gradients_left, double hessians_left,
) noexcept nogil:
    """Return the Newton values of both sides, clipped to the bounds of the node. The
    right side's sums are differences of doubles, as in scikit-learn.
    """
    cdef:
        double l2 = tree.l2_regularization
        double left = node_value(gradients_left, hessians_left, l2)
        double right = node_value(
            node.sum_gradients - gradients_left, node.sum_hessians - hessians_left, l2
        )
        side_values values
    values.left = bounded(left, node.lower_bound, node.upper_bound)
    values.right = bounded(right, node.lower_bound, node.upper_bound)
    return values


cdef inline double gain_of_sides(
    const pooled_node * node, double gradients_left, side_values values
) noexcept nogil:
    """Return G v - G_L v_L - G_R v_R, the gain of a split, whose values may be clipped.
    Equation 7 of Chen & Guestrin (2016), XGBoost, in scikit-learn's units: without the
    factor 1/2 and without the cost of a split.
    """
    return (
        node.loss
        - node_loss(gradients_left, values.left)
        - node_loss(node.sum_gradients - gradients_left, values.right)
    )


cdef struct tree_node:
    # Sums are those of scikit-learn's grower: a right child's are differences from its
    # parent's.
    pooled_node pooled
    int start           # in the rows of the tree, or of the small node
    int depth
    double value
    int parent          # its record; -1 for a root
    bint is_right       # of the parent's children


cdef inline void make_children(
    const tree_data * tree, const tree_node * node, const feature_split * split,
    int number,                   # of the node's record
    tree_node * left,             # OUT
    tree_node * right,            # OUT
) noexcept nogil:
    cdef side_values values = values_of_sides(
        tree, &node.pooled, split.sum_gradients_left, split.sum_hessians_left
    )
    left[0] = node[0]
    left.depth += 1
    left.parent = number
    right[0] = left[0]
    left.is_right = False
    set_sums(
        left, split.n_samples_left, split.sum_gradients_left, split.sum_hessians_left,
        values.left,
    )
    right.is_right = True
    right.start += split.n_samples_left
    set_sums(
        right, node.pooled.n_samples - split.n_samples_left,
        node.pooled.sum_gradients - split.sum_gradients_left,
        node.pooled.sum_hessians - split.sum_hessians_left, values.right,
    )


cdef inline void set_sums(
    tree_node * node,   # OUT
    int n_samples, double sum_gradients, double sum_hessians, double value,
) noexcept nogil:
    node.pooled.n_samples = n_samples
    node.pooled.sum_gradients = sum_gradients
    node.pooled.sum_hessians = sum_hessians
    node.pooled.loss = node_loss(sum_gradients, value)
    node.value = value


cdef struct grown_node:
    # A node whose split is found by histograms.
    tree_node node       # `start` and `n_rows` are those of this process
    int n_rows
    bint is_leaf
    node_choice choice   # a leaf may have a split too
    bint is_split        # has children, but is a leaf unless the queue comes to it
    bint is_searched, is_kept  # for a split; in the store then
    int left, right      # numbers of the children
    int slot             # of its histograms in the store; -1: none
    # With several processes, the same of the sums over all, and the eras that all of
    # them can cover, which come with these sums.
    int slot_of_all
    double n_coverable
    int allowed          # number of the features allowed by interaction constraints
    # Lists of numbers of nodes, by place: the heap of those with a split; those taken
    # out of it; leaves.
    int waiting, popped, leaf
