"""The visit of a node's eras, bundle by bundle of its features: what threads share.

The rows of a node come in chunks of whole eras. A chunk's rows are turned into words by
all threads; then each bundle of features sums them up by bin, era by era, and either
keeps the sums or adds what the era says of the candidate splits. A bundle is one
thread's from beginning to end, so that the result does not depend on their number.
"""

from cython.parallel import parallel, prange
from libc.stdlib cimport calloc, free

import numpy as np

from sklearn.utils._openmp_helpers cimport omp_get_thread_num
from sklearn.utils._typedefs cimport uint8_t

from ..costs cimport sums_jointly, sums_touched_bins
from .sums cimport add_to_lanes, bin_sums, histogram_scratch, sum_era, sum_touched_bins
from ..lanes.table cimport empty_lanes, era_table, pool_lanes, set_lane
from ..bundles cimport bundle_struct
from ..._criteria.split_sums cimport LANES, sums_up


cdef class EraVisitor:
    """Visits the eras of one node after another, for the trees of a fit.

    Parameters
    ----------
    rows : EraRows
        What knows the eras of the rows.
    scanner : EraScanner
        What ranks the splits.
    compares_targets : bool
        Whether eras are compared by sums of targets, not of gradients.
    """

    def __init__(self, EraRows rows, EraScanner scanner, bint compares_targets):
        self.rows = rows
        self.scanner = scanner
        self.compares_targets = compares_targets
        self.n_threads = 0

    def __dealloc__(self):
        free(self.scratch)

    def start_tree(
        self,
        const X_BINNED_DTYPE_C [::1, :] X_binned,
        const unsigned int [::1] n_bins_non_missing,
        int missing_values_bin_idx,
        int n_threads,
    ):
        """Take over the data of a tree about to be grown."""
        self.X_binned = X_binned
        self.n_bins_non_missing = n_bins_non_missing
        self.columns.X_binned = &X_binned[0, 0]
        self.columns.n_samples = X_binned.shape[0]
        self.columns.missing_values_bin_idx = missing_values_bin_idx
        self.columns.n_bins_non_missing = &n_bins_non_missing[0]
        if self.n_threads == n_threads:
            return
        free(self.scratch)
        self.n_threads = 0
        self.scratch = <thread_scratch *> calloc(n_threads, sizeof(thread_scratch))
        if self.scratch == NULL:
            raise MemoryError(
                f"cannot allocate {n_threads * sizeof(thread_scratch)} bytes for "
                f"{n_threads} threads"
            )
        self.n_threads = n_threads

    def use_bundles(self, FeatureBundles bundles):
        """Make room to plan the visits of some bundles of features."""
        self.bundles = bundles
        if self.tasks is None or self.tasks.shape[0] < bundles.n_bundles:
            self.tasks = np.empty(bundles.n_bundles, dtype=np.int32)
            self.is_joint = np.empty(bundles.n_bundles, dtype=np.uint8)
            self.is_touched = np.empty(bundles.n_bundles, dtype=np.uint8)

    cdef void plan(self, const uint8_t [::1] is_wanted) noexcept:
        """Choose the bundles to look at, and how each is to be summed up.

        Those with features that are wanted, or all of them.
        """
        cdef:
            const bundle_struct * bundle
            double rows_per_era = (
                <double> self.rows.n_rows / max(self.rows.n_present, 1)
            )
            int n_wanted
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
            self.is_joint[i] = bundle.codes != NULL and sums_jointly(
                bundle.n_members, bundle.n_cells, rows_per_era
            )
            self.is_touched[i] = (
                bundle.n_members == 1
                and bundle.n_codes[0] == self.n_bins_non_missing[bundle.members[0]]
                and not self.scanner.is_categorical[bundle.members[0]]
                and sums_up(&self.scanner.criterion)
                and sums_touched_bins(bundle.n_bins, rows_per_era)
            )

    cdef void fill(self, NodeHistograms histograms) noexcept:
        """Sum up the rows of a node, and keep the sums."""
        cdef:
            EraRows rows = self.rows
            int chunk = 0
            int i
        rows.start_node(histograms.sample_indices)
        rows.sums_targets = False
        self.plan(None)
        with nogil, parallel(num_threads=self.threads_for_node()):
            for i in prange(self.n_tasks, schedule="static"):
                histograms.clear(&self.bundles.bundles[self.tasks[i]])
            for chunk in range(rows.n_chunks):
                for i in prange(
                    rows.chunks[chunk], rows.chunks[chunk + 1], schedule="static"
                ):
                    rows.pack(&rows.blocks[i], rows.first_row_of_chunk(chunk))
                for i in prange(self.n_tasks, schedule="static", chunksize=1):
                    self.fill_chunk(
                        omp_get_thread_num(), self.tasks[i], chunk, rows, histograms
                    )

    cdef int threads_for_node(self) noexcept nogil:
        """Threads that have enough to do, for what it takes to wake them up."""
        cdef double n_additions = <double> self.rows.n_rows * self.n_tasks
        return self.n_threads if n_additions > 20_000 else 1

    cdef void fill_chunk(
        self,
        int thread_idx,
        int bundle_idx,
        int chunk,
        EraRows rows,
        NodeHistograms histograms,
    ) noexcept nogil:
        """Sum up the eras of a chunk, and keep the sums."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            int first_row = rows.first_row_of_chunk(chunk)
            int first = rows.chunks[chunk]
            int stop
            bin_sums sums
        while first < rows.chunks[chunk + 1]:
            stop = rows.end_of_era(first)
            histograms.point_at(bundle, rows.blocks[first].era, &sums)
            sum_era(
                &self.columns, bundle, self.is_joint[bundle_idx], rows, first_row,
                &rows.blocks[first], stop - first,
                &self.scratch[thread_idx].histogram, &sums,
            )
            first = stop

    cdef void scan(
        self,
        const node_struct * node,
        NodeHistograms histograms,
        feature_split * splits,   # OUT, (n_tasks,)
    ) noexcept:
        """Best split of each bundle of features."""
        cdef:
            EraScanner scanner = self.scanner
            int n_threads = self.threads_for_node()
            bint pools = False
            int i, bundle_idx

        for i in range(self.n_tasks):
            bundle_idx = self.tasks[i]
            self.is_touched[bundle_idx] &= not histograms.is_stored
            pools |= scanner.start_bundle(
                bundle_idx,
                &self.is_wanted[0],
                self.compares_targets,
                self.is_touched[bundle_idx],
            )
        # Categories are ordered by sums over eras, before the eras are looked at; and
        # sums of targets say nothing of gradients.
        if pools:
            self.rows.sums_targets = False
            self.visit_eras(node, histograms, True, n_threads)
        for i in prange(
            self.n_tasks, schedule="static", nogil=True, num_threads=n_threads
        ):
            scanner.order_bins(self.tasks[i], node)
        self.rows.sums_targets = self.compares_targets
        self.visit_eras(node, histograms, False, n_threads)
        for i in prange(
            self.n_tasks, schedule="static", nogil=True, num_threads=n_threads
        ):
            scanner.find_best(
                self.tasks[i], node, self.rows.n_eras - self.rows.n_present, &splits[i]
            )

    cdef void visit_eras(
        self,
        const node_struct * node,
        NodeHistograms histograms,
        bint pools,     # pool sums over eras, or else scan the candidate splits
        int n_threads,
    ) noexcept:
        """Look at the eras of a node, one after the other, bundle by bundle."""
        cdef:
            EraRows rows = self.rows
            EraScanner scanner = self.scanner
            int chunk = 0
            int i
        if histograms.is_stored:
            for i in prange(
                self.n_tasks,
                schedule="static",
                chunksize=1,
                nogil=True,
                num_threads=n_threads,
            ):
                # By the same groups of eras as below, so that sums are the same.
                for chunk in range(rows.n_chunks):
                    self.visit_chunk(
                        omp_get_thread_num(), self.tasks[i], chunk,
                        rows, scanner, histograms, node, pools,
                    )
            return
        with nogil, parallel(num_threads=n_threads):
            for chunk in range(rows.n_chunks):
                for i in prange(
                    rows.chunks[chunk], rows.chunks[chunk + 1], schedule="static"
                ):
                    rows.pack(&rows.blocks[i], rows.first_row_of_chunk(chunk))
                for i in prange(self.n_tasks, schedule="static", chunksize=1):
                    self.visit_chunk(
                        omp_get_thread_num(), self.tasks[i], chunk,
                        rows, scanner, histograms, node, pools,
                    )

    cdef void visit_chunk(
        self,
        int thread_idx,
        int bundle_idx,
        int chunk,
        EraRows rows,
        EraScanner scanner,
        NodeHistograms histograms,
        const node_struct * node,
        bint pools,
    ) noexcept nogil:
        """Look at the eras of a chunk, for a bundle of features."""
        cdef:
            int first = rows.chunks[chunk]   # block
            int last = rows.chunks[chunk + 1]
            int first_row = rows.first_row_of_chunk(chunk)
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            thread_scratch * scratch = &self.scratch[thread_idx]
            era_table * table = &scratch.table
            bint is_stored = histograms.is_stored
            bint adds_to_lanes = (
                not is_stored
                and not self.is_joint[bundle_idx]
                and rows.packs_integers()
                and rows.eras_fit_blocks
            )
            bin_sums sums
            int group, lane, stop, era, i

        if pools and not scanner.needs_pooling(bundle_idx):
            return
        if self.is_touched[bundle_idx] and not pools:
            self.visit_touched_bins(
                scratch, bundle_idx, first, last, first_row, rows, scanner, node
            )
            return
        table.counts_rows = rows.packs_integers()
        scanner.start_lanes(bundle_idx, table)
        point_at_scratch(&scratch.histogram, rows, &sums)
        while first < last:
            group = first
            lane = 0
            while lane < LANES and first < last:
                stop = rows.end_of_era(first)
                era = rows.blocks[first].era
                table.eras[lane] = era
                if is_stored:
                    histograms.point_at(bundle, era, &sums)
                elif not adds_to_lanes:
                    sum_era(
                        &self.columns, bundle, self.is_joint[bundle_idx], rows,
                        first_row, &rows.blocks[first], stop - first,
                        &scratch.histogram, &sums,
                    )
                if not adds_to_lanes:
                    set_lane(table, lane, &sums, rows.unit, bundle.n_bins)
                first = stop
                lane += 1
            table.n_eras = lane
            for i in range(LANES):
                table.is_era[i] = 1.0 if i < lane else 0.0
            if adds_to_lanes:
                add_to_lanes(
                    &self.columns, bundle, rows, first_row,
                    rows.blocks[group].start, rows.blocks[first - 1].stop,
                    table.words, LANES,
                )
                scanner.lanes.take_apart(
                    table, bundle.n_bins, rows.count_bits, rows.unit
                )
            else:
                empty_lanes(table, lane, bundle.n_bins)
                pool_lanes(table, bundle.n_bins)
            if not pools:
                scanner.scan_eras(bundle_idx, &node.eras, table)
        scanner.end_lanes(bundle_idx, table, pools)

    cdef void visit_touched_bins(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int first,       # block
        int last,
        int first_row,
        EraRows rows,
        EraScanner scanner,
        const node_struct * node,
    ) noexcept nogil:
        """As `visit_chunk`, where few bins have rows."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bin_sums sums
            int n_touched, stop
        point_at_scratch(&scratch.histogram, rows, &sums)
        while first < last:
            stop = rows.end_of_era(first)
            n_touched = sum_touched_bins(
                &self.columns, bundle, rows, first_row,
                &rows.blocks[first], stop - first, &scratch.histogram, scratch.touched,
            )
            scanner.scan_touched_bins(
                bundle_idx, &node.eras, &sums, rows.unit,
                scratch.touched, n_touched, &scratch.splits,
            )
            first = stop


cdef inline void point_at_scratch(
    histogram_scratch * scratch, EraRows rows, bin_sums * sums
) noexcept nogil:
    sums.integers = scratch.integers if rows.packs_integers() else NULL
    sums.gradients = scratch.gradients
    sums.hessians = scratch.hessians
    sums.counts = scratch.counts
