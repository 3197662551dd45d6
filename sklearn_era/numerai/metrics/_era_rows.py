"""Rows era by era, and the checks that all scores share."""

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_era._eras import check_eras, encode_eras
from sklearn_era.metrics import EraScores

# Numerai scores a submission that matches 80 % of a round's ids, and no less.
MAX_MISSING_SHARE = 0.2

# How many names a message spells out before it only counts them.
_MAX_NAMED = 5

Index = slice | NDArray[np.integer]


class EraRows:
    """Which rows belong to which era, in the order of the labels.

    Iteration yields, for each era, what picks its rows out of an array: a slice where
    the rows are in order, which copies nothing, and else their positions.

    Parameters
    ----------
    eras : array-like of shape (n_samples,) or None
        A label a row. None: all rows are one era, and a score is a float.

    predictions : ndarray of shape (n_samples,)
        The rows that `eras` labels.

    name : str, default="predictions"
        What messages call them.

    Attributes
    ----------
    labels : ndarray of shape (n_eras,) or None
        The distinct labels, sorted.

    counts : ndarray of shape (n_eras,), dtype=intp
        Rows in each era.
    """

    def __init__(
        self,
        eras: ArrayLike | None,
        predictions: NDArray[Any],
        *,
        name: str = "predictions",
    ) -> None:
        self.labels: NDArray[Any] | None = None
        self.counts: NDArray[np.intp] = np.array([predictions.shape[0]], np.intp)
        self._codes: NDArray[np.int32] | None = None
        self._order: NDArray[np.uint32] | None = None
        if eras is not None:
            encoded = encode_eras(check_eras(eras, predictions, X_name=name))
            self.labels, self.counts = encoded.labels, encoded.counts
            self._codes = encoded.codes
            self._order = encoded.order

    def __len__(self) -> int:
        return self.counts.size

    def __iter__(self) -> Iterator[Index]:
        start = 0
        for stop in np.cumsum(self.counts).tolist():
            if self._order is None:
                yield slice(start, stop)
            else:
                yield self._order[start:stop]
            start = stop

    def count(self, selected: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Count the selected rows of each era."""
        if self._codes is None:
            return np.array([np.count_nonzero(selected)], np.intp)
        return np.bincount(self._codes[selected], minlength=len(self))

    def describe(self, era: int) -> str:
        """Return words for the era at a position: " of era 0001", or none if one."""
        return "" if self.labels is None else f" of era {self.labels[era]!s}"

    def result(
        self, scores: NDArray[np.float64], n_samples: NDArray[np.intp] | None = None
    ) -> EraScores | float:
        """Return the scores with their eras, or the one number where there are none."""
        if self.labels is None:
            return float(scores[0])
        n_samples = self.counts if n_samples is None else n_samples
        return EraScores(self.labels, scores, n_samples)


def as_column(
    values: ArrayLike, name: str, n_samples: int | None = None
) -> NDArray[np.float64]:
    """Make a float64 array of one number a row.

    Raises
    ------
    ValueError
        If `values` are no numbers, no column, none at all, or not `n_samples`.
    """
    array = _as_numbers(values, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, with one number a row; got an array of "
            f"shape {array.shape}."
        )
    _check_rows(array, name, n_samples)
    return array.astype(np.float64, copy=False)


def as_table(values: ArrayLike, name: str, n_samples: int) -> NDArray[Any]:
    """Make an array of rows and columns, of the dtype that it has.

    Raises
    ------
    ValueError
        If `values` are no numbers, have no columns, or not `n_samples` rows.
    """
    array = _as_numbers(values, name)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name} must be two-dimensional, with one column at least; got an array "
            f"of shape {array.shape}."
        )
    _check_rows(array, name, n_samples)
    return array


def _as_numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is masked: set the masked values to NaN.")
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be numbers, with NaN for missing ones; got dtype "
            f"{array.dtype}."
        )
    return array


def _check_rows(array: NDArray[Any], name: str, n_samples: int | None) -> None:
    if array.shape[0] == 0:
        raise ValueError(f"{name} has no rows.")
    if n_samples is not None and array.shape[0] != n_samples:
        raise ValueError(
            f"{name} has {array.shape[0]:,} rows, but predictions has {n_samples:,}; "
            "pass the same rows in both."
        )


def check_same_index(**arguments: Any) -> None:
    """Refuse pandas objects whose rows are not the same ones, for the index is unused.

    Raises
    ------
    ValueError
        If two of the arguments have an index, and these differ.
    """
    indexed = [
        (name, value.index)
        for name, value in arguments.items()
        if hasattr(value, "index") and hasattr(value.index, "equals")
    ]
    for name, index in indexed[1:]:
        first_name, first = indexed[0]
        if index is not first and not index.equals(first):
            raise ValueError(
                f"{name} and {first_name} have different indexes, but rows are matched "
                "by position: match them by id first (match_ids), or pass arrays."
            )


def check_finite(
    values: NDArray[np.float64], rows: EraRows, name: str, *, allow_nan: bool = False
) -> None:
    """Refuse infinite numbers, and NaN unless it stands for a missing value.

    Raises
    ------
    ValueError
        If there are any; the message names the eras.
    """
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return
    counts = rows.count(bad)
    where = ""
    if rows.labels is not None:
        eras = np.flatnonzero(counts)
        named = [f"{counts[i]:,}{rows.describe(i)}" for i in eras[:_MAX_NAMED]]
        more = ", …" if eras.size > _MAX_NAMED else ""
        where = f" ({', '.join(named)}{more})"
    what = "infinite" if allow_nan else "NaN or infinite"
    raise ValueError(
        f"{name} is {what} in {counts.sum():,} of {values.size:,} rows{where}: mend "
        "these, or leave the rows out."
    )


def check_missing(
    usable: NDArray[np.bool_], rows: EraRows, names: str, max_missing_share: float
) -> NDArray[np.intp]:
    """Refuse eras in which too large a share of the rows cannot be scored.

    Parameters
    ----------
    usable : ndarray of shape (n_samples,), dtype=bool
        Rows that have all that a score needs.

    rows : EraRows

    names : str
        What may be missing, for the message: "targets" for one.

    max_missing_share : float
        The largest share of an era's rows that may be left out.

    Returns
    -------
    counts : ndarray of shape (n_eras,), dtype=intp
        The usable rows of each era.

    Raises
    ------
    ValueError
        Naming the era in which the share is largest.
    """
    check_share(max_missing_share, "max_missing_share", below_one=True)
    counts = rows.count(usable)
    shares = counts / rows.counts
    too_few = (shares < 1 - max_missing_share) | (counts == 0)
    if not too_few.any():
        return counts
    worst = int(np.argmin(shares))
    others = np.count_nonzero(too_few) - 1
    also = f"; {others:,} more of {len(rows):,} eras lack too many" if others else ""
    raise ValueError(
        f"{names}: {rows.counts[worst] - counts[worst]:,} of {rows.counts[worst]:,} "
        f"rows{rows.describe(worst)} ({1 - shares[worst]:.1%}) are NaN, and at most "
        f"{max_missing_share:.0%} may be{also}. Leave such eras out."
    )


def check_share(value: float, name: str, *, below_one: bool = False) -> None:
    """Check that a number is a share.

    Raises
    ------
    ValueError
        If it is not, or 1 where that is too much.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1 or (below_one and value == 1):
        demand = "at least 0 and less than 1" if below_one else "between 0 and 1"
        raise ValueError(f"{name} must be {demand}; got {value!r}.")


def column_names(
    names: Sequence[str] | None, table: Any, n_columns: int, argument: str
) -> list[str]:
    """Return what messages call the columns of a table.

    Parameters
    ----------
    names : sequence of str or None
        Given names. None: those of a data frame, or else the positions.

    table : array-like of shape (n_samples, n_columns)

    n_columns : int

    argument : str
        What messages call `names`.

    Raises
    ------
    ValueError
        If there are more or fewer names than columns.
    """
    if names is None:
        names = getattr(table, "columns", None)
    if names is None:
        return [str(j) for j in range(n_columns)]
    if len(names) != n_columns:
        raise ValueError(
            f"{argument} has {len(names):,} names, but there are {n_columns:,} columns."
        )
    return [str(name) for name in names]


def check_block(
    block: NDArray[Any], names: Sequence[str], argument: str, where: str
) -> None:
    """Refuse NaN and infinite values in the rows of one era.

    Raises
    ------
    ValueError
        Naming the columns.
    """
    if block.dtype.kind != "f":
        return
    bad = np.flatnonzero(~np.isfinite(block).all(axis=0))
    if bad.size:
        named = ", ".join(repr(names[j]) for j in bad[:_MAX_NAMED])
        more = f" and {bad.size - _MAX_NAMED:,} more" if bad.size > _MAX_NAMED else ""
        raise ValueError(
            f"{argument} is NaN or infinite in {bad.size:,} of {len(names):,} columns "
            f"in rows{where}: {named}{more}. Fill or leave out these columns."
        )


def predictions_by_era(
    predictions: ArrayLike, eras: ArrayLike | None
) -> tuple[NDArray[np.float64], EraRows]:
    """Check predictions, which have no missing values, and find the rows of eras."""
    x = as_column(predictions, "predictions")
    rows = EraRows(eras, x)
    check_finite(x, rows, "predictions")
    return x, rows


def feature_blocks(
    features: ArrayLike,
    feature_names: Sequence[str] | None,
    rows: EraRows,
    n_samples: int,
    *,
    argument: str = "features",
) -> Iterator[tuple[Index, NDArray[Any]]]:
    """Yield what picks an era's rows, and the checked features of these rows."""
    table = as_table(features, argument, n_samples)
    names = column_names(
        feature_names, features, table.shape[1], f"{argument.removesuffix('s')}_names"
    )
    for era, index in enumerate(rows):
        block = table[index]
        check_block(block, names, argument, rows.describe(era))
        yield index, block
