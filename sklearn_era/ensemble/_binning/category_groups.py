"""Columns of more categories than bins: frequent categories have bins of their own, and
others share one with those whose rows in other eras have a similar target.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._category_effects import estimate_effects
from ..._eras import era_means
from ..._warnings import warn_user
from .errors import column_name
from .rare_categories import encoder_of, numbers_of_categories, set_bins

Array = NDArray[np.float64]

# Number of rows of a category, by weights of mean 1, of which each has little part in
# its effect; bins that categories share have as many.
_ENOUGH_ROWS = 20
# Parts of a category's rows that are left out in turn where there are no eras.
_N_FOLDS = 5


def group_categories(
    estimator: Any, X: Array, targets: Array, sample_weight: Array | None, eras: Any
) -> None:
    """Set bins of categories in the encoder, and of rows in X, whose first columns have
    codes of categories. Rows of rare categories have the bin of their category without
    the targets, (n_rows, n_outputs), of their own era; that of missing values if other
    eras do not have the category. Otherwise trees would fit their noise.
    """
    encoder, max_bins = encoder_of(estimator), estimator.max_bins
    columns = np.flatnonzero(estimator.is_categorical_)
    sizes, unknown = numbers_of_categories(encoder), []
    for i in np.flatnonzero(sizes > max_bins).tolist():
        is_used = ~np.isnan(X[:, i])
        if sample_weight is not None:
            is_used &= sample_weight > 0
        rows = np.flatnonzero(is_used)
        codes = X[rows, i].astype(np.intp)
        weights = np.ones(rows.size) if sample_weight is None else sample_weight[rows]
        scale = rows.size / weights.sum() if rows.size else 1.0
        # Scaled after they are summed up, so that equal sums stay equal.
        n_rows: Array = scale * np.bincount(codes, weights, sizes[i]).astype(np.float64)
        weights = scale * weights
        y = _first_axis(targets[rows], codes, weights)
        if eras is None or eras.labels.size == 1:
            parts = _folds(codes)
        else:  # whose levels are no effect of categories
            parts = eras.codes[rows]
            n_eras = eras.labels.size
            y = y - era_means(parts, weights, y[np.newaxis], n_eras)[0, parts]
        found = estimate_effects(codes, parts, y, weights, int(sizes[i]))
        if np.isnan(found.of_rows).all() and n_rows.max() < _ENOUGH_ROWS:
            set_bins(encoder, i, np.zeros(sizes[i], dtype=np.intp))
            X[~np.isnan(X[:, i]), i] = 0.0
            unknown.append(column_name(estimator, columns[i]))
            continue
        own, thresholds = _limits(n_rows, found.effects, max_bins)
        bins = np.searchsorted(thresholds, found.effects) + own.size
        bins[own] = np.arange(own.size)
        set_bins(encoder, i, bins)
        X[:, i] = bins_of_codes(X[:, i], bins)
        is_rare = n_rows[codes] < _ENOUGH_ROWS
        effects = found.of_rows[is_rare]
        of_rows = np.searchsorted(thresholds, effects) + own.size
        X[rows[is_rare], i] = np.where(np.isnan(effects), np.nan, of_rows)
    if unknown:
        what = "row" if eras is None or eras.labels.size == 1 else "era"
        warn_user(
            f"X: column {', '.join(unknown)} has more than {max_bins} categories, each "
            f"in a single {what}, of which other {what}s tell nothing: no tree splits "
            "on it. Drop it, or take columns that describe its categories."
        )


def bins_of_codes(codes: Array, bins: NDArray[np.intp]) -> Array:
    """Return the bins of codes, some of them NaN."""
    return np.where(np.isnan(codes), np.nan, bins[np.nan_to_num(codes).astype(np.intp)])


def _limits(
    n_rows: Array, effects: Array, max_bins: int
) -> tuple[NDArray[np.intp], Array]:
    """Return the categories with a bin of their own, the most frequent ones, and the
    thresholds of effects between bins of others, of about equally many rows.
    """
    n_shared = max(1, max_bins // 4)
    n_own = max(max_bins - n_shared, 2 * max_bins - n_rows.size)
    own = np.argsort(-n_rows, kind="stable")[:n_own]
    own = np.sort(own[n_rows[own] >= _ENOUGH_ROWS])
    others = np.delete(np.arange(n_rows.size), own)
    others = others[np.argsort(effects[others], kind="stable")]
    n, ordered = n_rows[others], effects[others]
    n_bins = min(max_bins - own.size, n_shared, int(n.sum() // _ENOUGH_ROWS))
    if n_bins < 2:
        return own, np.array([])
    at = np.floor((np.cumsum(n) - n / 2) * (n_bins / n.sum()))
    ends = np.flatnonzero(np.diff(at))
    return own, np.unique((ordered[ends] + ordered[ends + 1]) / 2)


def _first_axis(targets: Array, codes: NDArray[np.intp], weights: Array) -> Array:
    """Return targets along the line on which the means of categories differ most."""
    if targets.shape[1] == 1:
        return targets[:, 0]
    n = np.bincount(codes, weights)
    sums = np.array([np.bincount(codes, weights * each) for each in targets.T])
    means = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
    means -= np.average(means, axis=1, weights=n)[:, np.newaxis]
    axis = np.linalg.eigh((means * n) @ means.T)[1][:, -1]
    return targets @ (axis * np.sign(axis[np.abs(axis).argmax()]))


def _folds(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return rows' numbers within their categories, modulo the number of folds."""
    order, n = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=1)
    folds = np.empty(codes.size, dtype=np.intp)
    folds[order] = np.arange(codes.size) - np.repeat(np.cumsum(n) - n, n)
    return folds % _N_FOLDS
