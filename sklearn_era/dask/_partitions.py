"""Load the arguments of ``fit`` in parts, each with a partition of every collection."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow
from dask import delayed
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import column_or_1d

from .._eras import check_eras, encode_eras
from .._scikit_learn import check_sample_weight
from .._tables.checks import check_table
from .._tables.target import check_values
from .._warnings import warn_user

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Codes = NDArray[np.int32]  # of eras
Flags = NDArray[np.bool_]
Bins = NDArray[np.uint8]


@dataclass
class Part:
    """The rows of one partition of X, with their targets, weights and eras."""

    X: Any
    y: NDArray[Any]
    sample_weight: Floats | None
    eras: NDArray[Any] | None  # labels
    index_shifts: dict[str, int]  # see `_index_shifts`
    warnings: list[tuple[str, type[Warning]]]  # about the rows: messages, categories


@dataclass
class PartSummary:
    """A summary of a part, which the client gets in place of the part's rows."""

    n_rows: int
    kinds: dict[Any, str]  # by column: numbers, text, categories or dates
    head: Any  # the first row
    era_labels: NDArray[Any]
    y_values: NDArray[Any]  # the classes, or the smallest and the largest value
    counts: Floats  # of rows, (n_eras, n_classes), at least (1, 1)
    weights: Floats  # as `counts`
    index_shifts: dict[str, int]  # see `_index_shifts`
    warnings: list[tuple[str, type[Warning]]]  # messages about the rows, categories

    def all_kinds(self) -> dict[str, str]:
        kinds = {f"Column {name!r} of X": kind for name, kind in self.kinds.items()}
        return kinds | {"y": _kind_of(self.y_values), "eras": _kind_of(self.era_labels)}


def delay_parts(
    X: Any, y: Any, sample_weight: Any, eras: Any, has_classes: bool
) -> list[Any]:
    """Return the delayed parts of a fit: a `Part` for each partition of X."""
    blocks, load = [blocks_of("X", X)], delayed(load_part, pure=False)
    beside = {"y": y, "sample_weight": sample_weight, "eras": eras}
    blocks += [blocks_beside(X, *each) for each in beside.items()]
    return [load(*part, has_classes) for part in zip(*blocks, strict=True)]


def blocks_beside(X: Any, name: str, collection: Any) -> list[Any]:
    """Return a collection's partitions, matched to the partitions of X. If there is no
    collection, return a list of None.
    """
    n_blocks = len(X.chunks[0]) if isinstance(X, da.Array) else X.npartitions
    if collection is None:
        return [None] * n_blocks
    if isinstance(X, da.Array) and isinstance(collection, da.Array):
        chunks = X.chunks[0]
        if not np.isnan(chunks).any() and collection.shape[:1] == X.shape[:1]:
            collection = collection.rechunk({0: chunks})
    blocks = blocks_of(name, collection)
    if len(blocks) != n_blocks:
        raise ValueError(
            f"{name} has {len(blocks)} partition(s), but X has {n_blocks}: give {name} "
            "the partitions of X, by repartition or rechunk."
        )
    return blocks


def blocks_of(name: str, collection: Any) -> list[Any]:
    """Return the partitions of a Dask collection, delayed; each one has all columns."""
    if isinstance(collection, da.Array):
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return collection.to_delayed().ravel().tolist()
    if isinstance(collection, dd.DataFrame | dd.Series):
        # Reads only the requested columns. Further optimisation would merge partitions
        # of narrow collections.
        return collection.simplify().to_delayed(optimize_graph=False)
    raise TypeError(
        f"{name} is a {type(collection).__name__}, and has to be a Dask array, data "
        "frame or series: dask.array.from_array and dask.dataframe.from_pandas make "
        "one. Rows that one machine holds are fitted and predicted by the local "
        "estimator (`to_local`)."
    )


def load_part(X: Any, y: Any, sample_weight: Any, eras: Any, has_classes: bool) -> Part:
    """Return a part, with its rows checked, and with the warnings about them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        part = _check_part(X, y, sample_weight, eras, has_classes)
    part.warnings = [(str(each.message), each.category) for each in caught]
    # Arrow keeps its buffers for Parquet: as much memory as the rows.
    pyarrow.default_memory_pool().release_unused()
    return part


def _check_part(
    X: Any, y: Any, sample_weight: Any, eras: Any, has_classes: bool
) -> Part:
    if issparse(X):
        raise TypeError("X is sparse; pass dense rows.")
    check_table(X)
    check_values(y, are_numbers=not has_classes)
    if not hasattr(X, "iloc"):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X has the shape {X.shape}, and has to be a matrix.")
    beside = {"y": y, "sample_weight": sample_weight, "eras": eras}
    beside = {name: given for name, given in beside.items() if given is not None}
    for name, given in beside.items():
        if len(given) != len(X):
            raise ValueError(
                f"{name} has {len(given)} rows, and X has {len(X)}: give both the same "
                "partitions."
            )
    y = column_or_1d(y, warn=True)
    n_missing = np.count_nonzero(~np.isfinite(y)) if y.dtype.kind == "f" else 0
    if n_missing:
        raise ValueError(
            f"y has missing or infinite values in {n_missing} rows; drop these rows."
        )
    if sample_weight is not None and y.size:
        sample_weight = check_sample_weight(
            sample_weight, X, dtype=np.float64,
            allow_all_zero_weights=True,  # of a part
        )  # fmt: skip
    if eras is not None:
        eras = check_eras(eras, X)
    return Part(X, y, sample_weight, eras, _index_shifts(X, beside), [])


def _index_shifts(X: Any, beside: Mapping[str, Any]) -> dict[str, int]:
    """Return, for each argument whose index is not that of X, the difference between
    the sums of both indices' hashes.
    """
    rows: Any = getattr(X, "index", None)
    shifts = {}
    for name, given in beside.items():
        index: Any = getattr(given, "index", None)
        if all(isinstance(x, pd.Index) for x in (rows, index)) and not index.equals(
            rows
        ):
            pair = map(pd.util.hash_pandas_object, (index, rows))
            first, second = (int(each.to_numpy().sum()) for each in pair)
            shifts[name] = first - second
    return shifts


def warn_of_row_order(summaries: Sequence[PartSummary]) -> None:
    """Warn if an argument has, in all partitions together, the index of X in another
    order: sums of hashes depend on no order.
    """
    shifts: Counter[str] = Counter()
    for summary in summaries:
        shifts.update(summary.index_shifts)
    for name, shift in shifts.items():
        if shift % 2**64 == 0:
            warn_user(
                f"{name} has the index of X in another order, and rows belong together "
                "by their place: take both from one data frame."
            )


def summarize(part: Part, has_classes: bool) -> PartSummary:
    """Return the summary of a part: counts, labels and column types, without rows."""
    n_rows = part.y.size
    labels, codes = np.empty(1), np.zeros(n_rows, dtype=np.intp)
    if part.eras is not None:
        encoded = encode_eras(part.eras)
        labels, codes = encoded.labels, encoded.codes.astype(np.intp)
    if has_classes:
        values, classes = np.unique(part.y, return_inverse=True)
        n_classes = values.size
    else:
        y = part.y.astype(np.float64)  # text may hold numbers
        values = np.array([y.min(), y.max()]) if n_rows else y
        classes, n_classes = np.zeros(n_rows, dtype=np.intp), 1
    cells, shape = codes * n_classes + classes, (labels.size, n_classes)
    counts, weights = (
        np.bincount(cells, each, labels.size * n_classes).astype(float).reshape(shape)
        for each in (None, part.sample_weight)
    )
    head = part.X.iloc[:1] if hasattr(part.X, "iloc") else part.X[:1]
    kinds = {name: _kind(dtype) for name, dtype in pd.DataFrame(head).dtypes.items()}
    return PartSummary(
        n_rows, kinds, head, labels, values, counts, weights, part.index_shifts,
        part.warnings,
    )  # fmt: skip


def categories_of(part: Part, is_categorical: Flags) -> list[Any]:
    """Return, for each categorical column, the number of rows by category and NaN."""
    X: Any = part.X if hasattr(part.X, "iloc") else pd.DataFrame(part.X)
    given = [X.iloc[:, i] for i in np.flatnonzero(is_categorical)]
    return [column.astype(object).value_counts(dropna=False) for column in given]


def frame_of_categories(
    head: Any, is_categorical: Flags, found: Sequence[list[Any]]
) -> tuple[Any, Ints]:
    """Return a frame whose columns hold the categories of all parts, and the numbers of
    rows that have each category.
    """
    taken: dict[Any, pd.Series] = {}
    columns_found = zip(*found, strict=True)
    for i, of_parts in zip(np.flatnonzero(is_categorical), columns_found, strict=True):
        rows = pd.concat(of_parts)
        values = rows.index.astype(object)
        values = values.where(values.notna(), np.nan)  # also for pandas' own NA
        rows = rows.groupby(values, sort=False, dropna=False).sum()
        taken[i] = rows.iloc[np.argsort(rows.index.isna())]
    n_rows = max(rows.size for rows in taken.values())
    padded = [np.pad(rows, (0, n_rows - rows.size)) for rows in taken.values()]
    frame = pd.DataFrame(head)
    columns = []
    for j, dtype in enumerate(frame.dtypes):
        given: Any = taken[j].index.astype(object) if j in taken else frame.iloc[:, j]
        values = given.to_numpy()
        repeated = values[np.minimum(np.arange(n_rows), values.size - 1)]
        column = pd.Series(repeated).infer_objects()
        if _kind(dtype) == "categories":
            column = column.astype("category")
        columns.append(column)
    frame = pd.concat(columns, axis=1).set_axis(frame.columns, axis=1)
    rows_taken = frame if hasattr(head, "iloc") else frame.to_numpy()
    return rows_taken, np.stack(padded, axis=1)


def _kind(dtype: object) -> str:
    if getattr(dtype, "name", "") == "category":
        return "categories"
    kind = getattr(dtype, "kind", "O")
    return "numbers" if kind in "biuf" else "dates" if kind in "mM" else "text"


def _kind_of(values: NDArray[Any]) -> str:
    """Return the kind of labels; for objects other than text, the type of the first."""
    if values.dtype == object and not isinstance(values[0], str):
        return type(values[0]).__name__
    return _kind(values.dtype)


def check_alike(summaries: Mapping[int, PartSummary]) -> None:
    """Raise ValueError if partitions differ in columns or types. `summaries` has the
    partitions' numbers as keys.
    """
    first, expected = next(iter(summaries.items()))
    for i, summary in summaries.items():
        if list(summary.kinds) != list(expected.kinds):
            others = set(summary.kinds) ^ set(expected.kinds)
            raise ValueError(
                f"Partition {i} of X has other columns than partition {first}"
                + (f", by {sorted(map(str, others))[:5]}" if others else ", in order")
                + ": give all of them the same."
            )
        kinds, kinds_of_first = summary.all_kinds(), expected.all_kinds()
        for name, kind in kinds.items():
            if kind != (kind_of_first := kinds_of_first[name]):
                raise ValueError(
                    f"{name} holds {kind} in partition {i}, and {kind_of_first} in "
                    f"partition {first}: give it one type."
                )
