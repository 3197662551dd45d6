"""The best split of a node by a criterion that compares eras.

Everything that a split needs to know of eras stays behind this module: patched upstream
code hands over a node and takes a `SplitInfo` back. How the per-era histograms are
made and scanned is thus free to change.

For one node, one feature after another:

1. `era_histogram` sums the node's gradients and hessians by bin and era;
2. `era_scan` finds the feature's best split by these sums;
3. the best split over features becomes an `EraSplitInfo`.
"""

from cython.parallel import prange
from libc.math cimport ceil
from libc.stdlib cimport calloc, free

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.splitting import SplitInfo

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C,
    hist_struct,
)
from sklearn.utils._openmp_helpers cimport omp_get_thread_num

from sklearn_era.ensemble._hist_gradient_boosting.criteria cimport Criterion
from sklearn_era.ensemble._hist_gradient_boosting.era_histogram cimport (
    EraHistogramBuilder,
)
from sklearn_era.ensemble._hist_gradient_boosting.era_scan cimport (
    EraScanner,
    feature_split,
    is_better,
    node_struct,
)
from sklearn_era.ensemble._hist_gradient_boosting.node_formulas cimport node_loss


class EraSplitInfo(SplitInfo):
    """A `SplitInfo` whose node waits in the queue by the criterion's key.

    Attributes
    ----------
    priority : tuple of float
        `expansion`, `secondary` and `gain` of `split_rank`. The attribute `gain` stays
        the pooled gain, in scikit-learn's units.
    """

    def __init__(self, priority, **split_info):
        super().__init__(**split_info)
        self.priority = priority


cdef class EraSplitter:
    """Finds the best split of a node by a criterion that compares eras.

    One splitter serves a whole fit: `start_tree` points it at the gradients of a tree,
    `find_node_split` is then called once a node.

    Parameters
    ----------
    era_codes : ndarray of shape (n_samples,), dtype=int32
        The era of each training row, as 0..n_eras-1.
    n_eras : int
        Number of eras in training.
    criterion : Criterion
        What ranks the splits.
    positive_weights, weights : ndarray of shape (n_samples,), dtype=float32
        For the statistic RATIO: the weight of each row, or 0 if its target is 0, and
        the weight, both relative to the mean weight. Else None.
    """

    cdef:
        EraHistogramBuilder histogram_builder
        EraScanner scanner

        # Of the tree being grown, from scikit-learn's splitter.
        int n_features
        double feature_fraction_per_split
        object rng
        int n_threads

    def __init__(
        self,
        const int [::1] era_codes,
        int n_eras,
        Criterion criterion,
        const G_H_DTYPE_C [::1] positive_weights=None,
        const G_H_DTYPE_C [::1] weights=None,
    ):
        self.histogram_builder = EraHistogramBuilder(
            era_codes, n_eras, criterion, positive_weights, weights
        )
        self.scanner = EraScanner(self.histogram_builder, criterion)

    def start_tree(self, splitter, histogram_builder):
        """Take over the data and the constraints of a tree about to be grown.

        Parameters
        ----------
        splitter : Splitter
            scikit-learn's splitter of the tree.
        histogram_builder : HistogramBuilder
            scikit-learn's histogram builder of the tree, which holds its gradients.
        """
        self.histogram_builder.start_tree(splitter, histogram_builder)
        self.scanner.start_tree(splitter, histogram_builder.n_bins)
        self.n_features = splitter.n_features
        self.feature_fraction_per_split = splitter.feature_fraction_per_split
        self.rng = splitter.rng
        self.n_threads = splitter.n_threads

    def find_node_split(self, node):
        """Find the best admissible split of a node over all its allowed features.

        Parameters
        ----------
        node : TreeNode
            The node, with its row indices and its pooled histograms.

        Returns
        -------
        split_info : EraSplitInfo or None
            None where no split is admissible.
        """
        cdef:
            hist_struct [:, ::1] pooled = node.histograms
            node_struct c_node
            const int [::1] features
            int n_features
            int i
            feature_split * splits
            feature_split * best

        features = self._draw_features(node.allowed_features)
        if not self.histogram_builder.start_node(node.sample_indices):
            return None  # too few eras have rows to spare for both sides

        n_features = features.shape[0]
        c_node.n_samples = node.n_samples
        c_node.sum_gradients = node.sum_gradients
        c_node.sum_hessians = node.sum_hessians
        c_node.loss = node_loss(node.sum_gradients, node.value)
        c_node.lower_bound = node.children_lower_bound
        c_node.upper_bound = node.children_upper_bound
        c_node.eras.n_eras = self.histogram_builder.n_eras
        c_node.eras.impurities = &self.histogram_builder.impurities[0]
        c_node.eras.era_sizes = &self.histogram_builder.era_sizes[0]
        c_node.eras.sum_hessians = node.sum_hessians
        c_node.eras.gradient_variance = self.histogram_builder.gradient_variance

        splits = <feature_split *> calloc(n_features, sizeof(feature_split))
        if splits == NULL:
            raise MemoryError(f"cannot allocate the splits of {n_features} features")
        try:
            # A feature is scanned by one thread from beginning to end, so that the
            # result does not depend on the number of threads.
            for i in prange(
                n_features, schedule="static", nogil=True, num_threads=self.n_threads
            ):
                self.scanner.scan_feature(
                    omp_get_thread_num(), features[i], pooled, &c_node, &splits[i]
                )
            best = &splits[0]
            for i in range(1, n_features):
                if is_better(&splits[i], best):
                    best = &splits[i]
            return self._make_split_info(best, &c_node) if best.found else None
        finally:
            free(splits)

    cdef _draw_features(self, allowed_features):
        """Features to look at, ascending: those allowed, less the ones drawn out.

        The draw is scikit-learn's own, so that `max_features` means the same and uses
        the generator in the same way.
        """
        if allowed_features is None:
            features = np.arange(self.n_features, dtype=np.int32)
        else:
            features = np.asarray(allowed_features, dtype=np.int32)
        if self.feature_fraction_per_split < 1.0:
            n_drawn = max(1, int(ceil(self.feature_fraction_per_split * features.size)))
            mask = np.full(features.size, False)
            mask[:n_drawn] = True
            self.rng.shuffle(mask)
            features = features[mask]
        return np.sort(features)

    cdef _make_split_info(self, const feature_split * split, const node_struct * node):
        cdef:
            double sum_gradients_right = node.sum_gradients - split.sum_gradients_left
            double sum_hessians_right = node.sum_hessians - split.sum_hessians_left
            int i

        bitset = None
        if split.is_categorical:
            bitset = np.empty(8, dtype=np.uint32)
            for i in range(8):
                bitset[i] = split.left_cat_bitset[i]
        return EraSplitInfo(
            priority=(split.rank.expansion, split.rank.secondary, split.rank.gain),
            gain=split.rank.gain,
            feature_idx=split.feature_idx,
            bin_idx=split.bin_idx,
            missing_go_to_left=split.missing_go_to_left,
            sum_gradient_left=split.sum_gradients_left,
            sum_hessian_left=split.sum_hessians_left,
            sum_gradient_right=sum_gradients_right,
            sum_hessian_right=sum_hessians_right,
            n_samples_left=split.n_samples_left,
            n_samples_right=node.n_samples - split.n_samples_left,
            value_left=self.scanner.child_value(
                node, split.sum_gradients_left, split.sum_hessians_left
            ),
            value_right=self.scanner.child_value(
                node, sum_gradients_right, sum_hessians_right
            ),
            is_categorical=split.is_categorical,
            left_cat_bitset=bitset,
        )
