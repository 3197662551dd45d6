# The sums of a split over eras, for all statistics of its criterion.

from .criterion cimport criterion_struct
from .dispatch cimport (
    DEVIATIONS, EXTREME_GAINS, IMPURITIES, SMOOTHED_DEVIATIONS, SMOOTHED_GAINS,
    SMOOTHED_IMPURITIES, add_absent_terms, add_by_statistic, add_terms, compare_sides,
    counts_uncovered, is_sum, n_fields_of, statistic,
)
from .era cimport merge_gains
from .formulas cimport (
    era_facts, era_sums, eras_struct, facts_of_era, is_covered, lane_eras,
    merge_moments,
)
from .time_robust cimport merge_impurities, merge_smoothed_impurities


cdef inline void add_eras(
    const criterion_struct * criterion, const eras_struct * eras,
    lane_eras * lanes,       # IN; OUT: the facts of its eras
    double * sums,           # IN and OUT, (n_fields, n_lanes)
) noexcept nogil:
    """Add the eras of `lanes` to the sums of all splits. Each split has a lane, which
    is a place in vectors.
    """
    cdef:
        int field = 1
        era_sums all_rows
        statistic what
        int i, j
    for i in range(lanes.n_eras):
        j = i * lanes.n_lanes + lanes.n_splits
        all_rows.gradients = lanes.left.gradients[j]
        all_rows.hessians = lanes.left.hessians[j]
        all_rows.count = lanes.left.counts[j]
        lanes.facts[i] = facts_of_era(criterion, eras, lanes.codes[i], all_rows)
    for i in range(criterion.n_statistics):
        what = <statistic> criterion.statistics[i]
        if lanes.left.right_gradients == NULL:
            add_by_statistic(what, True, criterion, lanes, field, sums)
        else:
            add_by_statistic(what, False, criterion, lanes, field, sums)
        field += n_fields_of(what)


cdef inline void add_era(
    const criterion_struct * criterion, const era_facts * era, era_sums left,
    era_sums right,
    double * sums,           # IN and OUT, of a split
) noexcept nogil:
    """Add an era to the sums of a single split."""
    cdef:
        double * kept = sums + 1
        double l2 = criterion.l2_regularization
        statistic what
        int i
    sums[0] += is_covered(left, right, era.min_samples)
    for i in range(criterion.n_statistics):
        what = <statistic> criterion.statistics[i]
        add_terms(
            what, criterion, compare_sides(what, False, l2, left, right, era), era,
            kept, 1,
        )
        kept += n_fields_of(what)


cdef inline void add_absent_eras(
    const criterion_struct * criterion, int n_absent, double * sums
) noexcept nogil:
    """Add `n_absent` eras, which have no row in the node, to the sums of a split."""
    cdef:
        double * kept = sums + 1
        int i
    for i in range(criterion.n_statistics if n_absent > 0 else 0):
        add_absent_terms(<statistic> criterion.statistics[i], criterion, n_absent, kept)
        kept += n_fields_of(<statistic> criterion.statistics[i])


cdef inline void merge_terms(
    statistic what, const criterion_struct * criterion,
    double * kept,           # IN and OUT, of the statistic
    const double * others,   # of other eras
) noexcept nogil:
    cdef int i
    if is_sum(what):
        for i in range(n_fields_of(what)):
            kept[i] += others[i]
    elif what == SMOOTHED_GAINS or what == EXTREME_GAINS:
        merge_gains(criterion.boltzmann_alpha, kept, others)
    elif what == IMPURITIES or what == DEVIATIONS:
        merge_impurities(kept, others)
    elif what == SMOOTHED_IMPURITIES or what == SMOOTHED_DEVIATIONS:
        merge_smoothed_impurities(criterion.boltzmann_alpha, kept, others)
    else:
        merge_moments(n_fields_of(what), kept, others)


cdef inline void merge_sums(
    const criterion_struct * criterion, double * sums, const double * others
) noexcept nogil:
    """Add `others`, the sums of a split over other eras, to the split's `sums`."""
    cdef int field = 1, i
    sums[0] += others[0]
    for i in range(criterion.n_statistics):
        merge_terms(
            <statistic> criterion.statistics[i], criterion, sums + field, others + field
        )
        field += n_fields_of(<statistic> criterion.statistics[i])


cdef inline bint counts_uncovered_eras(
    const criterion_struct * criterion
) noexcept nogil:
    """Return whether an era that lacks `min_samples` rows on one side of a split may
    change the split's sums.
    """
    cdef int i
    for i in range(criterion.n_statistics):
        if counts_uncovered(<statistic> criterion.statistics[i]):
            return True
    return False


cdef inline bint are_sums(const criterion_struct * criterion) noexcept nogil:
    """Return whether `merge_sums` just adds the numbers of `others` to `sums`."""
    cdef int i
    for i in range(criterion.n_statistics):
        if not is_sum(<statistic> criterion.statistics[i]):
            return False
    return True


cdef inline void take_lane(
    const criterion_struct * criterion,
    const double * sums,      # (n_fields, n_lanes)
    Py_ssize_t n_lanes, Py_ssize_t lane, double * of_split,  # OUT, (n_fields,)
) noexcept nogil:
    """Copy the sums of the split in one lane (place in vectors) to `of_split`."""
    cdef int i
    for i in range(criterion.n_fields):
        of_split[i] = sums[i * n_lanes + lane]
