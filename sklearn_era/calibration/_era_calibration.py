"""Estimate the calibration in each era, from its rows alone and with shrinkage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics._classification import _validate_binary_probabilistic_prediction

from .._eras import era_means, read_eras
from .._scikit_learn import check_sample_weight
from ..metrics import EraScores
from ._base import Array
from ._recalibration import RandomEffects, log_odds, modes

_WITH_ERRORS = (
    "in_the_large", "intercept", "slope", "ratio", "shrunken_level", "shrunken_slope",
)  # fmt: skip
_LEAST_OVERLAP = 1e-5  # of log-odds; in less, rounding would make up slopes


class _Calibration(EraScores):
    typical: dict[str, float]
    spread: dict[str, float]


def _overlap(y: Array, z: Array, codes: NDArray[Any], n_eras: int) -> NDArray[np.bool_]:
    """Return a mask of eras in which the log-odds `z` of both classes overlap. Without
    overlap, a logistic regression has no finite maximum (Albert, Anderson 1984).
    """
    low, high = np.full((2, n_eras), np.inf), np.full((2, n_eras), -np.inf)
    at = y.astype(np.intp), codes
    np.minimum.at(low, at, z)
    np.maximum.at(high, at, z)
    return (high[0] - low[1] > _LEAST_OVERLAP) & (high[1] - low[0] > _LEAST_OVERLAP)


def _fit_alone(
    y: Array, x: Array, offset: Array, weights: Array, codes: NDArray[Any],
    is_known: NDArray[np.bool_],
) -> Array:  # fmt: skip
    """Return the maximum-likelihood effects of x in each era alone, and their standard
    errors, as an array of shape (2, n_effects, n_eras): NaN where not `is_known`.
    """
    found = np.full((2, len(x), is_known.size), np.nan)
    rows = np.flatnonzero(is_known[codes])
    if rows.size:
        own = (np.cumsum(is_known) - 1)[codes[rows]]
        given = y[rows], x[:, rows], offset[rows], weights[rows], own
        start, flat = np.zeros((is_known.sum(), len(x))), np.zeros((len(x), len(x)))
        effects, covariances = modes(*given, start, 0.0, flat)
        errors = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        found[..., is_known] = effects.T, errors.T
    return found


def era_calibration(
    y_true: ArrayLike, y_prob: ArrayLike, *, eras: Any, pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> _Calibration:  # fmt: skip
    """Estimate how far probabilities are off in each era, and the spread of eras.

    Estimates from the rows of each era alone [1]_, with z the log-odds of `y_prob`, are

    - the calibration in the large, a in ``logit P = a + z``: it is positive where
      probabilities are too low;
    - the logistic recalibration ``logit P = intercept + slope z``: the slope is below 1
      where probabilities are too extreme;
    - the ratio of observed to expected events.

    The shrunken level and slope, as in :class:`EraCalibratedClassifier`, are estimated
    from all eras together: the fewer rows an era has, the nearer its level and slope
    are to the mean. The level is at the mean of z over all rows, so that it is not
    correlated with slopes.

    Parameters
    ----------
    y_true, y_prob, eras : array-like of shape (n_samples,)
        True classes, two of them; probabilities of the positive class, by a model
        fitted without these eras; and the era of each row.
    pos_label : int, float, bool or str, default=None
        The positive class. None is the larger label; for text, pass a label.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts; eras without weight are left out.

    Returns
    -------
    calibration : EraScores
        For each era ``in_the_large``, ``intercept``, ``slope``, ``ratio``,
        ``shrunken_level`` and ``shrunken_slope``, each with its standard error, such as
        ``slope_error`` (if shrunken, with the mean's error, but not the spread's); the
        means ``observed`` and ``predicted``; and the numbers of rows, ``n_samples``,
        and of positive ones, ``n_events``. An era of one class has NaN for
        ``in_the_large`` and, like an era whose classes overlap in z by less than
        1e-5, for ``intercept`` and ``slope``. The dicts `typical` and `spread` hold the
        mean and the standard deviation over eras of ``level`` and ``slope``.

    Raises
    ------
    ValueError
        If lengths differ, `y_prob` is 2-d or not in [0, 1], or there are not 2 classes.

    References
    ----------
    .. [1] B. Van Calster et al. (2016), A calibration hierarchy for risk models was
       defined. Journal of Clinical Epidemiology 74, 167-176.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.calibration import era_calibration
    >>> rng = np.random.default_rng(0)
    >>> p, clinics = rng.uniform(size=4000), np.repeat(["a", "b", "c", "d"], 1000)
    >>> y = rng.uniform(size=4000) < np.where(clinics == "a", p / 2, p)
    >>> found = era_calibration(y, p, eras=clinics)
    >>> round(found["a"]["in_the_large"], 1), round(found["b"]["in_the_large"], 1)
    (-1.6, 0.1)
    """
    if np.ndim(y_prob) > 1:
        raise ValueError(
            f"y_prob is of shape {np.shape(y_prob)}: pass the probabilities of the "
            "positive class alone, such as y_prob[:, 1]."
        )
    both, p = _validate_binary_probabilistic_prediction(
        y_true, y_prob, sample_weight, pos_label
    )
    weights = check_sample_weight(sample_weight, p)
    rows = np.flatnonzero(weights)
    encoded = read_eras(eras, p, X_name="y_true").take(rows)
    y, p = (x[rows, 1].astype(np.float64) for x in (both, p))
    if y.min() == y.max():
        raise ValueError("y_true must hold pos_label and another class: it has one.")
    weights, codes, n_eras = weights[rows], encoded.codes, encoded.labels.size
    z, ones = log_odds(p), np.ones((1, p.size))
    observed, predicted = era_means(codes, weights, np.stack([y, p]))
    deviation = observed * (1 - observed)
    has_both = deviation > 0
    levels = _fit_alone(y, ones, z, weights, codes, has_both)
    is_known, x = _overlap(y, z, codes, n_eras), np.vstack([ones, z])
    slopes = _fit_alone(y, x, 0 * z, weights, codes, is_known)
    n_weighed = np.bincount(codes, weights)
    error = np.sqrt(np.where(has_both, deviation, np.nan) / n_weighed)
    ratios = np.stack([observed, error])[:, np.newaxis] / predicted
    shrunken, errors = RandomEffects.fit_with_errors(y, p, weights, codes, n_eras)
    errors = np.sqrt(np.diagonal(errors, axis1=1, axis2=2))
    together = np.stack([shrunken.effects.T, errors.T])
    found, table = np.hstack([levels, slopes, ratios, together]), {}
    for i, name in enumerate(_WITH_ERRORS):
        table[name], table[f"{name}_error"] = found[:, i]
    table |= {"observed": observed, "predicted": predicted}
    table["n_events"] = np.bincount(codes, y)
    calibration = _Calibration(
        encoded.labels, table, encoded.counts, directions=dict.fromkeys(table)
    )
    spread = np.sqrt(np.diagonal(shrunken.covariance))
    of_both = ("level", "slope")
    calibration.typical = dict(zip(of_both, shrunken.mean.tolist(), strict=True))
    calibration.spread = dict(zip(of_both, spread.tolist(), strict=True))
    return calibration
