from libc.stdint cimport uint8_t
from ..._arrays cimport X_BINNED_DTYPE_C

from ..bundles cimport FeatureBundles
from ..lanes.functions cimport (
    bin_order, era_visit, lane_column, lane_functions, node_struct,
)
from ..nodes cimport feature_split, tree_data
from ..rows cimport MAX_BINS, EraRows
from ..threads cimport counter
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.formulas cimport LANES


cdef enum:
    COLUMNS = 32  # codes of a row that are adjacent


cdef enum:  # ways to the sums and splits of nodes
    PACKED_SUMS, SUMS_BY_ERA, ROWS_LOOKED_AT, SHARES_OF_GAIN, FIRST_COLUMNS,
    DIRECTIONS_FIRST, CONTRASTS, COLUMNS_OF_MASKS, COLUMNS_OF_GROUPS, THREADS,
    N_WAYS


cdef struct split_order:
    # The splits of a feature in one order of its bins.
    bin_order order
    X_BINNED_DTYPE_C[MAX_BINS] categories   # `order.codes` of a categorical feature
    int column                    # of its lanes
    Py_ssize_t first_lane         # in the node


cdef struct feature_bins:
    # A feature of the tree.
    int feature_idx
    int n_codes
    bint has_missing
    bint is_categorical
    Py_ssize_t first_bin          # among the bins of all features
    bint is_active                # at the node
    # Over its splits: INFINITY until it is known, -INFINITY without splits.
    double largest_gain
    bint is_listed                # has listed splits
    feature_split best            # of these, once ranked
    int n_orders
    split_order[2] orders


cdef inline int lanes_for(int n_splits) noexcept nogil:
    """Return the number of lanes (places in vectors) for `n_splits` splits and for the
    sums of all rows, rounded up to whole registers.
    """
    return (n_splits // LANES + 1) * LANES


cdef struct column_queue:
    # Listed columns to be compared, for threads to take one after another.
    counter next              # the next one, below 32 bits; above them, where they end
    counter n_compared
    const era_visit * visit
    int chunk
    double min_key


cdef class CandidateSplits:
    cdef:
        const tree_data * tree
        const node_struct * node
        const lane_functions * functions
        EraRows rows
        object exchange
        bint is_alone                 # a single process
        int n_batches
        char * batches                # scratch for eras, one a thread
        X_BINNED_DTYPE_C[MAX_BINS] in_turn  # codes in ascending order
        FeatureBundles bundles
        list owners, memory           # that pointers refer to; of the bundles
        int n_features
        feature_bins * features       # (n_features,)
        int n_columns
        lane_column * columns         # (n_columns,)
        int n_listed
        int * listed                  # (n_columns,), columns with listed splits
        int n_first                   # of them, to be compared before the others
        column_queue queue
        bint looks_at_rows            # of the node, to prune splits few eras can cover
        # Codes by row; differences from split to split of the eras that may cover it.
        X_BINNED_DTYPE_C * row_codes  # (n_features // COLUMNS + 1, n_samples, COLUMNS)
        int * changes                 # (n_features, MAX_BINS)
        # The node's lanes: left sides, pooled; gains, -INFINITY unless listed; and the
        # splits' places in their order.
        Py_ssize_t n_lanes
        double * sides                # (3, n_lanes)
        double * gains
        X_BINNED_DTYPE_C * places
        # Sums over eras: for each column, (n_fields, n_lanes).
        int n_fields
        double * sums
        # `custom` is a criterion in Python, or None. For it: the sides of columns with
        # listed splits in all eras, each (4, n_eras, n_lanes).
        object custom, era_labels
        double [::1] kept
        const double [::1] era_sizes, min_samples  # (n_eras,), as in `SplitterState`
        int n_to_cover                # eras a listed split must cover, if not yet known
        int n_absent                  # eras not listed, to be added at the end
        object error                  # in Python, until threads have ended; or None
        Py_ssize_t[N_WAYS] n_taken    # how often the fit took each way

    cdef bint start_node(self, const uint8_t * is_active) noexcept nogil
    cdef void list_columns(self, int n_first) noexcept nogil
    cdef code_rows(self)
    cdef make_room(self)
    cdef ask_criterion(self, const criterion_struct * criterion)
    cdef merge_splits(self, const criterion_struct * criterion)


cdef inline void note_way(
    CandidateSplits splits, int way, bint is_taken
) noexcept nogil:
    if is_taken:
        splits.n_taken[way] += 1


cdef inline double * sums_of_column(
    CandidateSplits splits, const lane_column * column
) noexcept nogil:
    """Return the address of the sums over eras of a column's splits."""
    return splits.sums + column.first_lane * splits.n_fields
