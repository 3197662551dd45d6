"""Bundle numeric features with few bins, so that their rows are summed up jointly.

Three features of five bins have 125 combinations of codes, which fit a byte, and twelve
candidate splits. Masks mark the combinations on the left side of each split:

    combination    split of the first feature   of the second    of the third
    (2, 0, 4)      0  0  -1  -1                 -1 -1 -1 -1      0  0  0  0

So a row is added once, not three times.
"""

import math

from cython.parallel import prange

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import X_BINNED_DTYPE

from libc.stdint cimport uint8_t
from .._arrays cimport X_BINNED_DTYPE_C

from .rows cimport alloc_zeros
from .._criteria.formulas cimport LANES

MAX_CODES = 16


def bundle_features(n_codes, has_missing, is_categorical):
    """Return slices of neighbouring features, as bundles to be summed up jointly. A
    bundle's combinations of codes fit a byte. A feature's codes are its bins, and one
    more for missing values. A feature with more than MAX_CODES codes is a bundle of its
    own, and so is a categorical feature. So neighbours do not decide how a feature is
    summed up, and equal columns have equal gains.
    """
    bundles = []
    start, n_cells, n_lanes = 0, 1, 0
    for i, n in enumerate(n_codes):
        n_splits = n_numeric_splits(n, has_missing[i])
        if i > start and (
            max(n, n_codes[start]) > MAX_CODES
            or n_cells * n > MAX_BUNDLE_CELLS
            or n_lanes + n_splits >= MAX_SPLIT_LANES
            or is_categorical[i]
            or is_categorical[start]
            or i - start == MAX_MEMBERS
        ):
            bundles.append(slice(start, i))
            start, n_cells, n_lanes = i, 1, 0
        n_cells *= n
        n_lanes += n_splits
    if start < len(n_codes):
        bundles.append(slice(start, len(n_codes)))
    return bundles


def n_numeric_splits(n_codes, has_missing):
    """Return how many splits a numeric feature can have, in both of its orders."""
    return n_codes - 1 + (max(n_codes - 2, 0) if has_missing else 0)


def masks_of_splits(n_codes, has_missing):
    """Return the masks of a bundle, as an array of shape (n_cells, n_lanes). The first
    lanes are for the splits, in the order of `set_orders`, and the next lane is for all
    rows. A mask is -1 if a combination of codes goes to the left, else 0.
    """
    n_cells = math.prod(n_codes)
    columns = []
    n_before = 1
    for n, is_missing in zip(n_codes, has_missing, strict=True):
        codes = np.arange(n_cells) // n_before % n
        columns += [codes <= i for i in range(n - 1)]
        if is_missing:
            columns += [(codes <= i) | (codes == n - 1) for i in range(n - 2)]
        n_before *= n
    columns.append(np.ones(n_cells, dtype=bool))
    n_spare = LANES - 1 - (len(columns) - 1) % LANES
    columns += [np.zeros(n_cells, dtype=bool)] * n_spare
    return np.ascontiguousarray(-np.transpose(columns).astype(np.int64))


cdef class FeatureBundles:
    """The bundles of a tree's `features`, ascending, with the data of scikit-learn's
    `splitter`.

    A bundle of features with few bins has masks, which mark the combinations of codes
    on the left of each split, and a joint code for each row.
    """

    def __init__(self, splitter, features, int n_threads):
        cdef:
            const X_BINNED_DTYPE_C [::1, :] X_binned = splitter.X_binned
            X_BINNED_DTYPE_C [::1] joint
            bundle_struct * bundle
            int i
        self.features = features
        has_missing = np.asarray(splitter.has_missing_values, dtype=bool)[features]
        n_codes = np.asarray(splitter.n_bins_non_missing, dtype=np.intp)[features]
        self.owners = [X_binned]
        self._lay_out(
            n_codes + has_missing, has_missing,
            np.asarray(splitter.is_categorical, dtype=bool)[features],
        )
        for i in range(self.n_bundles):
            bundle = &self.bundles[i]
            if is_joint(bundle):
                joint = np.zeros(X_binned.shape[0], dtype=X_BINNED_DTYPE)
                self.owners.append(joint)
                bundle.codes = &joint[0]
            elif bundle.masks != NULL:
                bundle.codes = &X_binned[0, bundle.members[0]]
        for i in prange(
            self.n_bundles, schedule="static", nogil=True, num_threads=n_threads
        ):
            if is_joint(&self.bundles[i]):
                join_codes(
                    X_binned, &self.bundles[i],
                    <X_BINNED_DTYPE_C *> self.bundles[i].codes,
                )

    def _lay_out(self, n_codes, has_missing, is_categorical):
        """Make the bundles, and set the members, bins and masks of each."""
        cdef:
            bundle_struct * bundle
            int i
        slices = bundle_features(
            n_codes.tolist(), has_missing.tolist(), is_categorical.tolist()
        )
        self.n_bundles = len(slices)
        self.bundles = <bundle_struct *> alloc_zeros(
            self.owners, self.n_bundles * sizeof(bundle_struct)
        )
        self.all_have_masks = True
        self.masks = {}
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
            bundle.has_missing = has_missing[members].any()
            self.n_bins += bundle.n_bins
            has_few_codes = n_codes[members].max() <= MAX_CODES
            if has_few_codes and not is_categorical[members].any():
                add_masks(
                    self, bundle, n_codes[members].tolist(),
                    has_missing[members].tolist(),
                )
            self.all_have_masks &= bundle.masks != NULL


cdef add_masks(FeatureBundles self, bundle_struct * bundle, n_codes, has_missing):
    """Give a bundle its masks; bundles with the same numbers of codes share masks."""
    cdef:
        const long long [:, ::1] masks
        int j
    shape = (tuple(n_codes), tuple(has_missing))
    if shape not in self.masks:
        self.masks[shape] = masks_of_splits(*shape)
    masks = self.masks[shape]
    bundle.masks = &masks[0, 0]
    bundle.n_lanes = masks.shape[1]
    bundle.first_lane = self.n_lanes
    self.n_lanes += bundle.n_lanes
    for j in range(bundle.n_members):
        bundle.first_split[j] = bundle.n_splits
        bundle.n_splits += n_numeric_splits(bundle.n_codes[j], has_missing[j])


cdef inline bint is_joint(const bundle_struct * bundle) noexcept nogil:
    """Return whether the rows have joint codes for the features of a bundle."""
    return bundle.masks != NULL and (bundle.n_members > 1 or bundle.has_missing)


cdef void join_codes(
    const X_BINNED_DTYPE_C [::1, :] X_binned, const bundle_struct * bundle,
    X_BINNED_DTYPE_C * joint,  # OUT, (n_samples,), 0 at first
) noexcept nogil:
    """Set `joint` to each row's joint code; the first member varies fastest."""
    cdef:
        Py_ssize_t n_samples = X_binned.shape[0]
        Py_ssize_t start, stop, i
        const X_BINNED_DTYPE_C * column
        uint8_t last, factor
        int j
    for start in range(0, n_samples, 4096):
        stop = min(start + 4096, n_samples)
        factor = 1
        for j in range(bundle.n_members):
            column = &X_binned[0, bundle.members[j]]
            # The code of missing values comes after the bins; their bin is larger.
            last = bundle.n_codes[j] - 1
            for i in range(start, stop):
                joint[i] += <uint8_t> min(column[i], last) * factor
            factor = factor * bundle.n_codes[j]
