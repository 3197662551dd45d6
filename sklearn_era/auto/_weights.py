"""Find weights of members by their losses in rows that they have not seen.

Folds of whole eras assess all members, with more noise the fewer eras there are; folds
of shuffled rows assess members that use no eras, with less noise, but not in new eras.
The final weights are a mix of the weights by both kinds of folds. The share of weights
by folds of eras rises with their gain in eras left out.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .._eras import era_means
from ..ensemble._boosters.level_forecast import newey_west_error
from ..metrics._mean_errors import mean_and_error
from ._candidates import PLAIN
from ._row_losses import Loss

# The share of the weights of least loss, beside the average of the best few.
_SHARE_OF_CONVEX = 0.75
_N_BEST = 3
# A member of less weight would only make predictions slower.
_LEAST_WEIGHT = 0.02
# Standard errors: up to the first the weights are those of rows, and from the second on
# those of eras.
_ERRORS = (1.0, 3.0)
# A member whose loss is so many times that of another, or of a constant, diverges.
_DIVERGES = 100.0

Array = NDArray[np.float64]


class LeftOut(NamedTuple):
    """Rows that folds leave out of fits, with members' predictions of these rows."""

    predicted: dict[str, Array]  # by member, of shape (n_stages, n_rows)
    stages: dict[str, list[int]]  # their numbers of trees or penalties, or [0]
    y: Array
    weights: Array  # add up to 1
    codes: NDArray[np.intp]  # eras of rows, from 0
    groups: NDArray[np.intp] | None = None  # of rows, where eras are times of groups

    def losses(self, name: str, loss: Loss) -> Array:
        """Return the mean loss of a member after each of its `stages`."""
        return np.array([self.weights @ loss(self.y, p) for p in self.predicted[name]])

    def at_end(self) -> Array:
        """Return members' predictions after their last stages: (n_members, n_rows)."""
        return np.array([values[-1] for values in self.predicted.values()])

    def by_era(self, values: Array) -> Array:
        """Return means of `values` (..., n_rows) by era; NaN in eras without weight."""
        if self.groups is None:
            return era_means(self.codes, self.weights, values)
        # Of an era, some groups may be known of members that other folds lack.
        known = ~np.isnan(values)
        parts = np.where(known, values, 0.0), known.astype(np.float64)
        sums, shares = (era_means(self.codes, self.weights, x) for x in parts)
        return sums / np.where(shares > 0, shares, np.nan)

    def gain_and_error(self, gains: Array, are_ordered: bool) -> tuple[float, float]:
        """Return the mean over eras of the rows' `gains`, and its standard error."""
        by_era = self.by_era(gains)
        error = self.error_of_both(error_of_mean(by_era, are_ordered), gains)
        return float(mean_and_error(by_era)[0]), error

    def error_of_both(self, error: float, values: Array) -> float:
        """Return the standard error of the mean of rows' values, which depend on each
        other in eras and in groups (Cameron, Gelbach, Miller 2011). `error` is the
        standard error for eras alone, which is returned if there are no groups.
        """
        if self.groups is None:
            return error
        values = np.nan_to_num(values)  # of rows that a member's folds lack
        weighted = self.weights * (values - self.weights @ values)

        def variance(codes: NDArray[Any]) -> float:
            sums = np.bincount(codes, weighted)
            n = np.unique(codes).size
            return float(sums @ sums * n / max(n - 1, 1))

        cells = np.column_stack([self.codes, self.groups])
        of_cells = variance(np.unique(cells, axis=0, return_inverse=True)[1].ravel())
        of_groups = variance(self.groups)
        return float(np.sqrt(max(error**2, of_groups, error**2 + of_groups - of_cells)))

    def parts(self) -> dict[str, Any]:
        """Return a dict of the fields that are not None, to be stored in the model."""
        return {name: x for name, x in self._asdict().items() if x is not None}


class Weighted(NamedTuple):
    """Members' stages and weights, and their predictions at these stages."""

    stages: dict[str, int]
    weights: dict[str, float]
    predicted: Array  # of shape (n_members, n_rows)


def equal_eras(codes: NDArray[np.integer], weights: Array) -> Array:
    """Return weights of rows scaled to add up to 1 in each era that has weight."""
    totals = np.bincount(codes, weights)
    return weights / np.where(totals > 0, totals, 1.0)[codes]


def weigh(
    eras: LeftOut, rows: LeftOut, loss: Loss, are_ordered: bool = False,
    share: float | None = None,
) -> Weighted:  # fmt: skip
    """Return members with stages and weights. The weights are a mix: `share` is the
    part from folds of eras, and the rest is from folds of rows. If `share` is None, it
    is found by the gain in eras.
    """
    names = list(eras.predicted)
    of_eras = {name: eras.losses(name, loss) for name in names}
    of_rows = {name: rows.losses(name, loss) for name in rows.predicted}
    best = {name: int(losses.argmin()) for name, losses in of_eras.items()}
    best_of_rows = {name: int(losses.argmin()) for name, losses in of_rows.items()}
    mean = _average(eras, best, loss) @ predictions_at(eras, best)
    mean_of_rows = _average(rows, best_of_rows, loss) @ predictions_at(
        eras, best_of_rows
    )
    if share is None:
        gains = loss(eras.y, mean_of_rows) - loss(eras.y, mean)
        share = _share(eras, gains, are_ordered)
    for name in best_of_rows:
        by_eras, by_rows = (_relative(x[name]) for x in (of_eras, of_rows))
        best[name] = int(np.argmin(share * by_eras + (1 - share) * by_rows))
    weights = share * _average(eras, best, loss)
    is_of_rows = np.array([name in best_of_rows for name in names])
    stages_of_rows = {name: best[name] for name in best_of_rows}
    weights[is_of_rows] += (1 - share) * _average(rows, stages_of_rows, loss)
    weights[weights < _LEAST_WEIGHT] = 0.0
    weights /= weights.sum()
    stages = {name: eras.stages[name][best[name]] for name in names}
    by_name = dict(zip(names, weights.tolist(), strict=True))
    return Weighted(stages, by_name, predictions_at(eras, best))


def promising(left_out: LeftOut, loss: Loss, n_kept: int | None = None) -> list[str]:
    """Return the names of members to fit in further folds: the plain and the linear
    model, and the best `n_kept` other members, by weight and then by loss. If `n_kept`
    is None, return the plain model and all members with weight.
    """
    names = list(left_out.predicted)
    losses = [left_out.losses(name, loss) for name in names]
    best = dict(zip(names, [int(x.argmin()) for x in losses], strict=True))
    weights = _average(left_out, best, loss)
    weights[weights < _LEAST_WEIGHT] = 0.0
    order = np.lexsort(([x.min() for x in losses], -weights))
    always = (PLAIN,) if n_kept is None else (PLAIN, "linear")  # which costs little
    others = [names[i] for i in order if names[i] not in always]
    n_others = np.count_nonzero(weights[1:]) if n_kept is None else n_kept
    kept = {*always, *others[:n_others]}
    return [name for name in names if name in kept]


def diverging(left_out: LeftOut, loss: Loss) -> list[str]:
    """Return the names of members whose loss is far larger than the loss of a constant,
    the mean of the targets. Only the losses "poisson" and "gamma" can diverge; return
    [] for any other loss.
    """
    y, weights = left_out.y, left_out.weights
    if loss.name not in ("poisson", "gamma") or np.ptp(y) == 0:
        return []
    most = _DIVERGES * (weights @ loss(y, np.full(y.shape, weights @ y)))
    found = []
    for name, predicted in left_out.predicted.items():
        known = ~np.isnan(predicted[0])  # not of folds that lack the member
        stages = predicted[-1:, known] if name == PLAIN else predicted[:, known]
        losses = loss(y[known], stages) @ weights[known] / weights[known].sum()
        found += [name] if losses.min() > most else []
    return found


def update_weights(
    eras: LeftOut, weights: Array, loss: Loss, are_ordered: bool = False
) -> Array:
    """Return the weights moved towards the best weights for all eras. The larger the
    gain of the best weights is, in standard errors, the further the weights move.
    """
    ends = dict.fromkeys(eras.predicted, -1)
    found, predicted = _average(eras, ends, loss), eras.at_end()
    gains = loss(eras.y, weights @ predicted) - loss(eras.y, found @ predicted)
    share = _share(eras, gains, are_ordered)
    return share * found + (1 - share) * weights


def error_of_mean(differences: Array, are_ordered: bool) -> float:
    """Return the standard error of the mean of differences over eras. If eras are
    ordered, the error allows for neighbours that resemble each other.
    """
    error = mean_and_error(differences)[1]
    known = differences[np.isfinite(differences)]
    if are_ordered and known.size > 1:
        error = max(error, newey_west_error(known))
    return float(error)


def _share(eras: LeftOut, gains: Array, are_ordered: bool) -> float:
    """Return the share, from 0 to 1, of the weights from folds of eras. It rises with
    the mean of `gains`, the gains of rows by these weights, in standard errors.
    """
    mean, error = eras.gain_and_error(gains, are_ordered)
    if not error > 0:
        return float(mean > 0)
    low, high = _ERRORS
    return float(np.clip((mean / error - low) / (high - low), 0.0, 1.0))


def _relative(losses: Array) -> Array:
    """Return how far losses are above the least loss, as shares of the least loss."""
    return (losses - losses.min()) / (losses.min() or 1.0)


def predictions_at(left_out: LeftOut, stages: dict[str, int]) -> Array:
    return np.array([left_out.predicted[name][i] for name, i in stages.items()])


def _average(left_out: LeftOut, stages: dict[str, int], loss: Loss) -> Array:
    """Return weights of members at `stages`: a mean of the weights of least loss, which
    depend on chance, and of equal weights for the best members, which are hardly ever
    bad. A member is among the best if its loss is within a standard error of the least.
    """
    predicted = predictions_at(left_out, stages)
    of_eras = left_out.by_era(loss(left_out.y, predicted))
    losses = loss(left_out.y, predicted) @ left_out.weights
    first, *others = np.argsort(losses, kind="stable")[:_N_BEST]
    equal = np.zeros(losses.size)
    equal[first] = 1.0
    for i in others:
        mean, error = mean_and_error(of_eras[i] - of_eras[first])
        equal[i] = not (mean > error or losses[i] > _DIVERGES * losses[first])
    equal /= equal.sum()
    convex = _minimum(left_out, predicted, loss, equal, losses[first])
    return _SHARE_OF_CONVEX * convex + (1 - _SHARE_OF_CONVEX) * equal


def _minimum(
    left_out: LeftOut, predicted: Array, loss: Loss, start: Array, scale: float
) -> Array:
    """Find the weights of least loss by sequential quadratic programming from `start`;
    return these weights, or `start` if they are no better.
    """
    scale = max(abs(scale), np.finfo(float).tiny)

    def value_and_slope(weights: Array) -> tuple[float, Array]:
        mean = weights @ predicted
        slope = predicted @ (left_out.weights * loss.derivative(left_out.y, mean))
        value = float(left_out.weights @ loss(left_out.y, mean))
        return value / scale, slope / scale

    add_up = {"type": "eq", "fun": lambda v: v.sum() - 1, "jac": np.ones_like}
    found = minimize(
        value_and_slope, start, method="SLSQP", jac=True, constraints=add_up,
        bounds=[(0.0, 1.0)] * start.size, options={"maxiter": 200, "ftol": 1e-10},
    )  # fmt: skip
    weights = np.clip(found.x, 0.0, None)
    weights /= weights.sum()
    better = value_and_slope(start)[0] > value_and_slope(weights)[0]
    return weights if better else start
