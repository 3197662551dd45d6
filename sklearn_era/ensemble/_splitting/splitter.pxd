from .rows cimport EraRows
from .candidates cimport EraScanner, feature_split, node_struct
from .histograms.accumulate cimport EraVisitor
from .bundles cimport FeatureBundles
from .histograms.stored cimport HistogramStore


cdef class EraSplitter:
    cdef:
        EraRows rows
        EraScanner scanner
        EraVisitor visitor
        readonly HistogramStore store
        bint compares_targets
        bint needs_impurities
        bint needs_variance
        int min_covered_eras
        int min_samples_per_era
        double [::1] impurities  # (n_eras,), of the node, if needed
        double [::1] era_sizes   # (n_eras,), rows of an era in the training set
        double gradient_variance

        # Of the tree being grown.
        object X_binned
        object totals            # sums of all gradients and hessians
        readonly bint hessians_are_constant
        readonly object hessians
        object n_bins_non_missing
        object has_missing_values
        int missing_values_bin_idx
        double feature_fraction_per_split
        object rng
        FeatureBundles all_features  # kept from tree to tree
        FeatureBundles bundles       # of the features that the tree uses
        int n_threads

    cdef bint _has_enough_eras(self) noexcept
    cdef _draw_features(self, allowed_features)
    cdef _make_split_info(self, const feature_split * split, const node_struct * node)
