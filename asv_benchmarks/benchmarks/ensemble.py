"""Fit and predict of the histogram gradient boosting regressor."""

from time import perf_counter

from .common import era_regressor, numerai_like, stock_regressor


class HistGradientBoosting:
    """Cost by split criterion, number of eras and number of bins."""

    param_names = ("split_criterion", "n_eras", "n_bins")
    params = (
        ["gain", "era", "directional", "time_robust", "invariant", "vrex"],
        [5, 100],
        [5, 64],
    )
    n_samples = 100_000
    n_features = 20
    timeout = 600

    def setup(self, split_criterion, n_eras, n_bins):
        self.X, self.y, self.eras = numerai_like(
            self.n_samples, self.n_features, n_eras, n_bins
        )
        self.estimator = self._fit(split_criterion)

    def _fit(self, split_criterion):
        return era_regressor(split_criterion).fit(self.X, self.y, eras=self.eras)

    def time_fit(self, split_criterion, n_eras, n_bins):
        self._fit(split_criterion)

    def peakmem_fit(self, split_criterion, n_eras, n_bins):
        self._fit(split_criterion)

    def time_predict(self, split_criterion, n_eras, n_bins):
        self.estimator.predict(self.X)

    def track_ratio_to_sklearn(self, split_criterion, n_eras, n_bins):
        """Best of five fits, over the best of five of scikit-learn's, interleaved."""
        ours, stock = [], []
        for _ in range(5):
            start = perf_counter()
            self._fit(split_criterion)
            middle = perf_counter()
            stock_regressor().fit(self.X, self.y)
            stock.append(perf_counter() - middle)
            ours.append(middle - start)
        return min(ours) / min(stock)

    track_ratio_to_sklearn.unit = "fit time / scikit-learn's"
