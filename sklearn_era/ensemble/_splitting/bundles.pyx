"""Bundles of features with few bins, whose histograms are summed up jointly.

Three features of five bins have 125 combinations of bins, which one byte can number. A
histogram of that number has all three features' histograms as its marginal sums, and
costs one addition a row instead of three.
"""

from cython.parallel import prange
from libc.stdlib cimport calloc, free

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import X_BINNED_DTYPE

from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t

from .costs cimport sums_jointly

MAX_CELLS = 256  # numbers in a byte
MAX_CODES = 16  # `sums_occupied_bins` asks for more


def bundle_features(n_codes):
    """Bundle neighbours, as many as a byte can hold the combinations of, as slices.

    A feature's codes are its bins, and one more for missing values. One with more than
    MAX_CODES is alone, whatever its neighbours: how it is summed up, and with that the
    last digit of a sum of gains, is the same as of a column that is equal to it.
    """
    bundles = []
    start, n_cells = 0, 1
    for i, n in enumerate(n_codes):
        if i > start and (
            max(n, n_codes[start]) > MAX_CODES
            or n_cells * n > MAX_CELLS
            or i - start == MAX_MEMBERS
        ):
            bundles.append(slice(start, i))
            start, n_cells = i, 1
        n_cells *= n
    if start < len(n_codes):
        bundles.append(slice(start, len(n_codes)))
    return bundles


cdef class FeatureBundles:
    """The bundles of some features (ascending), and the joint codes of the rows.

    `X_binned` is F-ordered. Where the training set has too few `rows_per_era` for joint
    sums to be worth it, no joint codes are made, and each feature of a bundle is summed
    up on its own. `n_bins` is that of all features, missing values included.
    """

    def __init__(
        self,
        const X_BINNED_DTYPE_C [::1, :] X_binned,
        features,
        n_bins_non_missing,
        has_missing_values,
        double rows_per_era,
        int n_threads,
    ):
        cdef:
            bundle_struct * bundle
            X_BINNED_DTYPE_C [::1, :] joint
            int i

        self.features = np.asarray(features, dtype=np.intp)
        n_joint = self._lay_out(
            np.asarray(n_bins_non_missing, dtype=np.intp)[self.features]
            + np.asarray(has_missing_values, dtype=np.intp)[self.features],
            rows_per_era,
        )
        if n_joint == 0:
            return
        self.joint = np.empty(
            (X_binned.shape[0], n_joint), dtype=X_BINNED_DTYPE, order="F"
        )
        joint = self.joint
        n_joint = 0
        for i in range(self.n_bundles):
            bundle = &self.bundles[i]
            if sums_jointly(bundle.n_members, bundle.n_cells, rows_per_era):
                bundle.codes = &joint[0, n_joint]
                n_joint += 1
        for i in prange(
            self.n_bundles, schedule="static", nogil=True, num_threads=n_threads
        ):
            if self.bundles[i].codes != NULL:
                join_codes(
                    X_binned,
                    &self.bundles[i],
                    <X_BINNED_DTYPE_C *> self.bundles[i].codes,
                )

    def _lay_out(self, n_codes, double rows_per_era):
        """Settle the bundles; return how many of them deserve joint codes."""
        cdef:
            bundle_struct * bundle
            int n_joint = 0
            int i
        slices = bundle_features(n_codes.tolist())
        self.n_bundles = len(slices)
        self.bundles = <bundle_struct *> calloc(
            max(self.n_bundles, 1), sizeof(bundle_struct)
        )
        if self.bundles == NULL:
            raise MemoryError(f"cannot allocate {self.n_bundles} bundles of features")
        self.n_bins = 0
        for i, members in enumerate(slices):
            bundle = &self.bundles[i]
            bundle.n_members = members.stop - members.start
            bundle.n_cells = 1
            for j in range(bundle.n_members):
                bundle.members[j] = self.features[members.start + j]
                bundle.n_codes[j] = n_codes[members.start + j]
                bundle.n_cells *= bundle.n_codes[j]
                bundle.n_bins += bundle.n_codes[j]
            bundle.first_bin = self.n_bins
            self.n_bins += bundle.n_bins
            n_joint += sums_jointly(bundle.n_members, bundle.n_cells, rows_per_era)
        return n_joint

    def __dealloc__(self):
        free(self.bundles)


cdef void join_codes(
    const X_BINNED_DTYPE_C [::1, :] X_binned,
    const bundle_struct * bundle,
    X_BINNED_DTYPE_C * joint,  # OUT, (n_samples,)
) noexcept nogil:
    """Number the combinations of bins; the first member's bin counts singly.

    In steps of few rows, whose codes stay in the cache from member to member.
    """
    cdef:
        Py_ssize_t n_samples = X_binned.shape[0]
        Py_ssize_t start, stop, i
        const X_BINNED_DTYPE_C * column
        uint8_t last, factor, code
        int j
    for start in range(0, n_samples, 4096):
        stop = min(start + 4096, n_samples)
        factor = 1
        for j in range(bundle.n_members):
            column = &X_binned[0, bundle.members[j]]
            # Missing values are numbered after the bins, and no bin is as large.
            last = bundle.n_codes[j] - 1
            if j == 0:
                for i in range(start, stop):
                    joint[i] = min(column[i], last)
            else:
                for i in range(start, stop):
                    code = min(column[i], last)
                    joint[i] = joint[i] + code * factor
            factor = factor * bundle.n_codes[j]
