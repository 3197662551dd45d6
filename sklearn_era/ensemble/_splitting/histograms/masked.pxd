# Eras of a bundle with masks: summed up, kept, pooled, and compared by its splits.

from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from .stored cimport NodeHistograms
from .sums cimport bin_sums
from ..bundles cimport MAX_SPLIT_LANES, bundle_struct
from ..candidates.table cimport bundle_candidates
from ..lanes.functions cimport (
    ANYTHING, bin_order, gains_of_lane, impurities_of_lane, keep_gains,
    keep_impurities, keep_moments, kept_lanes, kind_of_criterion, lane_functions,
    masked_table, moments_of_lane, packed_rows, side_lanes,
)
from ..lanes.table cimport sums_of_bin
from ..rows cimport EraRows, row_block
from ..fixed_points cimport summed_values
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.era_statistics cimport added, era_sums, less
from ..._criteria.split_sums cimport LANES, eras_struct, split_sums


cdef inline void fill_masked(
    const lane_functions * functions,
    const bundle_struct * bundle,
    EraRows rows,
    int first,                  # block
    int last,
    NodeHistograms histograms,
    masked_table * table,
) noexcept nogil:
    """Sum up some eras, and keep the sums."""
    cdef:
        packed_rows packed = packed_words(rows)
        bin_sums sums
        int i, j
    while first < last:
        first = functions.sum_masked_eras(bundle, &packed, first, last, table)
        for i in range(table.n_eras):
            histograms.point_at(bundle, table.codes[i], &sums)
            for j in range(bundle.n_lanes):
                sums.integers[j] = table.sums[i].integers[j]
                sums.counts[j] = <int> table.sums[i].counts[j]
            if sums.plain != NULL:
                for j in range(bundle.n_lanes):
                    sums.plain[j] = table.sums[i].plain[j]


cdef inline void pool_masked(
    const lane_functions * functions,
    const bundle_struct * bundle,
    EraRows rows,
    int first,                       # block
    int last,
    NodeHistograms histograms,
    bundle_candidates * candidates,  # IN and OUT
    masked_table * table,
) noexcept nogil:
    """Add the rows of some eras to the sums over all of them."""
    cdef:
        row_block block = rows.blocks[first]
        int stop = rows.blocks[last - 1].stop
        packed_rows packed = packed_words(rows)
    start_masked_pool(table)
    if histograms.is_stored:
        while first < last:
            first = take_masked_eras(
                functions, bundle, rows, first, last, histograms, table
            )
            functions.pool_masked_eras(bundle.n_lanes, table)
    else:
        packed.blocks = &block  # of any eras
        while block.start < stop:
            block.stop = min(block.start + rows.pool_size, stop)
            functions.sum_masked_eras(bundle, &packed, 0, 1, table)
            functions.pool_masked_eras(bundle.n_lanes, table)
            block.first_word += block.stop - block.start
            block.start = block.stop
    end_masked_pool(bundle, &rows.values, table, candidates)


cdef inline void add_masked(
    const lane_functions * functions,
    const criterion_struct * criterion,
    const eras_struct * eras,
    const bundle_struct * bundle,
    EraRows rows,
    int first,                       # block
    int last,
    NodeHistograms histograms,
    bundle_candidates * candidates,  # IN and OUT
    masked_table * table,
) noexcept nogil:
    """Add what some eras say of every candidate split, and pool what is not yet."""
    cdef bint is_pooled = candidates.features[0].is_pooled
    start_masked(criterion, candidates, table)
    if criterion.traits.sees_all_eras:
        set_sides_of_all(candidates, bundle, table)
    while first < last:
        first = take_masked_eras(
            functions, bundle, rows, first, last, histograms, table
        )
        if not is_pooled:
            functions.pool_masked_eras(bundle.n_lanes, table)
        functions.compare_masked_eras(
            criterion, eras, bundle, &rows.values, table, candidates.splits
        )
    end_masked(criterion, table, candidates)
    if not is_pooled:
        end_masked_pool(bundle, &rows.values, table, candidates)


cdef inline int take_masked_eras(
    const lane_functions * functions,
    const bundle_struct * bundle,
    EraRows rows,
    int first,                  # block
    int last,
    NodeHistograms histograms,
    masked_table * table,       # OUT
) noexcept nogil:
    """Sum up the next eras, or find the sums that are kept; return the block after."""
    cdef:
        packed_rows packed
        bin_sums sums
        Py_ssize_t place = 0
        int i
    if not histograms.is_stored:
        packed = packed_words(rows)
        return functions.sum_masked_eras(bundle, &packed, first, last, table)
    table.n_eras = 0
    while table.n_eras < LANES and first < last:
        histograms.point_at(bundle, rows.blocks[first].era, &sums)
        for i in range(bundle.n_lanes):
            table.counts[place + i] = sums.counts[i]
        table.codes[table.n_eras] = rows.blocks[first].era
        table.sums[table.n_eras].integers = sums.integers
        table.sums[table.n_eras].plain = sums.plain
        table.sums[table.n_eras].counts = &table.counts[place]
        table.n_eras += 1
        place += bundle.n_lanes
        first = rows.end_of_era(first)
    return first


cdef inline packed_rows packed_words(EraRows rows) noexcept nogil:
    cdef packed_rows packed
    packed.indices = rows.sample_indices
    packed.words = &rows.words[0]
    packed.plain_words = &rows.plain_words[0] if rows.has_plain_words() else NULL
    packed.blocks = rows.blocks
    packed.count_bits = rows.count_bits
    return packed


cdef inline void start_masked(
    const criterion_struct * criterion,
    const bundle_candidates * candidates,
    masked_table * table,      # OUT
) noexcept nogil:
    """Go on with the sums of a bundle of few splits, each in its lane."""
    cdef:
        const split_sums * sums
        kept_lanes * kept
        int i, lane
    start_masked_pool(table)
    memset(table.kept, 0, sizeof(table.kept))
    if kind_of_criterion(criterion) == ANYTHING:
        return
    for i in range(candidates.n_splits):
        sums = &candidates.splits[i]
        kept = &table.kept[i // LANES]
        lane = i % LANES
        kept.n_covered[lane] = sums.n_covered
        kept.directions[lane] = sums.directions
        keep_gains(kept, lane, sums.gains)
        if criterion.traits.keeps_lane_sums:
            continue
        keep_moments(
            kept, lane,
            sums.gain_moments if criterion.traits.keeps_moments else sums.statistics,
        )
        keep_impurities(kept, lane, sums.impurities)
        kept.held_out[lane] = sums.held_out


cdef inline void end_masked(
    const criterion_struct * criterion,
    const masked_table * table,
    bundle_candidates * candidates,  # IN and OUT
) noexcept nogil:
    """Take over the sums of each split from its lane."""
    cdef:
        split_sums * sums
        const kept_lanes * kept
        int i, lane
    if kind_of_criterion(criterion) == ANYTHING:
        return
    for i in range(candidates.n_splits):
        sums = &candidates.splits[i]
        kept = &table.kept[i // LANES]
        lane = i % LANES
        sums.n_covered = kept.n_covered[lane]
        sums.directions = kept.directions[lane]
        sums.gains = gains_of_lane(kept, lane)
        if criterion.traits.keeps_lane_sums:
            continue
        if criterion.traits.keeps_moments:
            sums.gain_moments = moments_of_lane(kept, lane)
        else:
            sums.statistics = moments_of_lane(kept, lane)
        sums.impurities = impurities_of_lane(kept, lane)
        sums.held_out = kept.held_out[lane]


cdef inline void start_masked_pool(masked_table * table) noexcept nogil:
    memset(table.pooled_integers, 0, MAX_SPLIT_LANES * sizeof(long long))
    memset(table.pooled_counts, 0, MAX_SPLIT_LANES * sizeof(long long))
    memset(table.pooled_plain, 0, MAX_SPLIT_LANES * sizeof(long long))


cdef inline void end_masked_pool(
    const bundle_struct * bundle,
    const summed_values * values,
    const masked_table * table,
    bundle_candidates * candidates,  # IN and OUT
) noexcept nogil:
    """From the left sides of splits, pooled, to sums by bin."""
    cdef:
        hist_struct * pooled
        long long integer, plain, count
        int lane, left, i, j
    for j in range(bundle.n_members):
        lane = bundle.n_splits
        # In a feature's first order all bins move but the last, one by one.
        for i in range(bundle.n_codes[j] - 1, -1, -1):
            left = bundle.first_split[j] + i - 1
            integer = table.pooled_integers[lane]
            plain = table.pooled_plain[lane]
            count = table.pooled_counts[lane]
            if i > 0:
                integer -= table.pooled_integers[left]
                plain -= table.pooled_plain[left]
                count -= table.pooled_counts[left]
            pooled = &candidates.pooled[candidates.features[j].first_bin + i]
            pooled.count += <unsigned int> count
            if values.hessians == NULL:
                pooled.sum_gradients += values.unit * <double> integer
                pooled.sum_hessians = pooled.count
            else:
                pooled.sum_gradients += values.unit * <double> plain
                pooled.sum_hessians += values.hessian_unit * <double> integer
            lane = left


cdef inline void set_sides_of_all(
    const bundle_candidates * candidates,
    const bundle_struct * bundle,
    masked_table * table,            # OUT
) noexcept nogil:
    """Both sides of each split over all eras, which are pooled."""
    cdef:
        const bin_order * order
        const hist_struct * pooled
        era_sums total, left
        int i, j, k, split
    for j in range(bundle.n_members):
        pooled = &candidates.pooled[candidates.features[j].first_bin]
        for k in range(candidates.features[j].n_orders):
            order = &candidates.features[j].orders[k]
            memset(&total, 0, sizeof(total))
            memset(&left, 0, sizeof(left))
            for i in range(order.n_bins):
                total = added(total, sums_of_bin(pooled, order.bins[i]))
            for i in range(order.stop):
                left = added(left, sums_of_bin(pooled, order.bins[i]))
                if i >= order.first:
                    split = order.first_split + i - order.first
                    set_side(left, split % LANES, &table.left[split // LANES])
                    set_side(
                        less(total, left), split % LANES, &table.right[split // LANES]
                    )


cdef inline void set_side(era_sums side, int lane, side_lanes * lanes) noexcept nogil:
    lanes.gradients[lane] = side.gradients
    lanes.hessians[lane] = side.hessians
    lanes.counts[lane] = side.count
