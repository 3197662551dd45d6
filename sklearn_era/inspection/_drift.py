"""Measure the drift of a feature by the population stability index, and by the
distance of Kolmogorov and Smirnov.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def stability_index(
    bins: NDArray[np.intp], codes: NDArray[np.intp], is_reference: NDArray[np.bool_]
) -> Array:
    """Return the population stability index of each set of rows, given by `codes`,
    against all other reference sets; NaN if one side is empty. A bin without rows
    counts as half a row.
    """
    filled, bins = np.unique(bins, return_inverse=True)
    n = np.zeros((is_reference.size, filled.size))
    np.add.at(n, (codes, bins), 1)
    own = n * is_reference[:, np.newaxis]
    counts = np.stack([n, own.sum(axis=0) - own])
    n_rows = counts.sum(axis=-1, keepdims=True)
    shares = np.maximum(counts, 0.5) / np.maximum(n_rows, 1)
    index = np.where(counts.any(axis=0), np.diff(shares, axis=0)[0], 0.0)
    index = (index * np.diff(np.log(shares), axis=0)[0]).sum(axis=-1)
    return np.where(n_rows.all(axis=0)[:, 0], index, np.nan)


def distances(
    values: Array, codes: NDArray[np.intp], is_reference: NDArray[np.bool_]
) -> Array:
    """Return the Kolmogorov-Smirnov distance of each set of rows, given by `codes`,
    from all other reference sets; NaN if one side is empty. Leave out missing values.
    """
    found = np.full(is_reference.size, np.nan)
    known = ~np.isnan(values)
    values, codes = values[known], codes[known]
    reference = np.sort(values[is_reference[codes]])
    by_set = values[np.lexsort((values, codes))]
    stops = np.bincount(codes, minlength=found.size).cumsum()
    for i, own in enumerate(np.split(by_set, stops[:-1])):
        n_others = reference.size - is_reference[i] * own.size
        if not own.size or not n_others:
            continue
        # Both step functions are farthest apart beside a step of the set's own.
        gaps = [
            np.searchsorted(own, own, side) / own.size
            - np.searchsorted(reference, own, side) / reference.size
            for side in ("left", "right")
        ]
        # The set may be a part of the reference, whose others are farther away.
        found[i] = np.max(np.abs(gaps)) * reference.size / n_others
    return found
