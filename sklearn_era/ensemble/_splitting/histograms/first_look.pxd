# A first look at the eras of a bundle of many bins; see lanes/first_look.pxd.

from libc.math cimport ldexp
from libc.string cimport memset

from .stored cimport NodeHistograms
from .sums cimport add_words_to_lanes, bin_sums
from ..bundles cimport bundle_struct
from ..candidates.table cimport bundle_candidates, feature_candidates
from ..costs cimport compares_directions_first
from ..lanes.functions cimport lane_functions
from ..lanes.table cimport first_look
from ..rows cimport EraRows
from ..tree_data cimport tree_data
from ..._criteria.criterion cimport SplitCriterion, criterion_struct
from ..._criteria.split_sums cimport LANES


cdef inline bint has_first_look(
    const criterion_struct * criterion, int n_eras
) noexcept nogil:
    """Whether directions come first, or estimates of gains, which are sums of squares.
    """
    if criterion.name == SplitCriterion.DIRECTIONAL:
        return compares_directions_first(n_eras)
    return (
        criterion.name == SplitCriterion.ERA
        and criterion.boltzmann_alpha == 0.0
        and criterion.l2_regularization == 0.0
        and not criterion.normalize_era_gain
    )


cdef inline double least_estimate(EraRows rows, double largest) noexcept nogil:
    """What the largest gain may be estimated as, by the largest estimate.

    Sums of roundings are less than 2^-12 of an estimate. And there are sides that are
    alike, whose gains are 0 to the criterion: to an estimate, they are less than 2^-44
    of the square of the largest gradient for each row.
    """
    cdef double gradient = ldexp(rows.of_gradients.unit, rows.packed_bits)
    return largest * (1.0 - ldexp(1.0, -11)) - ldexp(
        gradient * gradient * rows.n_rows / rows.n_eras, -42
    )


cdef inline bint can_look_first(
    const bundle_struct * bundle, EraRows rows
) noexcept nogil:
    """Whether eras are words, one in each lane."""
    return bundle.masks == NULL and rows.eras_are_words()


cdef inline void add_first_look(
    const lane_functions * functions,
    const criterion_struct * criterion,
    const tree_data * tree,
    const bundle_struct * bundle,
    EraRows rows,
    int first,                       # block
    int last,
    NodeHistograms histograms,
    bundle_candidates * candidates,  # IN and OUT
    first_look * table,              # scratch
) noexcept nogil:
    """Add directions or estimated gains to the candidate splits, and pool the bins."""
    cdef:
        feature_candidates * feature
        int group, most, i, j
    table.count_bits = rows.count_bits
    table.largest_word = ldexp(1.0, rows.packed_bits + rows.count_bits)
    while first < last:
        group = first
        first = min(first + LANES, last)  # an era is one block
        most = 0
        for i in range(group, first):
            most = max(most, rows.blocks[i].stop - rows.blocks[i].start)
        if table.n_pooled + most > rows.pool_size:
            pool_lanes(functions, bundle, rows.values.unit, candidates, table)
        table.n_pooled += most
        if histograms.is_stored:
            take_stored_words(bundle, rows, group, first, histograms, table)
        else:
            add_words_to_lanes(
                tree, bundle, rows, &rows.blocks[group], rows.blocks[first - 1].stop,
                table.words, NULL,
            )
        functions.sum_bins(bundle.n_codes[0], bundle.n_bins, table)
        for j in range(bundle.n_members):
            feature = &candidates.features[j]
            if feature.is_wanted:
                for i in range(feature.n_orders):
                    functions.look_first(
                        criterion, &feature.orders[i], feature.first_bin, table
                    )
        memset(table.words, 0, bundle.n_bins * LANES * sizeof(long long))
    pool_lanes(functions, bundle, rows.values.unit, candidates, table)
    end_first_look(criterion, rows, candidates, table)


cdef inline void take_stored_words(
    const bundle_struct * bundle,
    EraRows rows,
    int first,                  # block
    int last,
    NodeHistograms histograms,
    first_look * table,         # OUT
) noexcept nogil:
    """Make words of sums that are kept."""
    cdef:
        bin_sums[LANES] sums
        int n_eras = last - first
        long long one = 1
        Py_ssize_t i, lane
    for lane in range(n_eras):
        histograms.point_at(bundle, rows.blocks[first + lane].era, &sums[lane])
    for i in range(bundle.n_bins):
        for lane in range(n_eras):
            table.words[i * LANES + lane] = (
                sums[lane].integers[i] * (one << table.count_bits)
                + sums[lane].counts[i]
            )


cdef inline void pool_lanes(
    const lane_functions * functions,
    const bundle_struct * bundle,
    double unit,
    bundle_candidates * candidates,  # IN and OUT
    first_look * table,              # IN and OUT
) noexcept nogil:
    """Add the words of all lanes to the node's sums, where these are not made yet."""
    cdef:
        const feature_candidates * feature
        int j
    for j in range(bundle.n_members):
        feature = &candidates.features[j]
        if feature.is_wanted and not feature.is_pooled:
            functions.pool_words(
                table, feature.first_bin, bundle.n_codes[j], unit, candidates.pooled
            )
    memset(table.pooled, 0, bundle.n_bins * LANES * sizeof(long long))
    table.n_pooled = 0


cdef inline void end_first_look(
    const criterion_struct * criterion,
    EraRows rows,
    bundle_candidates * candidates,  # IN and OUT
    first_look * table,              # IN and OUT
) noexcept nogil:
    """Add what the lanes have said to the sums of each split."""
    cdef:
        double largest = ldexp(rows.of_gradients.unit, rows.packed_bits)
        double said
        int n_covered = 0
        Py_ssize_t i, lane
    for i in range(candidates.n_splits):
        said = 0.0
        for lane in range(LANES):
            said += table.said[i * LANES + lane]
        if criterion.traits.aggregates_gains:
            candidates.splits[i].gains.offsets += said * largest * largest
        else:
            candidates.splits[i].directions += said
        n_covered += table.covered[i]
        candidates.splits[i].n_covered += n_covered
    memset(table.said, 0, candidates.n_splits * LANES * sizeof(double))
    memset(table.covered, 0, (candidates.n_splits + 1) * sizeof(int))
