"""Make eras for data without eras, from blocks of time or uncorrelated features.

Functions return one label per row, from 0, to pass as ``fit(X, y, eras=labels)``.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from .._era_calendar import readings_of
from .._era_labels import categories_of, keys_of, kind_of
from .._eras import (
    EncodedEras,
    are_ordered,
    check_eras,
    consecutive_blocks,
    encode_eras,
)
from .._scikit_learn import refuse_bools
from .._warnings import renamed
from ._decorrelated import decorrelated_partition

__all__ = ["decorrelated_partition", "time_blocks"]

if not TYPE_CHECKING:
    _KMEANS = (
        "sklearn.pipeline.make_pipeline(StandardScaler(), KMeans(n_eras))"
        ".fit_predict(X)"
    )
    _CORRELATION = "numpy.corrcoef(X[labels == era].T), of each era"
    _OLD = {"kmeans_partition": _KMEANS, "within_era_correlation": _CORRELATION}
    __getattr__ = renamed(__name__, _OLD)


@validate_params(
    {
        "times": ["array-like"], "by": [StrOptions({"rows", "time"})],
        "n_blocks": [Interval(Integral, 1, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)  # fmt: skip
def time_blocks(
    times: ArrayLike, n_blocks: int, *, by: str = "rows"
) -> NDArray[np.intp]:
    """Cut time into consecutive blocks, each of which is an era.

    Rows of equal time share a block, and blocks follow the order of time. With
    ``by="rows"``, which suits the split criteria, blocks have about equal numbers of
    rows, and none is empty; a time with more rows than such a block is a block of its
    own. With ``by="time"``, blocks have equal lengths, like quarters: the block of t is
    ``floor(n_blocks (t - t_min) / (t_max - t_min))``, and t_max is in the last block.

    Parameters
    ----------
    times : array-like of shape (n_samples,)
        Time of each row, in any order: int, float, datetime64, pandas dates, text of
        numbers or dates, categories of these, or, with ``by="rows"``, other labels that
        have an order, such as ordered categories, which keep theirs.
    n_blocks : int
        Number of blocks.
    by : {'rows', 'time'}, default='rows'
        Whether blocks have equal numbers of rows or equal lengths.

    Returns
    -------
    labels : ndarray of shape (n_samples,), dtype=intp
        The block of each row, from 0, the earliest, to ``n_blocks - 1``.

    Raises
    ------
    ValueError
        If there are fewer distinct times than blocks; if times are missing, booleans,
        cannot be sorted, or are text that is neither numbers nor dates; and, with
        ``by="time"``, if times are infinite or cannot be subtracted, or if a block has
        no row.

    Examples
    --------
    >>> from sklearn_era.environments import time_blocks
    >>> time_blocks([2020, 2012, 2011, 2020, 2010, 2021], 3)
    array([2, 1, 0, 2, 0, 2])
    >>> time_blocks([2010, 2011, 2020], 2, by="time")
    array([0, 0, 1])
    """
    refuse_bools({"n_blocks": n_blocks})
    checked = check_eras(times, times, name="times", X_name="the data")
    # Ranks of ordered categories, which an array loses, are no lengths of time.
    encoded = encode_eras(np.asarray(checked) if by == "time" else checked)
    if encoded.codes.size == 0:
        raise ValueError("times is empty; pass the time of each row.")
    if "bool" in map(kind_of, encoded.labels):
        raise ValueError("times holds booleans; pass numbers or dates in their place.")
    if times_in_text := _times_in_text(encoded.labels):
        labels, codes = np.unique(times_in_text, return_inverse=True)
        encoded = EncodedEras(labels, codes.astype(np.int32)[encoded.codes])
    n_times = encoded.labels.size
    if n_times < n_blocks:
        raise ValueError(
            f"times has {n_times} distinct value(s), of which {n_blocks} blocks cannot "
            f"be made; lower n_blocks to {n_times} or less."
        )
    if by == "time":
        return _blocks_of_time(encoded, n_blocks)
    are_ordered(encoded, "auto", "time_blocks", "pass numbers or dates")
    return consecutive_blocks(encoded.counts, n_blocks)[encoded.codes]


def _times_in_text(labels: NDArray[Any]) -> list[Any]:
    """Return the numbers, or the instants of dates, in labels that are text. Return []
    for text without them, and for other labels.
    """
    if {*map(kind_of, labels)} != {"text"} or categories_of(labels) is not None:
        return []
    texts = keys_of(labels)
    has_sign = any(text.startswith("-") for text in texts)  # else "-" parts numbers
    if not has_sign and (found := readings_of(labels, labels[:0])):
        return next(iter(found.values()))[-1]
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return []
    return numbers if np.isfinite(numbers).all() else []


def _blocks_of_time(encoded: EncodedEras, n_blocks: int) -> NDArray[np.intp]:
    """Return the number of each row's block; blocks span equal lengths of time."""
    labels: Any = encoded.labels
    if n_blocks == 1:
        return np.zeros(encoded.codes.size, dtype=np.intp)
    is_text = kind_of(labels[0]) == "text"
    # Of text that is left, readings have a "-" in front for none, and mix the order up.
    if is_text or not (found := readings_of(labels, labels[:0])):
        other = "" if is_text else ", or pass by='rows'"
        raise ValueError(
            f"times: by='time' needs numbers or dates, which can be subtracted; got "
            f"{labels[0]!r} of type {type(labels[0]).__name__}. Convert them{other}."
        )
    times = next(iter(found.values()))[-1]  # not months, which differ in length
    first, last = times[0], times[-1]
    if not np.isfinite(float(last) - float(first)):
        raise ValueError(
            f"times: by='time' takes differences, and that of {last} and {first} is "
            "infinite; divide times by a constant, or pass by='rows'."
        )
    # Python's integers, whose differences are exact.
    elapsed = np.array([float((time - first) / (last - first)) for time in times])
    # Rounded: 0.3 of 3.0 must be the end of the 3rd of 30 blocks, not just below.
    places = np.floor(np.round(n_blocks * elapsed, 9)).astype(np.intp)
    blocks = np.minimum(places, n_blocks - 1)
    empty = np.setdiff1d(np.arange(n_blocks), blocks)
    if empty.size:
        raise ValueError(
            f"times: {empty.size} of {n_blocks} blocks of equal length have no row, "
            f"the first of them block {empty[0]}; lower n_blocks, or pass by='rows'."
        )
    return blocks[encoded.codes]
