r"""Numerai's scores of predictions, for many eras at once.

Each function scores every era by itself. Without `eras`, all rows are one era and the
result is a float; with them, it is a :class:`~sklearn_era.metrics.EraScores`, sorted by
label, for :func:`~sklearn_era.metrics.aggregate_era_scores`. Rows are matched **by
position**, and pandas objects with different indexes are refused.

The equations are those of numerai-tools 0.7.2 (``numerai_tools.scoring``), whose
results for float64 these are up to 1e-12. In all of them,

.. math::

    g(x) = \Phi^{-1}\bigl((\operatorname{rank}(x) - 1/2) / n\bigr), \qquad
    p(x) = \operatorname{sign}(x) |x|^{3/2}

with average ranks for ties (:func:`~sklearn_era.numerai.metrics.rank_normalize`).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_era.metrics import EraScores
from sklearn_era.numerai.metrics._era_rows import Column, EraRows
from sklearn_era.numerai.metrics.neutralization import is_rounding, residual
from sklearn_era.numerai.metrics.ranks import gaussian_ranks

# Numerai scores a submission that matches 80 % of a round's ids, and no less.
MAX_MISSING_SHARE = 0.2


def numerai_corr(
    predictions: ArrayLike,
    targets: ArrayLike,
    eras: ArrayLike | None = None,
    *,
    max_missing_share: float = MAX_MISSING_SHARE,
) -> EraScores | float:
    r"""Compute CORR, the correlation that Numerai pays for.

    .. math:: \operatorname{pearson}\bigl(p(g(x)),\ p(y - \bar y)\bigr)

    with the predictions x and the targets y of the rows of an era that have a target
    (numerai-tools 0.7.2, ``numerai_corr``; p and g are defined above in this module).

    Parameters
    ----------
    predictions, targets : array-like of shape (n_samples,)
        Finite predictions; and targets such as 0, 0.25, ..., 1, or NaN where not known.
    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.
    max_missing_share : float, default=0.2
        The largest share of an era's rows that may lack a target.

    Returns
    -------
    scores : EraScores or float
        Between -1 and 1; NaN in eras where predictions or targets are all equal.
        `n_samples` counts the rows that have a target.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value, or an era lacks too many targets.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import numerai_corr
    >>> round(numerai_corr([0.1, 0.4, 0.3, 0.9], [0.0, 0.5, 0.25, 1.0]), 6)
    0.981449
    """
    rows = EraRows(predictions, eras)
    return rows.score(_corr, max_missing_share, rows.x, targets=targets)


def _corr(x: Column, y: Column) -> float:
    return _pearson(_power(gaussian_ranks(x)), _power(y - y.mean())[:, None])[0]


def correlation_contribution(
    predictions: ArrayLike,
    meta_model: ArrayLike,
    targets: ArrayLike,
    eras: ArrayLike | None = None,
    *,
    max_missing_share: float = MAX_MISSING_SHARE,
) -> EraScores | float:
    r"""Compute MMC, what predictions add to a meta model; BMC, to a benchmark model.

    .. math::

        \frac{1}{n}\, t \cdot \Bigl(x' - m' \frac{x' \cdot m'}{m' \cdot m'}\Bigr),
        \qquad x' = g(x),\ m' = g(m)

    with the predictions x, the meta model's m and the centered targets t of the n rows
    of an era that have all three; targets in [0, 1] are multiplied by 4 (numerai-tools
    0.7.2, ``correlation_contribution``). A covariance, not limited to [-1, 1].

    Parameters
    ----------
    predictions, meta_model, targets : array-like of shape (n_samples,)
        Finite predictions; those of the meta model, or of a benchmark model, NaN where
        there are none; and targets such as 0, 0.25, ..., 1, or NaN where not known.
    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.
    max_missing_share : float, default=0.2
        The largest share of an era's rows that may lack a target or the meta model.

    Returns
    -------
    scores : EraScores or float
        0 in eras where all predictions are equal, and up to rounding where they are
        ranked as the meta model's; NaN where the meta model's are all equal.
        `n_samples` counts the rows that have both target and meta model.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value, or an era lacks too many rows.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import correlation_contribution
    >>> targets = [0.0, 0.5, 0.5, 1.0]
    >>> round(correlation_contribution([1, 3, 2, 4], [3, 1, 2, 4], targets), 6)
    1.049403
    """
    rows = EraRows(predictions, eras)
    others = {"meta_model": meta_model, "targets": targets}
    return rows.score(_contribution, max_missing_share, rows.x, **others)


def _contribution(x: Column, m: Column, y: Column) -> float:
    if m.min() == m.max():
        return np.nan
    x, m = gaussian_ranks(x), gaussian_ranks(m)
    if y.min() >= 0 and y.max() <= 1:
        y = y * 4
    return (y - y.mean()) @ (x - m * ((x @ m) / (m @ m))) / y.size


def feature_neutral_corr(
    predictions: ArrayLike,
    targets: ArrayLike,
    features: ArrayLike,
    eras: ArrayLike | None = None,
    *,
    max_missing_share: float = MAX_MISSING_SHARE,
) -> EraScores | float:
    """Compute FNC, the CORR of what features do not explain linearly.

    :func:`numerai_corr` of :math:`g(x) - N b`, the residual of the gaussianized ranks
    of an era (:func:`~sklearn_era.numerai.metrics.neutralize`), rows without a target
    included (numerai-tools 0.7.2, ``feature_neutral_corr``; of rows that are equal in
    predictions and features, rounding may rank one above the other, there or here).

    Parameters
    ----------
    predictions, targets : array-like of shape (n_samples,)
        As of :func:`numerai_corr`.
    features : array-like of shape (n_samples, n_features)
        Integers or finite floats, converted to float64 one era at a time.
    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.
    max_missing_share : float, default=0.2
        The largest share of an era's rows that may lack a target.

    Returns
    -------
    scores : EraScores or float
        Between -1 and 1; NaN in eras where predictions or targets are all equal, or
        where the features leave nothing of the predictions but rounding.

    Raises
    ------
    ValueError
        As :func:`numerai_corr`.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import feature_neutral_corr
    >>> features = [[0], [3], [1], [4], [2], [0]]
    >>> round(feature_neutral_corr([1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1], features), 6)
    0.699122
    """
    rows = EraRows(predictions, eras)
    y = rows.column(targets, "targets")
    neutral = np.empty_like(rows.x)
    for _, index, block in rows.blocks(features, "features"):
        ranks = gaussian_ranks(rows.x[index])
        left = residual(ranks, block)
        # Of constants, CORR is NaN.
        neutral[index] = 0.0 if is_rounding(left, ranks) else left
    return rows.score(_corr, max_missing_share, neutral, targets=y)


def feature_exposures(
    predictions: ArrayLike, features: ArrayLike, eras: ArrayLike | None = None
) -> NDArray[np.float64]:
    r"""Correlate predictions with each feature, era by era.

    .. math:: \operatorname{pearson}(x, f_j)

    of the predictions as they are (numerai-tools 0.7.2, ``pearson_correlation``): pass
    ranks for the exposures of a submission.

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers.
    features : array-like of shape (n_samples, n_features)
        Integers or finite floats, converted to float64 one era at a time.
    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    Returns
    -------
    exposures : ndarray of shape (n_eras, n_features), dtype=float64
        Between -1 and 1, an era a row, in the order of the labels; without `eras`, of
        shape (n_features,). NaN where a feature or the predictions are constant.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import feature_exposures
    >>> features = [[0, 4, 2], [1, 2, 2], [2, 0, 2]]
    >>> feature_exposures([1, 2, 3], features).round(6).tolist()
    [1.0, -1.0, nan]
    """
    rows = EraRows(predictions, eras)
    exposures = _exposures(rows, features)
    return exposures if rows.has_labels else exposures[0]


def max_feature_exposure(
    predictions: ArrayLike, features: ArrayLike, eras: ArrayLike | None = None
) -> EraScores | float:
    r"""Compute the largest absolute correlation with a feature, era by era.

    .. math:: \max_j |\operatorname{pearson}(x, f_j)|

    over the features that are not constant in the era (numerai-tools 0.7.2,
    ``max_feature_correlation``; which feature it is, :func:`feature_exposures` tells).

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers.
    features : array-like of shape (n_samples, n_features)
        Integers or finite floats, converted to float64 one era at a time.
    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    Returns
    -------
    scores : EraScores or float
        Between 0 and 1; NaN in eras where the predictions are constant, or all
        features. The smaller, the better: pass ``greater_is_better=False`` to
        :func:`~sklearn_era.metrics.aggregate_era_scores`.

    Raises
    ------
    ValueError
        As :func:`feature_exposures`.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import max_feature_exposure
    >>> round(max_feature_exposure([1, 2, 3], [[0, 4], [1, 2], [2, 0]]), 6)
    1.0
    """
    rows = EraRows(predictions, eras)
    # Of NaN alone, `fmax` makes NaN, and does not warn as `nanmax` does.
    return rows.result(np.fmax.reduce(np.abs(_exposures(rows, features)), axis=1))


def _exposures(rows: EraRows, features: ArrayLike) -> Column:
    blocks = rows.blocks(features, "features")
    return np.array([_pearson(rows.x[index], block) for _, index, block in blocks])


def _power(values: Column) -> Column:
    """Raise to the power of 3/2 and keep the sign."""
    return values * np.sqrt(np.abs(values))


def _pearson(x: Column, columns: NDArray[Any]) -> Column:
    """Pearson's correlations with columns; NaN where one of the two is constant."""
    constant = (columns == columns[0]).all(axis=0) | (x.min() == x.max())
    x = x - x.mean()
    centered = columns - columns.mean(axis=0, dtype=np.float64)
    norms = np.sqrt(np.einsum("ij,ij->j", centered, centered)) * np.sqrt(x @ x)
    norms[constant] = np.nan
    return np.clip((x @ centered) / norms, -1.0, 1.0)
