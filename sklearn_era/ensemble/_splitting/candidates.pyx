"""The scan of a node's features: every split, ranked by a criterion over eras.

Bins move to the left side one by one, in the feature's order. Some eras at a time, one
in each lane of a vector, add what they say of all the candidate splits of a bundle of
features to the sums of these. When all eras have, the sums rank the splits.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    MonotonicConstraint,
    X_BINNED_DTYPE_C,
    hist_struct,
)
from sklearn.utils._bitset cimport in_bitset, init_bitset, set_bitset

from .lanes.instruction_sets import lane_module

from .categories cimport order_categories
from .._criteria.criterion cimport Criterion
from .lanes.table cimport add_pooled_lanes, clear_lanes
from .bundles cimport FeatureBundles, bundle_struct
from .._criteria.node_formulas cimport bounded, node_value, pooled_gain
from .._criteria.ranking cimport rank_split
from .._criteria.split_sums cimport (
    add_absent_eras,
    add_lanes,
    split_sums,
    sum_differences,
)


cdef class EraScanner:
    """Scans the features of one node after another, for the trees of a fit.

    Parameters
    ----------
    criterion : Criterion
        What ranks the splits.
    """

    def __init__(self, Criterion criterion):
        self.criterion = criterion.params
        self.lanes = <const lane_functions *> PyCapsule_GetPointer(
            lane_module().functions, "lane_functions"
        )

    def __dealloc__(self):
        self._free()

    cdef void _free(self):
        free(self.scans)
        free(self.pooled)
        free(self.splits)
        self.scans = NULL
        self.pooled = NULL
        self.splits = NULL

    def start_tree(self, splitter):
        """Take over the constraints of a tree about to be grown.

        Parameters
        ----------
        splitter : Splitter
            scikit-learn's splitter of the tree.
        """
        self.n_bins_non_missing = splitter.n_bins_non_missing
        self.has_missing_values = splitter.has_missing_values
        self.is_categorical = splitter.is_categorical
        self.monotonic_cst = splitter.monotonic_cst
        self.missing_values_bin_idx = splitter.missing_values_bin_idx
        self.min_samples_leaf = splitter.min_samples_leaf
        self.min_hessian_to_split = splitter.min_hessian_to_split
        self.criterion.l2_regularization = splitter.l2_regularization
        self.criterion.min_gain = splitter.min_gain_to_split

    def use_bundles(self, FeatureBundles bundles):
        """Make room for the candidate splits of some bundles of features."""
        cdef:
            Py_ssize_t n_splits = 0
            hist_struct * pooled
            split_sums * splits
            int i
        if bundles is self.bundles:
            return
        self._free()
        self.bundles = bundles
        for i in range(bundles.n_bundles):
            n_splits += self.most_splits(&bundles.bundles[i])
        self.scans = <bundle_scan *> calloc(
            max(bundles.n_bundles, 1), sizeof(bundle_scan)
        )
        self.pooled = <hist_struct *> calloc(
            max(bundles.n_bins, 1), sizeof(hist_struct)
        )
        self.splits = <split_sums *> calloc(max(n_splits, 1), sizeof(split_sums))
        if self.scans == NULL or self.pooled == NULL or self.splits == NULL:
            self.bundles = None
            raise MemoryError(
                f"cannot allocate {n_splits * sizeof(split_sums)} bytes for the "
                f"candidate splits of {len(bundles.features)} features"
            )
        pooled = self.pooled
        splits = self.splits
        for i in range(bundles.n_bundles):
            self.scans[i].pooled = pooled
            self.scans[i].splits = splits
            pooled += bundles.bundles[i].n_bins
            splits += self.most_splits(&bundles.bundles[i])

    cdef int most_splits(self, const bundle_struct * bundle) noexcept nogil:
        """Room for the candidate splits of a bundle, be they in one order or in two.
        """
        cdef:
            int n_splits = 0
            int feature_idx, j
        for j in range(bundle.n_members):
            feature_idx = bundle.members[j]
            n_splits += bundle.n_codes[j] * (
                1 + (
                    self.is_categorical[feature_idx]
                    or self.has_missing_values[feature_idx]
                )
            )
        return n_splits

    cdef bint start_bundle(
        self,
        int bundle_idx,
        const uint8_t * is_wanted,  # IN, shape (n_features,)
        bint is_pooled,             # whether all features are pooled before the scan
        bint is_touched,            # whether sums are to be differences
    ) noexcept nogil:
        """Begin the scan of a node for the features of a bundle that are wanted.

        Returns whether any of them is to be pooled before the scan.
        """
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_scan * scan = &self.scans[bundle_idx]
            feature_scan * feature
            int first_bin = 0
            int j

        scan.n_splits = 0
        scan.sums_differences = is_touched
        memset(scan.pooled, 0, bundle.n_bins * sizeof(hist_struct))
        for j in range(bundle.n_members):
            feature = &scan.features[j]
            feature.feature_idx = bundle.members[j]
            feature.first_bin = first_bin
            feature.is_wanted = is_wanted[feature.feature_idx]
            feature.is_pooled = (
                is_pooled or self.is_categorical[feature.feature_idx]
            )
            feature.n_orders = 0
            first_bin += bundle.n_codes[j]
        return self.needs_pooling(bundle_idx)

    cdef bint needs_pooling(self, int bundle_idx) noexcept nogil:
        """Whether a feature of a bundle is to be pooled before the scan."""
        cdef int j
        for j in range(self.bundles.bundles[bundle_idx].n_members):
            if (
                self.scans[bundle_idx].features[j].is_wanted
                and self.scans[bundle_idx].features[j].is_pooled
            ):
                return True
        return False

    cdef void order_bins(
        self, int bundle_idx, const node_struct * node
    ) noexcept nogil:
        """Settle which bins move to the left in which order, and clear the sums."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_scan * scan = &self.scans[bundle_idx]
            feature_scan * feature
            scan_order * order
            int n_bins, n_used
            bint has_missing
            int i, j

        for j in range(bundle.n_members):
            feature = &scan.features[j]
            if not feature.is_wanted:
                continue
            n_bins = self.n_bins_non_missing[feature.feature_idx]
            has_missing = bundle.n_codes[j] > n_bins
            order = &feature.orders[0]
            if self.is_categorical[feature.feature_idx]:
                # Categories are taken from both ends towards the middle, as in
                # scikit-learn: those with little support stay on the right side, which
                # always has at least half of the others.
                n_used = order_categories(
                    scan.pooled + feature.first_bin,
                    n_bins,
                    has_missing,
                    node.n_samples / node.sum_hessians,
                    order.bins,
                )
                if n_used <= 1:
                    continue
                n_bins += has_missing
                self.set_order(scan, feature, n_bins, 0, (n_used + 1) // 2, False)
                feature.orders[1] = order[0]
                order = &feature.orders[1]
                for i in range(n_used // 2):
                    order.bins[i], order.bins[n_used - 1 - i] = (
                        order.bins[n_used - 1 - i], order.bins[i]
                    )
                self.set_order(scan, feature, n_bins, 0, (n_used + 1) // 2 - 1, False)
                continue

            # Missing values to the right. The last bin stays on the right side too,
            # unless the missing values are there to keep it from being empty.
            for i in range(bundle.n_codes[j]):
                order.bins[i] = i
            n_bins += has_missing
            self.set_order(scan, feature, n_bins, 0, n_bins - 1, False)
            if has_missing:
                # Missing values to the left, along with one bin at least: they alone on
                # one side is what the last candidate above was.
                order = &feature.orders[1]
                order.bins[0] = n_bins - 1
                for i in range(n_bins - 1):
                    order.bins[i + 1] = i
                self.set_order(scan, feature, n_bins, 1, n_bins - 1, True)

        memset(scan.splits, 0, scan.n_splits * sizeof(split_sums))

    cdef void set_order(
        self,
        bundle_scan * scan,
        feature_scan * feature,
        int n_bins,
        int first,
        int stop,
        bint missing_go_to_left,
    ) noexcept nogil:
        cdef scan_order * order = &feature.orders[feature.n_orders]
        order.n_bins = n_bins
        order.first = first
        order.stop = stop
        order.first_split = scan.n_splits
        order.missing_go_to_left = missing_go_to_left
        feature.n_orders += 1
        scan.n_splits += max(stop - first, 0)

    cdef void start_lanes(self, int bundle_idx, era_table * table) noexcept nogil:
        """Begin with some eras of a node."""
        cdef int n_splits = 0
        if self.criterion.traits.keeps_lane_sums:
            n_splits = self.scans[bundle_idx].n_splits
        clear_lanes(table, self.bundles.bundles[bundle_idx].n_bins, n_splits)

    cdef void end_lanes(
        self, int bundle_idx, const era_table * table, bint pools
    ) noexcept nogil:
        """Add up the lanes of the eras since the begin.

        With `pools`, for the features only that are pooled before the scan.
        """
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_scan * scan = &self.scans[bundle_idx]
            feature_scan * feature
            int first, i, j
        for j in range(bundle.n_members):
            feature = &scan.features[j]
            if feature.is_wanted and feature.is_pooled == pools:
                first = feature.first_bin
                for i in range(first, first + bundle.n_codes[j]):
                    add_pooled_lanes(table, i, &scan.pooled[i])
        if self.criterion.traits.keeps_lane_sums and not pools:
            for i in range(scan.n_splits):
                add_lanes(&self.criterion, &table.lanes[i], &scan.splits[i])

    cdef void scan_eras(
        self, int bundle_idx, const eras_struct * eras, era_table * table
    ) noexcept nogil:
        """Add what the eras of a table say of every candidate split."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_scan * scan = &self.scans[bundle_idx]
            feature_scan * feature
            int i, j
        for j in range(bundle.n_members):
            feature = &scan.features[j]
            if not feature.is_wanted:
                continue
            for i in range(feature.n_orders):
                self.lanes.scan_order(
                    &self.criterion, &feature.orders[i], feature.first_bin, eras, table,
                    scan.splits,
                )

    cdef void scan_touched_bins(
        self,
        int bundle_idx,
        const eras_struct * eras,
        const bin_sums * sums,           # IN, of the era's touched bins
        double unit,                     # of its integers
        const unsigned char * touched,   # IN, (n_touched,), ascending
        int n_touched,
        touched_splits * splits,         # scratch
    ) noexcept nogil:
        """As `scan_eras`, of an era and a bundle of one feature, if few bins have rows.

        What an era says of a split does not change from one of its bins to the next.
        So it is added where it changes, as the difference from the split before.
        """
        cdef:
            bundle_scan * scan = &self.scans[bundle_idx]
            split_sums * split
            double gain = 0.0
            double direction = 0.0
            double covered = 0.0
            int i

        pool_touched_bins(scan.pooled, sums, unit, touched, n_touched)
        move_touched_bins(sums, unit, n_touched, splits)
        self.lanes.compare(&self.criterion, eras, splits, n_touched - 1)
        splits.gains[n_touched - 1] = 0.0
        splits.directions[n_touched - 1] = 0.0
        splits.covered[n_touched - 1] = 0.0
        for i in range(n_touched):
            if touched[i] >= scan.n_splits:
                break  # the last bin of the feature, after which there is no split
            split = &scan.splits[touched[i]]
            split.gains += splits.gains[i] - gain
            split.directions += splits.directions[i] - direction
            split.n_covered += splits.covered[i] - covered
            split.n_gains += (splits.gains[i] != 0.0) - (gain != 0.0)
            gain = splits.gains[i]
            direction = splits.directions[i]
            covered = splits.covered[i]

    cdef void find_best(
        self,
        int bundle_idx,
        const node_struct * node,
        int n_absent,             # eras without a row in the node
        feature_split * best,     # OUT, of the bundle
    ) noexcept nogil:
        """Rank the splits of a bundle, when all eras have been added."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_scan * scan = &self.scans[bundle_idx]
            int i, j
        best.found = False
        if scan.sums_differences:
            sum_differences(scan.splits, scan.n_splits)
        for i in range(scan.n_splits):
            add_absent_eras(&self.criterion, n_absent, &scan.splits[i])
        for j in range(bundle.n_members):
            if scan.features[j].is_wanted:
                for i in range(scan.features[j].n_orders):
                    self.rank_order(
                        scan, &scan.features[j], &scan.features[j].orders[i], node, best
                    )

    cdef void rank_order(
        self,
        const bundle_scan * scan,
        const feature_scan * feature,
        const scan_order * order,
        const node_struct * node,
        feature_split * best,     # IN and OUT
    ) noexcept nogil:
        """Rank the splits of an order of bins.

        Every candidate passes scikit-learn's own conditions on the pooled sides, a
        monotonic constraint among them, before its eras are looked at.
        """
        cdef:
            signed char monotonic_cst = self.monotonic_cst[feature.feature_idx]
            const hist_struct * moved
            unsigned int n_samples_right
            double sum_gradients_right, sum_hessians_right
            double value_left, value_right, gain
            feature_split split
            int i

        split.found = True
        split.feature_idx = feature.feature_idx
        split.is_categorical = self.is_categorical[feature.feature_idx]
        split.missing_go_to_left = order.missing_go_to_left
        init_bitset(split.left_cat_bitset)
        split.n_samples_left = 0
        split.sum_gradients_left = 0.0
        split.sum_hessians_left = 0.0

        for i in range(order.stop):
            moved = &scan.pooled[feature.first_bin + order.bins[i]]
            split.n_samples_left += moved.count
            split.sum_gradients_left += moved.sum_gradients
            split.sum_hessians_left += moved.sum_hessians
            n_samples_right = node.n_samples - split.n_samples_left
            sum_gradients_right = node.sum_gradients - split.sum_gradients_left
            sum_hessians_right = node.sum_hessians - split.sum_hessians_left
            if (
                i < order.first
                or split.n_samples_left < self.min_samples_leaf
                or split.sum_hessians_left < self.min_hessian_to_split
            ):
                continue
            if (
                n_samples_right < self.min_samples_leaf
                or sum_hessians_right < self.min_hessian_to_split
            ):
                break  # the right side only loses rows from here on

            value_left = self.child_value(
                node, split.sum_gradients_left, split.sum_hessians_left
            )
            value_right = self.child_value(
                node, sum_gradients_right, sum_hessians_right
            )
            if (
                monotonic_cst == MonotonicConstraint.POS and value_left > value_right
                or monotonic_cst == MonotonicConstraint.NEG and value_left < value_right
            ):
                continue
            gain = pooled_gain(
                node.loss,
                split.sum_gradients_left, value_left,
                sum_gradients_right, value_right,
            )
            if not rank_split(
                &self.criterion,
                &node.eras,
                &scan.splits[order.first_split + i - order.first],
                gain,
                &split.rank,
            ):
                continue
            split.bin_idx = 0 if split.is_categorical else order.bins[i]
            if is_better(&split, best):
                best[0] = split
                if split.is_categorical:
                    self.store_categories(order.bins, i + 1, best)

    cdef double child_value(
        self, const node_struct * node, double sum_gradients, double sum_hessians
    ) noexcept nogil:
        """Value of a child of `node`, within the bounds of monotonic constraints."""
        return bounded(
            node_value(sum_gradients, sum_hessians, self.criterion.l2_regularization),
            node.lower_bound,
            node.upper_bound,
        )

    cdef void store_categories(
        self, const X_BINNED_DTYPE_C * bins, int n_left, feature_split * split
    ) noexcept nogil:
        cdef:
            int n_bins = self.n_bins_non_missing[split.feature_idx]
            int i
        init_bitset(split.left_cat_bitset)
        for i in range(n_left):
            set_bitset(
                split.left_cat_bitset,
                bins[i] if bins[i] < n_bins else self.missing_values_bin_idx,
            )
        split.missing_go_to_left = (
            self.has_missing_values[split.feature_idx]
            and in_bitset(split.left_cat_bitset, self.missing_values_bin_idx)
        )


cdef inline void pool_touched_bins(
    hist_struct * pooled,   # IN and OUT
    const bin_sums * sums,
    double unit,
    const unsigned char * touched,
    int n_touched,
) noexcept nogil:
    cdef:
        hist_struct * bin
        int i
    for i in range(n_touched):
        bin = &pooled[touched[i]]
        bin.sum_gradients += bin_gradients(sums, unit, i)
        bin.sum_hessians += bin_hessians(sums, i)
        bin.count += sums.counts[i]


cdef inline void move_touched_bins(
    const bin_sums * sums, double unit, int n_touched, touched_splits * splits  # OUT
) noexcept nogil:
    """Both sides of the split after each touched bin but the last."""
    cdef:
        double gradients = 0.0
        double hessians = 0.0
        double count = 0.0
        int i
    for i in range(n_touched - 1):
        gradients += bin_gradients(sums, unit, i)
        hessians += bin_hessians(sums, i)
        count += sums.counts[i]
        splits.left_gradients[i] = gradients
        splits.left_hessians[i] = hessians
        splits.left_counts[i] = count
    gradients = 0.0
    hessians = 0.0
    count = 0.0
    for i in range(n_touched - 2, -1, -1):
        gradients += bin_gradients(sums, unit, i + 1)
        hessians += bin_hessians(sums, i + 1)
        count += sums.counts[i + 1]
        splits.right_gradients[i] = gradients
        splits.right_hessians[i] = hessians
        splits.right_counts[i] = count


cdef inline double bin_gradients(
    const bin_sums * sums, double unit, int bin
) noexcept nogil:
    return unit * sums.integers[bin] if sums.integers != NULL else sums.gradients[bin]


cdef inline double bin_hessians(const bin_sums * sums, int bin) noexcept nogil:
    return sums.counts[bin] if sums.integers != NULL else sums.hessians[bin]
