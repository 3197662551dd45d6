"""Check era labels, encode them as 0..n_eras-1, and count and weigh their rows."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ._era_calendar import ISO_DATE, hold_dates
from ._era_labels import (
    as_objects,
    categories_of,
    decoded,
    find,
    in_order_of,
    joined_categories,
    kind_of,
    missing_rows,
    with_nulls,
    with_zone,
)
from ._label_columns import LabelColumn, label_columns
from ._typing import EraOrder, Table
from ._warnings import warn_user
from .effects import Recency, half_life_weights

Array = NDArray[np.float64]


def check_eras(
    eras: Any, X: Any, *, name: str = "eras", X_name: str = "X"
) -> NDArray[Any]:
    """Return the labels of the rows, as tuples if there are several columns. Raise
    ValueError unless each row of `X` has a finite label, and labels can be sorted.
    """
    if isinstance(eras, Mapping):
        raise ValueError(
            f"{name} is a {type(eras).__name__} of several labels a row, and only the "
            "trees of forests draw one of them; pass a data frame for combinations."
        )
    columns = label_columns(eras, name)
    if columns[0].key is not None:
        return _combinations(columns, X, X_name)
    eras = with_zone(with_nulls(eras))
    one_label = f"{name} must be one-dimensional, with one label a row of {X_name}"
    try:
        labels = np.asarray(eras)
    except ValueError as error:
        raise ValueError(f"{one_label}: {error}") from error
    if labels.dtype.kind in "US" and not hasattr(eras, "dtype"):
        # NumPy has turned all values of the list into strings, NaN and None too.
        labels = np.asarray(eras, dtype=object)
    elif labels.dtype.kind == "T":
        # Strings of variable length, perhaps with missing ones.
        labels = labels.astype(object)
    if labels.ndim != 1:
        raise ValueError(f"{one_label}; got an array of shape {labels.shape}.")
    n_samples = _num_samples(X)
    if labels.shape[0] != n_samples:
        raise ValueError(
            f"{name} has {labels.shape[0]} labels, but {X_name} has {n_samples} rows; "
            "pass one label a row."
        )
    missing = missing_rows(labels)
    if np.ma.is_masked(eras):
        missing = np.union1d(missing, np.flatnonzero(np.ma.getmaskarray(eras)))
    if missing.size:
        raise ValueError(
            f"{name} has {missing.size} missing label(s) (NaN, None or NaT), the "
            f"first at row {missing[0]}; label these rows or drop them."
        )
    if labels.dtype.kind == "O":
        _check_sortable(labels, name)
    if labels.dtype.kind in "Of":
        _check_finite(labels, name)
    return in_order_of(categories_of(eras), np.asarray(labels))


def read_eras(
    eras: Any, X: Any, known: NDArray[Any] | None = None, **names: str
) -> "EncodedEras":
    """Check labels, and return them encoded: in the order of the categories if `eras`
    or the `known` labels have categories, else in sorted order.
    """
    encoded = encode_eras(check_eras(eras, X, **names), known)
    if encoded.labels.size and isinstance(encoded.labels[0], tuple):
        columns = label_columns(eras)
        if len(columns) > 1:
            encoded.columns = [x.labels for x in columns]
    return encoded


def _combinations(columns: list[LabelColumn], X: Table, X_name: str) -> NDArray[Any]:
    """Return each row's labels as a tuple; for a single column, return its labels."""
    encoded = [read_eras(x, X, name=text, X_name=X_name) for _, text, x in columns]
    if len(encoded) == 1:
        return encoded[0].decode()
    rows = zip(*(as_objects(column.decode()) for column in encoded), strict=True)
    return np.fromiter(rows, dtype=object, count=_num_samples(X))


def _check_sortable(labels: NDArray[Any], name: str) -> None:
    try:
        sorted(set(labels))  # as `encode_eras` will
    except TypeError:
        types = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"{name} has labels that cannot be sorted, of type {', '.join(types)}; "
            "convert them to one type, such as int or str."
        ) from None


def _check_finite(labels: NDArray[Any], name: str) -> None:
    """Raise ValueError for an infinite label, as its steps to others are undefined."""
    distinct = labels[np.isinf(labels)] if labels.dtype.kind == "f" else {*labels}
    for label in distinct:
        if label in (math.inf, -math.inf):
            raise ValueError(
                f"{name} needs finite labels, and there are infinite ones, such as "
                f"{label}: label these rows by other numbers or drop them."
            )


def consecutive_blocks(counts: NDArray[np.intp], n_blocks: int) -> NDArray[np.intp]:
    """Return the block number of each era. A block is one or more eras in a row, of
    about t rows, where larger eras count as t. With n_j rows in era j, t solves sum_j
    min(n_j, t) = n_blocks t. An era is in the block in which its middle lies.
    """
    if n_blocks == counts.size:
        return np.arange(n_blocks)
    in_block = counts.sum() / n_blocks
    n_larger = -1
    while n_larger != (is_larger := counts > in_block).sum():
        n_larger = int(is_larger.sum())
        in_block = counts[~is_larger].sum() / (n_blocks - n_larger)
    widths = np.minimum(counts, in_block)
    middles = np.cumsum(widths) - widths / 2
    # cuts[k]: the first era of block k + 1.
    cuts = np.searchsorted(middles, in_block * np.arange(1, n_blocks))
    # Each block has at least one era: move cuts apart, and away from both ends.
    steps = np.arange(n_blocks - 1)
    cuts = np.maximum.accumulate(np.maximum(cuts - steps, 1)) + steps
    cuts = np.minimum(cuts, counts.size - n_blocks + 1 + steps)
    return np.searchsorted(cuts, np.arange(counts.size), side="right").astype(np.intp)


@dataclass(eq=False)
class EncodedEras:
    """The encoded eras of rows; all derived values are computed once."""

    labels: NDArray[Any]  # (n_eras,), distinct, in their order
    codes: NDArray[np.int32]  # (n_samples,), index into `labels`
    # As passed, if `labels` are their combinations, which lose the order of categories.
    columns: list[Any] | None = None
    # Of the same rows, if these are times and both were passed: in the order and by the
    # names of `pair`.
    groups: "EncodedEras | None" = None
    pair: tuple[Any, Any] | None = None

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """Number of rows in each era."""
        return np.bincount(self.codes, minlength=self.labels.size)

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Start of each era's rows in `order`, followed by the number of rows."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @cached_property
    def order(self) -> NDArray[np.uint32] | None:
        """Indices that sort rows by era, stably; None if rows are sorted already."""
        if (self.codes[1:] >= self.codes[:-1]).all():
            return None
        return np.argsort(self.codes, kind="stable").astype(np.uint32)

    @cached_property
    def rows(self) -> list[NDArray[np.integer]]:
        """For each era, the indices of its rows, ascending."""
        order = np.arange(self.codes.size) if self.order is None else self.order
        return np.split(order, self.offsets[1:-1])

    def take(self, indices: NDArray[np.integer]) -> "EncodedEras":
        """Return the eras of some rows, without labels that none of these rows has."""
        codes = self.codes[indices]
        is_present = np.bincount(codes, minlength=self.labels.size) > 0
        new_codes = np.cumsum(is_present, dtype=np.int32) - np.int32(1)
        columns = self.columns and [_safe_indexing(x, indices) for x in self.columns]
        groups = self.groups and self.groups.take(indices)
        labels = self.labels[is_present]
        return EncodedEras(labels, new_codes[codes], columns, groups, self.pair)

    def rows_with_weight(self, sample_weight: Array | None) -> NDArray[np.intp]:
        """Return the rows whose era, and whose group if any, has a positive weight."""
        has_weight = np.full(self.codes.size, True)
        for codes in [x.codes for x in (self, self.groups) if x is not None]:
            if sample_weight is not None:
                has_weight &= (np.bincount(codes, sample_weight) > 0)[codes]
        return np.flatnonzero(has_weight)

    def decode(self) -> NDArray[Any]:
        """Return the label of each row."""
        return self.labels[self.codes]


def encode_eras(eras: NDArray[Any], known: Any = None) -> EncodedEras:
    """Encode checked labels as 0..n_eras-1: in the order of the categories if `eras` or
    the `known` labels have categories, else in sorted order.
    """
    categories = categories_of(eras)
    if categories_of(known) is not None:
        categories = joined_categories(known, eras)
    if categories is not None:
        encoded = encode_eras(np.asarray(eras))
        places = find(categories, encoded.labels, None)
        if (places < 0).any():  # `ranks` refuses them where order matters
            return encoded
        order = np.argsort(places)
        codes = np.argsort(order).astype(np.int32)[encoded.codes]
        return EncodedEras(in_order_of(categories, encoded.labels[order]), codes)
    if eras.dtype.kind == "O":
        # Hashing objects and sorting the few distinct ones is several times faster than
        # `np.unique`, which sorts all. (`array` would turn tuples into a table.)
        labels = np.fromiter(sorted(set(eras)), dtype=object)
        index = {label: code for code, label in enumerate(labels)}
        codes = np.fromiter((index[x] for x in eras), np.int32, count=eras.size)
    else:
        labels, inverse = np.unique(eras, return_inverse=True)
        codes = inverse.astype(np.int32)
    return EncodedEras(labels, codes)


# Numbers and dates that sort as text: years first, numbers padded with zeros.
_ORDERED_TEXT = re.compile(rf"\d+|{ISO_DATE.pattern}Z?|\d{{4}}-?([MW]\d\d|Q\d)")
# Remedies if the order of text is not known.
_ORDER_OR_GROUPS = (
    "pass era_order='ordered' if eras follow each other in the order of their text, "
    "and 'unordered' for groups, such as hospitals"
)
TIME_ONLY = (
    "pass era_order='ordered' if they follow each other in the order of their text, or "
    "numbers or dates"
)


def are_ordered(
    eras: EncodedEras, era_order: EraOrder, what: str, remedy: str = _ORDER_OR_GROUPS
) -> bool:
    """Return whether eras follow each other in time; errors state that `what` depends
    on this order. With "auto", numbers, dates and ordered categoricals have an order,
    booleans have none, and text has one if it is numbers or dates of one form that sort
    as text; raise ValueError for other text. With a pair, for two columns, return True.
    """
    if eras.labels.size < 2:
        return True
    if era_order != "auto":
        is_ordered = era_order == "ordered" or not isinstance(era_order, str)
        if is_ordered:
            warn_of_text_order(eras.labels, what)
        return is_ordered
    if categories_of(eras.labels) is not None:
        return True
    values = [*map(decoded, eras.labels.tolist())]
    texts = [str(x) for x in values if kind_of(x).startswith(("text", "(", "UUID"))]
    if not texts:
        return "bool" not in map(kind_of, values)
    forms = {re.sub(r"\d", "0", text) for text in texts}
    is_ordered = len(texts) == len(values) and len(forms) == 1
    if not is_ordered and len(texts) == len(values) and hold_dates(texts):
        raise ValueError(
            f"Labels are text such as {texts[0]!r}, and {what} depends on its order, "
            "which is not that of its dates: fill numbers up with zeros, the largest "
            "unit first, all as '2024-05' or all as '2024-W05', or pass dates."
        )
    if isinstance(values[0], tuple):
        if "era_order" in remedy:
            remedy = "pass era_order='ordered' if the first column is time, and "
            remedy += "'unordered' if they are groups"
        raise ValueError(
            f"Labels are combinations of columns, such as {texts[0]}, and {what} "
            f"depends on their order: {remedy}."
        )
    if not (is_ordered and _ORDERED_TEXT.fullmatch(texts[0])):
        raise ValueError(
            f"Labels are text such as {texts[0]!r}, and {what} depends on its order: "
            f"{remedy}."
        )
    return True


def check_order(
    eras: EncodedEras, era_order: EraOrder, what: str, instead: str,
    remedy: str = _ORDER_OR_GROUPS,
) -> None:  # fmt: skip
    """Raise ValueError, which states that `what` needs an order, if eras have none."""
    if not are_ordered(eras, era_order, what, remedy):
        raise ValueError(
            f"{what} needs eras that follow each other, and with era_order="
            f"{era_order!r} these do not: use {instead}."
        )


def warn_of_text_order(labels: NDArray[Any], what: str) -> None:
    """Warn that `what` needs an order if text does not sort like the numbers in it."""
    texts = [x for x in map(decoded, labels.tolist()) if isinstance(x, str)]
    shapes = {re.sub(r"\d+", "0", text) for text in texts}
    if len(texts) < labels.size or len(shapes) > 1 or categories_of(labels) is not None:
        return
    numbers = [[int(x) for x in re.findall(r"\d+", text)] for text in texts]
    if numbers and numbers[0] and numbers[0][0] < 1900 <= numbers[0][-1] < 2100:
        numbers = [x[::-1] for x in numbers]  # dates whose year comes last
    for i in range(len(numbers) - 1):
        if numbers[i] > numbers[i + 1]:
            warn_user(
                f"{what} takes eras in the order of their labels, which are text: "
                f"{texts[i]!r} comes before {texts[i + 1]!r}. Fill the numbers up with "
                "zeros, the largest unit first, or pass numbers or dates."
            )
            return


def is_fixed(era_weighting: str | Recency) -> bool:
    """Return whether `era_weighting` gives eras the same weights in all iterations."""
    return era_weighting == "equal" or isinstance(era_weighting, Recency)


def weigh_eras(
    encoded: EncodedEras, sample_weight: Array | None, era_weighting: Any
) -> tuple[Array, Array]:
    """Return (weights, factors): rows' weights times eras' factors, and the factors."""
    n_eras = encoded.labels.size
    weights = np.ones(encoded.codes.size) if sample_weight is None else sample_weight
    if era_weighting == "equal":
        totals = np.bincount(encoded.codes, weights, n_eras)
        mean = totals.mean()  # so that eras of one weight keep theirs, to the bit
        factors = np.divide(mean, totals, out=np.zeros(n_eras), where=totals > 0)
    else:
        factors = half_life_weights(n_eras, era_weighting.half_life)
    weighed = weights * factors[encoded.codes]
    total = weighed.sum()
    if not total > 0:
        return weights, np.ones(n_eras)
    scale = weights.sum() / total
    return weighed * scale, factors * scale


def era_means(
    codes: NDArray[Any], weights: Any, values: Array, n_eras: int = 0
) -> Array:
    """Return each era's weighted mean over the last axis, or NaN if its weight is 0."""
    totals = np.bincount(codes, weights, n_eras)
    totals[totals == 0] = np.nan
    flat = values.reshape(-1, codes.size)
    sums = [np.bincount(codes, weights * x, n_eras) for x in flat]
    return np.reshape(sums, (*values.shape[:-1], totals.size)) / totals


def number_of_share(share: float, n_all: int) -> int:
    """Return `share` times `n_all`, rounded up, at least 1; 0.1 of 30 is 3, not 4."""
    return max(1, math.ceil(round(share * n_all, 9)))


def min_rows_of_side(min_samples_per_era: float, counts: NDArray[Any]) -> Array:
    """Return how many rows of each era a split has to leave on either side; a number in
    (0, 1) is a share of the era's rows, rounded by `number_of_share`.
    """
    if min_samples_per_era == 0 or min_samples_per_era >= 1:
        return np.full(counts.size, float(min_samples_per_era))
    return np.maximum(1.0, np.ceil(np.round(min_samples_per_era * counts, 9)))


def minimum_text(min_samples_per_era: float) -> str:
    """Return `min_samples_per_era` as text: a number of rows, or a share of them."""
    what = "of the rows" if 0 < min_samples_per_era < 1 else "rows"
    return f"min_samples_per_era={min_samples_per_era} {what}"


def check_splittable(labels: NDArray[Any], counts: NDArray[Any], plan: Any) -> None:
    """Raise ValueError if too few eras have enough rows for both sides of a split."""
    n_needed = 2 * min_rows_of_side(plan.min_samples_per_era, counts)
    small, n_eras = np.flatnonzero(counts < n_needed), labels.size
    n_covered = number_of_share(plan.min_era_coverage, n_eras)
    if n_eras - small.size >= n_covered:
        return
    first = small[np.argmin(counts[small])]
    is_every = n_covered == n_eras
    how_many = "every era" if is_every else f"at least {n_covered} of {n_eras} eras"
    raise ValueError(
        f"eras: a split has to leave {minimum_text(plan.min_samples_per_era)} of "
        f"{how_many} on both sides ({plan.coverage_by}), but {small.size} of {n_eras} "
        f"eras have fewer than {n_needed[first]:.0f} rows; the smallest, era "
        f"{labels[first]!s}, has {counts[first]}. Drop or merge small eras, lower "
        f"min_samples_per_era, or {plan.remedy}."
    )
