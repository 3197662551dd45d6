"""Check rows, group them by era, and score each era."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length

from sklearn_era._eras import check_eras, encode_eras
from sklearn_era._tables.checks import check_mask
from sklearn_era.metrics import EraScores
from sklearn_era.metrics._forecast_input import check_number

Index = slice | NDArray[np.integer]
Column = NDArray[np.float64]
Eras = ArrayLike | None
Scores = EraScores | Any  # or a float
_MOST_TARGETS = 7  # distinct values of Numerai's targets


class RowsByEra:
    """Checks the arguments of a metric, and groups their rows by era: iterate for the
    rows of each era. `x` is the first argument, as a vector of floats.
    """

    def __init__(self, eras: Eras, **arguments: Any) -> None:
        check_consistent_length(*arguments.values())
        indexes = [y.index for y in (eras, *arguments.values()) if hasattr(y, "iloc")]
        if not all(index.equals(indexes[0]) for index in indexes):
            raise ValueError(
                f"{', '.join(arguments)} and eras have different indexes, but rows are "
                "matched by position: put them in the same order, or pass arrays."
            )
        name = next(iter(arguments))
        self.x = _as_column(arguments[name], name)
        self._arguments = arguments
        if "y_true" in arguments:
            for other in (name, "meta_model"):
                if other in arguments:
                    _refuse_swapped(arguments["y_true"], other, arguments[other])
        self._has_labels = eras is not None
        labels = np.zeros(self.x.size) if eras is None else eras
        self._eras = encode_eras(check_eras(labels, self.x, X_name=name))

    def __iter__(self) -> Iterator[tuple[str, Index]]:
        """For each era, yield a text like " of era 0001" and the index of its rows."""
        order, bounds = self._eras.order, pairwise(self._eras.offsets.tolist())
        for label, (start, stop) in zip(self._eras.labels, bounds, strict=True):
            where = f" of era {label!s}" if self._has_labels else ""
            yield where, slice(start, stop) if order is None else order[start:stop]

    def blocks(self, argument: str) -> Iterator[tuple[str, Index, NDArray[Any]]]:
        """For each era, yield the text and index of `__iter__`, and the era's rows of
        `argument`. Raise ValueError if a value in these rows is not finite.
        """
        features = self._arguments[argument]
        table = check_array(features, ensure_all_finite=False, input_name=argument)
        if table.dtype.kind not in "biuf":
            raise ValueError(
                f"{argument} must be numbers; got {table.dtype}: encode categories as "
                "numbers, or leave them out."
            )
        names = getattr(features, "columns", range(table.shape[1]))
        for where, own in self:
            block = table[own]
            bad = np.flatnonzero(~np.isfinite(block).all(axis=0))
            if bad.size:
                raise ValueError(
                    f"{argument} is NaN or infinite in {bad.size:,} of {len(names):,} "
                    f"columns in rows{where}, the first {str(names[bad[0]])!r}: fill "
                    "or leave out these columns."
                )
            yield where, own, block

    def score(self, name: str, metric: Any, max_missing_share: float) -> Scores:
        """Return the metric of each era's rows without NaN; raise ValueError if more
        than the share `max_missing_share` of an era's rows has NaN.
        """
        share = {"min_val": 0, "max_val": 1, "include_boundaries": "left"}
        check_number(max_missing_share, "max_missing_share", **share)
        _, *others = self._arguments
        columns = [_as_column(self._arguments[y], y, "allow-nan") for y in others]
        usable: Any = ~np.isnan(columns).any(axis=0)
        scores, counts = [], []
        for where, own in self:
            n, n_all = np.count_nonzero(usable[own]), usable[own].size
            if n / n_all < 1 - max_missing_share:
                raise ValueError(
                    f"{' or '.join(others)} is NaN in {n_all - n:,} of {n_all:,} rows"
                    f"{where}, and at most {max_missing_share:.0%} may be: leave such "
                    "eras out."
                )
            scores.append(metric(*(y[own][usable[own]] for y in (self.x, *columns))))
            counts.append(n)
        return self.result(np.array(scores), np.array(counts), **{name: True})

    def result(self, scores: Column, counts: Any = None, **directions: bool) -> Scores:
        """Return scores by era, or the only score as a float if there are no labels."""
        if not self._has_labels:
            return float(scores[0])
        counts = self._eras.counts if counts is None else counts
        return EraScores(self._eras.labels, scores, counts, directions=directions)


def _refuse_swapped(y_true: ArrayLike, name: str, values: ArrayLike) -> None:
    """Raise ValueError if predictions have the few values of Numerai's targets
    (quarters or sixths) and targets have more: the arguments may be swapped.
    """
    column = _as_column(values, name, "allow-nan")
    column = column[~np.isnan(column)]
    parts = [column * 4, column * 6]
    is_target = any(abs(x - x.round()).max(initial=0.0) < 1e-3 for x in parts)
    if not is_target or np.unique(column).size < 3:  # a vote may be 0 or 1
        return
    if column.min() < 0 or column.max() > 1:
        return
    known = np.unique(_as_column(y_true, "y_true", "allow-nan"))
    if (n := np.count_nonzero(~np.isnan(known))) > _MOST_TARGETS:
        raise ValueError(
            f"{name} has the few values of Numerai's targets, and y_true {n:,} distinct"
            " ones: pass targets first and predictions second, in the order of "
            "scikit-learn's metrics rather than numerai-tools'."
        )


def _as_column(values: ArrayLike, name: str, finite: bool | str = True) -> Column:
    check_mask(values, name)
    options = {"ensure_all_finite": finite, "input_name": name}
    column = check_array(values, dtype=float, ensure_2d=False, **options)
    if column.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; got shape {column.shape}.")
    return column
