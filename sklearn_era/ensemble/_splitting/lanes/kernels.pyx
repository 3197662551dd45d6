"""Compute gains and compare eras, for many splits at once, one in each vector lane. The
module is compiled anew for each of the `instruction_sets`; all results agree.
"""

from cpython.pycapsule cimport PyCapsule_New
from libc.string cimport memcpy

from .eras cimport add_directions, add_masked_directions, sum_eras
from .functions cimport era_batch, era_visit, lane_column, lane_functions
from .gains cimport find_gains
from .masked_rows cimport add_masked_block
from ..bundles cimport MAX_BUNDLE_CELLS, MAX_SPLIT_LANES, bundle_struct
from ..rows cimport packed_rows, row_block
from ..._criteria.formulas cimport lane_eras
from ..._criteria.split_sums cimport add_eras


cdef void compare_eras(
    const era_visit * visit, const lane_column * column, const row_block * blocks,
    int n_blocks, double * sums,  # IN and OUT, of the column's splits
    era_batch * batch,    # scratch
) noexcept nogil:
    """Compare a column's splits in the eras of some blocks; add results to `sums`."""
    cdef:
        bint has_contrasts = visit.packed.contrasts != NULL
        int block = 0, stop = n_blocks
    if (
        visit.contrast_bits > 0
        and has_contrasts
        and column.n_lanes <= MAX_SPLIT_LANES
        and add_masked_directions(visit, column, blocks, n_blocks, sums)
    ):
        return
    while block < n_blocks:
        if has_contrasts and column.bundle == NULL:
            stop = block + 1
            block += add_directions(visit, column, &blocks[block], batch.cells, sums)
        while block < stop:
            block = sum_eras(visit, column, blocks, block, stop, batch)
            add_eras(visit.criterion, visit.eras, &batch.lanes, sums)
            if visit.kept != NULL:
                keep_sides(visit, column, &batch.lanes)


cdef void keep_sides(
    const era_visit * visit, const lane_column * column, const lane_eras * lanes
) noexcept nogil:
    """Copy the sums of eras to `visit.kept`: gradients, rows and hessians on the left
    side, gradients on the right side; one lane has the sums of all rows.
    """
    cdef:
        Py_ssize_t n = lanes.n_lanes, place, i, j
        Py_ssize_t plane = n * visit.eras.n_eras
        bint are_counts = lanes.left.right_gradients == NULL
        double * kept
        double all_gradients
    for i in range(lanes.n_eras):
        kept = visit.kept + column.first_kept + lanes.codes[i] * n
        place = i * n
        memcpy(kept, lanes.left.gradients + place, n * sizeof(double))
        memcpy(kept + plane, lanes.left.counts + place, n * sizeof(double))
        memcpy(kept + 2 * plane, lanes.left.hessians + place, n * sizeof(double))
        all_gradients = kept[lanes.n_splits]
        for j in range(n):
            kept[3 * plane + j] = (
                all_gradients - kept[j] if are_counts
                else lanes.left.right_gradients[place + j]
            )


cdef void sum_bundle(
    const bundle_struct * bundle, const packed_rows * packed, const row_block * blocks,
    int n_blocks, long long * by_era,  # IN and OUT, (n_eras, n_planes, n_lanes)
) noexcept nogil:
    """Add blocks of rows to the left sides' sums by era, for the splits of a bundle."""
    cdef:
        long long[4 * MAX_BUNDLE_CELLS] cells
        Py_ssize_t size = (packed.n_words + 1) * bundle.n_lanes
        int i
    for i in range(n_blocks):
        add_masked_block(
            bundle, packed, &blocks[i], cells, by_era + blocks[i].era * size,
            bundle.n_lanes,
        )


cdef lane_functions _functions
_functions.find_gains = find_gains
_functions.compare_eras = compare_eras
_functions.sum_bundle = sum_bundle

functions = PyCapsule_New(&_functions, "lane_functions", NULL)
