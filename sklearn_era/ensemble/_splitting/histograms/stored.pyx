"""Histograms by era that a node keeps, for its children to be differences.

By bin, or by candidate split of features with masks: the sums on its left side. They
take n_eras x n_sums cells of 12 bytes, or of 20 where hessians vary: 130 kB for 100
features of 5 bins and 20 eras, but 130 MB for 2,000 features of 5 bins and 1,000 eras.
So they share a budget, and a node that finds it spent keeps none: its sums, and its
children's, are then made from the rows.
"""

import weakref

from libc.string cimport memset

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import HISTOGRAM_DTYPE

# Bytes for the histograms that the nodes of a fit keep at a time. For fewer nodes than
# a fit has, if need be: what they save is less than the rest of a fit takes.
STORE_BUDGET = 2**28


cdef inline Py_ssize_t bytes_of(Py_ssize_t n_cells, bint has_plain) noexcept:
    return n_cells * (
        sizeof(long long) + sizeof(int) + (sizeof(long long) if has_plain else 0)
    )


cdef class HistogramStore:
    """Lends buffers of one size after another, within a budget of bytes."""

    def __init__(self, budget=STORE_BUDGET):
        self.budget = budget
        self.allocated = 0
        self.free_buffers = []
        self.lent = []

    cpdef bint has_room_for(self, Py_ssize_t n_cells, bint has_plain=False):
        """Whether a buffer of `n_cells` is free, or fits into the budget."""
        cdef Py_ssize_t n_bytes = bytes_of(n_cells, has_plain)
        cdef Py_ssize_t idle = 0
        for buffer in self.free_buffers:
            if buffer.size >= n_bytes:
                return True
            idle += buffer.size
        return self.allocated - idle + n_bytes <= self.budget

    def lend(self, Py_ssize_t n_cells, bint has_plain=False):
        """A buffer of `n_cells` at least, if `has_room_for` them."""
        n_bytes = bytes_of(n_cells, has_plain)
        for i, buffer in enumerate(self.free_buffers):
            if buffer.size >= n_bytes:
                return self.free_buffers.pop(i)
        # Those that are free are too small to be of use again.
        self.allocated -= sum(buffer.size for buffer in self.free_buffers)
        self.free_buffers.clear()
        buffer = np.empty(n_bytes, dtype=np.uint8)
        self.allocated += n_bytes  # not before there is room for them
        return buffer

    def remember(self, histograms):
        self.lent.append(weakref.ref(histograms))

    def take_back(self, buffer):
        self.free_buffers.append(buffer)

    def take_all_back(self):
        """End a tree: nodes that were not split have no more use for their buffers."""
        for reference in self.lent:
            histograms = reference()
            if histograms is not None:
                histograms.release()
        self.lent.clear()


cdef class NodeHistograms:
    """What a node keeps of its sums by era and bin: all of them, or nothing.

    Parameters
    ----------
    store : HistogramStore
        What lends the memory.
    n_eras : int
    """

    def __init__(self, HistogramStore store, int n_eras):
        self.store = store
        self.n_eras = n_eras
        self.is_stored = False
        self.is_worth_storing = False
        self.buffer = None

    def allocate(self, n_sums, bint has_plain):
        """Get memory for `n_sums` sums an era; for the store to have it."""
        cdef:
            unsigned char [::1] memory
            Py_ssize_t n_cells = n_sums * self.n_eras
        self.buffer = self.store.lend(n_cells, has_plain)
        memory = self.buffer
        self.integers = <long long *> &memory[0]
        self.plain = self.integers + n_cells if has_plain else NULL
        self.counts = <int *> (self.integers + (2 if has_plain else 1) * n_cells)
        self.is_stored = True
        self.store.remember(self)

    def __del__(self):
        self.release()

    def release(self):
        """Give the memory back."""
        if self.buffer is not None:
            self.store.take_back(self.buffer)
            self.buffer = None
            self.is_stored = False

    def hand_over(self, NodeHistograms heir):
        """Give the memory to another node."""
        heir.buffer, self.buffer = self.buffer, None
        heir.is_stored, self.is_stored = True, False
        heir.integers = self.integers
        heir.plain = self.plain
        heir.counts = self.counts
        self.store.remember(heir)

    def __getitem__(self, feature_idx):
        """Sums over the rows of a root, as a histogram with a single bin.

        scikit-learn's grower adds up the bins of any feature of it.
        """
        return np.array(
            [(self.sum_gradients, self.sum_hessians, 0)], dtype=HISTOGRAM_DTYPE
        )

    cdef void clear(self, const bundle_struct * bundle) noexcept nogil:
        """Set the sums of a bundle to 0."""
        cdef:
            Py_ssize_t first = bundle.first_sum * self.n_eras
            Py_ssize_t n_cells = <Py_ssize_t> bundle.n_sums * self.n_eras
        memset(self.integers + first, 0, n_cells * sizeof(long long))
        memset(self.counts + first, 0, n_cells * sizeof(int))
        if self.plain != NULL:
            memset(self.plain + first, 0, n_cells * sizeof(long long))

    cdef void point_at(
        self, const bundle_struct * bundle, int era, bin_sums * sums
    ) noexcept nogil:
        """Point at the sums of an era of a bundle."""
        cdef Py_ssize_t first = (
            bundle.first_sum * self.n_eras + <Py_ssize_t> era * bundle.n_sums
        )
        sums.integers = self.integers + first
        sums.counts = self.counts + first
        sums.plain = self.plain + first if self.plain != NULL else NULL


cdef void subtract(
    NodeHistograms parent,   # IN and OUT: becomes the other child's
    NodeHistograms child,    # IN
    const bundle_struct * bundle,
) noexcept nogil:
    """What is left of the parent's sums of a bundle without those of one child."""
    cdef:
        Py_ssize_t first = bundle.first_sum * parent.n_eras
        Py_ssize_t n_cells = <Py_ssize_t> bundle.n_sums * parent.n_eras
        long long * integers = parent.integers + first
        const long long * child_integers = child.integers + first
        int * counts = parent.counts + first
        const int * child_counts = child.counts + first
        Py_ssize_t i
    for i in range(n_cells):
        integers[i] -= child_integers[i]
    for i in range(n_cells):
        counts[i] -= child_counts[i]
    if parent.plain != NULL:
        for i in range(n_cells):
            parent.plain[first + i] -= child.plain[first + i]
