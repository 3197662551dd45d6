"""Bin columns, list the possible conditions on columns, and write them as text."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

from .._tables.columns import INFINITE
from .._trees.traversal import threshold_text
from .._typing import Seed
from ..ensemble._binning.floats import fit_float_mapper

# A column and the bins that a rule accepts, bit i for bin i.
BinsOfColumn = tuple[int, int]


@dataclass(frozen=True)
class Conditions:
    """All possible conditions, numbered column by column."""

    first: NDArray[np.int32]  # column j has first[j] to first[j + 1] - 1
    column: NDArray[np.int32]
    lower: NDArray[np.int32]  # bins `lower` to `upper` are covered, or all others
    upper: NDArray[np.int32]
    is_complement: NDArray[np.uint8]
    missing_bin: int

    def bins(self, condition: int) -> BinsOfColumn:
        """Return a condition's column, and a number in which bit i is set for each bin
        i that the condition accepts.
        """
        bins = (2 << int(self.upper[condition])) - (1 << int(self.lower[condition]))
        if self.is_complement[condition]:
            bins ^= (2 << self.missing_bin) - 1
        return int(self.column[condition]), bins


def fit_bins(
    X: NDArray[np.float64], known_categories: list[NDArray[np.float64] | None],
    sample_weight: NDArray[np.float64] | None, names: NDArray[Any], *, n_bins: int,
    binning: str, random_state: Seed, n_threads: int,
) -> _BinMapper:  # fmt: skip
    """Return scikit-learn's bin mapper, fitted to bins of equal width or weight. A
    column of at most `n_bins` distinct values has a bin for each value.
    """
    mapper = _BinMapper(
        n_bins=n_bins + 1, known_categories=known_categories, random_state=random_state,
        n_threads=n_threads,
    )  # fmt: skip
    fit_float_mapper(mapper, X, sample_weight, names.tolist())
    if binning == "uniform":
        for j in np.flatnonzero(mapper.is_categorical_ == 0):
            known = np.unique(X[~np.isnan(X[:, j]), j])
            if known.size > n_bins:
                finite = known[np.abs(known) < INFINITE]
                edges = np.linspace(finite[0], finite[-1], n_bins + 1)[1:-1]
                filled = np.unique(np.searchsorted(edges, known))
                mapper.bin_thresholds_[j] = edges[filled[:-1]]
                mapper.n_bins_non_missing_[j] = filled.size
    # After all others: there may be more categories than numeric bins.
    mapper.missing_values_bin_idx_ = int(mapper.n_bins_non_missing_.max())
    return mapper


def list_conditions(mapper: _BinMapper, has_missing: NDArray[np.bool_]) -> Conditions:
    """Return all distinct conditions: ``<=`` and ``>`` the edge of a bin, ``=`` and
    ``!=`` a category, missing and not missing. A missing value is on neither side of an
    edge, and is not a category, so that it meets every ``!=``.
    """
    missing_bin = mapper.missing_values_bin_idx_
    rows: list[tuple[int, int, int, bool]] = []
    first = [0]
    for j, n_bins in enumerate(mapper.n_bins_non_missing_.tolist()):
        if mapper.is_categorical_[j]:
            rows += [(j, c, c, False) for c in range(n_bins)]
            if n_bins > 2 or has_missing[j]:
                rows += [(j, c, c, True) for c in range(n_bins)]
        else:
            rows += [(j, 0, k, False) for k in range(n_bins - 1)]
            rows += [(j, k, n_bins - 1, False) for k in range(1, n_bins)]
        if has_missing[j]:
            rows += [(j, missing_bin, missing_bin, flag) for flag in (False, True)]
        first.append(len(rows))
    column, lower, upper, is_complement = np.array(rows, np.int32).reshape(-1, 4).T
    return Conditions(
        np.array(first, np.int32), column, lower.copy(), upper.copy(),
        is_complement.astype(np.uint8), missing_bin,
    )  # fmt: skip


def is_covered(
    X_binned: NDArray[np.uint8], conditions: Iterable[BinsOfColumn]
) -> NDArray[np.bool_]:
    """Return the mask of rows that meet all conditions."""
    covered = np.ones(X_binned.shape[0], dtype=bool)
    for column, bins in conditions:
        is_inside = np.array([bins >> i & 1 for i in range(256)], dtype=bool)
        covered &= is_inside[X_binned[:, column]]
    return covered


def condition_text(
    mapper: _BinMapper, name: str, categories: list[Any] | None, bins: BinsOfColumn
) -> str:
    """Return the text of a rule's conditions on one column, joined by *and*."""
    column, mask = bins
    n_bins = int(mapper.n_bins_non_missing_[column])
    inside = [i for i in range(n_bins) if mask >> i & 1]
    takes_missing = mask >> mapper.missing_values_bin_idx_ & 1
    if not inside:
        return f"{name} is missing"
    if len(inside) == n_bins:
        return f"{name} is not missing"
    parts: list[str] = []
    if categories is None:
        thresholds = mapper.bin_thresholds_[column]
        if inside[0] > 0:
            parts.append(f"{name} > {threshold_text(thresholds[inside[0] - 1])}")
        if inside[-1] < n_bins - 1:
            parts.append(f"{name} <= {threshold_text(thresholds[inside[-1]])}")
    elif len(inside) == 1 and not takes_missing:
        parts = [f"{name} = {categories[inside[0]]}"]
    else:
        parts = [f"{name} is not missing"] * (not takes_missing)
        outside = (i for i in range(n_bins) if i not in inside)
        parts += [f"{name} != {categories[i]}" for i in outside]
    return " and ".join(parts)
