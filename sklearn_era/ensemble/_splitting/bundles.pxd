from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C


cdef enum:
    MAX_MEMBERS = 8  # features in a bundle


cdef struct bundle_struct:
    int n_members
    int[MAX_MEMBERS] members          # feature indices, ascending
    int[MAX_MEMBERS] n_codes          # of each: bins, and one more for missing values
    int n_cells                       # combinations of their codes
    int n_bins                        # sum of n_codes
    Py_ssize_t first_bin              # among the bins of all bundles
    const X_BINNED_DTYPE_C * codes    # of the rows; NULL where they were not joined


cdef class FeatureBundles:
    cdef:
        readonly object features         # ndarray of shape (n_features,), ascending
        object joint                     # ndarray of uint8, to keep it alive
        bundle_struct * bundles
        readonly int n_bundles
        readonly Py_ssize_t n_bins       # of all features, missing values included
