"""Hold the candidate splits of a node in memory.

The bins of a feature move to the left side in one order or two, with a candidate after
each move. Candidates of enough gain are listed: each gets a lane (its place in
vectors), is compared by era, and is then ranked. Candidates that share a pass over rows
form a column.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY
from libc.string cimport memset

import numpy as np

from ....criteria._custom import ListedSplits
from ..._criteria.objects import compare_listed
from ..lanes.instruction_sets import lane_module
from ..bundles cimport bundle_struct
from ..lanes.functions cimport batch_size
from ..rows cimport MAX_BINS, alloc_zeros
from ..._criteria.criterion cimport N_KEY_FIELDS
from ..._criteria.dispatch cimport CUSTOM
from ..._criteria.split_sums cimport add_absent_eras, are_sums, merge_sums, take_lane

cdef enum:
    FEW_COLUMNS = 4  # for which it does not pay to compare some first


cdef class CandidateSplits:
    """The candidate splits of one node after another, for the trees of a fit."""

    def __init__(self, EraRows rows):
        cdef int i
        self.owners = []
        self.rows = rows
        self.exchange = rows.exchange
        self.is_alone = self.exchange.is_alone
        self.functions = <const lane_functions *> PyCapsule_GetPointer(
            lane_module().functions, "lane_functions"
        )
        for i in range(MAX_BINS):
            self.in_turn[i] = i

    def use_threads(self, int n_threads):
        """Allocate scratch for `n_threads`, unless at least as many threads have it."""
        if n_threads > self.n_batches:
            self.batches = <char *> alloc_zeros(self.owners, n_threads * batch_size())
            self.n_batches = n_threads

    def use_bundles(self, FeatureBundles bundles, int n_fields):
        """Allocate memory for bundles' features, and for `n_fields` sums per split."""
        cdef Py_ssize_t n = len(bundles.features)
        if bundles is self.bundles:
            return
        self.bundles = None
        self.memory = []
        self.n_features = n
        self.features = <feature_bins *> alloc_zeros(
            self.memory, n * sizeof(feature_bins)
        )
        self.columns = <lane_column *> alloc_zeros(
            self.memory, 2 * n * sizeof(lane_column)
        )
        self.listed = <int *> alloc_zeros(self.memory, 2 * n * sizeof(int))
        self.changes = <int *> alloc_zeros(
            self.memory, (n // COLUMNS + 1) * COLUMNS * MAX_BINS * sizeof(int)
        )
        lay_out(self, bundles)
        make_lanes(self, n_fields)
        self.row_codes = NULL
        self.bundles = bundles

    cdef bint start_node(self, const uint8_t * is_active) noexcept nogil:
        """Set which features a node may use; return whether it may use any."""
        cdef:
            bint wants_any = False
            int i
        for i in range(self.n_features):
            self.features[i].is_active = is_active[self.features[i].feature_idx]
            self.features[i].largest_gain = INFINITY
            wants_any |= self.features[i].is_active
        return wants_any

    cdef void list_columns(self, int n_first) noexcept nogil:
        """List the columns (splits that share a pass over rows) that have listed
        splits, and set these splits' sums to 0. Unless columns are few, put the
        `n_first` columns of the largest gains in front.
        """
        cdef:
            lane_column * column
            int i, j, best
        self.n_listed = 0
        for i in range(self.n_columns):
            column = &self.columns[i]
            column.is_first = False
            if column.n_splits > 0:
                self.listed[self.n_listed] = i
                self.n_listed += 1
                self.n_taken[COLUMNS_OF_MASKS] += column.bundle != NULL
                self.n_taken[COLUMNS_OF_GROUPS] += column.bundle == NULL
                memset(
                    sums_of_column(self, column), 0,
                    column.n_lanes * self.n_fields * sizeof(double),
                )
        self.n_first = n_first if self.n_listed > FEW_COLUMNS else 0
        self.n_first = min(self.n_first, self.n_listed)
        for i in range(self.n_first):
            best = i
            for j in range(i + 1, self.n_listed):
                if (
                    self.columns[self.listed[j]].largest_gain
                    > self.columns[self.listed[best]].largest_gain
                ):
                    best = j
            self.listed[i], self.listed[best] = self.listed[best], self.listed[i]
            self.columns[self.listed[i]].is_first = True

    def active_bins(self):
        """Return a mask of all bins: True for the bins of active features."""
        mask = np.zeros(self.bundles.n_bins, dtype=bool)
        for i in range(self.n_features):
            first = self.features[i].first_bin
            mask[first : first + self.features[i].n_codes] = self.features[i].is_active
        return mask

    cdef code_rows(self):
        """Copy the codes of all rows, row by row, unless they are copied already."""
        cdef:
            Py_ssize_t n = self.tree.n_samples
            Py_ssize_t n_columns = (self.n_features // COLUMNS + 1) * COLUMNS
            X_BINNED_DTYPE_C * codes
            Py_ssize_t i, row
        if self.row_codes != NULL:
            return
        self.row_codes = <X_BINNED_DTYPE_C *> alloc_zeros(self.memory, n_columns * n)
        for i in range(self.n_features):
            codes = self.row_codes + i // COLUMNS * n * COLUMNS + i % COLUMNS
            for row in range(n):
                codes[row * COLUMNS] = self.tree.X_binned[
                    self.features[i].feature_idx * n + row
                ]

    cdef make_room(self):
        """Make room for the sums of each era on both sides of the listed splits."""
        cdef:
            Py_ssize_t size = 0
            lane_column * column
            int i
        for i in range(self.n_listed):
            column = &self.columns[self.listed[i]]
            column.first_kept = size
            size += 4 * self.rows.n_eras * <Py_ssize_t> column.n_lanes
        if self.kept is None or self.kept.shape[0] < size:
            self.kept = np.empty(max(size, 1))

    cdef ask_criterion(self, const criterion_struct * criterion):
        """Ask a Python criterion for the keys of listed splits, and store the keys."""
        cdef:
            const lane_column * column
            const double [:, ::1] keys
            int [:, ::1] places = np.empty((2, self.n_lanes), dtype=np.int32)
            double [::1] gains = np.empty(self.n_lanes)
            double * sums
            Py_ssize_t n = 0, j, k
            int i, lane
        for i in range(self.n_listed):
            column = &self.columns[self.listed[i]]
            sums = sums_of_column(self, column)  # the first ones: covered eras
            for lane in range(column.n_splits):
                if (
                    self.gains[column.first_lane + lane] > -INFINITY
                    and sums[lane] >= criterion.min_covered_eras
                ):
                    places[0, n] = self.listed[i]
                    places[1, n] = lane
                    gains[n] = self.gains[column.first_lane + lane]
                    n += 1
        if n == 0:
            return
        keys = self.custom._checked_keys(
            ListedSplits(
                sides_of_eras(self, places, n), np.asarray(gains)[:n], self.era_labels,
                self.node.pooled.sum_hessians, criterion.l2_regularization,
                np.asarray(self.min_samples), np.asarray(self.era_sizes),
                compare_listed, self.rows.impurities, self.rows.root_variance,
            )
        )
        for j in range(n):
            column = &self.columns[places[0, j]]
            sums = sums_of_column(self, column) + places[1, j]
            for k in range(N_KEY_FIELDS):
                sums[(criterion.first_field[<int> CUSTOM] + k) * column.n_lanes] = (
                    keys[k, j]
                )

    cdef merge_splits(self, const criterion_struct * criterion):
        """Add other processes' sums to the sums of the listed splits."""
        cdef:
            const lane_column * column
            double [:, :, ::1] of_all  # (n_processes, n_splits, n_fields)
            double [:, ::1] own
            double * sums
            Py_ssize_t n = 0, i, j, k
        for i in range(self.n_listed):
            n += self.columns[self.listed[i]].n_splits
        own = np.zeros((n + 1, criterion.n_fields))
        n = 0
        for i in range(self.n_listed):
            column = &self.columns[self.listed[i]]
            sums = sums_of_column(self, column)
            for j in range(column.n_splits):
                take_lane(criterion, sums, column.n_lanes, j, &own[n, 0])
                add_absent_eras(criterion, self.n_absent, &own[n, 0])
                n += 1
        self.n_absent = 0
        if are_sums(criterion):
            of_all = self.exchange.sum(np.asarray(own))[np.newaxis]
        else:
            of_all = self.exchange.gather(np.asarray(own))
        n = 0
        for i in range(self.n_listed):
            column = &self.columns[self.listed[i]]
            sums = sums_of_column(self, column)
            for j in range(column.n_splits):
                for k in range(1, of_all.shape[0]):
                    merge_sums(criterion, &of_all[0, n, 0], &of_all[k, n, 0])
                for k in range(criterion.n_fields):
                    sums[k * column.n_lanes + j] = of_all[0, n, k]
                n += 1


cdef sides_of_eras(
    CandidateSplits self,
    const int [:, ::1] places,  # columns of the listed splits, and their lanes there
    Py_ssize_t n,               # of them
):
    """Return the sums of each era on both sides of the listed splits: gradients, rows
    and hessians (unless all are 1). The shape is (2, n_planes, n_eras, n).
    """
    cdef:
        EraRows rows = self.rows
        Py_ssize_t n_planes = 2 + (rows.of_gradients.hessians != NULL)
        double [:, :, :, ::1] sides
        const lane_column * column
        const double * kept
        Py_ssize_t first = 0, stop = 0, plane, size, j, lane
        int i, era
    shape = (2, n_planes, rows.n_eras, n)
    sides = (np.zeros if rows.n_listed < rows.n_eras else np.empty)(shape)
    while first < n:
        column = &self.columns[places[0, first]]
        while stop < n and places[0, stop] == places[0, first]:
            stop += 1
        size = rows.n_eras * <Py_ssize_t> column.n_lanes
        for i in range(rows.n_blocks):
            era = rows.blocks[i].era
            kept = &self.kept[column.first_kept + era * column.n_lanes]
            for plane in range(n_planes):
                for j in range(first, stop):
                    lane = plane * size + places[1, j]
                    sides[0, plane, era, j] = kept[lane]
                    sides[1, plane, era, j] = (
                        kept[3 * size + places[1, j]] if plane == 0
                        else kept[plane * size + column.n_splits] - kept[lane]
                    )
        first = stop
    return np.asarray(sides)


cdef lay_out(CandidateSplits self, FeatureBundles bundles):
    """Set up the columns and lanes (places in vectors) of all features' splits."""
    cdef:
        const bundle_struct * bundle
        feature_bins * feature = self.features
        Py_ssize_t first_bin = 0
        int i, j
    self.n_columns = self.n_lanes = 0
    for i in range(bundles.n_bundles):
        bundle = &bundles.bundles[i]
        for j in range(bundle.n_members):
            feature.feature_idx = bundle.members[j]
            feature.n_codes = bundle.n_codes[j]
            feature.has_missing = feature.n_codes > <int> (
                self.tree.n_bins_non_missing[feature.feature_idx]
            )
            feature.is_categorical = self.tree.is_categorical[feature.feature_idx]
            feature.first_bin = first_bin
            first_bin += feature.n_codes
            if bundle.masks != NULL:
                feature.orders[0].column = feature.orders[1].column = self.n_columns
                feature.orders[0].first_lane = self.n_lanes + bundle.first_split[j]
                feature.orders[1].first_lane = (
                    feature.orders[0].first_lane + feature.n_codes - 1
                )
            else:
                add_columns(self, feature)
            feature += 1
        if bundle.masks != NULL:
            add_column(self, bundle.n_lanes).bundle = bundle


cdef lane_column * add_column(CandidateSplits self, int n_lanes) noexcept:
    cdef lane_column * column = &self.columns[self.n_columns]
    column.first_lane = self.n_lanes
    column.n_lanes = n_lanes
    self.n_columns += 1
    self.n_lanes += n_lanes
    return column


cdef void add_columns(CandidateSplits self, feature_bins * feature) noexcept:
    """Add a column for each possible order of the bins of a feature without masks."""
    cdef lane_column * column
    cdef int k
    feature.orders[1].column = self.n_columns  # in case of a single order
    for k in range(1 + (feature.has_missing or feature.is_categorical)):
        feature.orders[k].column = self.n_columns
        column = add_column(self, lanes_for(feature.n_codes - 1))
        column.codes = self.tree.X_binned + feature.feature_idx * self.tree.n_samples
        feature.orders[k].first_lane = column.first_lane


cdef make_lanes(CandidateSplits self, int n_fields):
    """Allocate the lanes of a node: sides, gains, places and sums over eras."""
    cdef Py_ssize_t n = self.n_lanes
    self.n_fields = n_fields
    self.sides = <double *> alloc_zeros(
        self.memory, (4 + n_fields) * n * sizeof(double)
    )
    self.gains = self.sides + 3 * n
    self.sums = self.gains + n
    self.places = <X_BINNED_DTYPE_C *> alloc_zeros(self.memory, n)
