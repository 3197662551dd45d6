"""The eras of a node, added up bundle by bundle of its features.

The rows of a node come in chunks of whole eras. A chunk's rows are turned into words by
all threads; then each bundle of features sums them up by bin, era by era, and either
keeps the sums or adds what the era says of the candidate splits. A bundle is one
thread's from beginning to end, so that the result does not depend on their number.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from cython.parallel import parallel, prange
from libc.stdlib cimport calloc, free

import numpy as np

from sklearn.utils._openmp_helpers cimport omp_get_thread_num
from sklearn.utils._typedefs cimport uint8_t

from ..costs cimport (
    estimates_gains_first, looks_at_all_bins, sums_occupied_bins,
)
from .contributions cimport (
    add_lanes, add_occupied, end_lanes, pool_bins, pool_occupied, set_sides,
    start_lanes,
)
from .first_look cimport add_first_look, can_look_first, has_first_look
from .masked cimport add_masked, fill_masked, pool_masked
from .sums cimport (
    add_bins, add_block, add_words_to_lanes, bin_sums, clear_bins, sum_era,
    sum_occupied_bins,
)
from ..lanes.instruction_sets import lane_module
from ..lanes.table cimport at_cache_line, empty_lanes, era_table, pool_eras, set_lane
from ..bundles cimport bundle_struct
from ..candidates.table cimport bundle_candidates, feature_split
from ..rows cimport row_block
from ..._criteria.criterion cimport SplitCriterion, criterion_struct
from ..._criteria.split_sums cimport (
    LANES, add_absent_eras, sum_differences, sums_up,
)


cdef class Accumulator:
    """Adds up the eras of one node after another, for the trees of a fit.

    `rows` knows the eras of the rows, which are added to `candidates`: by gradients, or
    by the target where the criterion `compares_targets`. What processes with other eras
    have added up is merged by `exchange`.
    """

    def __init__(
        self,
        EraRows rows,
        CandidateTable candidates,
        bint compares_targets,
        exchange,
    ):
        self.exchange = exchange
        self.is_alone = exchange.is_alone
        self.rows = rows
        self.candidates = candidates
        self.compares_targets = compares_targets
        self.n_threads = 0
        self.lanes = <const lane_functions *> PyCapsule_GetPointer(
            lane_module().functions, "lane_functions"
        )

    def __dealloc__(self):
        free(self.memory)

    def start_tree(self, FeatureBundles bundles, int n_threads):
        """Make room for the threads and the bundles of features of a tree."""
        if self.tasks is None or self.tasks.shape[0] < bundles.n_bundles:
            self.tasks = np.empty(bundles.n_bundles, dtype=np.int32)
            self.is_sparse = np.empty(bundles.n_bundles, dtype=np.uint8)
        self.bundles = bundles
        if self.n_threads == n_threads:
            return
        free(self.memory)
        self.n_threads = 0
        self.memory = calloc(n_threads + 1, sizeof(thread_scratch))
        if self.memory == NULL:
            raise MemoryError(
                f"cannot allocate {n_threads * sizeof(thread_scratch)} bytes for "
                f"{n_threads} threads"
            )
        self.scratch = <thread_scratch *> at_cache_line(self.memory)
        self.n_threads = n_threads

    cdef void plan(self, const uint8_t [::1] is_wanted) noexcept:
        """Choose the bundles to look at, and how each is to be summed up.

        Those with features that are wanted, or all of them.
        """
        cdef:
            const bundle_struct * bundle
            double rows_per_era = self.rows_per_era()
            bint looks_first = (
                self.tree.penalties == NULL
                and self.rows.eras_are_words()
                and has_first_look(self.candidates.criterion, self.rows.n_present)
            )
            int n_wanted, feature_idx
            int i, j
        self.is_wanted = is_wanted
        self.n_tasks = 0
        for i in range(self.bundles.n_bundles):
            bundle = &self.bundles.bundles[i]
            n_wanted = bundle.n_members
            if is_wanted is not None:
                n_wanted = 0
                for j in range(bundle.n_members):
                    n_wanted += is_wanted[bundle.members[j]]
            if n_wanted == 0:
                continue
            self.tasks[self.n_tasks] = i
            self.n_tasks += 1
            feature_idx = bundle.members[0]
            self.is_sparse[i] = (
                bundle.n_members == 1
                and bundle.n_codes[0] == <int> self.tree.n_bins_non_missing[feature_idx]
                and not self.tree.is_categorical[feature_idx]
                and sums_up(self.candidates.criterion)
                and sums_occupied_bins(bundle.n_bins, rows_per_era)
                and not (looks_first and looks_at_all_bins(bundle.n_bins, rows_per_era))
            )

    cdef double rows_per_era(self) noexcept:
        return <double> self.rows.n_rows / max(self.rows.n_present, 1)

    cdef int threads_for_node(self) noexcept nogil:
        """Threads that have enough to do, for what it takes to wake them up."""
        cdef double n_additions = <double> self.rows.n_rows * self.n_tasks
        return self.n_threads if n_additions > 20_000 else 1

    cdef void fill(self, NodeHistograms histograms) noexcept:
        """Sum up the rows of a node, and keep the sums."""
        self.rows.start_node(histograms.sample_indices)
        self.plan(None)
        self.visit_rows(KEEP, NULL, histograms)

    cdef void visit_rows(
        self, purpose what, const node_struct * node, NodeHistograms histograms
    ) noexcept:
        """Visit a node's rows, chunk by chunk, for each of the bundles planned."""
        cdef:
            EraRows rows = self.rows
            bint packs = what == KEEP or not histograms.is_stored
            thread_scratch * scratch
            int chunk = 0
            int i
        with nogil, parallel(num_threads=self.threads_for_node()):
            for chunk in range(rows.n_chunks):
                if packs:
                    for i in prange(
                        rows.chunks[chunk], rows.chunks[chunk + 1], schedule="static"
                    ):
                        rows.pack(&rows.blocks[i])
                for i in prange(self.n_tasks, schedule="static", chunksize=1):
                    scratch = &self.scratch[omp_get_thread_num()]
                    if what == KEEP:
                        self.fill_chunk(scratch, self.tasks[i], chunk, rows, histograms)
                    elif what == POOL:
                        self.pool_chunk(scratch, self.tasks[i], chunk, rows, histograms)
                    else:
                        self.add_chunk(
                            scratch, self.tasks[i], chunk, rows, histograms, node
                        )
                        if chunk == rows.n_chunks - 1:
                            self.add_absent(self.tasks[i])
        if rows.n_chunks == 0:  # all rows of the node are with other processes
            for i in range(self.n_tasks):
                if what == KEEP:
                    histograms.clear(&self.bundles.bundles[self.tasks[i]])
                elif what == COMPARE:
                    self.add_absent(self.tasks[i])

    cdef void fill_chunk(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int chunk,
        EraRows rows,
        NodeHistograms histograms,
    ) noexcept nogil:
        """Sum up the eras of a chunk, and keep the sums."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            int first = rows.chunks[chunk]
            int stop
            bin_sums sums
        if chunk == 0:
            histograms.clear(bundle)
        if bundle.masks != NULL:
            fill_masked(
                self.lanes, bundle, rows, first, rows.chunks[chunk + 1], histograms,
                &scratch.masked,
            )
            return
        while first < rows.chunks[chunk + 1]:
            stop = rows.end_of_era(first)
            histograms.point_at(bundle, rows.blocks[first].era, &sums)
            sum_era(
                self.tree, bundle, rows, &rows.blocks[first], stop - first,
                &scratch.histogram, &sums,
            )
            first = stop

    cdef pool(self, const node_struct * node, NodeHistograms histograms):
        """Begin a node, and sum up over all eras what is needed before they are added.

        That is all features, where the gain decides, or which splits the eras are asked
        of, or eras are judged beside sums over all of them; and categories, which are
        ordered by such sums. Sums of targets say nothing of gradients.
        """
        cdef:
            CandidateTable candidates = self.candidates
            bint pools = False
            int i, bundle_idx

        for i in range(self.n_tasks):
            bundle_idx = self.tasks[i]
            pools |= candidates.start_bundle(
                bundle_idx,
                &self.is_wanted[0],
                self.compares_targets
                or candidates.criterion.is_gain
                or candidates.criterion.traits.sees_all_eras
                or candidates.criterion.min_gain_share > 0.0,
            )
            self.is_sparse[bundle_idx] &= not histograms.is_stored
        if pools:
            self.visit_rows(POOL, node, histograms)
            if not self.is_alone:
                candidates.merge_pooled(self.tasks, self.n_tasks, True, self.exchange)
        for i in prange(
            self.n_tasks,
            schedule="static",
            nogil=True,
            num_threads=self.threads_for_node(),
        ):
            candidates.order_bins(self.tasks[i], node)

    cdef void pool_chunk(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int chunk,
        EraRows rows,
        NodeHistograms histograms,
    ) noexcept nogil:
        """Add the rows of a chunk to a bundle's sums over all eras."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_candidates * candidates = &self.candidates.candidates[bundle_idx]
            row_block block = rows.blocks[rows.chunks[chunk]]
            int stop = rows.blocks[rows.chunks[chunk + 1] - 1].stop
            Py_ssize_t size = stop - block.start
            bin_sums sums, kept
            int i
        if not self.candidates.needs_pooling(bundle_idx):
            return
        if bundle.masks != NULL and rows.values.are_integers:
            pool_masked(
                self.lanes, bundle, rows, rows.chunks[chunk], rows.chunks[chunk + 1],
                histograms, candidates, &scratch.masked,
            )
            return
        if rows.values.are_integers:
            size = rows.pool_size
        point_at_scratch(scratch, rows, &sums)
        clear_bins(bundle, &sums)
        if histograms.is_stored:
            i = rows.chunks[chunk]
            while i < rows.chunks[chunk + 1]:
                histograms.point_at(bundle, rows.blocks[i].era, &kept)
                add_bins(bundle, &kept, &sums)
                i = rows.end_of_era(i)
        else:
            while block.start < stop:
                block.stop = min(block.start + size, stop)
                add_block(self.tree, bundle, rows, &block, &scratch.histogram, &sums)
                block.first_word += block.stop - block.start
                block.start = block.stop
        pool_bins(bundle, candidates, &sums, &rows.values)

    cdef bint estimates_gains(self, const criterion_struct * criterion) noexcept:
        """Whether to compare gains only where estimates of them leave it open."""
        cdef:
            int n_bins = 0
            int i, task
        for i in range(self.n_tasks):
            task = self.tasks[i]
            if not self.is_sparse[task] and can_look_first(
                &self.bundles.bundles[task], self.rows
            ):
                n_bins += self.bundles.bundles[task].n_bins
        return (
            self.is_alone  # what is planned depends on the rows of a process
            and criterion.name == SplitCriterion.ERA
            and has_first_look(criterion, self.rows.n_present)
            and estimates_gains_first(n_bins, self.rows_per_era())
        )

    cdef void shortlist(self, double least) noexcept:
        """Leave out the bundles whose best split, as ranked last, ranks lower.

        They are the last of the tasks, and so come back with their number.
        """
        cdef:
            const feature_split * best
            int n_left = 0
            int i, task
        for i in range(self.n_tasks):
            task = self.tasks[i]
            best = &self.candidates.candidates[task].best
            if best.found and best.rank.primary >= least:
                self.tasks[i] = self.tasks[n_left]
                self.tasks[n_left] = task
                n_left += 1
        self.n_tasks = n_left

    cdef void start_again(self) noexcept:
        """Let the eras be added once more, to the bundles that are planned."""
        cdef int i
        for i in range(self.n_tasks):
            self.candidates.start_again(self.tasks[i])

    cdef accumulate(self, const node_struct * node, NodeHistograms histograms):
        """Add the eras of a node to the candidate splits that are planned.

        Those of other processes, too, and to the sums by bin that are not pooled yet.
        """
        if self.compares_targets:
            self.rows.values = self.rows.of_targets
        self.visit_rows(COMPARE, node, histograms)
        if self.is_alone:
            return
        self.candidates.merge_pooled(self.tasks, self.n_tasks, False, self.exchange)
        self.candidates.merge_splits(self.tasks, self.n_tasks, self.exchange)

    cdef void add_absent(self, int bundle_idx) noexcept nogil:
        """Add the eras without a row in the node, when all others are added."""
        cdef:
            int n_absent = self.rows.n_eras - self.rows.n_present
            bundle_candidates * candidates = &self.candidates.candidates[bundle_idx]
            int i
        if self.is_sparse[bundle_idx]:
            sum_differences(candidates.splits, candidates.n_splits)
        if n_absent > 0:
            for i in range(candidates.n_splits):
                add_absent_eras(
                    self.candidates.criterion, n_absent, &candidates.splits[i]
                )

    cdef void add_chunk(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int chunk,
        EraRows rows,
        NodeHistograms histograms,
        const node_struct * node,
    ) noexcept nogil:
        """Add the eras of a chunk to a bundle of features."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_candidates * candidates = &self.candidates.candidates[bundle_idx]
            era_table * table = &scratch.table
            int first = rows.chunks[chunk]   # block
            int last = rows.chunks[chunk + 1]

        if bundle.masks != NULL and rows.values.are_integers:
            add_masked(
                self.lanes, self.candidates.criterion, &node.eras, bundle, rows,
                first, last, histograms, candidates, &scratch.masked,
            )
            return
        if self.is_sparse[bundle_idx]:
            self.add_occupied_bins(scratch, bundle_idx, first, last, rows, node)
            return
        if self.looks_first and can_look_first(bundle, rows):
            add_first_look(
                self.lanes, self.candidates.criterion, self.tree, bundle, rows,
                first, last, histograms, candidates, &scratch.look,
            )
            return
        table.counts_rows = rows.values.are_integers and rows.values.hessians == NULL
        start_lanes(self.candidates.criterion, bundle, candidates, table)
        while first < last:
            first = self.fill_lanes(scratch, bundle_idx, first, last, rows, histograms)
            add_lanes(
                self.lanes, self.candidates.criterion, bundle, candidates,
                &node.eras, table,
            )
        end_lanes(self.candidates.criterion, bundle, candidates, table)

    cdef int fill_lanes(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int first,        # block
        int last,
        EraRows rows,
        NodeHistograms histograms,
    ) noexcept nogil:
        """Put the next eras into the lanes, and pool them; return the block after."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            const row_block * group = &rows.blocks[first]
            era_table * table = &scratch.table
            bint adds_words = (
                not histograms.is_stored
                and rows.values.are_integers
                and rows.eras_fit_blocks
            )
            bin_sums sums
            int lane = 0
            int stop, i

        point_at_scratch(scratch, rows, &sums)
        while lane < LANES and first < last:
            stop = rows.end_of_era(first)
            table.codes[lane] = rows.blocks[first].era
            if not adds_words:
                if histograms.is_stored:
                    histograms.point_at(bundle, table.codes[lane], &sums)
                else:
                    sum_era(
                        self.tree, bundle, rows, &rows.blocks[first], stop - first,
                        &scratch.histogram, &sums,
                    )
                set_lane(table, lane, &sums, &rows.values, bundle.n_bins)
            first = stop
            lane += 1
        table.n_eras = lane
        for i in range(LANES):
            table.is_era[i] = 1.0 if i < lane else 0.0
        if adds_words:
            add_words_to_lanes(
                self.tree, bundle, rows, group, rows.blocks[first - 1].stop,
                table.words, table.plain,
            )
            self.lanes.unpack_lanes(
                table, bundle.n_bins, rows.count_bits, &rows.values
            )
        else:
            empty_lanes(table, lane, bundle.n_bins)
            pool_eras(table, bundle.n_bins)
        return first

    cdef void add_occupied_bins(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int first,       # block
        int last,
        EraRows rows,
        const node_struct * node,
    ) noexcept nogil:
        """As `add_chunk`, where few bins have rows."""
        cdef:
            bundle_candidates * candidates = &self.candidates.candidates[bundle_idx]
            bin_sums sums
            int n_occupied, stop
        point_at_scratch(scratch, rows, &sums)
        while first < last:
            stop = rows.end_of_era(first)
            n_occupied = sum_occupied_bins(
                self.tree, &self.bundles.bundles[bundle_idx], rows,
                &rows.blocks[first], stop - first, &scratch.histogram, scratch.occupied,
            )
            if not candidates.features[0].is_pooled:
                pool_occupied(
                    candidates.pooled, &sums, &rows.values, scratch.occupied, n_occupied
                )
            set_sides(&sums, &rows.values, n_occupied, &scratch.splits)
            add_occupied(
                self.lanes, self.candidates.criterion, candidates, &node.eras,
                scratch.occupied, n_occupied, &scratch.splits,
            )
            first = stop


cdef inline void point_at_scratch(
    thread_scratch * scratch, EraRows rows, bin_sums * sums
) noexcept nogil:
    sums.integers = scratch.histogram.integers if rows.values.are_integers else NULL
    sums.plain = scratch.histogram.plain if rows.has_plain_words() else NULL
    sums.gradients = scratch.histogram.gradients
    sums.hessians = scratch.histogram.hessians
    sums.counts = scratch.histogram.counts
