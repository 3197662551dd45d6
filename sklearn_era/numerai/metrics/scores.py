r"""Numerai's scores of predictions, for many eras at once.

Each function scores every era by itself. Without `eras`, all rows are one era and the
result is a float; with them, it is a :class:`~sklearn_era.metrics.EraScores`, sorted by
label, of which :func:`~sklearn_era.metrics.aggregate_era_scores` makes the summaries:
"mean", "std" (``ddof=0``), "sharpe" (mean / std, not annualised) and "max_drawdown"
(positive; of the running sum, which starts with the first era).

Rows are matched **by position**. pandas objects are taken as arrays, and refused where
their indexes differ; :func:`match_ids` matches predictions and targets by id.

The equations are those of numerai-tools 0.7.2 (``numerai_tools.scoring``), whose
results for float64 these are up to 1e-12. In all of them,

.. math::

    g(x) = \Phi^{-1}\bigl((\operatorname{rank}(x) - 1/2) / n\bigr), \qquad
    p(x) = \operatorname{sign}(x) |x|^{3/2}

with average ranks for ties (:mod:`sklearn_era.numerai.metrics.ranks`). Targets are NaN
where they are not known: such rows are left out, up to a share of 20 % of an era.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_era.metrics import EraScores
from sklearn_era.numerai.metrics._era_rows import (
    MAX_MISSING_SHARE,
    EraRows,
    as_column,
    check_finite,
    check_missing,
    check_same_index,
    feature_blocks,
    predictions_by_era,
)
from sklearn_era.numerai.metrics.neutralization import is_rounding, residual
from sklearn_era.numerai.metrics.ranks import (
    gaussian_ranks,
    rank_era,
)


def numerai_corr(
    predictions: ArrayLike,
    targets: ArrayLike,
    eras: ArrayLike | None = None,
    *,
    center_targets: bool = True,
    max_missing_share: float = MAX_MISSING_SHARE,
) -> EraScores | float:
    r"""Compute CORR, the correlation that Numerai pays for.

    .. math:: \operatorname{pearson}\bigl(p(g(x)),\ p(y - \bar y)\bigr)

    with the predictions x and the targets y of the rows of an era that have a target
    (numerai-tools 0.7.2, ``numerai_corr``; p and g are defined above in this module).

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers; only their order within an era matters.

    targets : array-like of shape (n_samples,)
        Numbers, such as 0, 0.25, ..., 1; NaN where not known. They are computed with as
        float64, while numerai-tools computes with float32 targets as float32.

    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order: anything that sorts, such as ``"0001"``. None:
        all rows are one era.

    center_targets : bool, default=True
        Whether to subtract each era's mean. False: they are centred already, as
        ``MatchedRows.centered_targets`` are, by the mean over more rows than these.

    max_missing_share : float, default=0.2
        The largest share of an era's rows that may lack a target.

    Returns
    -------
    scores : EraScores or float
        Between -1 and 1. NaN in eras where all predictions are equal, or all targets.
        `n_samples` counts the rows that have a target.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value; if predictions are NaN or
        infinite; or if an era lacks too many targets. The message names the eras.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import numerai_corr
    >>> round(numerai_corr([0.1, 0.4, 0.3, 0.9], [0.0, 0.5, 0.25, 1.0]), 6)
    0.981449
    >>> scores = numerai_corr([1, 2, 3, 4, 5, 6], [0, 1, 0.5, 1, 0.5, 0],
    ...                       eras=["a", "b", "a", "b", "a", "b"])
    >>> scores.eras.tolist(), scores.scores.round(2).tolist()
    (['a', 'b'], [0.87, -0.87])
    """
    check_same_index(predictions=predictions, targets=targets, eras=eras)
    x, rows = predictions_by_era(predictions, eras)
    y = as_column(targets, "targets", x.size)
    return _corr(x, y, rows, center_targets, max_missing_share)


def _corr(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    rows: EraRows,
    center_targets: bool,
    max_missing_share: float,
) -> EraScores | float:
    check_finite(y, rows, "targets", allow_nan=True)
    usable = ~np.isnan(y)
    counts = check_missing(usable, rows, "targets", max_missing_share)
    scores = np.empty(len(rows))
    for era, index in enumerate(rows):
        own_x, own_y = x[index], y[index]
        if counts[era] < own_y.size:
            own_x, own_y = own_x[usable[index]], own_y[usable[index]]
        if np.isnan(own_x).any() or _is_constant(own_y):
            scores[era] = np.nan
            continue
        if center_targets:
            own_y = own_y - own_y.mean()
        scores[era] = _pearson(_power(gaussian_ranks(own_x)), _power(own_y))
    return rows.result(scores, counts)


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

    with the predictions x, the meta model's predictions m and the targets t, of the
    rows of an era that have all three. Targets in [0, 1] are multiplied by 4, and
    the targets of these n rows are centred (numerai-tools 0.7.2,
    ``correlation_contribution``). It is a covariance, and not limited to [-1, 1].

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers; only their order within an era matters.

    meta_model : array-like of shape (n_samples,)
        The meta model's predictions for MMC, or a benchmark model's for BMC; NaN where
        there are none.

    targets : array-like of shape (n_samples,)
        Numbers, such as 0, 0.25, ..., 1; NaN where not known. Not centred.

    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    max_missing_share : float, default=0.2
        The largest share of an era's rows that may lack a target or the meta model.

    Returns
    -------
    scores : EraScores or float
        0 in eras where all predictions are equal, which add nothing, and up to rounding
        where they are ranked as the meta model's; NaN where the meta model's are all
        equal. `n_samples` counts the rows that have both target and meta model.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value; if predictions are NaN or
        infinite; or if an era lacks too many rows. The message names the eras.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import correlation_contribution
    >>> targets = [0.0, 0.5, 0.5, 1.0]
    >>> round(correlation_contribution([1, 3, 2, 4], [3, 1, 2, 4], targets), 6)
    1.049403
    """
    check_same_index(
        predictions=predictions, meta_model=meta_model, targets=targets, eras=eras
    )
    x, rows = predictions_by_era(predictions, eras)
    m = as_column(meta_model, "meta_model", x.size)
    y = as_column(targets, "targets", x.size)
    check_finite(m, rows, "meta_model", allow_nan=True)
    check_finite(y, rows, "targets", allow_nan=True)
    usable = ~(np.isnan(m) | np.isnan(y))
    names = "meta_model and targets" if np.isnan(m).any() else "targets"
    counts = check_missing(usable, rows, names, max_missing_share)
    scores = np.empty(len(rows))
    for era, index in enumerate(rows):
        own_x, own_m, own_y = x[index], m[index], y[index]
        if counts[era] < own_y.size:
            used = usable[index]
            own_x, own_m, own_y = own_x[used], own_m[used], own_y[used]
        if _is_constant(own_m):
            scores[era] = np.nan
            continue
        g_x, g_m = gaussian_ranks(own_x), gaussian_ranks(own_m)
        new = g_x - g_m * ((g_x @ g_m) / (g_m @ g_m))
        if own_y.min() >= 0 and own_y.max() <= 1:
            own_y = own_y * 4
        scores[era] = (own_y - own_y.mean()) @ new / own_y.size
    return rows.result(scores, counts)


def feature_neutral_corr(
    predictions: ArrayLike,
    targets: ArrayLike,
    features: ArrayLike,
    eras: ArrayLike | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    max_missing_share: float = MAX_MISSING_SHARE,
) -> EraScores | float:
    """Compute FNC, the CORR of what features do not explain linearly.

    :func:`numerai_corr` of :math:`g(x) - N b`, the residual of the gaussianized ranks
    of all rows of an era (:func:`~sklearn_era.numerai.metrics.neutralize`).
    Rows without a target count in the ranks and the regression, but not in the
    correlation (numerai-tools 0.7.2, ``feature_neutral_corr``). Of rows that are equal
    in predictions and features, rounding may rank one above the other, there or here:
    in eras of a few rows with many ties, the two may then differ.

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers; only their order within an era matters.

    targets : array-like of shape (n_samples,)
        Numbers, such as 0, 0.25, ..., 1; NaN where not known.

    features : array-like of shape (n_samples, n_features)
        Integers or finite floats, converted to float64 one era at a time.

    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    feature_names : sequence of str of length n_features, default=None
        What messages call the features. None: the columns of a data frame, or else
        their positions.

    max_missing_share : float, default=0.2
        The largest share of an era's rows that may lack a target.

    Returns
    -------
    scores : EraScores or float
        Between -1 and 1. NaN in eras where all predictions are equal, or all targets,
        or where the features leave nothing of the predictions but rounding, of which
        the ranks would be noise. `n_samples` counts the rows that have a target.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value; if predictions or features are
        NaN or infinite; or if an era lacks too many targets. The message names the
        eras, and the features.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import feature_neutral_corr
    >>> features = [[0], [3], [1], [4], [2], [0]]
    >>> round(feature_neutral_corr([1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1], features), 6)
    0.699122
    """
    check_same_index(
        predictions=predictions, targets=targets, features=features, eras=eras
    )
    x, rows = predictions_by_era(predictions, eras)
    y = as_column(targets, "targets", x.size)
    neutral = np.empty_like(x)
    for index, block in feature_blocks(features, feature_names, rows, x.size):
        ranks = gaussian_ranks(x[index])
        left = residual(ranks, block)
        neutral[index] = np.nan if is_rounding(left, ranks) else left
    return _corr(neutral, y, rows, True, max_missing_share)


def churn(
    predictions: ArrayLike, others: ArrayLike, eras: ArrayLike | None = None
) -> EraScores | float:
    r"""Compute how differently two models rank the same rows, era by era.

    .. math:: 1 - \operatorname{pearson}(\operatorname{rank}(x), \operatorname{rank}(z))

    which is 1 minus Spearman's correlation (numerai-tools 0.7.2, ``signals.churn``).
    Ids are new in each era, so it compares two models, and not a model's rounds.

    Parameters
    ----------
    predictions, others : array-like of shape (n_samples,)
        Finite numbers; only their order within an era matters.

    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    Returns
    -------
    scores : EraScores or float
        0 for the same order, 1 for unrelated ones, 2 for the opposite; NaN in eras
        where all numbers of a model are equal.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value, or numbers are NaN or infinite.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import churn
    >>> round(churn([1, 2, 3, 4], [10, 20, 40, 30]), 6)
    0.2
    """
    check_same_index(predictions=predictions, others=others, eras=eras)
    x, rows = predictions_by_era(predictions, eras)
    z = as_column(others, "others", x.size)
    check_finite(z, rows, "others")
    correlations = [_pearson(rank_era(x[index]), rank_era(z[index])) for index in rows]
    return rows.result(1.0 - np.array(correlations))


def _power(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raise to the power of 3/2 and keep the sign."""
    return values * np.sqrt(np.abs(values))


def _is_constant(values: NDArray[np.float64]) -> bool:
    return bool(values.min() == values.max())


def _pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Pearson's correlation; NaN where one of the two is constant."""
    if _is_constant(a) or _is_constant(b):
        return np.nan
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip((a @ b) / (np.sqrt(a @ a) * np.sqrt(b @ b)), -1.0, 1.0))


__all__ = [
    "churn",
    "correlation_contribution",
    "feature_neutral_corr",
    "numerai_corr",
]
