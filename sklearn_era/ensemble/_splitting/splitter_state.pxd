from libc.stdint cimport uint8_t
from .._criteria.criterion cimport criterion_struct
from .bundles cimport FeatureBundles
from .candidates.splits cimport CandidateSplits
from .choice cimport search_step
from .lanes.functions cimport node_struct
from .nodes cimport grown_node, tree_data
from .rows cimport EraRows
from .store cimport HistogramStore, NodeHistograms, child_sums
from .threads cimport counter


cdef enum:
    MAX_AT_ONCE = 8  # nodes split at once


cdef class NodeSearch:
    # The memory that a thread writes to as it searches for a node's split; and one of
    # the nodes that threads search at a time, each in its own memory.
    cdef:
        EraRows rows
        CandidateSplits splits
        double [::1] impurities   # (n_eras,), of the node, if `reads_impurities`
        node_struct node
        search_step step
        child_sums child
        # The children of a node to be searched side by side with others; or one node,
        # the smaller. Threads take the larger one, then the smaller.
        const grown_node * parent
        grown_node * smaller
        grown_node * larger
        bint defers               # comparisons of the children's eras
        counter n_claims          # by threads; the first one has the node
        counter next_child        # 0, 1; from 2 on: no longer, or not yet
        NodeHistograms of_smaller, of_larger
        uint8_t [::1] is_active   # features
        NodeSearch next           # at the same time


cdef class SplitterState:
    cdef:
        object exchange
        bint is_alone            # a single process
        NodeSearch search        # the first of one for each thread
        object make_rows         # of another one
        bint defers              # comparisons of eras; see `search_node`
        counter n_done           # searches of nodes, side by side
        int patience             # how often a thread looks for work in vain
        bint shares_sums         # of rows parted before, among threads
        EraRows rows             # of `search`
        CandidateSplits splits   # likewise
        readonly HistogramStore store
        HistogramStore spare
        HistogramStore of_all    # sums over all processes, which keep the same ones
        criterion_struct criterion
        double [::1] era_sizes   # (n_eras,), rows in the training set
        double [::1] min_samples  # (n_eras,), rows on both sides that cover an era
        double gradient_variance
        int n_eras_of_all        # over all processes
        const double [::1] penalties  # (n_features,); None: all 0

        # The tree being grown.
        tree_data tree
        int n_threads
        double sum_gradients     # over all rows and processes
        double sum_hessians
        unsigned int [::1] partition  # (n_samples,), rows by node
        unsigned int [::1] scratch
        FeatureBundles all_features  # kept from tree to tree
        FeatureBundles bundles       # of the features that the tree uses

        # Counts of the fit: nodes with a split by their gain that had their turn, and
        # those among them in which no split covers enough eras.
        readonly Py_ssize_t n_splittable
        readonly Py_ssize_t n_uncovered
        readonly Py_ssize_t n_the_gains  # nodes with the split of the largest gain
        readonly Py_ssize_t n_searched   # nodes whose split was looked for
        readonly Py_ssize_t n_kept       # those among them whose sums were in the store
