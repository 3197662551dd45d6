"""Memory for the sums of nodes until they are split: 16 or 24 bytes a bin.

And for the left sides of splits by era, if all have masks and eras many rows.
"""

import weakref

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import HISTOGRAM_DTYPE

from .bundles cimport FeatureBundles, bundle_struct
from .rows cimport EraRows

# Bytes for the nodes of a fit at a time; nodes beyond are summed up from their rows.
STORE_BUDGET = 2**28


cdef class HistogramStore:
    """Lends buffers of integers, within a budget of bytes."""

    def __init__(self, budget=None):
        self.budget = STORE_BUDGET if budget is None else budget
        self.free_buffers = []
        self.lent = []

    def lend(self, Py_ssize_t n_integers):
        """Return a buffer of at least so many integers; None beyond the budget."""
        free = self.free_buffers
        fitting = [i for i, buffer in enumerate(free) if buffer.size >= n_integers]
        if fitting:
            return free.pop(min(fitting, key=lambda i: free[i].size))
        # All free buffers are too small: drop them to make room.
        n_left = self.allocated - sum(buffer.nbytes for buffer in free)
        if n_left + 8 * n_integers > self.budget:
            return None
        free.clear()
        self.allocated = n_left
        buffer = np.empty(n_integers, dtype=np.int64)
        self.allocated += buffer.nbytes  # only once it is allocated
        return buffer

    def take_back(self, buffer):
        self.free_buffers.append(buffer)

    def take_all_back(self):
        """Release the buffers of nodes that were not split, at the end of a tree."""
        for reference in self.lent:
            if (histograms := reference()) is not None:
                histograms.release()
        self.lent.clear()


cdef use_memory(
    NodeHistograms self, long long * sums, long long * by_era, Py_ssize_t n_bins,
    int n_planes,
):
    self.sums = sums
    self.by_era = by_era
    self.n_bins = n_bins
    self.n_planes = n_planes
    self.count_bits = 0
    self.is_stored = True
    self.store.lent.append(weakref.ref(self))


cdef class NodeHistograms:
    """The sums of a node by bin, if the `store` had memory for them.

    `sample_indices` are the node's rows; empty for a larger child, of `n_rows` rows.
    """

    def __init__(
        self, HistogramStore store, const unsigned int [::1] sample_indices,
        Py_ssize_t n_rows,
    ):
        self.store = store
        self.sample_indices = sample_indices
        self.n_rows = n_rows

    def allocate(self, Py_ssize_t n_bins, Py_ssize_t n_by_era, int n_planes):
        """Borrow memory from the store, with `n_by_era` sums by era if it has enough;
        return whether it had any.
        """
        cdef long long [::1] memory
        cdef long long * by_era = NULL
        if n_by_era > 0:
            self.buffer = self.store.lend((n_bins + n_by_era) * n_planes)
        if self.buffer is None:
            n_by_era = 0
            self.buffer = self.store.lend(n_bins * n_planes)
        if self.buffer is None:
            return False
        memory = self.buffer
        if n_by_era > 0:
            by_era = &memory[n_bins * n_planes]
        use_memory(self, &memory[0], by_era, n_bins, n_planes)
        return True

    def hand_over(self, NodeHistograms heir):
        """Pass the memory to another node."""
        heir.buffer, self.buffer = self.buffer, None
        self.is_stored = False
        use_memory(heir, self.sums, self.by_era, self.n_bins, self.n_planes)
        heir.count_bits = self.count_bits

    def release(self):
        """Return the memory to the store."""
        if self.buffer is not None:
            self.store.take_back(self.buffer)
            self.buffer = None
            self.is_stored = False
            self.by_era = NULL

    def __del__(self):
        self.release()

    def __getitem__(self, feature_idx):
        """Return a root's sums as its only bin; scikit-learn's grower adds up bins."""
        return np.array(
            [(self.sum_gradients, self.sum_hessians, 0)], dtype=HISTOGRAM_DTYPE
        )

    def over_processes(self, exchange, is_active):
        """Return the sums over all processes, for the bins that are active."""
        sums = self.buffer[: self.n_planes * self.n_bins].copy()
        planes = sums.reshape(self.n_planes, -1)
        of_all = exchange.sum(planes[:, is_active].astype(np.float64).ravel())
        of_all = of_all.reshape(self.n_planes, -1)
        can_be = np.abs(of_all) < 2.0**63
        can_be[0] &= (of_all[0] >= 0) & (of_all[0] < 2.0**32)
        if not can_be.all():
            what = "count {:g} rows in a bin"
            if can_be[0].all():
                what = "have {:g} for a sum by bin"
            raise ValueError(
                f"The workers of the fit {what.format(of_all[~can_be][0])}: another "
                "process has joined them, or the data of one are damaged."
            )
        planes[:, is_active] = of_all
        return sums

    def are_sums_of(self, FeatureBundles bundles, EraRows rows, sample_indices):
        """Return whether each feature's bins sum up to the node's rows, and the sums by
        era to those by bin.
        """
        cdef:
            const bundle_struct * bundle
            Py_ssize_t n_of_lane = self.n_planes * <Py_ssize_t> rows.n_eras
            int plane = 1 if rows.of_gradients.hessians == NULL else 2
            int i, j, n
        gradients = np.asarray(rows.arrays[0], np.float64)[sample_indices]
        gradients *= rows.of_gradients.scale
        total = len(gradients), np.rint(gradients).astype(np.int64).sum()
        bins, by_era = np.split(self.buffer, [self.n_planes * self.n_bins])
        bins = bins.reshape(self.n_planes, -1)
        if self.count_bits > 0:
            counts = bins[:1] & (1 << self.count_bits) - 1
            bins = np.vstack([counts, bins[:1] >> self.count_bits, bins[1:-1]])
        for i in range(bundles.n_bundles):
            bundle = &bundles.bundles[i]
            if self.by_era != NULL:
                left = by_era[: bundle.n_lanes * n_of_lane]
                left = left.reshape(-1, self.n_planes, bundle.n_lanes).sum(axis=0)
                by_era = by_era[bundle.n_lanes * n_of_lane :]
            for j in range(bundle.n_members):
                n = bundle.n_codes[j]
                sums = bins[:, :n].cumsum(axis=1)
                bins = bins[:, n:]
                if sums[0, n - 1] != total[0] or sums[plane, n - 1] != total[1]:
                    return False
                if self.by_era != NULL and not np.array_equal(
                    left[:, bundle.first_split[j] :][:, : n - 1], sums[:, : n - 1]
                ):
                    return False
        return True
