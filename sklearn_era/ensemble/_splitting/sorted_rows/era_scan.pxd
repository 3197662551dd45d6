# The best split of a small node by a criterion that compares eras.

from libc.string cimport memcpy, memset

from .moving_eras cimport (
    is_ruled_out,
    move_row,
    moving_era,
    moving_eras,
    refresh,
    start_moves,
    sum_terms,
)
from .node cimport (
    hessian_of,
    leaves_enough,
    row_sums,
    small_node,
    split_gain,
    split_limits,
)
from .keys cimport ROW_BITS, ROW_MASK, code_of, count_code
from ..candidates cimport feature_split, is_better
from ..._criteria.ranking cimport may_outrank, rank_split
from ..._criteria.split_sums cimport add_absent_eras, split_sums


cdef struct running_sums:
    # What the eras say of the split as it is, kept up to date by differences.
    double gains
    double directions
    int n_gains          # eras with a gain other than 0
    # What the rows of one bin change.
    double gain_change
    double direction_change


cdef inline void scan_eras(
    int feature_idx,
    const unsigned int * keys,   # of the node's rows, sorted by the feature
    int missing_code,            # of missing values; -1 where the feature has none
    bint keeps_sums,             # whether sums over eras are kept by differences
    const small_node * node,
    const row_sums * sums,
    const split_limits * limits,
    moving_eras * eras,
    unsigned int * scratch,      # (n_rows,)
    feature_split * best,        # IN and OUT
) noexcept nogil:
    """Replace `best` by the feature's best split, if that ranks above it."""
    cdef:
        int n_rows = node.stop - node.start
        int n_missing = 0

    scan_eras_in_order(
        feature_idx, keys, n_rows, 0, False, keeps_sums,
        node, sums, limits, eras, best,
    )
    if missing_code >= 0:
        n_missing = count_code(keys, n_rows, missing_code)
    if n_missing == 0:
        return
    # Once more, with missing values on the left side.
    memcpy(
        scratch, keys + n_rows - n_missing, n_missing * sizeof(unsigned int)
    )
    memcpy(
        scratch + n_missing, keys, (n_rows - n_missing) * sizeof(unsigned int)
    )
    scan_eras_in_order(
        feature_idx, scratch, n_rows, n_missing, False, keeps_sums,
        node, sums, limits, eras, best,
    )


cdef inline bint scan_eras_in_order(
    int feature_idx,
    const unsigned int * keys,   # (n_rows,), as they move to the left
    int n_moved,                 # that do
    int n_missing,               # missing values that move first
    bint is_categorical,
    bint keeps_sums,
    const small_node * node,
    const row_sums * sums,
    const split_limits * limits,
    moving_eras * eras,
    feature_split * best,
) noexcept nogil:
    """Move rows to the left side, and look at the split where a code ends.

    Returns
    -------
    is_best : bool
        Whether one of these splits has replaced `best`.
    """
    cdef:
        int n_rows = node.stop - node.start
        int n_absent = eras.pooled.n_eras - eras.n_present
        double gradients = 0.0
        double hessians = 0.0
        double gain
        unsigned int key
        unsigned int next_key = keys[0]
        running_sums running
        split_sums of_eras
        feature_split split
        moving_era * era
        bint is_best = False
        int row, i

    split.found = True
    split.is_categorical = is_categorical
    split.feature_idx = feature_idx
    split.missing_go_to_left = n_missing > 0
    memset(&running, 0, sizeof(running))
    start_moves(eras, keys, n_rows)
    for i in range(min(n_moved, n_rows - 1)):
        key = next_key
        next_key = keys[i + 1]
        row = key & ROW_MASK
        gradients += sums.gradients[row]
        hessians += hessian_of(sums, row)
        era = move_row(eras, row, i)
        if (key ^ next_key) >> ROW_BITS == 0:
            if keeps_sums and eras.slots[next_key & ROW_MASK] != eras.slots[row]:
                change_sums(eras, era, &running)
            continue
        if keeps_sums:
            change_sums(eras, era, &running)
            end_bin(&running)
        # Not before a bin that has no rows: it has a split of its own, as good as this.
        split.bin_idx = 0 if is_categorical else code_of(key)
        if i < n_missing:
            split.bin_idx = 0
            if code_of(next_key) == 0:
                continue  # missing values alone are the right side of another split
        split.n_samples_left = i + 1
        if not leaves_enough(i + 1, hessians, limits):
            continue
        if not leaves_enough(
            n_rows - (i + 1), node.sum_hessians - hessians, limits
        ):
            break  # the right side only loses rows from here on
        if eras.n_covered < eras.criterion.min_covered_eras:
            continue
        gain = split_gain(node, gradients, hessians, limits)
        if best.found and (
            not may_outrank(eras.criterion, gain, &best.rank)
            or is_ruled_out(eras, &best.rank)
        ):
            continue
        if keeps_sums:
            memset(&of_eras, 0, sizeof(of_eras))
            of_eras.gains.offsets = running.gains
            of_eras.directions = running.directions
            of_eras.n_covered = eras.n_covered
        else:
            sum_terms(eras, &of_eras)
        add_absent_eras(eras.criterion, n_absent, &of_eras)
        if not rank_split(
            eras.criterion,
            &eras.pooled,
            &of_eras,
            gain,
            &split.rank,
        ):
            continue
        if is_better(&split, best):
            split.sum_gradients_left = gradients
            split.sum_hessians_left = hessians
            best[0] = split
            is_best = True
    return is_best


cdef inline void change_sums(
    moving_eras * eras, moving_era * era, running_sums * running
) noexcept nogil:
    """Note by how much an era's rows of one bin change what it says."""
    cdef:
        double gain = era.terms.gain
        double direction = era.terms.direction
    refresh(eras, era)
    running.gain_change += era.terms.gain - gain
    running.direction_change += era.terms.direction - direction
    running.n_gains += (era.terms.gain != 0.0) - (gain != 0.0)


cdef inline void end_bin(running_sums * running) noexcept nogil:
    """Add the changes of a bin: first to each other, as the scan of histograms does.

    A sum of gains that should be 0 is what rounding left over, unless no era has a
    gain: then it is 0.
    """
    running.gains = running.gain_change + running.gains
    running.directions += running.direction_change
    if running.n_gains == 0:
        running.gains = 0.0
    running.gain_change = 0.0
    running.direction_change = 0.0
