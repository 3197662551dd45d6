# What is compiled for several instruction sets: loops over the lanes of vectors.

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    X_BINNED_DTYPE_C, hist_struct,
)

from ..bundles cimport (
    MAX_BUNDLE_CELLS, MAX_SPLIT_LANES, SPLIT_VECTORS, bundle_struct,
)
from ..rows cimport MAX_BINS, row_block
from ..fixed_points cimport summed_values
from ..._criteria.aggregation cimport (
    boltzmann_kind, boltzmann_sums, impurity_totals, kind_of_alpha, moment_sums,
)
from ..._criteria.criterion cimport (
    InvarianceStatistic, SplitCriterion, criterion_struct,
)
from .table cimport era_table, first_look
from ..._criteria.split_sums cimport LANES, eras_struct, split_sums


cdef struct bin_order:
    # An order in which the bins of a feature move to the left side. After each of the
    # moves `first`..`stop`-1 there is a candidate split.
    int n_bins                       # that move, or would as the next ones
    int first
    int stop
    int first_split                  # of the order, among the candidates of the bundle
    bint missing_go_to_left
    X_BINNED_DTYPE_C[MAX_BINS] bins  # as they move; missing values after the others


cdef struct occupied_splits:
    # The splits after each occupied bin of an era but the last: both sides, and what
    # the era says of them.
    double[MAX_BINS] left_gradients
    double[MAX_BINS] left_hessians
    double[MAX_BINS] left_counts
    double[MAX_BINS] right_gradients
    double[MAX_BINS] right_hessians
    double[MAX_BINS] right_counts
    double[MAX_BINS] gains
    double[MAX_BINS] directions
    double[MAX_BINS] covered


cdef struct packed_rows:
    # Rows of a node as words: the count in the low bits, the integer above.
    const unsigned int * indices     # NULL: all rows, as they are
    const long long * words
    const long long * plain_words    # of gradients, where hessians vary; else NULL
    const row_block * blocks
    int count_bits


cdef struct masked_sums:
    # Of an era, on the left side of each split; arrays have shape (n_lanes,).
    const long long * integers
    const long long * counts
    const long long * plain          # NULL if rows have no plain words


cdef enum kept_kind:
    # What a criterion keeps of a split, beside how many eras are covered.
    # Sums, to which an era that no split covers adds nothing:
    DIRECTIONS
    MEAN_GAINS            # B_alpha, by kinds of alpha
    GAINS_AND_DIRECTIONS  # with alpha = 0
    # The others:
    SMOOTHED_GAINS
    EXTREME_GAINS
    GAIN_MOMENTS
    EFFECTS
    CHANGING_RATES
    IMPURITIES
    HELD_OUT_GAINS
    ANYTHING


cdef inline kept_kind kind_of_criterion(
    const criterion_struct * criterion
) noexcept nogil:
    """What a criterion keeps; ANYTHING of a blend, and of what is seldom used."""
    cdef boltzmann_kind kind = kind_of_alpha(criterion.boltzmann_alpha)
    if criterion.name == SplitCriterion.ERA:
        if kind == boltzmann_kind.MEAN:
            return MEAN_GAINS
        return SMOOTHED_GAINS if kind == boltzmann_kind.SMOOTHED else EXTREME_GAINS
    if criterion.name == SplitCriterion.DIRECTIONAL:
        if not criterion.traits.aggregates_gains:
            return DIRECTIONS
        return GAINS_AND_DIRECTIONS if kind == boltzmann_kind.MEAN else ANYTHING
    if criterion.name == SplitCriterion.TIME_ROBUST:
        return IMPURITIES
    if criterion.name == SplitCriterion.INVARIANT:
        if criterion.invariance_statistic == InvarianceStatistic.EFFECT:
            return EFFECTS
        if criterion.invariance_statistic == InvarianceStatistic.CHANGING_RATE:
            return CHANGING_RATES
        return ANYTHING
    if criterion.name == SplitCriterion.VREX:
        return GAIN_MOMENTS
    if criterion.name == SplitCriterion.HELD_OUT:
        return HELD_OUT_GAINS
    return ANYTHING


cdef struct kept_lanes:
    # The fields of `split_sums`, of some splits; of the moments those that are kept.
    double[LANES] n_covered
    double[LANES] directions
    double[LANES] extreme
    double[LANES] weights
    double[LANES] gains
    double[LANES] n_values
    double[LANES] origin
    double[LANES] offsets
    double[LANES] squares
    double[LANES] smallest
    double[LANES] largest
    double[LANES] n_informative
    double[LANES] impurities
    double[LANES] worst
    double[LANES] decreases
    double[LANES] least
    double[LANES] held_out


cdef inline boltzmann_sums gains_of_lane(
    const kept_lanes * kept, Py_ssize_t lane
) noexcept nogil:
    cdef boltzmann_sums gains
    gains.extreme = kept.extreme[lane]
    gains.weights = kept.weights[lane]
    gains.offsets = kept.gains[lane]
    return gains


cdef inline void keep_gains(
    kept_lanes * kept, Py_ssize_t lane, boltzmann_sums gains
) noexcept nogil:
    kept.extreme[lane] = gains.extreme
    kept.weights[lane] = gains.weights
    kept.gains[lane] = gains.offsets


cdef inline moment_sums moments_of_lane(
    const kept_lanes * kept, Py_ssize_t lane
) noexcept nogil:
    cdef moment_sums moments
    moments.n_values = kept.n_values[lane]
    moments.origin = kept.origin[lane]
    moments.offsets = kept.offsets[lane]
    moments.squares = kept.squares[lane]
    moments.smallest = kept.smallest[lane]
    moments.largest = kept.largest[lane]
    return moments


cdef inline void keep_moments(
    kept_lanes * kept, Py_ssize_t lane, moment_sums moments
) noexcept nogil:
    kept.n_values[lane] = moments.n_values
    kept.origin[lane] = moments.origin
    kept.offsets[lane] = moments.offsets
    kept.squares[lane] = moments.squares
    kept.smallest[lane] = moments.smallest
    kept.largest[lane] = moments.largest


cdef inline impurity_totals impurities_of_lane(
    const kept_lanes * kept, Py_ssize_t lane
) noexcept nogil:
    cdef impurity_totals totals
    totals.n_informative = kept.n_informative[lane]
    totals.impurities = kept.impurities[lane]
    totals.worst = kept.worst[lane]
    totals.decreases = kept.decreases[lane]
    totals.least = kept.least[lane]
    return totals


cdef inline void keep_impurities(
    kept_lanes * kept, Py_ssize_t lane, impurity_totals totals
) noexcept nogil:
    kept.n_informative[lane] = totals.n_informative
    kept.impurities[lane] = totals.impurities
    kept.worst[lane] = totals.worst
    kept.decreases[lane] = totals.decreases
    kept.least[lane] = totals.least


cdef struct side_lanes:
    # Of some splits, one side over all eras.
    double[LANES] gradients
    double[LANES] hessians
    double[LANES] counts


cdef struct masked_table:
    # Some eras of a bundle with masks: the left side of each split, which has a lane.
    long long[LANES * MAX_SPLIT_LANES] integers
    long long[LANES * MAX_SPLIT_LANES] counts
    long long[LANES * MAX_SPLIT_LANES] plain    # if rows have plain words
    long long[2 * MAX_BUNDLE_CELLS] cells       # of the rows of one block
    long long[2 * MAX_BUNDLE_CELLS] plain_cells
    long long[MAX_SPLIT_LANES] pooled_integers  # over all eras
    long long[MAX_SPLIT_LANES] pooled_counts
    long long[MAX_SPLIT_LANES] pooled_plain
    kept_lanes[SPLIT_VECTORS] kept   # what the eras thus far have said
    side_lanes[SPLIT_VECTORS] left   # over all eras, where `sees_all_eras`
    side_lanes[SPLIT_VECTORS] right
    masked_sums[LANES] sums             # of each era: above, or where they are kept
    int[LANES] codes                    # of the eras
    int n_eras
    int[7] padding                      # to a cache line


cdef struct lane_functions:
    # See scan.pyx.
    void (*scan_bins)(
        const criterion_struct * criterion,
        const bin_order * order,
        int first_bin,
        const eras_struct * eras,
        const hist_struct * pooled,
        era_table * table,
        split_sums * splits,
    ) noexcept nogil
    void (*compare_occupied)(
        const criterion_struct * criterion,
        const eras_struct * eras,
        occupied_splits * splits,
        int n_splits,
    ) noexcept nogil
    void (*look_first)(
        const criterion_struct * criterion,
        const bin_order * order,
        int first_bin,
        first_look * table,
    ) noexcept nogil
    void (*sum_bins)(int n_codes, int n_bins, first_look * table) noexcept nogil
    void (*pool_words)(
        const first_look * table,
        int first_bin,
        int n_codes,
        double unit,
        hist_struct * pooled,
    ) noexcept nogil
    void (*unpack_lanes)(
        era_table * table, int n_bins, int count_bits, const summed_values * values
    ) noexcept nogil
    int (*sum_masked_eras)(
        const bundle_struct * bundle,
        const packed_rows * rows,
        int first,
        int stop,
        masked_table * table,
    ) noexcept nogil
    void (*pool_masked_eras)(int n_lanes, masked_table * table) noexcept nogil
    void (*compare_masked_eras)(
        const criterion_struct * criterion,
        const eras_struct * eras,
        const bundle_struct * bundle,
        const summed_values * values,
        masked_table * table,
        split_sums * splits,
    ) noexcept nogil
