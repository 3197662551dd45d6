from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C

from .._criteria.criterion cimport criterion_struct
from .._criteria.split_sums cimport eras_struct
from .rows cimport EraRows
from .bundles cimport FeatureBundles
from .candidates.table cimport CandidateTable, feature_split, node_struct
from .histograms.accumulate cimport Accumulator
from .histograms.stored cimport HistogramStore, NodeHistograms
from .tree_data cimport tree_data, tree_limits


cdef struct tree_eras:
    # What small nodes have to know of a tree in order to compare its eras.
    const criterion_struct * criterion
    eras_struct pooled                      # less what depends on the node
    const int * codes                       # (n_samples,)
    double gradient_unit                    # of fixed points; 0: sum floats
    double gradient_scale
    const G_H_DTYPE_C * positive_weights    # NULL where gradients are compared
    const G_H_DTYPE_C * weights


cdef class EraSplitter:
    cdef:
        object exchange
        EraRows rows
        CandidateTable candidates
        Accumulator accumulator
        readonly HistogramStore store
        criterion_struct criterion
        bint compares_targets
        double [::1] impurities  # (n_eras,), of the node, if needed
        double [::1] era_sizes   # (n_eras,), rows of an era in the training set
        double gradient_variance
        int n_eras_of_all        # processes
        const double [::1] penalties  # (n_features,); None: none has any

        # Of the tree being grown.
        tree_data tree
        tree_limits limits
        int n_threads
        object splitter          # with what `tree` points at
        object gradients
        object totals            # sums of all gradients and hessians
        readonly bint hessians_are_constant
        readonly object hessians
        FeatureBundles all_features  # kept from tree to tree
        FeatureBundles bundles       # of the features that the tree uses

        # Of the fit: nodes that the gain would split, and those of them at which no
        # split covers enough eras.
        readonly Py_ssize_t n_splittable
        readonly Py_ssize_t n_uncovered

    cdef tree_eras eras_of_tree(self) noexcept
    cdef bint _compares_directions_first(self) except -1
    cdef double _count_coverable_eras(self) noexcept
    cdef bint _has_enough_eras(self) except -1
    cdef _draw_features(self, allowed_features)
    cdef _usable_features(self, allowed_features)
    cdef feature_split _choose_by_gain(self, const node_struct * node) noexcept
    cdef feature_split _choose(
        self, const node_struct * node, NodeHistograms histograms
    ) except *
    cdef double _gain_left(
        self, const feature_split * split, double unit_of_costs
    ) noexcept
    cdef feature_split _compare(
        self,
        const criterion_struct * criterion,
        const node_struct * node,
        NodeHistograms histograms,
    ) except *
    cdef feature_split _choose_by_share(
        self, const node_struct * node, NodeHistograms histograms
    ) except *
    cdef feature_split _rank(
        self,
        const criterion_struct * criterion,
        const node_struct * node,
        double unit_of_costs=*,
    ) noexcept
    cdef feature_split _rank_penalised(
        self, const criterion_struct * criterion, const node_struct * node
    ) noexcept
    cdef void _count_if_uncovered(
        self, const criterion_struct * criterion, const node_struct * node
    ) noexcept
    cdef void _describe(self, node, node_struct * c_node)
