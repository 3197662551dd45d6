r"""Compute Numerai's scores of predictions for many eras at once, by numerai-tools.

Each function treats every era separately, with rows in any order; without `eras`, all
rows are one era. Scores are an :class:`~sklearn_era.metrics.EraScores` sorted by label,
or a float without `eras`. Rows are matched **by position**; pandas objects with
different indexes are refused.

The equations are those of ``numerai_tools.scoring`` (0.7.2; Numerai, 2025), with
:math:`p(x) = \operatorname{sign}(x) |x|^{3/2}` and gaussianized ranks
:math:`g(x) = \Phi^{-1}((\operatorname{rank}(x) - 1/2) / n)`, where ties have average
ranks. The functions raise ValueError for bad shapes and values, for eras with too few
targets, and for predictions passed before targets, which is the order of numerai-tools.
They raise ValueError or TypeError for bad types. CORR, MMC, BMC and FNC need
``sklearn-era[numerai]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.feature_selection import r_regression

from sklearn_era._optional import import_optional
from sklearn_era.metrics._forecast_input import check_number
from sklearn_era.numerai.rows_by_era import Column, Eras, RowsByEra, Scores
from sklearn_era.preprocessing._neutralizer import regression

__all__ = [
    "correlation_contribution", "feature_exposures", "feature_neutral_corr",
    "gaussianize", "max_feature_exposure", "neutralize", "neutralize_ranks",
    "numerai_corr", "rank_normalize",
]  # fmt: skip

MAX_MISSING_SHARE = 0.2  # Numerai scores submissions with 80 % of a round's ids


def rank_normalize(x: ArrayLike, *, eras: Eras = None) -> Column:
    r"""Rank numbers within their era: :math:`(\operatorname{rank}(x_i) - 1/2) / n`.

    Parameters
    ----------
    x, eras : array-like of shape (n_samples,)
        Finite numbers; and the era's label of each number, or None for a single era.

    Returns
    -------
    ranks : ndarray of shape (n_samples,), dtype=float64
        Ranks between ``0.5 / n`` and ``1 - 0.5 / n``; ties have their average rank.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import rank_normalize
    >>> rank_normalize([0.2, 0.7, 0.2, -1.0]).tolist()
    [0.5, 0.875, 0.5, 0.125]
    """
    rows = RowsByEra(eras, x=x)
    ranks = np.empty_like(rows.x)
    for _, own in rows:
        ranks[own] = (rankdata(rows.x[own]) - 0.5) / rows.x[own].size
    return ranks


def gaussianize(ranks: ArrayLike) -> Column:
    r"""Map ranks to standard normal quantiles: :math:`\Phi^{-1}(r_i)`.

    Parameters
    ----------
    ranks : array-like of shape (n_samples,)
        Ranks strictly between 0 and 1, as :func:`rank_normalize` returns them.

    Returns
    -------
    values : ndarray of shape (n_samples,), dtype=float64
        The quantiles, in standard deviations.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import gaussianize
    >>> gaussianize([0.125, 0.5, 0.875]).round(3).tolist()
    [-1.15, 0.0, 1.15]
    """
    values = RowsByEra(None, ranks=ranks).x
    if not (values.min() > 0 and values.max() < 1):
        raise ValueError(
            "ranks must be strictly between 0 and 1, as rank_normalize returns them; "
            f"got {values.min()!s} to {values.max()!s}."
        )
    return ndtri(values)


def numerai_corr(
    y_true: ArrayLike, y_pred: ArrayLike, *,
    eras: Eras = None, max_missing_share: float = MAX_MISSING_SHARE,
) -> Scores:  # fmt: skip
    r"""Compute CORR, a correlation of targets and predictions that stresses extremes.

    :math:`\operatorname{pearson}(p(g(x)), p(y - \bar y))`, with the module's p and g.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Targets y such as 0, 0.25, ..., 1, or NaN if unknown; and finite predictions x.
    eras, max_missing_share : array-like and float, default=None and 0.2
        The label of each row's era, if any; and the largest share of an era's rows that
        may lack a target. Rows without a target are left out.

    Returns
    -------
    scores : EraScores or float
        Correlations between -1 and 1; NaN where predictions or targets are all equal.
        `n_samples` counts the rows that have a target.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import numerai_corr
    >>> round(numerai_corr([0.0, 0.5, 0.25, 1.0], [0.1, 0.4, 0.3, 0.9]), 6)
    0.981449
    """
    rows = RowsByEra(eras, y_pred=y_pred, y_true=y_true)
    return rows.score("numerai_corr", _corr, max_missing_share)


def correlation_contribution(
    y_true: ArrayLike, y_pred: ArrayLike, meta_model: ArrayLike, *,
    eras: Eras = None, max_missing_share: float = MAX_MISSING_SHARE,
) -> Scores:  # fmt: skip
    r"""Compute MMC, the contribution to a meta model, or BMC, to a benchmark model.

    :math:`(y - \bar y) \cdot (x - m (x \cdot m) / (m \cdot m)) / n`, with g applied to
    the predictions x and the meta model m, and targets y in [0, 1] multiplied by 4.

    Parameters
    ----------
    y_true, y_pred, meta_model : array-like of shape (n_samples,)
        Targets y, finite predictions x, and predictions m of the meta model. Unknown
        targets and unknown predictions of the meta model are NaN.
    eras, max_missing_share : array-like and float, default=None and 0.2
        As in :func:`numerai_corr`. The share counts rows where y or m is NaN.

    Returns
    -------
    scores : EraScores or float
        A covariance; 0 if all values of x are equal, NaN if all values of m are equal.
        `n_samples` counts the rows in which neither y nor m is NaN.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import correlation_contribution
    >>> round(correlation_contribution([0.0, 0.5, 1.0], [1, 3, 2], [2, 1, 3]), 6)
    0.967422
    """
    rows = RowsByEra(eras, y_pred=y_pred, meta_model=meta_model, y_true=y_true)
    return rows.score("correlation_contribution", _contribution, max_missing_share)


def feature_neutral_corr(
    y_true: ArrayLike, y_pred: ArrayLike, features: ArrayLike, *,
    eras: Eras = None, max_missing_share: float = MAX_MISSING_SHARE,
) -> Scores:  # fmt: skip
    """Compute FNC: :func:`numerai_corr` of gaussianized ranks, neutralized by features.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        As in :func:`numerai_corr`; rows without a target are neutralized too.
    features : array-like of shape (n_samples, n_features)
        Integers or finite floats, converted to float64 one era at a time.
    eras, max_missing_share : array-like and float, default=None and 0.2
        As in :func:`numerai_corr`.

    Returns
    -------
    scores : EraScores or float
        As in :func:`numerai_corr`; also NaN if features explain predictions fully.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import feature_neutral_corr
    >>> round(feature_neutral_corr([0, 0, 1, 1], [1, 2, 3, 4], [[0], [3], [1], [0]]), 6)
    0.801716
    """
    rows = RowsByEra(eras, y_pred=y_pred, y_true=y_true, features=features)
    spread = gaussianize(rank_normalize(y_pred, eras=eras))
    for _, own, block in rows.blocks("features"):
        spread[own] = regression(spread[own, np.newaxis], block)[0][:, 0]
    rows = RowsByEra(eras, y_pred=spread, y_true=y_true)
    return rows.score("feature_neutral_corr", _corr, max_missing_share)


def feature_exposures(
    y_pred: ArrayLike, features: ArrayLike, *, eras: Eras = None
) -> Column:
    r"""Correlate predictions with features: :math:`\operatorname{pearson}(x, f_j)`.

    Parameters
    ----------
    y_pred, features, eras : array-like
        As in :func:`feature_neutral_corr`. For a submission's exposures, pass ranks.

    Returns
    -------
    exposures : ndarray of shape (n_eras, n_features), dtype=float64
        Correlations between -1 and 1, with one row per era in the order of the labels;
        without `eras`, the shape is (n_features,). A correlation is NaN where the
        feature or the predictions are constant.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import feature_exposures
    >>> feature_exposures([1, 2, 3], [[0, 2], [1, 2], [2, 2]]).round(6).tolist()
    [1.0, nan]
    """
    rows = RowsByEra(eras, y_pred=y_pred, features=features)
    exposures = []
    for _, own, block in rows.blocks("features"):
        # Shifted by the first row: large means cost no digits, constants are exactly 0.
        x, shifted = rows.x[own], np.subtract(block, block[0], dtype=np.float64)
        correlations = r_regression(shifted, x - x[0], force_finite=False)
        exposures.append(np.clip(correlations, -1, 1))
    return exposures[0] if eras is None else np.array(exposures)


def max_feature_exposure(
    y_pred: ArrayLike, features: ArrayLike, *, eras: Eras = None
) -> Scores:
    r"""Compute the largest :math:`|\operatorname{pearson}(x, f_j)|` of all features.

    Parameters
    ----------
    y_pred, features, eras : array-like
        As in :func:`feature_exposures`.

    Returns
    -------
    scores : EraScores or float
        Values from 0 to 1, the smaller the better; NaN where the predictions or all
        features are constant.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import max_feature_exposure
    >>> round(max_feature_exposure([1, 2, 3], [[0, 4], [1, 2], [2, 0]]), 6)
    1.0
    """
    exposures = np.atleast_2d(feature_exposures(y_pred, features, eras=eras))
    # `fmax` returns NaN for all-NaN input without the warning of `nanmax`.
    largest = np.fmax.reduce(np.abs(exposures), axis=1)
    return RowsByEra(eras, y_pred=y_pred).result(largest, max_feature_exposure=False)


def neutralize(
    y_pred: ArrayLike, neutralizers: ArrayLike, *, proportion: float = 1.0,
    eras: Eras = None,
) -> Column:  # fmt: skip
    r"""Subtract from predictions the part that neutralizers explain linearly.

    :math:`x - c N b` with :math:`b = \arg\min_b \lVert x - N b \rVert^2`, where the
    columns of N are an era's neutralizers and a column of ones.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,)
        Finite x. For scores or submissions, pass ``gaussianize(rank_normalize(x))``.
    neutralizers : array-like of shape (n_samples, n_neutralizers)
        Integers or finite floats, converted to float64 one era at a time.
    proportion, eras : float and array-like, default=1.0 and None
        The factor c, from 0 (subtract nothing) to 1; and the era of each row, if any.

    Returns
    -------
    neutral : ndarray of shape (n_samples,), dtype=float64
        The neutralized predictions, in the unit of `y_pred`.

    Raises
    ------
    ValueError
        If all predictions of an era are equal; or if ``proportion=1``, and the
        neutralizers explain the predictions of an era completely.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import neutralize
    >>> neutralize([1.0, 2.0, 4.0, 5.0], [[0], [0], [1], [1]]).round(6).tolist()
    [-0.5, 0.5, -0.5, 0.5]
    """
    check_number(proportion, "proportion", min_val=0, max_val=1)
    rows = RowsByEra(eras, y_pred=y_pred, neutralizers=neutralizers)
    neutral = np.empty_like(rows.x)
    for where, own, block in rows.blocks("neutralizers"):
        x = rows.x[own]
        left = regression(x[:, np.newaxis], block)[0][:, 0]
        if np.ptp(x) == 0 or (proportion == 1 and not left.any()):
            raise ValueError(
                f"Nothing is left of the predictions{where}: they are all equal, or "
                f"the neutralizers ({block.shape[1]:,}) explain them fully; take fewer,"
                " or a proportion below 1."
            )
        neutral[own] = x - proportion * (x - left)
    return neutral


def neutralize_ranks(
    ranks: ArrayLike, neutralizers: ArrayLike, *, proportion: float
) -> Column:
    """Gaussianize one era's ranks, :func:`neutralize` them, and rank the result.

    Parameters
    ----------
    ranks : array-like of shape (n_samples,)
        Ranks strictly between 0 and 1, as ``rank_normalize`` returns them.
    neutralizers, proportion : array-like and float
        As in :func:`neutralize`.

    Returns
    -------
    ranks : ndarray of shape (n_samples,), dtype=float64
        The new ranks, between 0 and 1.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import neutralize_ranks
    >>> ranks, by = [0.1, 0.4, 0.5, 0.9], [[0], [1], [0], [1]]
    >>> neutralize_ranks(ranks, by, proportion=1.0).tolist()
    [0.375, 0.125, 0.625, 0.875]
    """
    spread = gaussianize(ranks)
    return rank_normalize(neutralize(spread, neutralizers, proportion=proportion))


def import_tools() -> tuple[Any, Any]:
    """Return pandas, and numerai_tools.scoring, whose functions take pandas objects."""
    pandas = import_optional("pandas", extra="numerai")
    return pandas, import_optional("numerai_tools.scoring", extra="numerai")


def _corr(x: Column, y: Column) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    pandas, scoring = import_tools()
    # p is applied here: numerai-tools asserts that targets have no outliers.
    y = y - y.mean()
    y = pandas.Series(np.sign(y) * np.abs(y) ** 1.5)
    return scoring.numerai_corr(pandas.DataFrame({"x": x}), y, target_pow15=False)["x"]


def _contribution(x: Column, m: Column, y: Column) -> float:
    if np.ptp(m) == 0:
        return np.nan
    pandas, scoring = import_tools()
    others = pandas.Series(m), pandas.Series(y)
    return scoring.correlation_contribution(pandas.DataFrame({"x": x}), *others)["x"]
