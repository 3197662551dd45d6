from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t

from .._criteria.criterion cimport criterion_struct
from .._criteria.sides cimport eras_struct
from .bundles cimport FeatureBundles
from .candidates.split cimport feature_split
from .candidates.splits cimport CandidateSplits
from .comparison cimport EraComparison
from .lanes.functions cimport node_struct
from .rows cimport EraRows
from .store cimport HistogramStore
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
        bint is_alone            # in it
        EraRows rows
        CandidateSplits splits
        EraComparison comparison
        readonly HistogramStore store
        HistogramStore spare
        criterion_struct criterion
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
        object all_features_wanted
        object totals            # sums of all gradients and hessians
        readonly bint hessians_are_constant
        readonly object hessians
        FeatureBundles all_features  # kept from tree to tree
        FeatureBundles bundles       # of the features that the tree uses
        object merged                # of the bins of all processes

        # Of the node.
        double n_coverable       # eras with rows for both sides of a split

        # Of the fit: nodes that the gain would split, and those of them at which no
        # split covers enough eras.
        readonly Py_ssize_t n_splittable
        readonly Py_ssize_t n_uncovered

    cdef tree_eras eras_of_tree(self) noexcept
