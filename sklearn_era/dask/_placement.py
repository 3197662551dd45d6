"""Assign whole eras, or partitions, to workers with about equal numbers of rows."""

from collections.abc import Sequence
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed

from .._warnings import warn_user
from ._partitions import Ints
from ._survey import EncodedPart, Encoding, Survey

# A worker keeps the rows it holds up to this multiple of an equal share.
_UNEVEN = 1.1
# The fields of a part with a value per row, except X.
_OF_ROWS = ("y", "sample_weight", "codes", "held_out", "rows")


def find_places(
    survey: Survey, encoding: Encoding, n_trained: Ints, holders: Sequence[str],
    addresses: Sequence[str], shuffle: bool,
) -> tuple[Ints, list[str], bool]:  # fmt: skip
    """Return the index of each unit's worker among the workers in use; the addresses of
    the workers in use; and whether rows move to the worker of their era. Units are eras
    if rows move, else partitions. Raise ValueError if rows must move without `shuffle`.
    """
    n_rows, unit, moves = np.diff(survey.starts), "partition", False
    if survey.eras is not None:
        moves = bool((survey.eras.counts > 1).any())  # an era is in several parts
        if moves and not shuffle:
            code = int(np.argmax(survey.eras.counts > 1))
            parts = survey.parts_of_eras[survey.eras.codes == code].tolist()
            raise ValueError(
                f"Era {survey.eras.labels[code]!s} has rows in partitions "
                f"{', '.join(map(str, parts[:5]))} of X, and shuffle=False: an era has "
                "to lie in one partition. Partition by era, or set shuffle=True."
            )
        n_eras = int(np.count_nonzero(encoding.is_trained))
        n_shards = min(n_eras, len(addresses))
        if np.count_nonzero(n_trained) < n_shards and shuffle:
            moves = True
        unit = "era" if moves or n_eras < len(addresses) else unit
    if moves:
        n_rows = survey.era_counts
        n_trained = np.where(encoding.is_trained, n_rows, 0)
        holders = [""] * n_rows.size
    places, used = place_units(n_rows, n_trained, holders, addresses)
    if len(used) < len(addresses):
        warn_user(
            f"The fit uses {len(used)} of {len(addresses)} workers, as there are no "
            f"more {unit}s with rows to train on."
        )
    return places, used, moves


def spread(sizes: Ints, owners: Ints, n_workers: int) -> Ints:
    """Return the worker of each unit, assigned from the largest unit to the smallest. A
    unit goes to its owner (-1 for none) if that worker then has at most 1.1 times an
    equal share of rows, else to the worker with the fewest rows. No worker stays empty
    if there are enough units.
    """
    loads = np.zeros(n_workers)
    limit = _UNEVEN * np.sum(sizes) / n_workers
    placed = np.zeros(sizes.size, dtype=np.intp)
    largest_first = np.argsort(-sizes, kind="stable")
    for n_done, unit in enumerate(largest_first):
        n_left = largest_first.size - n_done
        owner, size = owners[unit], sizes[unit]
        empty = np.flatnonzero(loads == 0)  # units have rows
        if n_left <= empty.size:
            worker = owner if owner in empty else int(empty[0])
        elif owner >= 0 and loads[owner] + size <= limit:
            worker = owner
        else:
            worker = int(np.argmin(loads))
        placed[unit] = worker
        loads[worker] += size
    return placed


def place_units(
    n_rows: Ints, n_trained: Ints, holders: Sequence[str], addresses: Sequence[str]
) -> tuple[Ints, list[str]]:
    """Return for each unit (partition or era) the index of its worker among the workers
    in use, and the addresses of these workers.
    """
    is_trained = n_trained > 0
    held = [n_trained[np.equal(holders, each)].sum() for each in addresses]
    n_used = min(len(addresses), int(np.count_nonzero(is_trained)))
    most = np.sort(np.argsort(-np.array(held), kind="stable")[:n_used])
    used = [addresses[i] for i in most]
    owners = np.array([used.index(each) if each in used else -1 for each in holders])
    places = np.zeros(n_rows.size, dtype=np.intp)
    for units, sizes in ((is_trained, n_trained), (~is_trained, n_rows)):
        places[units] = spread(sizes[units], owners[units], n_used)
    return places, used


def shuffle_parts(
    parts: Sequence[Any], places: Ints, n_workers: int, n_features: int,
    is_weighted: bool,
) -> list[Any]:  # fmt: skip
    """Return one delayed part for each worker: the binned rows of the worker's eras."""
    to_frame, from_frame = delayed(_to_frame), delayed(_from_frame)
    # Made here: a worker may hang.
    no_rows = EncodedPart(
        X=np.empty((0, n_features), dtype=np.uint8), y=np.empty(0),
        sample_weight=np.empty(0) if is_weighted else None,
        codes=np.empty(0, dtype=np.int32), held_out=np.empty(0, dtype=bool),
        rows=np.empty(0, dtype=np.uint32),
    )  # fmt: skip
    meta = _to_frame(no_rows, places)
    rows = dd.from_delayed([to_frame(part, places) for part in parts], meta=meta)
    moved = rows.set_index("worker", divisions=tuple(range(n_workers + 1)))
    return [from_frame(frame) for frame in moved.to_delayed()]


def _to_frame(part: EncodedPart, places: Ints) -> pd.DataFrame:
    """Return a binned part as a frame; its column `worker` has each row's worker."""
    columns = {f"bin{i}": column for i, column in enumerate(part.X.T)}
    columns |= {name: getattr(part, name) for name in _OF_ROWS}
    columns["worker"] = places[part.codes]
    return pd.DataFrame({name: x for name, x in columns.items() if x is not None})


def _from_frame(frame: pd.DataFrame) -> EncodedPart:
    others: dict[str, Any] = {
        name: frame[name].to_numpy() if name in frame else None for name in _OF_ROWS
    }
    bins = frame.filter(regex="^bin").to_numpy()
    return EncodedPart(bins, **others, is_binned=True)
