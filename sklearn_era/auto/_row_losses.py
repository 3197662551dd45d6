"""Compute the plain model's loss of each row, and the loss's slope in predictions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.base import BaseEstimator

Rows = NDArray[np.float64]
# The least probability, and the least mean of counts or amounts as a share of the
# target: at 0, losses are unbounded.
_LEAST, _TINY = 1e-12, np.finfo(np.float64).tiny


class Loss(NamedTuple):
    """The loss of each row, convex in the row's prediction, and its derivative in the
    prediction. In classification, the prediction is the probability of the row's class.
    """

    name: str
    function: Callable[[Rows, Rows], Rows]
    derivative: Callable[[Rows, Rows], Rows]

    def __call__(self, y: Rows, predicted: Rows) -> Rows:
        return self.function(y, predicted)


def check_size(y: Rows) -> None:
    """Raise ValueError if a finite target exceeds single precision."""
    largest, most = np.abs(y).max(initial=0.0), np.finfo(np.float32).max.item()
    if most < largest < np.inf:  # others are refused as infinite
        raise ValueError(
            f"y has targets of up to {largest:.3g}, out of the range of single "
            f"precision ({most:.2g}), in which trees are grown; divide y by a constant."
        )


def loss_of(plain: BaseEstimator) -> Loss:
    """Return the plain model's `Loss`; raise ValueError if its `loss` is not a name."""
    if not isinstance(plain.loss, str):
        raise ValueError(
            f"estimator: predictions under the loss {plain.loss!r} cannot be averaged, "
            "as it is unknown: pass one by its name, such as 'squared_error'."
        )
    if plain.loss == "quantile":
        q = plain.quantile
        return Loss(
            "quantile",
            lambda y, p: np.where(y > p, q * (y - p), (1 - q) * (p - y)),
            lambda y, p: np.where(y > p, -q, 1 - q),
        )
    return _LOSSES[plain.loss]


def _of_positive(
    name: str, function: Callable[..., Any], derivative: Callable[..., Any]
) -> Loss:
    def clipped(y: Rows, p: Rows) -> Rows:
        least = _LEAST if name == "log_loss" else np.maximum(_LEAST * y, _TINY)
        return np.maximum(p, least)

    return Loss(
        name,
        lambda y, p: function(y, clipped(y, p)),
        lambda y, p: derivative(y, clipped(y, p)),
    )


_LOSSES = {
    loss.name: loss
    for loss in (
        Loss("squared_error", lambda y, p: (y - p) ** 2, lambda y, p: 2 * (p - y)),
        Loss("absolute_error", lambda y, p: abs(y - p), lambda y, p: np.sign(p - y)),
        _of_positive(
            "poisson",
            lambda y, p: 2 * (p - y + xlogy(y, y / p)),
            lambda y, p: 2 * (1 - y / p),
        ),
        _of_positive(
            "gamma",
            lambda y, p: 2 * (y / p - np.log(y / p) - 1),
            lambda y, p: 2 * (p - y) / p**2,
        ),
        _of_positive("log_loss", lambda y, p: -np.log(p), lambda y, p: -1 / p),
    )
}
