from .._criteria.criterion cimport criterion_struct
from .bundles cimport FeatureBundles
from .candidates.splits cimport CandidateSplits
from .nodes cimport tree_data
from .rows cimport EraRows
from .store cimport HistogramStore


cdef class EraSplitter:
    cdef:
        object exchange
        bint is_alone            # in it
        EraRows rows
        CandidateSplits splits
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
        int n_threads
        object splitter          # with what `tree` points at
        object gradients
        object all_features_wanted
        object totals            # sums of all gradients and hessians
        readonly bint hessians_are_constant
        readonly object hessians
        FeatureBundles all_features  # kept from tree to tree
        FeatureBundles bundles       # of the features that the tree uses

        # Of the fit: nodes that the gain would split, and those of them at which no
        # split covers enough eras.
        readonly Py_ssize_t n_splittable
        readonly Py_ssize_t n_uncovered
