# The tree being grown, as scikit-learn's splitter describes it.

from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t


cdef struct tree_data:
    # The arrays are the splitter's; what keeps this keeps that.
    const X_BINNED_DTYPE_C * X_binned        # (n_samples, n_features), by columns
    Py_ssize_t n_samples
    Py_ssize_t n_features
    const unsigned int * n_bins_non_missing  # (n_features,)
    const uint8_t * has_missing_values       # (n_features,)
    const uint8_t * is_categorical           # (n_features,)
    const signed char * monotonic_cst        # (n_features,)
    int missing_values_bin_idx
    unsigned int min_samples_leaf
    double min_hessian_to_split
    int n_threads
