"""Compare era labels of any type, by their kinds and keys.

Labels stay as they were passed. Two labels are the same era if their *keys* are equal:
dates of any unit, library or class by their instant, numbers by value, texts by
characters. Labels of different *kinds* are never compared.
"""

import datetime
import numbers
from collections.abc import Collection, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._missing import is_pandas_na

Labels = NDArray[Any]

ZONED = "date with a time zone"
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400 * 10**9  # in nanoseconds, as all keys of dates


class OrderedLabels(np.ndarray):
    """Labels that sort in the order of the array `categories`; so do their slices."""

    categories: Labels | None

    def __array_finalize__(self, other: object) -> None:
        self.categories = getattr(other, "categories", None)

    def __reduce__(self) -> Any:  # ndarray's own would lose the categories
        return in_order_of, (self.categories, np.asarray(self))

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()


def in_order_of(categories: Labels | None, labels: Labels) -> Labels:
    """Return labels as `OrderedLabels`, or unchanged if `categories` is None."""
    if categories is not None:
        ordered = labels.view(OrderedLabels)
        ordered.categories = categories
        return ordered
    return labels


def categories_of(eras: Any) -> Labels | None:
    """Return the categories of ordered labels (an ordered categorical of pandas, an
    ordered dictionary of pyarrow or a polars Enum); None for other labels.
    """
    if isinstance(eras, OrderedLabels):
        return eras.categories
    dtype: Any = getattr(eras, "dtype", getattr(eras, "type", None))
    if not getattr(dtype, "ordered", type(dtype).__name__ == "Enum"):
        return None
    if hasattr(dtype, "categories"):
        return np.asarray(dtype.categories)
    chunks = getattr(eras, "chunks", [eras]) or [eras.combine_chunks()]
    parts = [chunk.dictionary for chunk in chunks]
    parts = [*parts[:1], *(b for a, b in pairwise(parts) if not a.equals(b))]
    return merged_categories([*map(np.asarray, parts)])


def merged_categories(parts: Sequence[Labels]) -> Labels:
    """Merge the categories of all parts into one order, which keeps that of each part.
    Categories that no part compares keep the order of the parts. Raise ValueError if no
    such order exists.
    """
    keys = list(dict.fromkeys(tuple(keys_of(part)) for part in parts))
    if len(keys) == 1:
        return parts[0]
    listed = [*chain.from_iterable(map(keys_of, parts))]
    places = {key: i for i, key in reversed([*enumerate(listed)])}
    sorter = TopologicalSorter(dict.fromkeys(places, ()))
    for earlier, later in chain.from_iterable(map(pairwise, keys)):
        sorter.add(later, earlier)
    try:
        sorter.prepare()
    except CycleError as error:
        labels = [*chain.from_iterable(map(as_objects, parts))]
        cycle = " before ".join(repr(labels[places[key]]) for key in error.args[1])
        raise ValueError(
            f"The parts of eras contradict each other in the order of categories: "
            f"{cycle}. Pass all with the same ordered categories."
        ) from None
    ready: list[int] = []
    order: list[int] = []
    while sorter.is_active():
        for key in sorter.get_ready():
            heappush(ready, places[key])
        order.append(heappop(ready))
        sorter.done(listed[order[-1]])
    return _concatenate(parts)[order]


def kind_of(label: object) -> str:
    if isinstance(label, tuple):
        return f"({', '.join(map(kind_of, label))})"
    if isinstance(label, str | bytes):
        return "text"
    if hasattr(label, "asfreq"):  # a period of pandas
        return "date"
    if isinstance(label, np.timedelta64 | datetime.timedelta):
        return "duration"
    if isinstance(label, bool | np.bool_):
        return "bool"
    if isinstance(label, complex | np.complexfloating):
        return "complex number"
    if isinstance(label, numbers.Number):
        return "number"
    if getattr(label, "tzinfo", None) is not None:
        return ZONED
    if isinstance(label, np.datetime64 | datetime.date):
        return "date"
    return type(label).__name__


def key_of(label: object) -> Any:
    """Return a label's key: labels of a kind are equal if their keys are equal, and
    sort as their keys do. The key of a time or duration is its nanoseconds.
    """
    if isinstance(label, tuple):
        return tuple(map(key_of, label))
    if hasattr(label, "asfreq"):
        return label.asfreq("ms", "start").ordinal * 10**6
    if isinstance(label, np.datetime64 | np.timedelta64):
        if np.datetime_data(label.dtype)[0] in ("ns", "ps", "fs", "as"):
            return int(label.astype(f"{label.dtype.kind}8[ns]").astype(np.int64))
        # Python's integers, as years far off have too many nanoseconds for NumPy's.
        return int(label.astype(f"{label.dtype.kind}8[us]").astype(np.int64)) * 1000
    if isinstance(label, datetime.date):
        if not isinstance(label, datetime.datetime):
            return (label - _EPOCH.date()).days * _DAY
        if label.tzinfo is not None:
            return key_of(label - _EPOCH.replace(tzinfo=datetime.UTC))
        label = label - _EPOCH
    if isinstance(label, datetime.timedelta):
        seconds = label.days * 86_400 + label.seconds
        rest = label.microseconds * 1000 + getattr(label, "nanoseconds", 0)
        return seconds * 10**9 + rest
    if isinstance(label, np.generic):  # Decimals do not compare with NumPy's integers
        label = label.item()
    return decoded(label)


def decoded(label: Any) -> Any:
    """Return bytes as text, whatever their encoding, and other labels unchanged."""
    return label.decode(errors="surrogateescape") if isinstance(label, bytes) else label


def as_objects(labels: Labels) -> list[Any]:
    """Return a list of labels as Python objects; dates stay dates of NumPy."""
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()


def keys_of(labels: Labels) -> list[Any]:
    """Return the key of each label."""
    return [key_of(label) for label in as_objects(labels)]


def find(known: Labels, labels: Labels, name: str | None = "eras") -> NDArray[np.intp]:
    """Return the index of each label in `known`, or -1 if the label is not in it.
    Unless `name` is None, raise ValueError if no label has the kind of a known label.
    """
    of_known, given = as_objects(known), as_objects(labels)
    kinds = [{kind_of(label) for label in x} for x in (of_known, given)]
    # None stands for eras that were not passed.
    is_alike = not all(kinds) or None in (of_known[0], given[0])
    if name and not is_alike and kinds[0].isdisjoint(kinds[1]):
        types = [
            kind_of(x) if isinstance(x, tuple) else type(x).__name__
            for x in (given[0], of_known[0])
        ]
        raise ValueError(
            f"{name} holds {given[0]!r}, of type {types[0]}, but the eras of training "
            f"are of type {types[1]}, such as {of_known[0]!r}; pass labels as in "
            "training."
        )
    places = {key: i for i, key in enumerate(map(key_of, of_known))}
    return np.array([places.get(key, -1) for key in map(key_of, given)], np.intp)


def join(known: Labels, new: Labels) -> Labels:
    """Return the known labels followed by the new ones, which are of the same kind."""
    categories = joined_categories(known, new)
    known, new = np.asarray(known), np.asarray(new)
    if known.dtype.kind != new.dtype.kind and "M" in known.dtype.kind + new.dtype.kind:
        known, new = _as_dates(known), _as_dates(new)
    return in_order_of(categories, _concatenate([known, new]))


def _concatenate(parts: Sequence[Labels]) -> Labels:
    """Concatenate parts of labels. Return objects if integers would become floats and
    lose digits, as int64 beside uint64 may.
    """
    joined = np.concatenate(parts)
    if joined.dtype.kind == "f" and any(part.dtype.kind in "iu" for part in parts):
        every = [*chain.from_iterable(map(as_objects, parts))]
        if joined.tolist() != every:
            return np.array(every, dtype=object)
    return joined


def _as_dates(labels: Labels) -> Labels:
    keys = keys_of(labels)
    unit, divisor = ("ns", 1) if any(key % 1000 for key in keys) else ("us", 1000)
    return np.array([key // divisor for key in keys], np.int64).view(f"M8[{unit}]")


def joined_categories(known: Labels, new: Labels) -> Labels | None:
    """Return the known categories, with the new ones merged into their order. If the
    new categories include all known ones and more, return the new ones alone. Return
    None if the known labels have no categories.
    """
    of_known, of_new = categories_of(known), categories_of(new)
    if of_known is None or of_new is None:
        return of_known
    if of_known.size < of_new.size and (find(of_new, of_known, None) >= 0).all():
        return of_new
    if (find(of_known, of_new, None) >= 0).all():
        return of_known
    return merged_categories([of_known, of_new])


def ranks(known: Labels, labels: Labels) -> tuple[list[Any], list[Any]]:
    """Return the sort keys of the known labels, and the sort keys of `labels`. With
    ordered categories, a label's sort key is the position of its category; raise
    ValueError for a label that is none of the categories.
    """
    categories = joined_categories(known, labels)
    if categories is None:
        return keys_of(known), keys_of(labels)
    at = find(categories, labels)
    if (at < 0).any():
        raise ValueError(
            f"eras holds {as_objects(labels)[at.argmin()]!r}, which is none of the "
            "categories that order the eras of training: pass an ordered categorical "
            "that has it."
        )
    return find(categories, known).tolist(), at.tolist()


def with_nulls(values: Any) -> Any:
    """Convert an Arrow column of categories to a list if it has nulls, which NumPy
    would take for the last category. Return anything else unchanged.
    """
    is_column = hasattr(type(values), "unify_dictionaries")
    if is_column and str(getattr(values, "type", "")).startswith("dictionary"):
        return values.to_pylist() if values.null_count else values
    return values


def with_zone(values: Any) -> Any:
    """Convert a column of dates with a time zone to a list, as dates of polars or
    pyarrow would lose the zone in NumPy. Return anything else unchanged.
    """
    dtype = getattr(values, "dtype", getattr(values, "type", None))
    if getattr(dtype, "time_zone", None) or getattr(dtype, "tz", None):
        read = getattr(values, "to_pylist", getattr(values, "to_list", None))
        return values if read is None else read()
    return values


def missing_rows(labels: Labels) -> NDArray[np.intp]:
    """Return the rows whose labels are missing: None, NaN, NaT or pandas' NA."""
    if labels.dtype.kind in "fc":
        return np.flatnonzero(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.flatnonzero(np.isnat(labels))
    if labels.dtype.kind == "O" and any(map(_is_missing, _distinct(labels))):
        return np.array([i for i, x in enumerate(labels) if _is_missing(x)], np.intp)
    return np.array([], np.intp)


def _distinct(labels: NDArray[Any]) -> Collection[Any]:
    try:
        return set(labels)
    except TypeError:  # not hashable, so not sortable: `_check_sortable` raises
        return labels.tolist()


def _is_missing(label: object) -> bool:
    if label is None or is_pandas_na(label):
        return True
    # Only NaN and NaT differ from themselves. For an array the result is an array: no
    # label, and `_check_sortable` raises.
    different = label != label
    return bool(different) if np.ndim(different) == 0 else False


def label_texts(labels: Labels) -> list[str]:
    """Return the labels of eras as text, dates without superfluous digits."""
    if labels.dtype.kind == "M":
        return np.datetime_as_string(labels, unit="auto").tolist()
    return [str(label) for label in labels]
