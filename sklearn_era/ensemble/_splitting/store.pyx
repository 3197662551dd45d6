"""Keep the sums of nodes in memory until the nodes are split, 16 or 24 bytes per bin.
The memory also holds the sums by era on splits' left sides, if all bundles of features
have masks and eras have many rows.
"""

import numpy as np

from .bundles cimport FeatureBundles, bundle_struct
from .rows cimport EraRows

# Bytes for the nodes of a fit at a time; nodes beyond are summed up from their rows.
STORE_BUDGET = 2**28


cdef class HistogramStore:
    """Lends memory for the sums of nodes: at most `budget` bytes in all."""

    def __init__(self, budget=None):
        self.budget = STORE_BUDGET if budget is None else budget
        self.slots = []
        self.free = []

    cpdef NodeHistograms lend(self, Py_ssize_t n_integers):
        """Return a slot (memory) for `n_integers`; None if the budget is too small."""
        cdef:
            NodeHistograms slot, best = None
            Py_ssize_t n_left = self.allocated
            Py_ssize_t i, place = 0
        for i in range(len(self.free) - 1, -1, -1):
            slot = self.free[i]
            if slot.capacity >= n_integers and (
                best is None or slot.capacity < best.capacity
            ):
                best, place = slot, i
                if slot.capacity == n_integers:
                    break
        if best is not None:
            del self.free[place]
            return best
        # All free buffers are too small: drop them to make room.
        for slot in self.free:
            n_left -= 8 * slot.capacity
        if n_left + 8 * n_integers > self.budget:
            return None
        for slot in self.free:
            slot.use_buffer(np.empty(0, dtype=np.int64))
        self.allocated = n_left
        buffer = np.empty(n_integers, dtype=np.int64)
        self.allocated += buffer.nbytes  # only once it is allocated
        if not self.free:
            slot = NodeHistograms(len(self.slots))
            self.slots.append(slot)
        else:
            slot = self.free.pop()
        slot.use_buffer(buffer)
        return slot

    cdef NodeHistograms allocate(
        self, Py_ssize_t n_bins, Py_ssize_t n_by_era, int n_planes
    ):
        """Lend memory for a node's sums by bin and, if there is enough, for its sums by
        era; return None if there is not even memory for the sums by bin.
        """
        cdef NodeHistograms slot = None
        if n_by_era > 0:
            slot = self.lend((n_bins + n_by_era) * n_planes)
        if slot is None:
            n_by_era = 0
            slot = self.lend(n_bins * n_planes)
        if slot is None:
            return None
        slot.sums = slot.memory
        slot.by_era = slot.memory + n_bins * n_planes if n_by_era > 0 else NULL
        slot.n_bins = n_bins
        slot.n_planes = n_planes
        slot.count_bits = 0
        return slot

    def take_back(self, NodeHistograms slot):
        self.free.append(slot)

    def take_all_back(self):
        """Take back all slots (memory) before a tree, even if nodes still use them."""
        self.free = self.slots.copy()


cdef class NodeHistograms:
    """A node's sums by bin, in memory that the store lends to other nodes later."""

    def __init__(self, int number):
        self.number = number

    def use_buffer(self, long long [::1] buffer):
        self.buffer = buffer.base
        self.capacity = buffer.shape[0]
        self.memory = &buffer[0] if self.capacity > 0 else NULL

    cdef int make_list(self, int n_features) except -1:
        """Make room for `is_listed`, the mask of features to compare by era later."""
        if self.is_listed.shape[0] < n_features:
            self.is_listed = np.empty(n_features, dtype=np.uint8)
        return 0

    def planes(self):
        """Return the sums by bin: one row (plane) for each kind of sum."""
        return self.buffer[: self.n_planes * self.n_bins].reshape(self.n_planes, -1)

    def subtract(self, NodeHistograms other):
        """Subtract another node's sums by bin from this node's."""
        planes = self.planes()
        planes -= other.planes()

    def sum_over_processes(self, exchange, is_active, NodeHistograms merged, *counts):
        """Set the bins of `merged` in the mask `is_active` to the sums over processes;
        return the sums of `counts`. Raise ValueError if a sum is out of bounds.
        """
        own = self.planes()[:, is_active].ravel()
        of_all = exchange.sum(np.append(own, counts).astype(np.float64))
        of_all, counts = np.split(of_all, [own.size])
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
        merged.planes()[:, is_active] = of_all
        return counts

    def are_sums_of(self, FeatureBundles bundles, EraRows rows, sample_indices):
        """Return whether each feature's bins add up to the sums of the node's rows, and
        whether sums by era add up to sums by bin.
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
