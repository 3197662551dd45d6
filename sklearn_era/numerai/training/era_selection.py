"""Which eras of the files a training takes, and what it calls them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sklearn_era._tables.parquet import ParquetColumns
from sklearn_era.numerai.data.dataset import era_number
from sklearn_era.numerai.errors import ConfigError, DataError

ERA_COLUMN = "era"


@dataclass(frozen=True)
class EraSelection:
    """The eras to train on.

    Attributes
    ----------
    labels : dict of str to int
        For each era, by its label in the files, the label that the fit knows it by:
        its number, or that of its group.
    first, last : str
        The labels of the first and the last era.
    n_rows_without_target : int
        Rows of these eras that have no target, and are left out.
    """

    labels: Mapping[str, int]
    first: str
    last: str
    n_rows_without_target: int


def select_eras(
    files: Sequence[Path],
    *,
    target: str,
    first_era: str | None = None,
    last_era: str | None = None,
    every_nth_era: int = 1,
    era_groups: int = 0,
) -> EraSelection:
    """Choose eras by their numbers, and group them.

    Parameters
    ----------
    files : sequence of path
        Parquet files with a column ``era``, none of whose eras is in two of them.
    target : str
        The column that an era has to have values in, one at least, to be taken.
    first_era, last_era : str, default=None
        Bounds, as ``"0157"``; these eras are taken too.
    every_nth_era : int, default=1
        Take the first era within the bounds, and every n-th after it.
    era_groups : int, default=0
        Make as many groups of consecutive eras, whose numbers of eras differ by one at
        most; 0 for none.

    Returns
    -------
    selection : EraSelection

    Raises
    ------
    ConfigError
        If a bound is no number, no era is left, or there are fewer eras than groups.
    DataError
        If a file has no such columns, an era that is no number or that another file
        has too, or no targets.
    """
    first, last = _bound("first_era", first_era), _bound("last_era", last_era)
    if first is not None and last is not None and first > last:
        raise ConfigError(
            f"first_era = {first_era!r} comes after last_era = {last_era!r}."
        )
    n_labelled, n_rows = _count_rows(files, target)
    numbers: dict[str, int] = {}
    for label in n_rows:
        number = era_number(label)
        if number is None:
            raise DataError(
                f"{_spell(files)}: the era {label!r} is no number. Rows to train on "
                "have numbered eras; those of the live file have not."
            )
        numbers[label] = number
    in_order = sorted(numbers, key=lambda label: numbers[label])
    within = [
        label
        for label in in_order
        if (first is None or numbers[label] >= first)
        and (last is None or numbers[label] <= last)
    ]
    if not within:
        raise ConfigError(
            f"No era is left: {_spell(files)} has eras {in_order[0]} to "
            f"{in_order[-1]}, and first_era = {first_era or ''!r}, last_era = "
            f"{last_era or ''!r}."
        )
    chosen = within[::every_nth_era]
    # The newest eras wait for their targets.
    taken = [label for label in chosen if n_labelled[label]]
    if not taken:
        raise DataError(
            f"{_spell(files)}: column {target!r} has no value in the {len(chosen)} "
            f"eras from {chosen[0]} to {chosen[-1]}. Choose other eras or another "
            "target."
        )
    if era_groups > len(taken):
        raise ConfigError(
            f"era_groups = {era_groups} is more than the {len(taken)} eras that are "
            "left to train on."
        )
    if era_groups:
        groups = np.array_split(np.arange(len(taken)), era_groups)
        labels = {taken[i]: group for group, eras in enumerate(groups) for i in eras}
    else:
        labels = {label: numbers[label] for label in taken}
    return EraSelection(
        labels,
        taken[0],
        taken[-1],
        sum(n_rows[label] - n_labelled[label] for label in chosen),
    )


def _bound(name: str, label: str | None) -> int | None:
    if label is None:
        return None
    number = era_number(label)
    if number is None:
        raise ConfigError(
            f"{name} = {label!r} is no era: write its four digits, such as '0157'."
        )
    return number


def _count_rows(
    files: Sequence[Path], target: str
) -> tuple[Counter[str], Counter[str]]:
    """Rows with a target, and all rows, of each era."""
    n_labelled: Counter[str] = Counter()
    n_rows: Counter[str] = Counter()
    for path in files:
        columns = ParquetColumns(path)
        columns.check_has(ERA_COLUMN, "era")
        columns.check_has(target, "target")
        values = columns.read_labels(target)
        if values.dtype.kind not in "fiu":
            raise DataError(
                f"{path}: column {target!r} holds no numbers but {values.dtype}."
            )
        has_target = ~np.isnan(values)
        del values
        distinct, index = columns.read_distinct(ERA_COLUMN)
        if distinct.dtype.kind not in "OUT":
            raise DataError(
                f"{path}: column 'era' holds {distinct.dtype}, and is to hold text "
                "such as '0157', as Numerai's files do."
            )
        if (index < 0).any():
            raise DataError(
                f"{path}: {(index < 0).sum()} row(s) have no era. Download the file "
                "again."
            )
        again = [label for label in distinct if label in n_rows]
        if again:
            raise DataError(
                f"{path}: era {again[0]!r} is in another of {_spell(files)} too, and "
                "its rows would count twice."
            )
        columns.release()
        size = distinct.size
        all_rows = np.bincount(index, minlength=size)
        labelled = np.bincount(index[has_target], minlength=size)
        n_rows.update(dict(zip(distinct, all_rows.tolist(), strict=True)))
        n_labelled.update(dict(zip(distinct, labelled.tolist(), strict=True)))
    return n_labelled, n_rows


def _spell(files: Sequence[Path]) -> str:
    return ", ".join(Path(file).name for file in files)


__all__ = ["ERA_COLUMN", "EraSelection", "select_eras"]
