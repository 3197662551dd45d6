"""Weights of members by their losses in eras that they have not seen."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ._losses import Loss

# Of the convex weights in those of all, beside the average of the best three.
_SHARE_OF_CONVEX = 0.5
_N_BEST = 3
# A member of less weight would only make predictions slower.
_LEAST_WEIGHT = 0.02


class Rows(NamedTuple):
    """The rows of eras left out, and what each counts: all eras alike, and together 1.

    Of several folds, those of one after those of another.
    """

    y: NDArray[np.float64]
    weights: NDArray[np.float64]


def equal_eras(
    codes: NDArray[np.integer], sample_weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return weights of rows that add up to the same in each era, and to 1."""
    of_rows = np.ones(codes.size) if sample_weight is None else sample_weight
    totals = np.bincount(codes, of_rows)
    return of_rows / totals[codes] / np.count_nonzero(totals)


def best_stage(stages: NDArray[np.float64], rows: Rows, loss: Loss) -> int:
    """Return the index of the stage whose predictions have the least loss."""
    return int(np.argmin([rows.weights @ loss(rows.y, p) for p in stages]))


def convex_weights(
    predicted: NDArray[np.float64], rows: Rows, loss: Loss
) -> NDArray[np.float64]:
    """Return weights of members, of shape (n_members, n_rows), that add up to 1.

    Half of them minimise the loss of the weighted mean, and half are a third for each
    of the three best members: the minimum is found with an error, and the average of
    good ones is hardly ever bad.
    """
    losses = np.array([rows.weights @ loss(rows.y, p) for p in predicted])
    n_best = min(_N_BEST, losses.size)
    average = np.zeros(losses.size)
    average[np.argsort(losses, kind="stable")[:n_best]] = 1 / n_best
    convex = _minimum(predicted, rows, loss, average, losses.min())
    weights = _SHARE_OF_CONVEX * convex + (1 - _SHARE_OF_CONVEX) * average
    weights[weights < _LEAST_WEIGHT] = 0.0
    return weights / weights.sum()


def _minimum(
    predicted: NDArray[np.float64],
    rows: Rows,
    loss: Loss,
    start: NDArray[np.float64],
    scale: float,
) -> NDArray[np.float64]:
    """Return the weights of least loss, by sequential quadratic programming."""
    scale = max(abs(scale), np.finfo(float).tiny)

    def value_and_slope(weights: NDArray[np.float64]) -> tuple[float, NDArray]:
        mean = weights @ predicted
        slope = predicted @ (rows.weights * loss.derivative(rows.y, mean))
        return float(rows.weights @ loss(rows.y, mean)) / scale, slope / scale

    found = minimize(
        value_and_slope,
        start,
        method="SLSQP",
        jac=True,
        bounds=[(0.0, 1.0)] * start.size,
        constraints={
            "type": "eq",
            "fun": lambda weights: weights.sum() - 1,
            "jac": lambda weights: np.ones(weights.size),
        },
        options={"maxiter": 200, "ftol": 1e-10},
    )
    weights = np.clip(found.x, 0.0, None)
    better = value_and_slope(start)[0] > value_and_slope(weights / weights.sum())[0]
    return weights / weights.sum() if better else start


__all__ = ["Rows", "best_stage", "convex_weights", "equal_eras"]
