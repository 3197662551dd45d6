from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C,
    X_BINNED_DTYPE_C,
    hist_struct,
)


cdef class EraHistogramBuilder:
    cdef:
        const int [::1] era_codes
        int n_eras
        unsigned int min_samples_per_era
        int min_covered_eras
        bint needs_impurities
        bint needs_variance
        double [::1] era_sizes  # (n_eras,), rows of an era in the training set

        # What the eras of a node are summed by instead of gradients and hessians.
        bint sums_targets
        const G_H_DTYPE_C [::1] positive_weights
        const G_H_DTYPE_C [::1] weights

        # Of the tree being grown, from scikit-learn's splitter and builder.
        const X_BINNED_DTYPE_C [::1, :] X_binned
        const G_H_DTYPE_C [::1] gradients
        const G_H_DTYPE_C [::1] hessians
        bint hessians_are_constant
        const unsigned int [::1] n_bins_non_missing
        int missing_values_bin_idx
        double gradient_variance  # by unit of hessian, if needed

        # Of the node being split: its rows, and their statistics in the rows' order.
        const unsigned int [::1] sample_indices
        G_H_DTYPE_C [::1] ordered_gradients
        G_H_DTYPE_C [::1] ordered_hessians
        int [::1] ordered_codes
        int [::1] counts         # (n_eras,), rows of an era in the node
        double [:, ::1] sums     # (n_eras, 3), of g^2 / h, g and h, if needed
        double [::1] impurities  # (n_eras,), if needed

    cdef double root_variance(self) noexcept
    cdef bint start_node(self, const unsigned int [::1] sample_indices) noexcept
    cdef void sum_impurities(self) noexcept nogil
    cdef void fill(self, int feature_idx, hist_struct * histogram) noexcept nogil
