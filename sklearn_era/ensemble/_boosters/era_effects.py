"""An intercept for each era, estimated along with the trees, and its forecast."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn._loss.loss import HalfBinomialLoss, HalfMultinomialLoss, HalfPoissonLoss
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from ..._era_labels import find
from ..._eras import Array, EncodedEras
from ...effects import Intercepts, intercepts_of
from .._exchange import ALONE, Exchange
from .leaf_shrinkage import cell_values, empirical_bayes_factors
from .level_forecast import follow_levels, forecast_levels

# Attributes of a fit with intercepts: the labels, the intercept of each era and output,
# the forecast, which is part of `_baseline_prediction`, and their inputs: values and
# variances of eras, the columns that are constant within them with their bins, and the
# paths of levels.
FITTED_INTERCEPTS = (
    "_era_labels", "_era_intercepts", "_era_forecast", "_era_series", "_era_columns",
    "_era_patterns", "_era_level",
)  # fmt: skip
# Losses whose gradients have the variance of their hessians.
_OF_KNOWN_VARIANCE = (HalfBinomialLoss, HalfMultinomialLoss, HalfPoissonLoss)
# Numbers of trees after which levels are estimated.
_ESTIMATED_AT = frozenset([0, *(4**k for k in range(1, 16))])


class EraIntercepts:
    """The intercepts of all eras in a fit, the same in all processes. Raw predictions
    of training rows include those of their eras, and others the forecast.
    """

    def __init__(
        self, estimator: Any, eras: EncodedEras, is_warm: bool, exchange: Exchange
    ):
        effects = intercepts_of(estimator)
        assert effects is not None
        self._effects, self._eras, self._exchange = effects, eras, exchange
        shape = (eras.labels.size, estimator.n_trees_per_iteration_)
        self._in_raw = np.zeros(shape)  # the part of the training rows' raw predictions
        if is_warm and hasattr(estimator, "_era_labels"):
            _drop_held_out(estimator, eras.labels)
            self._in_raw += estimator._era_forecast
        else:
            estimator._era_labels = eras.labels
            estimator._era_intercepts = self._in_raw
            estimator._era_forecast = np.zeros(shape[1])
            estimator._era_series = np.stack([self._in_raw, np.full(shape, np.nan)])
        if effects._estimates:
            patterns = estimator._fit_state.era_patterns
            estimator._era_columns, estimator._era_patterns = patterns
        else:
            for name in ("_era_columns", "_era_patterns", "_era_level"):
                vars(estimator).pop(name, None)

    def update(
        self, estimator: Any, y: Array, raw: Array, sample_weight: Array | None,
        raw_val: Array | None,
    ) -> None:  # fmt: skip
        """Update an estimator's intercepts, and all predictions that include them."""
        if self._eras.labels.size == 1:
            return
        self._move(raw, estimator._era_intercepts)
        series = values_of_eras(
            estimator._loss, self._eras, y, raw, sample_weight, self._in_raw,
            self._exchange,
        )  # fmt: skip
        is_estimated = len(estimator._predictors) in _ESTIMATED_AT
        step = settle_intercepts(estimator, self._effects, series, is_estimated)
        self._move(raw, estimator._era_intercepts)
        if raw_val is not None:
            raw_val += step

    def _move(self, raw: Array, intercepts: Array) -> None:
        step = intercepts - self._in_raw
        if step.any():
            raw += step[self._eras.codes]
        self._in_raw = intercepts


def settle_intercepts(
    estimator: Any, effects: Intercepts, series: Array, is_estimated: bool
) -> Array:
    """Set the intercepts and their forecast; return the step of the forecast."""
    if effects._estimates:
        groups = np.unique(estimator._era_patterns, axis=0, return_inverse=True)[1]
        paths = None if is_estimated else getattr(estimator, "_era_level", None)
        intercepts, paths = follow_levels(
            series[0], series[1], groups.reshape(-1), paths
        )
        estimator._era_level = paths
        forecast = forecast_levels(paths, np.array([1]))[0]
    else:
        intercepts = _shrink(series[0], series[1])
        has_weight = ~np.isnan(series[1]).all(axis=1)
        forecast = effects._forecast_weights(has_weight) @ intercepts
    step = forecast - estimator._era_forecast
    estimator._era_series, estimator._era_intercepts = series, intercepts
    estimator._era_forecast = forecast
    # Not in place: a callback may have kept the earlier state.
    estimator._baseline_prediction = estimator._baseline_prediction + step
    return step


def _drop_held_out(estimator: Any, labels: NDArray[Any]) -> None:
    """Make a warm start drop the eras that early stopping held out or holds out."""
    n_eras, known = labels.size, estimator._era_labels
    held_out = getattr(estimator, "validation_eras_", known[:0])
    is_same = np.array_equal(find(known, labels), np.arange(n_eras))
    if not (is_same and np.isin(known[n_eras:], held_out).all()):
        raise ValueError(
            f"eras has {n_eras} eras to train on that are not the {known.size} whose "
            "intercepts warm_start=True keeps; pass the same eras, or set "
            "warm_start=False."
        )
    estimator._era_labels = known[:n_eras]
    estimator._era_intercepts = estimator._era_intercepts[:n_eras]
    estimator._era_series = estimator._era_series[:, :n_eras]


def begin_intercepts(
    estimator: Any, eras: EncodedEras | None, is_warm: bool, exchange: Exchange
) -> EraIntercepts | None:
    """Return the intercepts that a fit updates, or None; drop earlier ones."""
    if not is_warm:
        for name in FITTED_INTERCEPTS:
            estimator.__dict__.pop(name, None)
    if estimator.era_effects is not None:
        assert eras is not None  # by `_check_eras`
        return EraIntercepts(estimator, eras, is_warm, exchange)
    if hasattr(estimator, "_era_labels"):
        raise ValueError(
            "era_effects=None leaves out the intercepts of eras beside which the trees "
            "that warm_start=True keeps were grown; set era_effects='intercept', or "
            "warm_start=False."
        )
    return None


def values_of_eras(
    loss: Any, eras: EncodedEras, y: Array, raw: Array, sample_weight: Array | None,
    intercepts: Array, exchange: Exchange = ALONE,
) -> Array:  # fmt: skip
    """Return the intercepts after a Newton step, ``b_j - G_j / H_j``, and their
    variances ``s2 / H_j``, NaN for eras without weight: (2, n_eras, n_outputs).

    See `leaf_shrinkage`. For a loss without a useful hessian, the step is a line search
    of its residuals, and s2 is that of the asymmetric Laplace law whose likelihood is
    the loss: ``b^2 / mean(g^2)``, with b the mean loss and g its gradients. Trees fit
    their own rows, which makes s2 too small. For a log loss and a Poisson loss it is
    known, the weight of a row, and steps are at most 1: an era with a single class has
    no finite optimum.
    """
    is_known = isinstance(loss, _OF_KNOWN_VARIANCE)
    least_s2 = 1.0
    if sample_weight is not None:
        weights = np.count_nonzero(sample_weight), np.sum(sample_weight)
        n_rows, total = exchange.sum_of(*weights)
        least_s2 = total / n_rows
    n_eras = eras.labels.size
    found = loss.gradient_hessian(
        y, raw, sample_weight, n_threads=_openmp_effective_n_threads()
    )
    g, h = (np.reshape(x, raw.shape) for x in found)
    series = np.empty((2, *intercepts.shape))
    for k in range(raw.shape[1]):
        step, H, s2 = cell_values(eras.codes, n_eras, g[:, k], h[:, k], exchange)
        # Both are 0 for eras of other processes.
        step, H = exchange.sum(np.stack([step, H]))
        if is_known:
            step, s2 = np.clip(step, -1.0, 1.0), max(s2, least_s2)
        elif exchange.sum_of(np.count_nonzero(h[:, k])) == ((H > 0).sum(),):
            s2 = np.inf  # one row per era: the variance within eras is unknown
        if not loss.differentiable:
            step = _line_search(loss, eras, y - raw[:, k], sample_weight)
            at = raw[:, k] + step[eras.codes]
            slope = loss.gradient(y, at)
            mean_loss = loss(y, at, sample_weight=sample_weight)
            s2 = mean_loss**2 / np.average(slope**2, weights=sample_weight)
        series[0, :, k] = intercepts[:, k] + step
        series[1, :, k] = np.divide(s2, H, out=np.full(n_eras, np.nan), where=H > 0)
    return series


def _shrink(values: Array, variances: Array) -> Array:
    """Shrink the values of eras towards 0, as the values of leaves."""
    shrunk = np.zeros(values.shape)
    for k in range(values.shape[1]):
        known = ~np.isnan(variances[:, k])
        factors = empirical_bayes_factors(values[known, k], variances[known, k])
        shrunk[known, k] = factors * values[known, k]
    return shrunk


def constant_columns(
    X_binned: NDArray[np.uint8], eras: EncodedEras, exchange: Exchange = ALONE
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Return the columns that are constant within eras, and their bins in each."""
    order = np.arange(eras.codes.size) if eras.order is None else eras.order
    varies = np.zeros(X_binned.shape[1], dtype=np.uint8)
    for rows in eras.rows:
        if rows.size > 1 and (columns := np.flatnonzero(varies == 0)).size:
            bins = X_binned[np.ix_(rows, columns)]
            varies[columns] = (bins != bins[0]).any(axis=0)
    (largest,) = exchange.max_of(eras.counts.max(initial=0))
    is_constant = (exchange.max(varies) == 0) & (largest > 1)
    columns = np.flatnonzero(is_constant)
    patterns = np.zeros((eras.labels.size, columns.size), dtype=np.uint8)
    present = np.flatnonzero(eras.counts)
    patterns[present] = X_binned[np.ix_(order[eras.offsets[present]], columns)]
    return columns, exchange.max(patterns)


def _line_search(
    loss: Any, eras: EncodedEras, residuals: Array, sample_weight: Array | None
) -> Array:
    """Return the best constant for the residuals of each era; 0 without weight."""
    steps = np.zeros(eras.labels.size)
    for j, rows in enumerate(eras.rows):
        weights = None if sample_weight is None else sample_weight[rows]
        if weights is None or weights.any():
            steps[j] = loss.fit_intercept_only(residuals[rows], weights).item()
    return steps
