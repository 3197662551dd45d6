from .._arrays cimport X_BINNED_DTYPE_C


cdef enum:
    MAX_MEMBERS = 8         # features in a bundle
    MAX_BUNDLE_CELLS = 256  # combinations of their codes: a byte
    MAX_SPLIT_LANES = 32    # of a bundle with masks


cdef struct bundle_struct:
    int n_members
    int[MAX_MEMBERS] members          # feature indices, ascending
    int[MAX_MEMBERS] n_codes          # of each: bins, plus one for missing values
    int n_cells                       # combinations of their codes
    int n_bins                        # sum of n_codes
    bint has_missing                  # values, in any member
    Py_ssize_t first_bin              # among the bins of all bundles
    const X_BINNED_DTYPE_C * codes    # of the rows; only with masks
    # -1 (all bits) where a combination is left of a split; see `masks_of_splits`.
    const long long * masks           # (n_cells, n_lanes), or NULL
    int n_lanes
    int n_splits                      # the lane after them has all rows
    Py_ssize_t first_lane             # among those of all bundles
    int[MAX_MEMBERS] first_split      # of each member


cdef class FeatureBundles:
    cdef:
        readonly object features         # ndarray of shape (n_features,), ascending
        list owners                      # of memory that pointers refer to
        dict masks                       # ndarrays of int64, by the features' n_codes
        bundle_struct * bundles
        readonly int n_bundles
        readonly Py_ssize_t n_bins       # of all features, missing values included
        readonly Py_ssize_t n_lanes      # of all bundles with masks
        readonly bint all_have_masks
