"""An intercept of each era, fitted along with the trees, and its forecast."""

import numbers
import re
from difflib import SequenceMatcher, get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn._loss.loss import HalfBinomialLoss, HalfMultinomialLoss, HalfPoissonLoss
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import check_is_fitted

from ..._era_arguments import take_era_column
from ..._eras import EncodedEras, read_eras
from ..._warnings import warn_user
from ...effects import Intercepts, intercepts_of
from .._exchange import ALONE, Exchange
from .leaf_shrinkage import cell_values, empirical_bayes_factors

# What a fit with intercepts leaves on the estimator: the labels, an intercept of each
# era and output, and the forecast, which is in `_baseline_prediction`.
FITTED_INTERCEPTS = ("_era_labels", "_era_intercepts", "_era_forecast")

# Texts are close from this ratio of `difflib` on: a letter amiss of four or more. Each
# is compared with all known ones, and so only some are.
_CLOSE = 0.85
_MOST_GUESSED = 50


class EraIntercepts:
    """The intercepts of all eras in a fit, alike in all processes. Raw predictions of
    training rows have their own era's intercept in them, all others the forecast.
    """

    def __init__(
        self, estimator: Any, eras: EncodedEras, is_warm: bool, exchange: Exchange
    ):
        effects = intercepts_of(estimator)
        assert effects is not None
        self._effects = effects
        self._eras = eras
        self._exchange = exchange
        shape = (eras.labels.size, estimator.n_trees_per_iteration_)
        self._in_raw = np.zeros(shape)  # what the training rows' raw predictions have
        if is_warm and hasattr(estimator, "_era_labels"):
            if not np.array_equal(eras.labels, estimator._era_labels):
                raise ValueError(
                    f"eras has {eras.labels.size} eras to train on that are not the "
                    f"{estimator._era_labels.size} whose intercepts warm_start=True "
                    "keeps; pass the same eras, or set warm_start=False."
                )
            self._in_raw += estimator._era_forecast
        else:
            if self._effects._is_ordered:
                _warn_of_forecast(estimator, self._effects, eras.labels)
            estimator._era_labels = eras.labels
            estimator._era_intercepts = self._in_raw
            estimator._era_forecast = np.zeros(shape[1])
        self._forecast_weights: NDArray[np.float64] | None = None

    def update(
        self,
        estimator: Any,
        y: NDArray[np.float64],
        raw: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None,
        raw_val: NDArray[np.float64] | None,
    ) -> None:
        """Move the intercepts of an estimator, and all that has them in it."""
        if self._eras.labels.size == 1:
            return
        self._move(raw, estimator._era_intercepts)
        estimator._era_intercepts = next_intercepts(
            estimator._loss,
            self._eras,
            y,
            raw,
            sample_weight,
            self._in_raw,
            self._exchange,
        )
        self._move(raw, estimator._era_intercepts)
        if self._forecast_weights is None:
            self._forecast_weights = self._effects._forecast_weights(
                self._weigh_eras(sample_weight) > 0
            )
        forecast = self._forecast_weights @ estimator._era_intercepts
        step = forecast - estimator._era_forecast
        estimator._era_forecast = forecast
        # Not in place: a callback may have kept the estimator as it was.
        estimator._baseline_prediction = estimator._baseline_prediction + step
        if raw_val is not None:
            raw_val += step

    def _weigh_eras(
        self, sample_weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        n_eras = self._eras.labels.size
        weights = np.bincount(self._eras.codes, sample_weight, n_eras)
        return self._exchange.sum(weights.astype(np.float64))

    def _move(self, raw: NDArray[np.float64], intercepts: NDArray[np.float64]) -> None:
        step = intercepts - self._in_raw
        if step.any():
            raw += step[self._eras.codes]
        self._in_raw = intercepts


def begin_intercepts(
    estimator: Any, eras: EncodedEras | None, is_warm: bool, exchange: Exchange
) -> EraIntercepts | None:
    """Return the intercepts that a fit moves, if any, and drop those of another fit."""
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


def next_intercepts(
    loss: Any,
    eras: EncodedEras,
    y: NDArray[np.float64],
    raw: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    intercepts: NDArray[np.float64],
    exchange: Exchange = ALONE,
) -> NDArray[np.float64]:
    """The intercepts after a Newton step, shrunk to 0 as a leaf's value is.

    ``b_j - G_j / H_j`` with the variance ``s2 / H_j``; see `leaf_shrinkage`. A loss
    without a hessian of use takes the line search of its residuals for the step, and
    for s2 what it is of an asymmetric Laplace law, whose likelihood the loss is: with
    b the mean loss and g its gradients, ``b^2 / mean(g^2)``.

    Trees fit their own rows, whose s2 falls below what it is of others. A log loss and
    a Poisson loss know it, a weight of a row; and their step is 1 at most, as it has no
    end where an era has a single class.
    """
    is_known = isinstance(
        loss, (HalfBinomialLoss, HalfMultinomialLoss, HalfPoissonLoss)
    )
    least_s2 = 1.0
    if sample_weight is not None:
        n_rows, total = exchange.sum_of(sample_weight.size, np.sum(sample_weight))
        least_s2 = total / n_rows
    n_eras = eras.labels.size
    g, h = (
        np.reshape(x, raw.shape)
        for x in loss.gradient_hessian(
            y, raw, sample_weight, n_threads=_openmp_effective_n_threads()
        )
    )
    reached = np.empty(intercepts.shape)
    for k in range(raw.shape[1]):
        step, H, s2 = cell_values(eras.codes, n_eras, g[:, k], h[:, k], exchange)
        # Of eras that other processes hold, both are 0.
        step, H = exchange.sum(np.stack([step, H]))
        if is_known:
            step, s2 = np.clip(step, -1.0, 1.0), max(s2, least_s2)
        elif exchange.sum_of(np.count_nonzero(h[:, k])) == ((H > 0).sum(),):
            s2 = np.inf  # a row an era: nothing is known of the variance within
        if not loss.differentiable:
            step = _line_search(loss, eras, y - raw[:, k], sample_weight)
            at = raw[:, k] + step[eras.codes]
            slope = loss.gradient(y, at)
            mean_loss = loss(y, at, sample_weight=sample_weight)
            s2 = mean_loss**2 / np.average(slope**2, weights=sample_weight)
        target = intercepts[:, k] + step
        known = H > 0
        factors = np.zeros(n_eras)
        factors[known] = empirical_bayes_factors(target[known], s2 / H[known])
        reached[:, k] = factors * target
    return reached


def _line_search(
    loss: Any,
    eras: EncodedEras,
    residuals: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """The constant that fits the residuals of each era best; 0 without weight."""
    order = np.arange(residuals.size) if eras.order is None else eras.order
    steps = np.zeros(eras.labels.size)
    for j, rows in enumerate(np.split(order, eras.offsets[1:-1])):
        weights = None if sample_weight is None else sample_weight[rows]
        if weights is None or weights.any():
            steps[j] = loss.fit_intercept_only(residuals[rows], weights).item()
    return steps


def _warn_of_forecast(
    estimator: Any, effects: Intercepts, labels: NDArray[Any]
) -> None:
    """Warn where the eras carried on are not the latest."""
    held_out = getattr(estimator, "validation_eras_", None)
    if held_out is not None and estimator._fit_state.validation_eras == "last":
        warn_user(
            f"era_effects={effects!r} carries on the level of era {labels[-1]}, since "
            f"early stopping holds out the {held_out.size} after it. Pass "
            "validation_eras=None, which holds out rows, or early_stopping=False."
        )


def intercepts_by_label(estimator: Any) -> dict[Any, Any]:
    """The intercept of each era: a number, or an array with one of each class."""
    if not hasattr(estimator, "_era_intercepts"):
        raise AttributeError(
            f"{type(estimator).__name__} has era_intercepts_ after a fit with "
            "era_effects only."
        )
    intercepts = estimator._era_intercepts
    values = intercepts[:, 0].tolist() if intercepts.shape[1] == 1 else intercepts
    return dict(zip(as_keys(estimator._era_labels), values, strict=True))


def in_eras(estimator: Any, X: Any, eras: Any) -> Any:
    """Return the estimator that predicts rows X of some eras, a copy where it is
    another: rows of known eras have their own intercept in place of the forecast.
    """
    # In a fit, raw predictions have the intercepts of their rows already.
    if eras is None or getattr(estimator, "_in_fit", False):
        return estimator
    check_is_fitted(estimator)
    is_name = isinstance(eras, str)
    X, eras = take_era_column(X, eras)
    if not hasattr(estimator, "_era_labels"):
        if is_name:  # of a column that is no feature
            return _predictor_of(estimator, X, 0.0)
        raise ValueError(
            "predicting with eras needs the intercepts of a fit with "
            "era_effects='intercept': leave eras out, or fit with them."
        )
    given, known = read_eras(eras, X), estimator._era_labels
    labels = given.labels
    if labels.dtype.kind == known.dtype.kind and known.dtype.kind in "mM":
        labels = labels.astype(dtype := np.promote_types(labels.dtype, known.dtype))
        known = known.astype(dtype)
    index = {label: j for j, label in enumerate(as_keys(known))}
    keys = as_keys(labels)
    if keys and not any(label in index for label in keys):
        _check_kinds(keys, list(index))
    _warn_of_misspelt([label for label in keys if label not in index], list(index))
    of_labels = np.zeros((labels.size, estimator._era_forecast.size))
    for i, label in enumerate(keys):
        if label in index:
            of_labels[i] = (
                estimator._era_intercepts[index[label]] - estimator._era_forecast
            )
    return _predictor_of(estimator, X, of_labels[given.codes])


def _predictor_of(estimator: Any, X: Any, steps: Any) -> Any:
    """Return a copy that predicts the rows X, whatever it is given, with steps."""
    copied = object.__new__(type(estimator))
    copied.__dict__.update(vars(estimator))
    copied._raw_predict = lambda _: estimator._raw_predict(X) + steps
    copied._staged_raw_predict = lambda _: (
        raw + steps for raw in estimator._staged_raw_predict(X)
    )
    return copied


def _check_kinds(given: list[Any], known: list[Any]) -> None:
    """ValueError for labels of another kind than those of training."""
    if {_kind(label) for label in given}.isdisjoint(_kind(label) for label in known):
        raise ValueError(
            f"eras holds {given[0]!r}, of type {type(given[0]).__name__}, but the eras "
            f"of training are of type {type(known[0]).__name__}, such as {known[0]!r}; "
            "pass labels as in training."
        )


def _warn_of_misspelt(unknown: list[Any], known: list[Any]) -> None:
    """Warn of text that looks like a label of training, but is none."""
    guesses = guess_labels(
        *([x for x in y if type(x) is str] for y in (unknown, known))
    )
    if guesses:
        shown = [f"{x!r} (was {guess!r} meant?)" for x, guess in guesses.items()]
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        warn_user(
            "eras holds labels that the fit has not seen and that get the forecast: "
            f"{', '.join(shown[:5])}{more}. Pass labels as in training."
        )


def guess_labels(unknown: list[str], known: list[str]) -> dict[str, str]:
    """Return the known label that each of the first unknown ones may be, misspelt: it
    has the same numbers, and no known one is as close to it.
    """
    by_numbers: dict[tuple[str, ...], dict[str, str]] = {}
    for label in known:
        digits, text = _simplify(label)
        by_numbers.setdefault(digits, {})[text] = label
    guesses = {}
    for label in unknown[:_MOST_GUESSED]:
        digits, text = _simplify(label)
        candidates = by_numbers.get(digits, {})
        for close in get_close_matches(text, candidates, 1, _CLOSE):
            others = [other for other in candidates if other != close]
            nearest = get_close_matches(close, others, 1, _CLOSE)
            closeness = [SequenceMatcher(None, x, close).ratio() for x in nearest]
            if SequenceMatcher(None, text, close).ratio() > max(closeness, default=0):
                guesses[label] = candidates[close]
    return guesses


def _simplify(label: str) -> tuple[tuple[str, ...], str]:
    """The numbers in a label, and it without case, spaces, signs and leading zeros."""
    text = re.sub(r"(?<!\d)0+(?=\d)", "", label.casefold())
    return tuple(re.findall(r"\d+", text)), re.sub(r"[\W_]", "", text)


def _kind(label: Any) -> str:
    if isinstance(label, str | bytes):
        return "text"
    is_number = isinstance(label, numbers.Number | np.bool_)
    return "number" if is_number and not isinstance(label, np.timedelta64) else "date"


def as_keys(labels: NDArray[Any]) -> list[Any]:
    """Labels as Python's objects, but dates as NumPy's, which have one type."""
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()
