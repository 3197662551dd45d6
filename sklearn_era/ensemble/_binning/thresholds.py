"""Find scikit-learn's thresholds of bins, but faster; also bin values by quantiles."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.binning import (
    _BinMapper,
    _find_binning_thresholds,
)
from sklearn.ensemble._hist_gradient_boosting.common import ALMOST_INF
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from ..._scikit_learn import BINS_ARE_WEIGHTED
from ..._tables.columns import INFINITE
from ..._tables.no_value import warn_of_no_value
from .integer_columns import Floats, Rows

# Fewer are sorted before a pool of threads has started.
_VALUES_FOR_THREADS = 500_000


def draw_rows(
    mapper: _BinMapper, n_samples: int, sample_weight: Floats | None
) -> tuple[Rows | None, Floats | None]:
    """Return (rows, weights), from which quantiles are computed. If scikit-learn would
    draw a sample of the rows (by `sample_weight`, if given), draw the same sample, and
    return None for the weights. Otherwise return None, which stands for all rows, and
    `sample_weight`.
    """
    if mapper.subsample is None or n_samples <= mapper.subsample:
        return None, sample_weight
    probabilities = None
    if sample_weight is not None and BINS_ARE_WEIGHTED:
        probabilities = sample_weight / np.sum(sample_weight)
    rows = check_random_state(mapper.random_state).choice(
        n_samples, mapper.subsample, p=probabilities, replace=BINS_ARE_WEIGHTED
    )
    return rows, None


def set_thresholds(
    mapper: _BinMapper, thresholds: Sequence[Floats | None], columns: Sequence[Any] = ()
) -> None:
    """Set the attributes of a fitted bin mapper. The thresholds of a column without a
    value are None: no tree splits on the column. Warn of it, by its name in `columns`.
    """
    known = mapper.known_categories or [None] * len(thresholds)
    is_categorical = np.array([x is not None for x in known], dtype=bool)
    mapper.is_categorical_ = is_categorical.astype(np.uint8)
    mapper.missing_values_bin_idx_ = mapper.n_bins - 1
    mapper.bin_thresholds_ = [
        next((x for x in pair if x is not None), np.empty(0))
        for pair in zip(known, thresholds, strict=True)
    ]
    sizes = [values.size for values in mapper.bin_thresholds_]
    mapper.n_bins_non_missing_ = np.array(sizes, dtype=np.uint32) + ~is_categorical
    empty = [columns[j] for j, found in enumerate(thresholds) if found is None]
    warn_of_no_value(empty, "the rows that bins are made from")


def find_thresholds(
    values: Floats, max_bins: int, sample_weight: Floats | None,
    categories: Floats | None = None,
) -> Floats | None:  # fmt: skip
    """Return scikit-learn's thresholds of a column, or `categories` if given; None if
    no value has weight. Sort values, and sum weights, only once for all quantiles.
    """
    is_known = ~np.isnan(values)
    if not BINS_ARE_WEIGHTED:
        sample_weight = None
    if sample_weight is not None:
        is_known &= sample_weight != 0
        sample_weight = sample_weight[is_known]
    if not is_known.all():
        values = values[is_known]
    if values.size == 0:
        return None
    if categories is not None:
        return categories
    if not BINS_ARE_WEIGHTED:  # other quantiles, without a faster way
        return _find_binning_thresholds(values, max_bins)
    if sample_weight is None:
        ordered = np.sort(values)
    else:
        order = np.argsort(values)
        ordered = values[order]
    is_first = np.append(True, ordered[1:] != ordered[:-1])
    if np.count_nonzero(is_first) <= max_bins:
        return _find_binning_thresholds(ordered[is_first], max_bins)
    is_negative = sample_weight is not None and (sample_weight < 0).any()
    # Quantiles between infinities are NaN, and sums of weights below 0 do not ascend.
    if is_negative or not np.isfinite(ordered[[0, -1]]).all():
        return _find_binning_thresholds(values, max_bins, sample_weight)
    if sample_weight is None:
        below, above = _places_of_quantiles(ordered.size, max_bins)
        thresholds = ordered[above] - (ordered[above] - ordered[below]) * 0.5
    else:
        weights = sample_weight[order]
        if not is_first.all():  # scikit-learn sorts again, and so adds in this order
            weights = weights[np.argsort(ordered)]
        below, above = _places_of_weighted_quantiles(np.cumsum(weights), max_bins)
        thresholds = (ordered[below] + ordered[above]) / 2
        thresholds = np.where(below == above, ordered[below], thresholds)
    return np.minimum(np.unique(thresholds), ALMOST_INF)


def _places_of_weighted_quantiles(sums: Floats, max_bins: int) -> tuple[Rows, Rows]:
    """Return what `_places_of_quantiles` does, by the sums of the weights up to each of
    the sorted values: a quantile lies between two values if a sum is exactly its share.
    """
    shares = np.linspace(0, 100, num=max_bins + 1)[1:-1] / 100 * sums[-1]
    last = sums.size - 1
    below = np.minimum(np.searchsorted(sums, shares), last)
    is_between = sums[below] - shares <= np.finfo(sums.dtype).eps
    return below, np.minimum(below + is_between, last)


@lru_cache(maxsize=16)
def _places_of_quantiles(n_values: int, max_bins: int) -> tuple[Rows, Rows]:
    """Return two arrays of positions among sorted values. A quantile is the mean of two
    values, one at its position in the first array, and one in the second.
    """
    percents = np.linspace(0, 100, num=max_bins + 1)[1:-1]
    numbers = np.arange(n_values, dtype=np.float64)
    places = np.percentile(numbers, percents, method="averaged_inverted_cdf")
    return np.floor(places).astype(np.intp), np.ceil(places).astype(np.intp)


def bin_edges(known: Floats, n_bins: int, method: Any) -> Floats:
    """Return the largest value of each bin except the last: quantiles or, if there are
    at most `n_bins` values, all of them. A value with more rows than the average bin
    gets a bin of its own; else its bin would have rarer values below it, but none
    above.
    """
    values, counts = np.unique(known, return_counts=True)
    edges = values[:-1]
    if values.size > n_bins:
        edges = np.quantile(known, np.arange(1, n_bins) / n_bins, method=method)
    alone = values[counts > max(1, known.size / n_bins)]
    return np.unique([*edges, *alone, *np.nextafter(alone, -np.inf)])


def bin_numbers(values: Floats, n_bins: int, method: Any) -> Rows:
    """Return the bin of each value, by `bin_edges`; missing values get one more bin."""
    is_missing = np.isnan(values)
    known = np.clip(values[~is_missing], -INFINITE, INFINITE)
    edges = bin_edges(known, n_bins, method)
    return np.where(is_missing, edges.size + 1, np.searchsorted(edges, values))


def map_in_threads(
    function: Callable[..., Any], arguments: Sequence[Iterable[Any]], n_threads: int,
    n_values: int,
) -> list[Any]:  # fmt: skip
    """Call a function, which must release the GIL, as ``map`` does; return the results.
    Use threads if the calls read many values, `n_values` in all. Do not use joblib,
    which looks for results only every 10 ms: a thread bins ten columns in this time.
    """
    if n_values < _VALUES_FOR_THREADS:
        return list(map(function, *arguments))
    with ThreadPoolExecutor(_openmp_effective_n_threads(n_threads)) as pool:
        return list(pool.map(function, *arguments))
