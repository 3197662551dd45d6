"""Bin Parquet files, batch by batch."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

from ..._era_labels import find, missing_rows
from ..._eras import EncodedEras, check_eras, encode_eras
from ..._tables.columns import list_columns
from ..._tables.parquet import ParquetColumns
from .floats import bin_column
from .integer_bins import map_codes
from .integer_columns import Bytes, Floats, IntegerColumns, Rows, addresses_of
from .integers import allocate_binned, fit_bin_mapper, make_tables
from .thresholds import draw_rows, find_thresholds, map_in_threads, set_thresholds

Eras = Collection[Any] | Mapping[Any, Any]  # to keep, perhaps with new labels

# Columns read at a time. A reader holds a page of each: more columns would leave room
# for few rows in a batch, which costs more than opening the files again.
_GROUP = 64


def check_names(
    columns: ParquetColumns, features: Sequence[Any] | None, target: str,
    era: str | None, sample_weight: str | None,
) -> list[str]:  # fmt: skip
    """Return the names of the features. Raise ValueError if a named column is missing,
    or if a feature is named twice, is the target or weight, or is not numeric.
    """
    others = {"target": target, "era": era, "sample_weight": sample_weight}
    roles: dict[str, str] = {}
    for argument, name in others.items():
        if name is not None:
            columns.check_has(name, argument)
            if name in roles:
                raise ValueError(
                    f"{roles[name]} and {argument} both name the column {name!r}; a "
                    "column has one role."
                )
            roles[name] = argument
    if features is None:
        left_out = {*others.values(), *columns.index_names}
        features = [name for name in columns.names if name not in left_out]
        columns.check_same_names()
    elif isinstance(features, str):
        raise ValueError(f"features={features!r} must be a list of names, not a text.")
    else:
        for name in (features := list(features)):
            columns.check_has(name, "features")
    used = {target, sample_weight}.intersection(features)
    if len(set(features)) < len(features) or used or not features:
        raise ValueError(
            f"features={features!r} must name one column at least, none of them twice, "
            f"and neither the target {target!r} nor sample_weight={sample_weight!r}."
        )
    columns.check_numeric(features)
    return features


def read_target(
    columns: ParquetColumns, target: str, kept: Rows, drop_missing: bool
) -> tuple[NDArray[Any], Rows]:
    """Return two arrays: the targets of those `kept` rows that have a target, and the
    positions of these rows in `kept`. Raise ValueError if all targets are missing, or,
    unless `drop_missing` is True, if any target is missing.
    """
    y, labelled = columns.read_known(target, kept)
    if (n_missing := kept.size - y.size) and not drop_missing:
        raise ValueError(
            f"target {target!r} has no value in {n_missing} of {kept.size} rows. Pass "
            "drop_missing_target=True to leave these rows out."
        )
    if not y.size:
        raise ValueError(f"target {target!r} has no value in any of {kept.size} rows.")
    return y, labelled


def read_kept_eras(
    columns: ParquetColumns, era: str, keep_eras: Eras | None
) -> tuple[EncodedEras, Rows]:
    """Return the eras of the rows to keep, and the indices of these rows. Raise
    ValueError for rows without a label, and for unknown labels in `keep_eras`.
    """
    distinct, index = columns.read_distinct(era)
    if keep_eras is None:
        is_missing = (index < 0) | np.isin(index, missing_rows(distinct))
        if n_missing := is_missing.sum():
            raise ValueError(
                f"era {era!r} has {n_missing} missing label(s) in {index.size} rows; "
                "label these rows or drop them."
            )
        labels = check_eras(distinct, distinct, name=f"era {era!r}")
        kept, used = np.arange(index.size), np.arange(distinct.size)
    else:
        used, labels = _choose_eras(distinct, era, keep_eras)
        is_used = np.zeros(distinct.size + 1, dtype=bool)  # the last: no label, -1
        is_used[used] = True
        kept = np.flatnonzero(is_used[index])
        index = index[kept]
    encoded = encode_eras(labels)
    code_of = np.zeros(distinct.size, dtype=np.int32)
    code_of[used] = encoded.codes
    return EncodedEras(encoded.labels, code_of[index]), kept


def _choose_eras(
    distinct: NDArray[Any], era: str, keep_eras: Eras
) -> tuple[Rows, NDArray[Any]]:
    """Return two arrays: the indices in `distinct` of the labels to keep, and the new
    labels of these eras. Raise ValueError for labels that are missing or unknown.
    """
    given = list(keep_eras)
    if isinstance(keep_eras, str):
        raise ValueError(
            f"keep_eras={keep_eras!r} must be a list of labels, or a mapping, not a "
            "text."
        )
    if not given:
        raise ValueError("keep_eras is empty: name one era at least.")
    used = find(distinct, check_eras(given, given, name="keep_eras"), name=None)
    if unknown := [label for label, at in zip(given, used, strict=True) if at < 0]:
        has = f"{distinct.size} eras"
        if distinct.size:
            has += f", {distinct.min()!s} to {distinct.max()!s}"
        raise ValueError(
            f"keep_eras: column {era!r} has no era {list_columns(unknown)}; it has "
            f"{has}."
        )
    if isinstance(keep_eras, Mapping):
        new = list(keep_eras.values())
        return used, check_eras(new, new, name="the new labels of keep_eras")
    return used, check_eras(distinct[used], used, name=f"era {era!r}")


def bin_features(
    columns: ParquetColumns, features: list[str], rows: Rows,
    sample_weight: Floats | None, mapper: _BinMapper,
    on_progress: Callable[[int, int], None] | None,
) -> Bytes:  # fmt: skip
    """Return the bins of the given `rows`; set the mapper's thresholds."""
    binned = allocate_binned((rows.size, len(features)))
    drawn, sample_weight = draw_rows(mapper, rows.size, sample_weight)
    sample_rows = rows if drawn is None else rows[drawn]
    place = np.full(columns.n_rows, -1, dtype=np.intp)
    place[rows] = np.arange(rows.size)
    thresholds: list[Floats | None] = []
    for start in range(0, len(features), _GROUP):
        group = features[start : start + _GROUP]
        sample = _read_sample(columns, group, sample_rows)
        found = _find_thresholds(sample, sample_weight, mapper)
        del sample
        thresholds += found
        end = start + len(group)
        _read_bins(columns, group, found, place, mapper, binned[:, start:end])
        columns.release()
        if on_progress is not None:
            on_progress(end, len(features))
    set_thresholds(mapper, thresholds, features)
    return binned


def _read_sample(
    columns: ParquetColumns, group: list[str], sample_rows: Rows
) -> list[NDArray[Any]]:
    """Return, for each column, the values of the sampled rows in the sample's order."""
    slots = np.argsort(sample_rows, kind="stable")
    in_order = sample_rows[slots]
    is_sampled = np.zeros(columns.n_rows, dtype=bool)
    is_sampled[sample_rows] = True
    sample = [np.empty(slots.size, dtype=columns.sample_dtype(x)) for x in group]
    for first, batch in columns.iter_batches(group, is_sampled):
        begin, end = np.searchsorted(in_order, (first, first + batch.num_rows))
        if begin == end:
            continue
        taken = in_order[begin:end] - first
        for i, name in enumerate(group):
            values = columns.values(batch, name)
            if values.dtype == np.float64 and sample[i].dtype != np.float64:
                sample[i] = sample[i].astype(np.float64)  # the first missing value
            sample[i][slots[begin:end]] = values[taken]
    return sample


def _find_thresholds(
    sample: list[NDArray[Any]], sample_weight: Floats | None, mapper: _BinMapper
) -> list[Floats | None]:
    def find(values: NDArray[Any]) -> Floats | None:
        return find_thresholds(values, mapper.n_bins - 1, sample_weight)

    floats = [values for values in sample if values.dtype == np.float64]
    n_values = sum(values.size for values in floats)
    of_floats = iter(map_in_threads(find, [floats], mapper.n_threads, n_values))
    small = [(values, values.dtype) for values in sample if values.dtype != np.float64]
    # Without subsampling, which has been done.
    whole = _BinMapper(mapper.n_bins, subsample=None, n_threads=mapper.n_threads)
    fit_bin_mapper(whole, IntegerColumns(small, sample[0].size), sample_weight)
    of_small = iter(whole.bin_thresholds_)
    return [next(of_floats if x.dtype == np.float64 else of_small) for x in sample]


def _read_bins(
    columns: ParquetColumns, group: list[str], thresholds: list[Floats | None],
    place: Rows, mapper: _BinMapper, binned: Bytes,
) -> None:  # fmt: skip
    """Write the bins of row i into row ``place[i]`` of `binned`, unless this is -1."""
    dtypes = [columns.sample_dtype(name) for name in group]
    tables = _make_small_tables(dtypes, thresholds)
    for first, batch in columns.iter_batches(group, place >= 0):
        places = place[first : first + batch.num_rows]
        kept = np.flatnonzero(places >= 0)
        if not kept.size:
            continue
        places = places[kept]
        arrays = [columns.values(batch, name) for name in group]
        for name, values, dtype in zip(group, arrays, dtypes, strict=True):
            if values.dtype not in (np.float64, dtype):
                raise ValueError(
                    f"Column {name!r} has become {values.dtype}: its file was changed "
                    "while it was read; read it again."
                )
        # Consecutive rows are written in place, others by way of a copy.
        is_run = kept.size == batch.num_rows and (np.diff(places) == 1).all()
        out = binned[places[0] : places[0] + kept.size]
        if not is_run:
            out = np.empty((batch.num_rows, len(group)), dtype=np.uint8, order="F")
        for itemsize, small, small_tables in tables:
            # A column with missing values in this batch is float64.
            has_all = np.array([arrays[i].dtype != np.float64 for i in small])
            of_all = small_tables if has_all.all() else small_tables[has_all]
            memory = *addresses_of([arrays[i] for i in small[has_all]]), itemsize
            map_codes(*memory, None, small[has_all], of_all, out, mapper.n_threads)
        for i, values in enumerate(arrays):
            if values.dtype == np.float64:
                bin_column(mapper, values, thresholds[i], out[:, i])
            if not is_run:
                binned[places, i] = out[kept, i]


def _make_small_tables(
    dtypes: list[np.dtype[Any]], thresholds: list[Floats | None]
) -> list[tuple[int, Rows, Bytes]]:
    """Return a list with a tuple for each size of values, 1 or 2 bytes, that occurs:
    the size, the columns with values of this size, and the table of bins of each.
    """
    tables = []
    for itemsize in (1, 2):
        small = [i for i, dtype in enumerate(dtypes) if dtype.itemsize == itemsize]
        if small:
            edges, kinds = [thresholds[i] for i in small], [dtypes[i] for i in small]
            columns = np.array(small, dtype=np.intp)
            tables.append((itemsize, columns, make_tables(edges, kinds)))
    return tables
