# The tree being grown, as scikit-learn's grower and splitter describe it.

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C, X_BINNED_DTYPE_C,
)
from sklearn.utils._typedefs cimport uint8_t


cdef struct tree_data:
    # What a tree is grown on; its owner keeps the memory.
    const X_BINNED_DTYPE_C * X_binned        # (n_samples, n_features), by columns
    Py_ssize_t n_samples
    int n_features
    const G_H_DTYPE_C * gradients
    const G_H_DTYPE_C * hessians             # NULL where they are 1
    const unsigned int * n_bins_non_missing  # (n_features,)
    const uint8_t * has_missing_values       # (n_features,)
    const uint8_t * is_categorical           # (n_features,)
    const signed char * monotonic_cst        # (n_features,)
    const double * penalties                 # (n_features,); NULL: none has any
    int missing_values_bin_idx


cdef struct tree_limits:
    int min_samples_leaf
    double min_hessian_to_split   # of each side
    double min_gain_to_split      # the gain has to exceed it
    double l2_regularization


cdef inline int describe_tree(
    splitter,
    const G_H_DTYPE_C [::1] gradients,
    const G_H_DTYPE_C [::1] hessians,
    const double [::1] penalties,    # None: none
    tree_data * data,       # OUT
    tree_limits * limits,   # OUT
) except -1:
    """Point at what scikit-learn's splitter of a tree has, and at its gradients."""
    cdef:
        const X_BINNED_DTYPE_C [::1, :] X_binned = splitter.X_binned
        const unsigned int [::1] n_bins_non_missing = splitter.n_bins_non_missing
        const uint8_t [::1] has_missing_values = splitter.has_missing_values
        const uint8_t [::1] is_categorical = splitter.is_categorical
        const signed char [::1] monotonic_cst = splitter.monotonic_cst
    data.X_binned = &X_binned[0, 0]
    data.n_samples = X_binned.shape[0]
    data.n_features = X_binned.shape[1]
    data.gradients = &gradients[0]
    data.hessians = &hessians[0] if hessians.shape[0] > 1 else NULL
    data.n_bins_non_missing = &n_bins_non_missing[0]
    data.has_missing_values = &has_missing_values[0]
    data.is_categorical = &is_categorical[0]
    data.monotonic_cst = &monotonic_cst[0]
    data.penalties = NULL if penalties is None else &penalties[0]
    data.missing_values_bin_idx = splitter.missing_values_bin_idx
    # Twice as many fit an int, and no node has so many rows.
    limits.min_samples_leaf = min(splitter.min_samples_leaf, 2**30 - 1)
    limits.min_hessian_to_split = splitter.min_hessian_to_split
    limits.min_gain_to_split = splitter.min_gain_to_split
    limits.l2_regularization = splitter.l2_regularization
    return 0


cdef inline double cost_of_feature(
    const tree_data * tree, int feature_idx, double unit  # 0: no feature costs anything
) noexcept nogil:
    """What a split pays for its feature: a share of `unit`, which may be infinite."""
    if tree.penalties == NULL or tree.penalties[feature_idx] == 0.0:
        return 0.0
    return tree.penalties[feature_idx] * unit
