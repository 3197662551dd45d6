"""The sums of listed splits over the eras of a node.

Splits are in columns, which share the running sums of an era's rows. A column is one
thread's. With the eras that have been added, it loses splits that cannot become the
best one any more.
"""

from cython.parallel import parallel, prange
from libc.math cimport INFINITY
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

from sklearn.utils._openmp_helpers cimport omp_get_thread_num

from .candidates.best cimport best_key
from .candidates.listing cimport list_splits
from .candidates.pruning cimport keep_best, prune_column
from .fixed_points cimport summed_values
from .lanes.functions cimport CACHE_LINE, batch_size, era_batch, lane_column
from .rows cimport packed_rows, row_block
from .._criteria.dispatch cimport DIRECTIONAL
from .._criteria.ranking cimport directions_alone, keeps_directions_alone

cdef enum:
    FEW_COLUMNS = 4  # for which it does not pay to compare one before the others


cdef class EraComparison:
    """The comparisons of one node after another, for the trees of a fit."""

    def __init__(self, EraRows rows, CandidateSplits splits, exchange):
        self.rows = rows
        self.splits = splits
        self.exchange = exchange
        self.prunes = exchange.is_alone
        self.compares_targets = rows.of_targets.gradients != NULL

    def __dealloc__(self):
        free(self.memory)

    def use_threads(self, int n_threads):
        """Begin a tree, and make room for the eras that threads compare."""
        self.n_threads = n_threads
        self.prunes_by_key = self.prunes and self.splits.tree.penalties == NULL
        if self.n_batches < n_threads:
            free(self.memory)
            self.n_batches = 0
            self.memory = calloc(n_threads + 1, batch_size())
            if self.memory == NULL:
                raise MemoryError(
                    f"cannot allocate {n_threads * batch_size()} bytes for {n_threads} "
                    "threads"
                )
            self.n_batches = n_threads

    cdef compare(self, const criterion_struct * criterion, const node_struct * node):
        """List the splits whose gain suffices the criterion, and sum up their eras."""
        cdef:
            EraRows rows = self.rows
            const summed_values * values = &rows.of_gradients
            bint looks_at_rows = can_rule_out_splits(self, criterion)
            double n_additions = self.splits.bundles.n_bins
            criterion_struct by_direction
            int n_columns
        if looks_at_rows:
            n_additions += <double> rows.n_rows * self.splits.n_features
        n_columns = list_splits(
            self.splits, criterion, node, rows if looks_at_rows else None,
            threads_for(self.n_threads, n_additions),
        )
        self.n_absent = rows.n_eras - rows.n_listed
        if self.compares_targets:
            values = &rows.of_targets
        if n_columns > FEW_COLUMNS and ranks_by_direction(self, criterion):
            by_direction = directions_alone(criterion)
            compare_columns(self, &by_direction, node, values, n_columns)
            n_columns = keep_best(
                self.splits, &by_direction, node, self.n_absent, self.n_threads
            )
        compare_columns(self, criterion, node, values, n_columns)
        if not self.exchange.is_alone:
            self.splits.merge_splits(criterion, self.n_absent, self.exchange)
            self.n_absent = 0


cdef bint can_rule_out_splits(
    EraComparison self, const criterion_struct * criterion
) noexcept:
    """Whether to look for splits that too few eras can cover, before their sums.

    It costs a pass over the rows. Of many rows an era spans nearly all splits.
    """
    return (
        self.prunes
        and 2 * criterion.min_covered_eras > self.rows.n_listed
        and self.rows.n_rows < 32 * self.rows.n_listed
    )


cdef bint ranks_by_direction(
    EraComparison self, const criterion_struct * criterion
) noexcept:
    """Whether gains of eras are needed only where splits tie by their directions.

    Without l2, a split with a direction in any era has a gain.
    """
    return (
        self.prunes_by_key
        and criterion.name == DIRECTIONAL
        and criterion.boltzmann_alpha == 0.0
        and criterion.l2_regularization == 0.0
    )


cdef void compare_columns(
    EraComparison self,
    const criterion_struct * criterion,
    const node_struct * node,
    const summed_values * values,
    int n_columns,
) noexcept:
    """Sum up the eras of the columns with splits.

    The best split of some columns, one for each thread, rules out many of the others.
    """
    cdef:
        double least = -INFINITY
        int first = 0
    if n_columns > FEW_COLUMNS and self.prunes_by_key:
        first = min(self.n_threads, n_columns // FEW_COLUMNS)
        self.splits.put_first(first)
        visit_columns(self, criterion, node, values, 0, first, least)
        least = best_key(self.splits, criterion, node, self.n_absent, first)
    visit_columns(self, criterion, node, values, first, n_columns, least)


cdef void visit_columns(
    EraComparison self,
    const criterion_struct * criterion,
    const node_struct * node,
    const summed_values * values,
    int first,        # of the columns that are listed
    int stop,
    double least,     # key that a split has to reach
) noexcept:
    """Add the eras of the node to some columns, chunk by chunk."""
    cdef:
        EraRows rows = self.rows
        int n_threads = threads_for(
            self.n_threads,
            <double> rows.n_rows * (stop - first)
            + 2.0 * rows.n_listed * self.splits.n_listed_lanes,
        )
        bint by_contrast = (
            keeps_directions_alone(criterion)
            and not self.splits.bundles.all_have_masks
            and rows.has_contrasts(values)
        )
        packed_rows packed = rows.packed(values, by_contrast)
        int chunk, i
    with nogil, parallel(num_threads=n_threads):
        for chunk in range(rows.n_chunks):
            for i in prange(
                rows.chunks[chunk],
                rows.chunks[chunk + 1 if node.by_era == NULL else chunk],
                schedule="static",
            ):
                rows.pack(
                    values, rows.blocks[i].start, rows.blocks[i].stop,
                    rows.blocks[i].first_word,
                )
                if by_contrast:
                    rows.pack_contrasts(values, &rows.blocks[i])
            for i in prange(first, stop, schedule="static", chunksize=1):
                compare_column(
                    self, criterion, node, values, &packed, chunk, least,
                    &self.splits.columns[self.splits.listed[i]], omp_get_thread_num(),
                )


cdef void compare_column(
    EraComparison self,
    const criterion_struct * criterion,
    const node_struct * node,
    const summed_values * values,
    const packed_rows * packed,
    int chunk,
    double least,
    lane_column * column,   # IN and OUT
    int thread,
) noexcept nogil:
    """Add the eras of a chunk to the splits of a column, and drop some on the way."""
    cdef:
        const row_block * blocks = self.rows.blocks
        int first = self.rows.chunks[chunk]
        int last = self.rows.chunks[chunk + 1]
        int stop
        era_batch * batch = <era_batch *> (  # which begins a cache line
            (<uintptr_t> self.memory + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE
            + thread * batch_size()
        )
    batch.lanes.all_left = self.splits.sides_of_column(column, 0)
    batch.lanes.all_right = self.splits.sides_of_column(column, 1)
    while first < last and column.n_splits > 0:
        stop = last
        if self.prunes:
            prune_column(
                self.splits, criterion, node.eras.n_eras, self.rows.n_eras_from(first),
                least, column,
            )
            if column.n_splits == 0:
                return
            stop = min(last, first + eras_at_a_time(self.rows, column, first))
            while stop < last and blocks[stop].era == blocks[stop - 1].era:
                stop += 1
        self.splits.functions.compare_eras(
            criterion, &node.eras, column, values, packed, &blocks[first],
            stop - first, self.splits.sums_of_column(column), batch,
        )
        first = stop


cdef int eras_at_a_time(
    EraRows rows, const lane_column * column, int n_before
) noexcept nogil:
    """How many eras to compare before it pays to look which splits can still win."""
    cdef:
        double n_lanes = column.n_lanes
        double rows_of_era = <double> rows.n_rows / rows.n_listed
    # In nanoseconds, roughly: a look at all lanes over a third of an era's sums.
    return 1 + n_before // 8 + <int> (
        6.0 * (100.0 + 2.5 * n_lanes) / (rows_of_era + 1.5 * n_lanes)
    )
