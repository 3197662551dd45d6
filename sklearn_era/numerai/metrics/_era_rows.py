"""Rows era by era, and the checks that all metrics share."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from sklearn_era._eras import EncodedEras, check_eras, encode_eras
from sklearn_era.metrics import EraScores

Index = slice | NDArray[np.integer]
Column = NDArray[np.float64]


class EraRows:
    """Finite numbers `x`, and the rows of each era, in the order of the labels.

    Without labels, all rows are of one era. Iteration yields what picks an era's rows
    out of an array: a slice if they are in order, which copies nothing, or positions.
    """

    def __init__(
        self, x: ArrayLike, eras: ArrayLike | None, name: str = "predictions"
    ) -> None:
        self._indexed: tuple[str, Any] = "", None
        self.x: Column = as_numbers(x, name)
        self._check_index(x, name)
        self._check_index(eras, "eras")
        self.has_labels = eras is not None
        if eras is None:
            self._eras = EncodedEras(np.zeros(1), np.zeros(self.x.size, np.int32))
        else:
            self._eras = encode_eras(check_eras(eras, self.x, X_name=name))
        self._check_none(~np.isfinite(self.x), name, "NaN or infinite")

    def __iter__(self) -> Iterator[Index]:
        order = self._eras.order
        for start, stop in pairwise(self._eras.offsets.tolist()):
            yield slice(start, stop) if order is None else order[start:stop]

    def column(self, values: ArrayLike, name: str) -> Column:
        """Another number for each row, NaN where it is missing."""
        column = self._of_rows(values, name)
        self._check_none(np.isinf(column), name, "infinite")
        return column

    def score(
        self,
        function: Callable[..., float],
        max_missing_share: float,
        x: Column,
        **others: ArrayLike,
    ) -> EraScores | float:
        """Call a function with each era's rows without NaN; too few are refused."""
        share = {"min_val": 0, "max_val": 1, "include_boundaries": "left"}
        check_scalar(max_missing_share, "max_missing_share", Real, **share)
        columns = {name: self.column(values, name) for name, values in others.items()}
        missing = {name: np.isnan(column) for name, column in columns.items()}
        usable = ~np.any(list(missing.values()), axis=0)
        counts, all_counts = self._count(usable), self._eras.counts
        shares = counts / all_counts
        too_few = (shares < 1 - max_missing_share) | (counts == 0)
        if too_few.any():
            worst = int(np.argmin(shares))
            n, n_all = counts[worst], all_counts[worst]
            names = " and ".join(name for name, bad in missing.items() if bad.any())
            raise ValueError(
                f"{names}: {n_all - n:,} of {n_all:,} rows{self.describe(worst)} are "
                f"NaN, and at most {max_missing_share:.0%} may be; leave such eras out "
                f"({too_few.sum():,} of {counts.size:,})."
            )
        scores = []
        for index in self:
            own, part = usable[index], [v[index] for v in (x, *columns.values())]
            scores.append(function(*(part if own.all() else [v[own] for v in part])))
        return self.result(np.array(scores), counts)

    def blocks(
        self, features: ArrayLike, argument: str, names: Sequence[str] | None = None
    ) -> Iterator[tuple[int, Index, NDArray[Any]]]:
        """Yield each era's position, what picks its rows, and their finite features."""
        table = self._of_rows(features, argument, n_dim=2)
        n = table.shape[1]
        known: Any = getattr(features, "columns", range(n)) if names is None else names
        if len(known) != n:
            raise ValueError(
                f"{argument.removesuffix('s')}_names has {len(known):,} names, but "
                f"there are {n:,} columns."
            )
        for era, index in enumerate(self):
            block = table[index]
            bad = np.flatnonzero(~np.isfinite(block).all(axis=0))
            if bad.size:
                raise ValueError(
                    f"{argument} is NaN or infinite in {bad.size:,} of {n:,} columns "
                    f"in rows{self.describe(era)}, the first {str(known[bad[0]])!r}: "
                    "fill or leave out these columns."
                )
            yield era, index, block

    def describe(self, era: int) -> str:
        """Words for the era at a position: " of era 0001", none without labels."""
        return f" of era {self._eras.labels[era]!s}" if self.has_labels else ""

    def result(
        self, scores: Column, n_samples: NDArray[np.intp] | None = None
    ) -> EraScores | float:
        """The scores with their eras, or the one number without labels."""
        if not self.has_labels:
            return float(scores[0])
        counts = self._eras.counts if n_samples is None else n_samples
        return EraScores(self._eras.labels, scores, counts)

    def _of_rows(self, values: ArrayLike, name: str, n_dim: int = 1) -> NDArray[Any]:
        array = as_numbers(values, name, n_dim)
        if array.shape[0] != self.x.size:
            raise ValueError(
                f"{name} has {array.shape[0]:,} rows, but predictions has "
                f"{self.x.size:,}; pass the same rows in both."
            )
        self._check_index(values, name)
        return array

    def _check_index(self, values: Any, name: str) -> None:
        """Refuse pandas objects with different indexes, as rows match by position."""
        index, (other, known) = getattr(values, "index", None), self._indexed
        if not hasattr(index, "equals"):
            return
        if known is not None and not known.equals(index):
            raise ValueError(
                f"{other} and {name} have different indexes, but rows are matched by "
                "position: put them in the same order first, or pass arrays."
            )
        self._indexed = name, index

    def _check_none(self, bad: NDArray[np.bool_], name: str, what: str) -> None:
        if bad.any():
            counts = self._count(bad)
            era = self.describe(int(np.argmax(counts > 0)))
            raise ValueError(
                f"{name} is {what} in {counts.sum():,} of {bad.size:,} rows"
                f"{era and f', the first{era}'}: correct these, or leave the rows out."
            )

    def _count(self, selected: NDArray[np.bool_]) -> NDArray[np.intp]:
        codes = self._eras.codes[selected]
        return np.bincount(codes, minlength=self._eras.labels.size)


def as_numbers(values: ArrayLike, name: str, n_dim: int = 1) -> NDArray[Any]:
    """Make a float64 array of a number a row, or a table of the dtype that it has."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is masked: set the masked values to NaN.")
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be numbers, NaN where missing; got dtype {array.dtype}."
        )
    if array.ndim != n_dim or 0 in array.shape:
        needed = "one-dimensional" if n_dim == 1 else "a table"
        raise ValueError(
            f"{name} must be {needed}, not empty; got shape {array.shape}."
        )
    return array.astype(np.float64, copy=False) if n_dim == 1 else array
