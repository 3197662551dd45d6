"""Gains, and comparisons of eras, of many candidate splits at once.

Splits are lanes of vectors here. The module is compiled once for each instruction set
(`instruction_sets`), by other names; all of them give the same bits, as no operation is
contracted or reordered.
"""

from cpython.pycapsule cimport PyCapsule_New

from .directions cimport add_directions
from .eras cimport sum_eras
from .functions cimport era_batch, lane_column, lane_functions
from .gains cimport find_gains
from .masked_rows cimport add_masked_block
from ..bundles cimport MAX_BUNDLE_CELLS, bundle_struct
from ..fixed_points cimport summed_values
from ..rows cimport packed_rows, row_block
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.sides cimport eras_struct
from ..._criteria.split_sums cimport add_eras


cdef void compare_eras(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const lane_column * column,
    const summed_values * values,
    const packed_rows * packed,      # of the chunk
    const row_block * blocks,
    int n_blocks,
    double * sums,                   # IN and OUT, of the column's splits
    era_batch * batch,               # scratch, but for both sides over all eras
) noexcept nogil:
    """Add the eras of some blocks to the sums of a column's splits."""
    cdef int block = 0
    if packed.contrasts != NULL and column.bundle == NULL:
        for block in range(n_blocks):
            add_directions(
                column, values, packed, &blocks[block], batch.cells,
                sums, sums + column.n_lanes,
            )
        return
    while block < n_blocks:
        block = sum_eras(column, values, packed, blocks, block, n_blocks, batch)
        add_eras(criterion, eras, &batch.lanes, sums)


cdef void sum_bundle(
    const bundle_struct * bundle,
    const packed_rows * packed,
    const row_block * blocks,
    int n_blocks,
    long long * by_era,   # IN and OUT, (n_eras, n_planes, n_lanes)
) noexcept nogil:
    """Add some rows to the left sides of a bundle's splits, era by era."""
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
