"""Labels of rows along two axes: time, and groups without an order."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._era_labels import (
    LabelColumn,
    Labels,
    _kind_of,
    are_dates,
    as_objects,
    categories_of,
    label_columns,
)
from ._eras import EncodedEras, are_ordered, check_order, read_eras
from ._tables.columns import check_collected

_EITHER = (
    "pass era_order=('ordered', 'unordered') if times come first, and "
    "('unordered', 'ordered') if groups do"
)


@dataclass(eq=False)
class EraAxes:
    """The encoded labels of rows on each axis; None where one was not passed."""

    time: EncodedEras | None
    groups: EncodedEras | None

    @property
    def n_rows(self) -> int:
        return next(x.codes.size for x in (self.time, self.groups) if x)


def read_axes(
    eras: Any, X: Any, era_order: Any, what: str, name: str = "eras"
) -> EraAxes:
    """Return the axes of one column of labels, or of two: a table or a tuple of them.
    `era_order` is that of the column or of both; with "auto", labels tell it.
    """
    check_collected(eras, name)
    columns, is_pair = _columns_of(eras, name), not isinstance(era_order, str)
    if len(columns) > 2:
        raise ValueError(
            f"{name} has {len(columns)} columns, and {what} takes two at most: one of "
            "times and one of groups."
        )
    if is_pair != (len(columns) == 2) and era_order != "auto":
        raise ValueError(
            f"era_order={era_order!r} does not fit {name} of {len(columns)} column(s): "
            f"of one, pass 'ordered' or 'unordered'; of two, {_EITHER}."
        )
    rows = columns[0].labels if X is None else X
    encoded = [read_eras(x.labels, rows, name=x.text) for x in columns]
    if len(columns) == 1:
        [eras] = encoded
        is_time = are_ordered(eras, era_order, what)
        return EraAxes(eras, None) if is_time else EraAxes(None, eras)
    if is_pair:
        at = list(era_order).index("ordered")
    else:
        kinds = [_likeness_to_time(x.labels) for x in encoded]
        at = int(np.argmax(kinds))
        if kinds[0] == kinds[1]:
            shown = " and ".join(repr(as_objects(x.labels)[0]) for x in encoded)
            raise ValueError(
                f"{name}: labels such as {shown} do not tell which column is time: "
                f"{_EITHER}."
            )
    order = "ordered" if is_pair else "auto"
    check_order(encoded[at], order, what, "one column of groups")
    return EraAxes(encoded[at], encoded[1 - at])


def _columns_of(eras: Any, name: str) -> list[LabelColumn]:
    """Return the columns of a table, or of a tuple of two."""
    if isinstance(eras, tuple) and len(eras) == 2:
        return [LabelColumn(i, f"{name}[{i}]", x) for i, x in enumerate(eras)]
    return label_columns(eras, name)


def _likeness_to_time(labels: Labels) -> int:
    """Return a number that is larger for the column of two that is time."""
    values = as_objects(labels)
    kinds = {"bool" if isinstance(x, bool) else _kind_of(x) for x in values}
    if categories_of(labels) is not None or kinds <= {"number", "duration"}:
        return 2
    if kinds == {"text"}:
        texts = [x.decode() if isinstance(x, bytes) else x for x in values]
        return 3 if are_dates(texts) else int(all(x.isdigit() for x in texts))
    return 3 if all(kind.startswith("date") for kind in kinds) else 0
