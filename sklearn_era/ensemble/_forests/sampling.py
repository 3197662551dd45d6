"""Choose the eras that each tree of a forest compares, and draw the tree's rows."""

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._era_axes import read_known
from ..._eras import EncodedEras, consecutive_blocks, read_eras
from ..._label_columns import label_columns
from ..._typing import EraOrder, Eras, Table

Bootstrap = Literal["rows", "within_eras", "whole_eras", False]


class TreeRows(NamedTuple):
    """The rows that a tree is grown on, and their eras."""

    rows: NDArray[np.intp] | None  # with repetitions, by era; None for all, in order
    eras: EncodedEras | None  # of each of these rows


def encode_era_columns(
    eras: Eras, X: Table, era_order: EraOrder = "auto"
) -> list[EncodedEras]:
    """Check and encode the eras of ``fit``, and return them in a list: one entry for
    each key of a dict, otherwise a single one. If `era_order` is a pair, the entry has
    the times as its eras, and the groups as its `groups`.
    """
    if isinstance(eras, EncodedEras):  # from a `BinnedDataset`, checked before
        return [eras]
    if not isinstance(era_order, str):
        return [read_known(eras, X, era_order, "A forest")[1]]
    if not isinstance(eras, Mapping):
        return [read_eras(eras, X)]
    return [read_eras(x, X, name=name) for _, name, x in label_columns(eras)]


def merge_into_segments(eras: EncodedEras, n_segments: int) -> EncodedEras:
    """Merge consecutive eras; return at most `n_segments` eras, of about equal size."""
    segments = consecutive_blocks(eras.counts, n_segments).astype(np.int32)
    merged = EncodedEras(np.arange(n_segments), segments[eras.codes])
    merged.order = eras.order  # also sorts the segments; computed once
    return merged


def number_to_draw(max_samples: float | int | None, n_available: int) -> int:
    """Return how many of `n_available` rows or eras to draw, at least 1."""
    if max_samples is None:
        return n_available
    if isinstance(max_samples, Integral):
        return int(max_samples)
    return max(1, math.floor(round(max_samples * n_available, 9)))


def draw_tree_rows(
    rng: np.random.Generator, n_samples: int, eras: EncodedEras | None,
    bootstrap: Bootstrap, max_samples: float | int | None,
) -> TreeRows:  # fmt: skip
    """Draw the rows of a tree; return them (None for all rows) with their eras."""
    if bootstrap is False:
        return TreeRows(None, eras)
    if bootstrap == "rows":
        n_drawn = number_to_draw(max_samples, n_samples)
        rows = np.sort(rng.integers(n_samples, size=n_drawn))
        if eras is None:
            return TreeRows(rows, None)
        rows = rows[np.argsort(eras.codes[rows], kind="stable")]
        return TreeRows(rows, eras.take(rows))
    assert eras is not None  # by `check_forest_eras`
    labels = eras.labels
    if bootstrap == "within_eras":
        sizes = [number_to_draw(max_samples, int(n)) for n in eras.counts]
        codes = np.repeat(np.arange(labels.size, dtype=np.int32), sizes)
        places = np.sort(eras.offsets[codes] + rng.integers(eras.counts[codes]))
    else:  # whole eras: drawn twice, one counts as two, as does a row
        n_drawn = number_to_draw(max_samples, labels.size)
        drawn = np.sort(rng.integers(labels.size, size=n_drawn))
        places = np.concatenate([np.arange(*eras.offsets[[j, j + 1]]) for j in drawn])
        codes = np.repeat(np.arange(n_drawn, dtype=np.int32), eras.counts[drawn])
        labels = labels[drawn]
    rows = places if eras.order is None else eras.order[places].astype(np.intp)
    return TreeRows(rows, EncodedEras(labels, codes))
