"""Pack the rows of a node, era by era, for the node's histograms.

Training rows are sorted by era once per fit. Each tree starts with this order, and
splits keep the order, so an era is a range of a node's rows.

    node's rows   e e e e e e|e e e e|e e e e e e e e e|e e|...
    blocks        [    0     ][   1  ][    2   ][   3  ][4 ]    of one era each
    chunks        [          0       ][           1        ]    fit the cache

A row is one word or more (`summed_values`): its gradient as a fixed point, beside a 1
that counts the row. Blocks are so small that a word can hold the sum of their rows.
Sums of integers are exact, whatever the order of rows or eras, and fit the 53 bits of a
double. So a parent's sums less one child's sums are exactly the other child's.
"""

from cython.parallel import prange
from libc.math cimport fabs
from libc.string cimport memset

import math

import numpy as np

from .._arrays cimport G_H_DTYPE_C

from .._exchange import ALONE
from .fixed_points cimport fixed_point, low_point, n_words_of, set_units, sum_all
from .._criteria.formulas cimport REL_TOL
from .._criteria.time_robust cimport impurity


cdef class EraRows:
    """The rows of one node after another, for the trees of a fit.

    `era_codes` has the era of each training row, 0 to n_eras - 1. `row_order`, later
    `order`, has the rows stably sorted by era; None if rows are in this order already.
    For the statistic RATIO, `weights` are the sample weights, and `positive_weights`
    the same but 0 where the target is 0. `has_weights` is True if gradients and
    hessians are weighted. `exchange` sums over processes; all counts except
    `n_samples_of_all` are of this process alone.
    """

    def __init__(
        self, era_codes, int n_eras, row_order=None,
        const G_H_DTYPE_C [::1] positive_weights=None,
        const G_H_DTYPE_C [::1] weights=None, bint has_weights=True, exchange=ALONE,
    ):
        cdef Py_ssize_t n_blocks
        if era_codes.shape[0] >= 2**31:
            raise ValueError(
                f"X has {era_codes.shape[0]:,} rows to train on, and splits count up "
                f"to {2**31 - 1:,}: fit to fewer rows."
            )
        counts = np.bincount(era_codes, minlength=n_eras)
        self.exchange = exchange
        (self.n_samples_of_all,) = exchange.sum_of(era_codes.shape[0])
        (largest_count,) = exchange.max_of(counts.max())
        self.n_eras = n_eras
        self.n_samples = era_codes.shape[0]
        self.n_threads = 1
        self.era_codes = era_codes
        self.era_counts = counts.astype(np.int32)
        self.order = None if row_order is None else np.asarray(row_order, np.uint32)
        # A block's integers, shifted by the bits of the count, stay below 2^63, and the
        # sum of all integers below 2^53. Blocks are as large as this allows without
        # fewer bits for integers. All processes share the units of integers.
        self.sum_bits = sum_bits = 53 - (int(self.n_samples_of_all) - 1).bit_length()
        era_bits = (max(int(largest_count), 1) - 1).bit_length()
        block_bits = min(era_bits, max(10, (61 - sum_bits) // 2))
        self.block_size = 1 << block_bits
        self.packed_bits = min(61 - 2 * block_bits, sum_bits)
        # Exact sums preserve ties; with weights, more digits are needed.
        self.plain_bits = sum_bits + 9 if has_weights else sum_bits
        # The capacity of a word, across eras.
        pool_bits = (61 - self.packed_bits) // 2
        self.pool_size = 1 << pool_bits
        self.count_bits = pool_bits + 1
        n_blocks = n_eras + self.n_samples // self.block_size + 1
        self.owners = []
        self.blocks = <row_block *> alloc_zeros(
            self.owners, n_blocks * sizeof(row_block)
        )
        self.chunks = <int *> alloc_zeros(self.owners, (n_blocks + 1) * sizeof(int))
        self.block_sums = <impurity_sums *> alloc_zeros(
            self.owners, n_blocks * sizeof(impurity_sums)
        )
        self.n_packed = min(max(int(counts.max()), CHUNK_SIZE), self.n_samples)
        self.words = np.empty(self.n_packed, dtype=np.int64)
        self.has_weights = has_weights
        self.positive_weights = positive_weights
        self.weights = weights
        if weights is not None:
            differ = not np.min(weights) == np.max(weights) == 1.0
            (differ,) = exchange.max_of(differ)  # all processes share units
            self.compares_others = True
            self.of_others.gradients = &positive_weights[0]
            self.of_others.hessians = &weights[0] if differ else NULL
            start_words(self, &self.of_others)

    def start_tree(self, gradients, hessians, int n_threads):
        """Take over the next tree's gradients and hessians; return their two sums."""
        cdef:
            const G_H_DTYPE_C [::1] gradient_view = gradients
            const G_H_DTYPE_C [::1] hessian_view = hessians
            summed_values * values = &self.of_gradients
        self.n_threads = n_threads
        self.arrays = (gradients, hessians)
        values.gradients = &gradient_view[0]
        values.hessians = &hessian_view[0] if hessian_view.shape[0] > 1 else NULL
        start_words(self, values)
        low_scale = values.low_scale if values.has_low_words else 0.0
        sums = [math.nan, float(self.n_samples)]
        if values.are_finite:
            sums[0] = values.unit * sum_all(
                values.gradients, self.n_samples, values.scale, low_scale, n_threads
            )
        if values.are_finite and values.hessians != NULL:
            sums[1] = values.hessian_unit * sum_all(
                values.hessians, self.n_samples, values.hessian_scale, low_scale,
                n_threads,
            )
        return self.exchange.sum_of(*sums)

    def compare_squares(self):
        """From now on compare eras by gradients and, in place of hessians (all 1),
        squares of gradients. Return the largest variance that may be a rounding error.
        """
        cdef summed_values * values = &self.of_others
        self.compares_others = True
        values.gradients = values.hessians = self.of_gradients.gradients
        values.has_squares = True
        start_words(self, values)
        return 0.0 if values.has_low_words else 2.0 * values.hessian_unit

    cdef take_values(self, EraRows other):
        """Take the tree's gradients, hessians and units from the rows `other`."""
        self.n_threads = other.n_threads
        self.arrays = other.arrays
        self.of_gradients = other.of_gradients
        self.of_others = other.of_others
        self.compares_others = other.compares_others
        if self.words.shape[0] < other.words.shape[0]:
            self.words = np.empty(other.words.shape[0], dtype=np.int64)

    cdef const summed_values * values_to_compare(self) noexcept nogil:
        """Return the values by which to compare eras: `of_gradients` or `of_others`."""
        return &self.of_others if self.compares_others else &self.of_gradients

    cdef void start_node(
        self, const unsigned int * sample_indices, int n_rows
    ) noexcept nogil:
        self.n_rows = n_rows
        self.sample_indices = NULL  # at the root
        if n_rows < self.n_samples or self.order is not None:
            self.sample_indices = sample_indices

    cdef void list_eras(
        self, bint lists_all,
        const double * min_samples,  # (n_eras,), on both sides to cover an era; or NULL
    ) noexcept nogil:
        """List eras as blocks (ranges of rows): all eras if `lists_all`, else eras with
        enough rows for both sides of a split.
        """
        cdef int start = 0, n_seen = 0, era, stop
        cdef bint is_coverable
        self.n_listed = self.n_coverable = self.n_blocks = self.n_chunks = 0
        while start < self.n_rows:
            era = era_of_row(self, start)
            stop = end_of_era(self, era, start)
            assert start < stop <= self.n_rows, "rows of an era"
            assert era_of_row(self, stop - 1) == era, "rows of an era"
            assert stop == self.n_rows or era_of_row(self, stop) > era, "order of eras"
            n_seen += stop - start
            is_coverable = (
                min_samples == NULL or stop - start >= 2.0 * min_samples[era]
            )
            self.n_coverable += is_coverable
            if lists_all or is_coverable:
                add_era(self, era, start, stop)
            start = stop
        self.chunks[self.n_chunks] = self.n_blocks
        assert n_seen == self.n_rows, "rows of a node"

    cdef packed_rows packed(
        self, const summed_values * values, bint wants_contrasts
    ) noexcept nogil:
        """Return the addresses of a chunk's words (packed rows), and their format."""
        cdef packed_rows packed
        packed.indices = self.sample_indices
        packed.words = &self.words[0]
        packed.contrasts = &self.words[self.n_packed] if wants_contrasts else NULL
        packed.n_packed = self.n_packed
        packed.n_words = n_words_of(values)
        packed.count_bits = self.count_bits
        return packed

    cdef void pack(
        self, const summed_values * values, int start, int stop, int first_word
    ) noexcept nogil:
        """Pack the node's rows `start` to `stop` into words, from `first_word` on."""
        cdef:
            const unsigned int * rows = self.sample_indices
            long long * words = &self.words[0] + first_word - start
            double low_scale = 0.0
            int count_bits = self.count_bits
            int word
        for word in range(n_words_of(values)):  # see `summed_values`
            if word == 1 + (values.hessians != NULL):
                low_scale = values.low_scale
            if values.hessians != NULL and (word == 0 or word == 3):
                pack_plane(
                    values.hessians, values.hessian_scale, low_scale, rows, start, stop,
                    count_bits, words, values.has_squares,
                )
            else:
                pack_plane(
                    values.gradients, values.scale, low_scale, rows, start, stop,
                    count_bits, words,
                )
            words += self.n_packed
            count_bits = 0

    cdef void pack_contrasts(
        self, const summed_values * values, row_block * block, int count_bits
    ) noexcept nogil:
        """Pack each row's term of the contrast G n_L - G_L n of a split in an era. G is
        the sum of gradients of the era's n rows, G_L of its n_L rows on the left. A
        contrast of 0 is a tie, which rounding can turn into a contrast of up to REL_TOL
        G n_L n_R / n, or up to REL_TOL G n / 4, as n_L n_R is at most n^2 / 4.
        """
        cdef:
            const unsigned int * rows = self.sample_indices
            long long * contrasts = (
                &self.words[self.n_packed] + block.first_word - block.start
            )
            long long n_rows = block.stop - block.start
            long long shift = <long long> 1 << count_bits
            long long total = 0
            Py_ssize_t i
        for i in range(block.start, block.stop):
            contrasts[i] = fixed_point(
                values.gradients[i if rows == NULL else rows[i]], values.scale
            )
            total += contrasts[i]
        for i in range(block.start, block.stop):
            contrasts[i] = (total - n_rows * contrasts[i]) * shift + (shift > 1)
        block.doubt = <long long> (0.5 * REL_TOL * fabs(<double> total) * n_rows)

    cdef int count_bits_of_contrasts(self) noexcept nogil:
        """Return how many low bits of a word can count the n rows of the largest block;
        0 if the bits above cannot hold contrasts (see `pack_contrasts`), which are up
        to n^2 / 2 times the largest integer.
        """
        cdef int i, n_bits = 1
        for i in range(self.n_blocks):
            while self.blocks[i].stop - self.blocks[i].start >> n_bits > 0:
                n_bits += 1
        return n_bits if n_bits < 10 and self.packed_bits + 3 * n_bits <= 63 else 0

    cdef void measure_impurities(self, double * impurities) noexcept nogil:
        """Set the impurity of each listed era (see `list_eras`), before any split."""
        cdef:
            const summed_values * values = &self.of_gradients
            impurity_sums total
            int i, era
        for i in prange(
            self.n_blocks, schedule="static", num_threads=self.n_threads
        ):
            self.block_sums[i] = sum_squares(
                values.gradients, values.hessians, self.sample_indices,
                self.blocks[i].start, self.blocks[i].stop,
            )
        memset(impurities, 0, self.n_eras * sizeof(double))
        i = 0
        while i < self.n_blocks:
            era = self.blocks[i].era
            memset(&total, 0, sizeof(total))
            while i < self.n_blocks and self.blocks[i].era == era:
                total.squares += self.block_sums[i].squares
                total.gradients += self.block_sums[i].gradients
                total.hessians += self.block_sums[i].hessians
                i += 1
            impurities[era] = impurity(total.squares, total.gradients, total.hessians)

    def impurities(self):
        """Return the impurity of each era in the node, before any split."""
        cdef double [::1] result = np.empty(self.n_eras)
        self.measure_impurities(&result[0])
        return np.asarray(result)

    def root_variance(self):
        """Return the variance of g / h, weighted by h, over all training rows."""
        cdef impurity_sums total = sum_squares(
            self.of_gradients.gradients, self.of_gradients.hessians, NULL,
            0, self.n_samples,
        )
        squares, gradients, hessians = self.exchange.sum_of(
            total.squares, total.gradients, total.hessians
        )
        return impurity(squares, gradients, hessians)


cdef inline void pack_plane(
    const G_H_DTYPE_C * values, double scale,
    double low_scale,           # 0: the high words
    const unsigned int * rows,  # NULL: all, in order
    int start, int stop,
    int count_bits,             # integers are above them, with a 1 below; 0: no count
    long long * words,          # OUT, from the node's first row
    bint squares=False,         # of the values
) noexcept nogil:
    cdef:
        long long one = count_bits > 0
        long long shift = <long long> 1 << count_bits
        double value
        Py_ssize_t i, row
    if low_scale > 0.0:
        for i in range(start, stop):
            row = i if rows == NULL else rows[i]
            value = values[row]
            words[i] = low_point(value * value if squares else value, scale, low_scale)
        return
    for i in range(start, stop):
        row = i if rows == NULL else rows[i]
        value = values[row]
        words[i] = (
            fixed_point(value * value if squares else value, scale) * shift + one
        )


cdef start_words(EraRows self, summed_values * values):
    """Set the units of fixed points, and allocate the words of a chunk of blocks."""
    set_units(
        values, self.n_samples, self.sum_bits, self.packed_bits, self.plain_bits,
        self.has_weights, self.n_threads, self.exchange,
    )
    n_words = self.n_packed * max(n_words_of(values), 2)
    if self.words.shape[0] < n_words:
        self.words = np.empty(n_words, dtype=np.int64)


cdef inline int era_of_row(EraRows self, int i) noexcept nogil:
    return self.era_codes[i if self.sample_indices == NULL else self.sample_indices[i]]


cdef void add_era(EraRows self, int era, int start, int stop) noexcept nogil:
    """Cut an era into blocks, and add them to the last chunk or to a new one."""
    cdef:
        row_block * block
        Py_ssize_t first_word = 0, next_start
    if self.n_blocks > 0:
        block = &self.blocks[self.n_blocks - 1]
        first_word = block.first_word + block.stop - block.start
    if self.n_blocks == 0 or first_word + stop - start > self.n_packed:
        self.chunks[self.n_chunks] = self.n_blocks
        self.n_chunks += 1
        first_word = 0
    self.n_listed += 1
    while start < stop:
        next_start = min(start + self.block_size, <Py_ssize_t> stop)
        block = &self.blocks[self.n_blocks]
        block.era = era
        block.start = start
        block.stop = <int> next_start
        block.first_word = <int> first_word
        block.place = self.n_listed - 1
        self.n_blocks += 1
        first_word += next_start - start
        start = <int> next_start
    assert first_word <= self.n_packed, "words of a chunk"
    assert block.stop == stop, "rows of an era"


cdef int end_of_era(EraRows self, int era, int start) noexcept nogil:
    """Return the end of an era's rows in the node, by galloping search."""
    cdef:
        int low = start + 1
        int step = 1
        int high = min(self.n_rows, start + self.era_counts[era])
        int middle
    if self.sample_indices == NULL:
        return high
    while low + step < high and self.era_codes[self.sample_indices[low + step]] == era:
        low += step + 1
        step *= 2
    high = min(high, low + step)
    while low < high:
        middle = (low + high) // 2
        if self.era_codes[self.sample_indices[middle]] == era:
            low = middle + 1
        else:
            high = middle
    return low
