"""Find thresholds in a sample of all rows, and bin the rows on their workers."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask import delayed
from distributed import get_worker
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.utils import _safe_indexing

from ..ensemble._binning.floats import FloatColumns
from ..ensemble._binning.integer_columns import UnbinnedRows
from ..ensemble._binning.integers import allocate_binned
from ..ensemble._binning.thresholds import draw_rows, find_thresholds
from ._partitions import Bins, Codes, Floats, Ints
from ._survey import EncodedPart, Encoding

# Columns per task of thresholds, and values converted to float64 at a time.
_BLOCK = 32
_BATCH_VALUES = 1_000_000


@dataclass
class Shard:
    """The binned rows of one worker: for training, or held out by early stopping."""

    X: Bins  # bins; Fortran-ordered for training, else C-ordered
    y: Floats
    sample_weight: Floats | None
    codes: Codes  # eras, as indices into all training eras


class ShardRows(UnbinnedRows):
    """Stands in for X in ``fit``: it holds a shard's rows, which are binned already."""

    def __init__(self, binned: Bins):
        super().__init__(*binned.shape)
        self.binned = binned


def draw_sample(
    mapper: _BinMapper, n_trained: Ints, sample_weight: Floats | None,
    training_rows: Ints | None,
) -> list[Ints | None]:  # fmt: skip
    """Draw the rows that scikit-learn would make bins from. Return, for each part, the
    indices of its drawn rows among its training rows, or None if all rows are used.
    `training_rows` has the row number of each training row in scikit-learn's order, or
    is None if the parts have their rows in this order.
    """
    rank: Any = slice(None)
    if training_rows is not None:
        rank = np.searchsorted(np.sort(training_rows), training_rows)
    if sample_weight is not None:
        sample_weight = sample_weight[rank]
    drawn, _ = draw_rows(mapper, int(n_trained.sum()), sample_weight)
    if drawn is None:
        return [None] * n_trained.size
    if training_rows is not None:
        drawn = rank[drawn]
    drawn.sort()
    ends = np.cumsum(n_trained)
    by_part = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
    return [rows - start for rows, start in zip(by_part, ends - n_trained, strict=True)]


def take_sample(
    parts: Sequence[EncodedPart], drawn: Sequence[Ints | None], preprocessor: Any
) -> tuple[list[list[Any]], Floats | None]:
    """Return the drawn rows' values, in one list per block of columns; and the rows'
    weights, or None if there are no weights or the rows were drawn by weight.
    """
    blocks: list[list[Any]] = []
    weights: list[Any] = []
    for part, rows in zip(parts, drawn, strict=True):
        trained = np.flatnonzero(~part.held_out)
        taken = trained if rows is None else trained[rows]
        if taken.size == 0:
            continue
        X = _safe_indexing(part.X, taken)
        if preprocessor is not None:
            X = preprocessor.transform(X)
        starts = range(0, X.shape[1], _BLOCK)
        columns = [_safe_indexing(X, slice(i, i + _BLOCK), axis=1) for i in starts]
        blocks.append(columns)
        if rows is None and part.sample_weight is not None:
            weights.append(part.sample_weight[taken])
    by_block = [list(block) for block in zip(*blocks, strict=True)]
    return by_block, np.concatenate(weights) if weights else None


def find_blocks(
    samples: Sequence[Any], estimator: BaseEstimator,
    known_categories: Sequence[Floats | None],
) -> list[Any]:  # fmt: skip
    """Return a delayed list of thresholds or categories for each block of columns."""
    find, pick = delayed(_find_thresholds), delayed(_pick)
    return [
        find(
            [pick(sample, start // _BLOCK) for sample in samples], estimator.max_bins,
            known_categories[start : start + _BLOCK],
        )
        for start in range(0, len(known_categories), _BLOCK)
    ]  # fmt: skip


def _pick(sample: tuple[list[list[Any]], Any], block: int) -> tuple[list[Any], Any]:
    """Return the values of one block of columns in a sample, and its rows' weights."""
    blocks, weights = sample
    return (blocks[block] if blocks else []), weights


def _find_thresholds(
    samples: Sequence[tuple[list[Any], Floats | None]], max_bins: int,
    known_categories: Sequence[Floats | None],
) -> list[Floats | None]:  # fmt: skip
    rows = [FloatColumns(piece) for pieces, _ in samples for piece in pieces]
    weighed = [weights for _, weights in samples if weights is not None]
    sample_weight = np.concatenate(weighed) if weighed else None
    thresholds = []
    for feature, categories in enumerate(known_categories):
        one = range(feature, feature + 1)
        values = np.concatenate([each.batch(one)[0] for each in rows])
        thresholds.append(find_thresholds(values, max_bins, sample_weight, categories))
    return thresholds


def bin_part(part: EncodedPart, estimator: BaseEstimator) -> EncodedPart:
    binned = np.empty(part.X.shape, dtype=np.uint8)
    for rows, values in _bins_of(part, estimator):
        binned[rows] = values
    return replace(part, X=binned, is_binned=True)


def make_shard(
    parts: Sequence[EncodedPart], estimator: BaseEstimator, encoding: Encoding
) -> tuple[Shard, Shard]:
    """Return two shards, of a worker's training rows and of its held-out rows. Their
    rows are in the order of row numbers.
    """
    order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
    is_val = np.concatenate([part.held_out for part in parts])[order]
    # The index of each row in its shard.
    place = np.empty(order.size, dtype=np.uint32)
    for of_kind in (~is_val, is_val):
        place[order[of_kind]] = np.arange(of_kind.sum(), dtype=np.uint32)
    training = _empty_shard(parts[0], int((~is_val).sum()), "F")
    validation = _empty_shard(parts[0], int(is_val.sum()), "C")
    del order, is_val
    ends = np.cumsum([part.y.size for part in parts])
    for part, places in zip(parts, np.split(place, ends[:-1]), strict=True):
        for batch, binned in _bins_of(part, estimator):
            is_val = part.held_out[batch]
            for shard, of_kind in ((training, ~is_val), (validation, is_val)):
                to = places[batch][of_kind]
                shard.X[to] = binned[of_kind]
                for name in ("y", "sample_weight", "codes"):
                    if (values := getattr(part, name)) is not None:
                        getattr(shard, name)[to] = values[batch][of_kind]
    if encoding.is_trained is not None:
        new_codes = np.cumsum(encoding.is_trained, dtype=np.int32) - np.int32(1)
        training.codes = new_codes[training.codes]
    return training, validation


def _empty_shard(part: EncodedPart, n_rows: int, order: str) -> Shard:
    """Return a shard of `n_rows` rows to fill in, with weights if `part` has them."""
    return Shard(
        allocate_binned((n_rows, part.X.shape[1]), order),
        np.empty(n_rows),
        None if part.sample_weight is None else np.empty(n_rows),
        np.empty(n_rows, dtype=np.int32),
    )


def _bins_of(
    part: EncodedPart, estimator: BaseEstimator
) -> Iterator[tuple[slice, Bins]]:
    """Yield slices of a part's rows and these rows' bins; some rows at a time."""
    if part.is_binned:
        yield slice(0, part.y.size), part.X
        return
    n_rows, n_features = part.X.shape
    step = max(1, _BATCH_VALUES // n_features)
    mapper = copy.copy(estimator._shard_mapper)
    mapper.n_threads = get_worker().state.nthreads
    for start in range(0, n_rows, step):
        rows = slice(start, min(n_rows, start + step))
        X = _safe_indexing(part.X, rows)
        yield rows, mapper.transform(estimator._preprocess_X(X, reset=False))
