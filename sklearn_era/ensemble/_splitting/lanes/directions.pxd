# The directions of eras, where hessians are 1 and l2 is 0: of one integer a row.
#
# v_L - v_R has the sign of G n_L - G_L n, which is the sum of G - n g over the rows of
# the left side. So nothing is unpacked, multiplied or divided for a split. An era
# covers the splits from the group of its first row to that of its last one.

from libc.string cimport memset

from .functions cimport lane_column, run_up
from ..fixed_points cimport fixed_point, summed_values
from ..rows cimport MAX_BINS, packed_rows, row_block
from ..._criteria.directional cimport split_direction
from ..._criteria.sides cimport era_contrast, era_sums, less


cdef inline void add_directions(
    const lane_column * column,
    const summed_values * values,
    const packed_rows * packed,
    const row_block * block,   # an era
    long long * cells,         # scratch
    double * covered,          # IN and OUT
    double * directions,       # IN and OUT
) noexcept nogil:
    """Add an era to the directions of a column's splits."""
    cdef:
        const unsigned int * rows = packed.indices
        const long long * contrasts = packed.contrasts + block.first_word - block.start
        long long doubt = block.doubt
        long long n_doubts = 0
        int lowest = MAX_BINS
        int highest = 0
        int group
        Py_ssize_t i
    memset(cells, 0, (column.n_splits + 1) * sizeof(long long))
    for i in range(block.start, block.stop):
        group = column.groups[column.codes[i if rows == NULL else rows[i]]]
        cells[group] += contrasts[i]
        lowest = min(lowest, group)
        highest = max(highest, group)
    run_up(cells + lowest, 0, highest - lowest, cells + lowest)
    assert highest <= column.n_splits, "groups of a column"
    assert highest == lowest or cells[highest - 1] == -cells[highest], "sum of an era"
    for i in range(lowest, highest):
        covered[i] += 1.0
        directions[i] += 1.0 if cells[i] > 0 else 0.0
        directions[i] -= 1.0 if cells[i] < 0 else 0.0
        n_doubts += (cells[i] != 0) & (cells[i] <= doubt) & (cells[i] >= -doubt)
    for i in range(lowest, highest if n_doubts > 0 else lowest):
        if cells[i] != 0 and -doubt <= cells[i] <= doubt:
            directions[i] -= 1.0 if cells[i] > 0 else -1.0
            directions[i] += direction_of_split(
                column, values, packed, block, <int> i
            )


cdef inline double direction_of_split(
    const lane_column * column,
    const summed_values * values,
    const packed_rows * packed,
    const row_block * block,
    int split,
) noexcept nogil:
    """The direction of an era whose sides may be alike but for rounding."""
    cdef:
        long long[2] gradients  # of all rows, and of the left side
        long long[2] counts
        era_sums all_rows, left
        int row, i, is_left
    memset(gradients, 0, sizeof(gradients))
    memset(counts, 0, sizeof(counts))
    for i in range(block.start, block.stop):
        row = i if packed.indices == NULL else packed.indices[i]
        is_left = column.groups[column.codes[row]] <= split
        gradients[0] += fixed_point(values.gradients[row], values.scale)
        gradients[1] += is_left * fixed_point(values.gradients[row], values.scale)
        counts[0] += 1
        counts[1] += is_left
    all_rows.gradients = values.unit * <double> gradients[0]
    all_rows.hessians = all_rows.count = <double> counts[0]
    left.gradients = values.unit * <double> gradients[1]
    left.hessians = left.count = <double> counts[1]
    return split_direction(era_contrast(left, less(all_rows, left), 0.0))
