# The best split of a small node by its gain.
#
# What scikit-learn's splitter finds in a histogram, found between neighbours among the
# sorted rows: of bins without a row, none moves a row to the left.

from .node cimport (
    hessian_of,
    leaves_enough,
    row_sums,
    small_node,
    split_gain,
    split_limits,
)
from .keys cimport ROW_BITS, ROW_MASK, code_of, count_code
from ..candidates cimport feature_split


cdef inline void scan_gains(
    int feature_idx,
    const unsigned int * keys,   # of the node's rows, sorted by the feature
    int missing_code,            # of missing values; -1 where the feature has none
    const small_node * node,
    const row_sums * sums,
    const split_limits * limits,
    feature_split * best,        # IN and OUT
) noexcept nogil:
    """Replace `best` by the feature's best split, if that gains more."""
    cdef:
        int n_rows = node.stop - node.start
        int n_missing = 0
        double gradients = 0.0
        double hessians = 0.0
        int row, i

    if missing_code >= 0:
        n_missing = count_code(keys, n_rows, missing_code)
    scan_gains_in_order(
        feature_idx, keys, n_rows, 0, 0.0, 0.0, node, sums, limits, best
    )
    if n_missing == 0:
        return
    # Missing values go to the left. They alone on one side are what the last candidate
    # above was.
    for i in range(n_rows - n_missing, n_rows):
        row = keys[i] & ROW_MASK
        gradients += sums.gradients[row]
        hessians += hessian_of(sums, row)
    scan_gains_in_order(
        feature_idx, keys, n_rows - n_missing, n_missing, gradients, hessians,
        node, sums, limits, best,
    )


cdef inline void scan_gains_in_order(
    int feature_idx,
    const unsigned int * keys,
    int n_moved,             # rows that move to the left, but for the last code's
    int n_missing,           # that are there before
    double gradients,        # and their sums
    double hessians,
    const small_node * node,
    const row_sums * sums,
    const split_limits * limits,
    feature_split * best,
) noexcept nogil:
    """Move rows to the left side, and look at the split where a code ends.

    Of equal gains the first one stays. Where missing values are on the left side, the
    last one does, and at the last of the bins that part the same rows: scikit-learn
    scans these splits from the right.
    """
    cdef:
        int n_rows = node.stop - node.start
        int n_left
        unsigned int key
        unsigned int next_key = keys[0]
        double gain
        bint is_better
        int row, i

    for i in range(n_moved - 1):
        key = next_key
        next_key = keys[i + 1]
        row = key & ROW_MASK
        gradients += sums.gradients[row]
        hessians += hessian_of(sums, row)
        if (key ^ next_key) >> ROW_BITS == 0:
            continue
        n_left = n_missing + i + 1
        if not leaves_enough(n_left, hessians, limits):
            continue
        if not leaves_enough(n_rows - n_left, node.sum_hessians - hessians, limits):
            break  # the right side only loses rows from here on
        gain = split_gain(node, gradients, hessians, limits)
        is_better = gain > best.rank.gain
        if n_missing > 0:
            is_better = is_better or (
                gain == best.rank.gain
                and best.found
                and best.feature_idx == feature_idx
                and best.missing_go_to_left != 0
            )
        if is_better:
            best.found = True
            best.is_categorical = False
            best.rank.gain = gain
            best.feature_idx = feature_idx
            best.bin_idx = code_of(next_key) - 1 if n_missing > 0 else code_of(key)
            best.missing_go_to_left = n_missing > 0
            best.n_samples_left = n_left
            best.sum_gradients_left = gradients
            best.sum_hessians_left = hessians
