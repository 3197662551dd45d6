# What eras contribute to the candidate splits of a bundle of features.
#
# Of some eras at a time, one in each lane of a vector: `start_lanes`, `add_lanes` for
# each group of eras, `end_lanes`. Or of one era of few rows, by the bins that it
# occupies. For bundles with masks, masked.pxd does it.

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from .sums cimport bin_gradients, bin_hessians, bin_sums
from ..bundles cimport bundle_struct
from ..candidates.table cimport bundle_candidates, feature_candidates
from ..fixed_points cimport summed_values
from ..lanes.functions cimport lane_functions, occupied_splits
from ..lanes.table cimport add_pooled_bin, clear_table, era_table
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.split_sums cimport eras_struct, merge_lanes, split_sums


cdef inline void start_lanes(
    const criterion_struct * criterion,
    const bundle_struct * bundle,
    const bundle_candidates * candidates,
    era_table * table,  # OUT
) noexcept nogil:
    """Begin with some eras of a node."""
    clear_table(
        table,
        bundle.n_bins,
        candidates.n_splits if criterion.traits.keeps_lane_sums else 0,
    )


cdef inline void add_lanes(
    const lane_functions * functions,
    const criterion_struct * criterion,
    const bundle_struct * bundle,
    bundle_candidates * candidates,  # IN and OUT
    const eras_struct * eras,
    era_table * table,               # IN and OUT
) noexcept nogil:
    """Add what the eras in the lanes say of every candidate split."""
    cdef:
        feature_candidates * feature
        int i, j
    for j in range(bundle.n_members):
        feature = &candidates.features[j]
        if not feature.is_wanted:
            continue
        for i in range(feature.n_orders):
            functions.scan_bins(
                criterion, &feature.orders[i], feature.first_bin, eras,
                candidates.pooled, table, candidates.splits,
            )


cdef inline void end_lanes(
    const criterion_struct * criterion,
    const bundle_struct * bundle,
    bundle_candidates * candidates,  # IN and OUT
    const era_table * table,
) noexcept nogil:
    """Merge the lanes of the eras since the begin, and pool what is not pooled yet."""
    cdef:
        feature_candidates * feature
        int first, i, j
    for j in range(bundle.n_members):
        feature = &candidates.features[j]
        if feature.is_wanted and not feature.is_pooled:
            first = feature.first_bin
            for i in range(first, first + bundle.n_codes[j]):
                add_pooled_bin(table, i, &candidates.pooled[i])
    if criterion.traits.keeps_lane_sums:
        for i in range(candidates.n_splits):
            merge_lanes(criterion, &table.splits[i], &candidates.splits[i])


cdef inline void add_occupied(
    const lane_functions * functions,
    const criterion_struct * criterion,
    bundle_candidates * candidates,  # IN and OUT, of one feature
    const eras_struct * eras,
    const unsigned char * occupied,  # (n_occupied,), ascending
    int n_occupied,
    occupied_splits * splits,        # scratch, with the sides of the splits
) noexcept nogil:
    """Add what an era says of every candidate split, at its occupied bins.

    It does not change from one of these bins to the next. So it is added where it
    changes, as the difference from the split before.
    """
    cdef:
        split_sums * split
        double gain = 0.0
        double direction = 0.0
        double covered = 0.0
        int i
    functions.compare_occupied(criterion, eras, splits, n_occupied - 1)
    splits.gains[n_occupied - 1] = 0.0
    splits.directions[n_occupied - 1] = 0.0
    splits.covered[n_occupied - 1] = 0.0
    for i in range(n_occupied):
        if occupied[i] >= candidates.n_splits:
            break  # the last bin of the feature, after which there is no split
        split = &candidates.splits[occupied[i]]
        split.gains.offsets += splits.gains[i] - gain
        split.directions += splits.directions[i] - direction
        split.n_covered += splits.covered[i] - covered
        split.n_nonzero_gains += (splits.gains[i] != 0.0) - (gain != 0.0)
        gain = splits.gains[i]
        direction = splits.directions[i]
        covered = splits.covered[i]


cdef inline void pool_bins(
    const bundle_struct * bundle,
    bundle_candidates * candidates,  # IN and OUT
    const bin_sums * sums,
    const summed_values * values,    # in integers
) noexcept nogil:
    """Add some rows to the features that are pooled before the eras are compared."""
    cdef:
        feature_candidates * feature
        int i, j
    for j in range(bundle.n_members):
        feature = &candidates.features[j]
        if feature.is_wanted and feature.is_pooled:
            for i in range(feature.first_bin, feature.first_bin + bundle.n_codes[j]):
                pool_bin(&candidates.pooled[i], sums, values, i)


cdef inline void pool_bin(
        hist_struct * pooled, const bin_sums * sums, const summed_values * values, int i
) noexcept nogil:
    pooled.sum_gradients += bin_gradients(sums, values, i)
    pooled.sum_hessians += bin_hessians(sums, values, i)
    pooled.count += sums.counts[i]


cdef inline void pool_occupied(
    hist_struct * pooled,            # IN and OUT
    const bin_sums * sums,
    const summed_values * values,    # in integers
    const unsigned char * occupied,
    int n_occupied,
) noexcept nogil:
    """Add an era to the sums over eras by bin."""
    cdef int i
    for i in range(n_occupied):
        pool_bin(&pooled[occupied[i]], sums, values, i)


cdef inline void set_sides(
    const bin_sums * sums,
    const summed_values * values,
    int n_occupied,
    occupied_splits * splits,        # OUT
) noexcept nogil:
    """Both sides of the split after each occupied bin but the last."""
    cdef:
        double gradients = 0.0
        double hessians = 0.0
        double count = 0.0
        int i
    for i in range(n_occupied - 1):
        gradients += bin_gradients(sums, values, i)
        hessians += bin_hessians(sums, values, i)
        count += sums.counts[i]
        splits.left_gradients[i] = gradients
        splits.left_hessians[i] = hessians
        splits.left_counts[i] = count
    gradients = 0.0
    hessians = 0.0
    count = 0.0
    for i in range(n_occupied - 2, -1, -1):
        gradients += bin_gradients(sums, values, i + 1)
        hessians += bin_hessians(sums, values, i + 1)
        count += sums.counts[i + 1]
        splits.right_gradients[i] = gradients
        splits.right_hessians[i] = hessians
        splits.right_counts[i] = count
