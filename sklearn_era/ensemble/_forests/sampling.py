"""The rows that each tree of a forest is grown on."""

import math
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._eras import EncodedEras
from .granularity import EraBlocks

Bootstrap = Literal["rows", "era", "eras", False]


class TreeRows(NamedTuple):
    """The rows of one tree, and the eras that it compares.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,), dtype=intp, or None
        Row indices, with repetitions, sorted by era where there are eras; None stands
        for all rows in their order.
    eras : EncodedEras or None
        The era of each of these rows.
    """

    rows: NDArray[np.intp] | None
    eras: EncodedEras | None


def number_to_draw(max_samples: float | int | None, n_available: int) -> int:
    """How many of `n_available` rows or eras `max_samples` stands for, one at least."""
    if max_samples is None:
        return n_available
    if isinstance(max_samples, Integral):
        return int(max_samples)
    return max(1, math.floor(round(max_samples * n_available, 9)))


def draw_tree_rows(
    rng: np.random.Generator,
    n_samples: int,
    blocks: EraBlocks | None,
    bootstrap: Bootstrap,
    max_samples: float | int | None,
) -> TreeRows:
    """Draw the rows of one tree, with replacement.

    Parameters
    ----------
    rng : numpy.random.Generator
        The tree's own.
    n_samples : int
        Number of rows in training.
    blocks : EraBlocks or None
        The eras that the tree compares.
    bootstrap : {'rows', 'era', 'eras'} or False
        From all rows; from those of each era, as many as it has; whole eras; or
        nothing is drawn. See `EraForestRegressor`.
    max_samples : float, int or None
        How many to draw; see `EraForestRegressor`.

    Returns
    -------
    drawn : TreeRows
    """
    encoded = None if blocks is None else blocks.encoded
    if bootstrap is False:
        return TreeRows(None, encoded)
    if bootstrap == "rows":
        n_drawn = number_to_draw(max_samples, n_samples)
        rows = np.sort(rng.integers(n_samples, size=n_drawn))
        return TreeRows(*_sorted_by_era(rows, encoded))
    assert blocks is not None  # by `check_bootstrap`
    if bootstrap == "era":
        return _draw_within_eras(rng, blocks, max_samples)
    return _draw_eras(rng, blocks, max_samples)


def _sorted_by_era(
    rows: NDArray[np.intp], encoded: EncodedEras | None
) -> tuple[NDArray[np.intp], EncodedEras | None]:
    if encoded is None:
        return rows, None
    rows = rows[np.argsort(encoded.codes[rows], kind="stable")]
    return rows, encoded.take(rows)


def _draw_within_eras(
    rng: np.random.Generator, blocks: EraBlocks, max_samples: float | int | None
) -> TreeRows:
    counts = blocks.encoded.counts
    n_drawn = np.array([number_to_draw(max_samples, int(n)) for n in counts])
    codes = np.repeat(np.arange(counts.size, dtype=np.int32), n_drawn)
    within = rng.integers(counts[codes])
    rows = blocks.order[np.sort(blocks.offsets[codes] + within)]
    return TreeRows(rows, EncodedEras(blocks.encoded.labels, codes, n_drawn))


def _draw_eras(
    rng: np.random.Generator, blocks: EraBlocks, max_samples: float | int | None
) -> TreeRows:
    """Whole eras. One that is drawn twice is two eras, as a row drawn twice is two."""
    n_eras = blocks.encoded.labels.size
    drawn = np.sort(rng.integers(n_eras, size=number_to_draw(max_samples, n_eras)))
    counts = blocks.encoded.counts[drawn]
    rows = np.concatenate(
        [blocks.order[blocks.offsets[j] : blocks.offsets[j + 1]] for j in drawn]
    )
    codes = np.repeat(np.arange(drawn.size, dtype=np.int32), counts)
    return TreeRows(rows, EncodedEras(blocks.encoded.labels[drawn], codes, counts))


__all__ = ["Bootstrap", "TreeRows", "draw_tree_rows", "number_to_draw"]
