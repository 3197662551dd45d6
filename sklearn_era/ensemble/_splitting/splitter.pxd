from .rows cimport EraRows
from .bundles cimport FeatureBundles
from .candidates cimport CandidateTable, feature_split, node_struct
from .histograms.accumulate cimport Accumulator
from .histograms.stored cimport HistogramStore
from .tree_data cimport tree_data
from .._criteria.criterion cimport criterion_struct


cdef class EraSplitter:
    cdef:
        EraRows rows
        CandidateTable candidates
        Accumulator accumulator
        readonly HistogramStore store
        criterion_struct criterion
        bint compares_targets
        double [::1] impurities  # (n_eras,), of the node, if needed
        double [::1] era_sizes   # (n_eras,), rows of an era in the training set
        double gradient_variance

        # Of the tree being grown.
        tree_data tree
        object X_binned          # to keep what `tree` points at, as `splitter` does
        object splitter
        object totals            # sums of all gradients and hessians
        readonly bint hessians_are_constant
        readonly object hessians
        FeatureBundles all_features  # kept from tree to tree
        FeatureBundles bundles       # of the features that the tree uses

    cdef void _point_at_tree(self, splitter)
    cdef bint _has_enough_eras(self) noexcept
    cdef _draw_features(self, allowed_features)
    cdef const feature_split * _rank(self, const node_struct * node) noexcept
    cdef void _describe(self, node, node_struct * c_node)
    cdef _make_split_info(self, const feature_split * split, const node_struct * node)
