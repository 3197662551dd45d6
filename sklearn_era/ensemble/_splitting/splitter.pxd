from .._criteria.criterion cimport criterion_struct
from .bundles cimport FeatureBundles
from .candidates.splits cimport CandidateSplits
from .nodes cimport tree_data
from .rows cimport EraRows
from .store cimport HistogramStore


cdef class EraSplitter:
    cdef:
        object exchange
        bint is_alone            # a single process
        EraRows rows
        CandidateSplits splits
        readonly HistogramStore store
        HistogramStore spare
        criterion_struct criterion
        double [::1] impurities  # (n_eras,), of the node, if `reads_impurities`
        double [::1] era_sizes   # (n_eras,), rows in the training set
        double [::1] min_samples  # (n_eras,), rows on both sides that cover an era
        double gradient_variance
        int n_eras_of_all        # over all processes
        const double [::1] penalties  # (n_features,); None: all 0

        # The tree being grown.
        tree_data tree
        int n_threads
        object splitter          # owns the arrays of `tree`
        object gradients
        object all_features_active
        object totals            # sums of all gradients and hessians
        readonly bint hessians_are_constant
        readonly object hessians
        FeatureBundles all_features  # kept from tree to tree
        FeatureBundles bundles       # of the features that the tree uses

        # Counts of the fit: nodes with a split by their gain, and those among them in
        # which no split covers enough eras.
        readonly Py_ssize_t n_splittable
        readonly Py_ssize_t n_uncovered
        readonly Py_ssize_t n_the_gains  # nodes with the split of the largest gain
