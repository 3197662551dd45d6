"""Bin columns that have more categories than bins. The most frequent categories have
bins of their own. Other categories share a bin if their targets are similar; for a row
of a rare category, targets are compared only in eras other than the row's own.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..._eras import Array, era_means
from ..._target_statistics import Ints, effects_elsewhere
from ..._warnings import warn_user
from .rare_categories import encoder_of, numbers_of_categories, set_bins
from .read_columns import column_name

# Number of rows of a category, by weights of mean 1, of which each has little part in
# its effect; bins that categories share have as many.
_ENOUGH_ROWS = 20
# Parts of a category's rows that are left out in turn where there are no eras.
_N_FOLDS = 5


def group_categories(
    estimator: BaseEstimator, X: Array, targets: Array, sample_weight: Array | None,
    eras: Any,
) -> None:  # fmt: skip
    """Bin each column that has more categories than bins. Set the bins in the encoder,
    and replace the codes in the first columns of X by bins. `targets` has the shape
    (n_rows, n_outputs).

    A row of a rare category gets the bin that suits the category's targets in eras
    other than the row's own, or NaN if the category is in no other era. If a row's own
    target had a part in the row's bin, trees would fit noise. Warn of a column if no
    category is frequent, and no category is in two eras.
    """
    encoder, is_single = encoder_of(estimator), eras is None or eras.labels.size == 1
    sizes, unknown = numbers_of_categories(encoder), []
    for i in np.flatnonzero(sizes > estimator.max_bins).tolist():
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        rows = np.flatnonzero(~np.isnan(X[:, i]) & (weights > 0))
        codes, weights = X[rows, i].astype(np.intp), weights[rows]
        parts = _folds(codes) if is_single else eras.codes[rows]
        y = _first_axis(targets[rows], codes, weights)
        bins, of_rows = _group(codes, parts, y, weights, sizes[i], estimator.max_bins)
        if of_rows is None and rows.size:
            column = np.flatnonzero(estimator.is_categorical_)[i]
            unknown.append(column_name(estimator, column))
        set_bins(encoder, i, bins)
        X[:, i] = bins_of_codes(X[:, i], bins)
        if of_rows is not None:
            X[rows, i] = of_rows
    if unknown:
        what = "row" if is_single else "era"
        warn_user(
            f"X: column {', '.join(unknown)} has more than {estimator.max_bins} "
            f"categories, each in a single {what}, so that no other {what} tells of "
            "them, and no tree splits on it. Drop it, or take columns that describe "
            "its categories."
        )


def _group(
    codes: Ints, parts: Ints, y: Array, weights: Array, n_categories: int, max_bins: int
) -> tuple[Ints, Array | None]:
    """Return the bin of each category, and the bin of each row. A row of a frequent
    category has the category's bin. A row of a rare category has the bin that the
    category gets from `parts` (eras or folds) other than the row's own, or NaN if no
    other part has the category. The second array is None if there are no rows, or if
    all categories are rare and each is in one part.
    """
    if codes.size == 0:
        return np.zeros(n_categories, dtype=np.intp), None
    scale = codes.size / weights.sum()
    # Scaled after they are summed up, so that equal sums stay equal.
    n_rows: Array = np.bincount(codes, weights, n_categories).astype(np.float64)
    n_rows *= scale
    weights = scale * weights
    # What all categories share in a part is no effect of theirs.
    y = y - era_means(parts, weights, y[np.newaxis])[0, parts]
    is_frequent, is_rare = n_rows >= _ENOUGH_ROWS, n_rows[codes] < _ENOUGH_ROWS
    y /= np.sqrt(np.average(y**2, weights=weights)) or 1.0
    found = effects_elsewhere(codes, parts, y, weights, n_categories)
    # Equal effects stay equal, whatever the order of rows.
    effects, elsewhere = (np.round(each, 10) for each in found)
    if np.isnan(elsewhere).all() and not is_frequent.any():
        return np.zeros(n_categories, dtype=np.intp), None
    own, thresholds = _limits(n_rows, effects, max_bins)
    bins = np.searchsorted(thresholds, effects) + own.size
    bins[own] = np.arange(own.size)
    of_rows = np.searchsorted(thresholds, elsewhere) + own.size
    of_rows = np.where(np.isnan(elsewhere), np.nan, of_rows)
    return bins, np.where(is_rare, of_rows, bins[codes])


def bins_of_codes(codes: Array, bins: Ints) -> Array:
    """Return the bin of each code; NaN where the code is NaN."""
    return np.where(np.isnan(codes), np.nan, bins[np.nan_to_num(codes).astype(np.intp)])


def _limits(n_rows: Array, effects: Array, max_bins: int) -> tuple[Ints, Array]:
    """Return two arrays: the frequent categories that get bins of their own, and the
    thresholds that divide the `effects` of the other categories into bins of about
    equal numbers of rows. `n_rows` and `effects` have an entry for each category.
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
    at = np.floor((np.cumsum(n) - n / 2) * n_bins / n.sum())
    ends = np.flatnonzero(np.diff(at))
    return own, np.unique((ordered[ends] + ordered[ends + 1]) / 2)


def _first_axis(targets: Array, codes: Ints, weights: Array) -> Array:
    """Return each row's targets, projected on the axis where categories differ most."""
    if targets.shape[1] == 1:
        return targets[:, 0]
    n = np.bincount(codes, weights)
    means = np.nan_to_num(era_means(codes, weights, targets.T))
    means -= np.average(means, axis=1, weights=n)[:, np.newaxis]
    axis = np.linalg.eigh((means * n) @ means.T)[1][:, -1]
    return targets @ (axis * np.sign(axis[np.abs(axis).argmax()]))


def _folds(codes: Ints) -> Ints:
    """Return the fold of each row; a category's rows are divided evenly among folds."""
    order, n = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=1)
    folds = np.empty(codes.size, dtype=np.intp)
    folds[order] = np.arange(codes.size) - np.repeat(np.cumsum(n) - n, n)
    return folds % _N_FOLDS
