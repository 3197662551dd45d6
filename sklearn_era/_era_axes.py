"""Read the labels of rows along two axes: time, and groups without an order."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from ._era_calendar import are_dates
from ._era_labels import Labels, as_objects, categories_of, decoded, kind_of
from ._eras import EncodedEras, are_ordered, check_order, read_eras
from ._label_columns import EraColumns, label_columns
from ._typing import EraOrder, Eras, Table

TIME_FIRST = ("ordered", "unordered")
_EITHER = (
    "pass era_order=('ordered', 'unordered') if times come first, and "
    "('unordered', 'ordered') if groups do"
)


@dataclass(eq=False)
class EraAxes:
    """The times and the groups of rows, encoded; None where labels lack this axis."""

    time: EncodedEras | None
    groups: EncodedEras | None
    is_time_first: bool = True
    names: tuple[Any, ...] = ()  # of the columns

    @property
    def n_rows(self) -> int:
        return next(x.codes.size for x in (self.time, self.groups) if x)


def read_axes(
    eras: Any, X: Table, era_order: Any, what: str, name: str = "eras",
    X_name: str = "X",
) -> EraAxes:  # fmt: skip
    """Read labels as `EraAxes`. The labels are one column, or two in a table or a
    tuple. `era_order` states which column has an order; with "auto", the labels decide.
    Raise ValueError for more than two columns, or if it is unclear which one is time.
    """
    columns, is_pair = label_columns(eras, name), not isinstance(era_order, str)
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
    if is_pair and tuple(era_order) not in (TIME_FIRST, TIME_FIRST[::-1]):
        raise ValueError(f"era_order={era_order!r} must be of two columns: {_EITHER}.")
    rows = columns[0].labels if X is None else X
    encoded = [read_eras(x.labels, rows, name=x.text, X_name=X_name) for x in columns]
    if len(columns) == 1:
        [eras] = encoded
        is_time = are_ordered(eras, era_order, what)
        return EraAxes(eras, None) if is_time else EraAxes(None, eras)
    if is_pair:
        at = list(era_order).index("ordered")
    else:
        kinds = [likeness_to_time(x.labels) for x in encoded]
        at = int(np.argmax(kinds))
        if kinds[0] == kinds[1]:
            shown = " and ".join(repr(as_objects(x.labels)[0]) for x in encoded)
            raise ValueError(
                f"{name}: labels such as {shown} do not tell which column is time: "
                f"{_EITHER}."
            )
    order = "ordered" if is_pair else "auto"
    check_order(encoded[at], order, what, "one column of groups")
    names = tuple(column.key for column in columns)
    return EraAxes(encoded[at], encoded[1 - at], at == 0, names)


def read_one(
    eras: Eras, X: Table, era_order: str, name: str
) -> tuple[NDArray[Any], EncodedEras, bool]:
    """Return the labels of rows, their encoding, and whether the eras have an order."""
    encoded = read_eras(eras, X)
    return encoded.decode(), encoded, are_ordered(encoded, era_order, name)


def read_known(
    eras: Eras, X: Table, era_order: EraOrder, what: str, **names: str
) -> tuple[Any, EncodedEras, bool]:
    """For labels in one column, return the same as `read_one`. With a pair or "auto" as
    `era_order`, labels may also have two columns, times and groups; then return the
    labels of rows as `EraColumns`, in which the times come first.
    """
    is_one = era_order in ("ordered", "unordered") or len(label_columns(eras)) != 2
    if is_one and isinstance(era_order, str):
        return read_one(eras, X, era_order, what)
    axes = read_axes(eras, X, era_order, what, **names)
    assert axes.time is not None  # of two columns
    assert axes.groups is not None
    calendar = eras.calendar if isinstance(eras, EraColumns) else None
    columns = EraColumns(
        [axes.time.decode(), axes.groups.decode()],
        calendar=axes.time.labels if calendar is None else calendar,
    )
    order = TIME_FIRST if axes.is_time_first else TIME_FIRST[::-1]
    pair = order, axes.names
    return columns, replace(axes.time, groups=axes.groups, pair=pair), True


def read_again(
    model: BaseEstimator, eras: Eras, X: Table, name: str = "eras", X_name: str = "X"
) -> tuple[Any, EncodedEras]:
    """Read two columns of labels as in the model's fit; return the labels and their
    encoding. Columns with the same names as in the fit may come in either order.
    """
    order, names = (tuple(x) for x in model._pair)
    if isinstance(eras, EraColumns):
        order = TIME_FIRST
    elif len(columns := label_columns(eras, name)) != 2:
        shown = f" ({names[0]!r} and {names[1]!r})" if isinstance(names[0], str) else ""
        raise ValueError(
            f"{name} has {len(columns)} column(s), and the fit of "
            f"{type(model).__name__} took two, times and groups{shown}: pass both."
        )
    elif tuple(column.key for column in columns) == names[::-1] != names:
        order = order[::-1]
    what, given = type(model).__name__, {"name": name, "X_name": X_name}
    return read_known(eras, X, order, what, **given)[:2]


def known_order(eras: EncodedEras, is_ordered: bool) -> Any:
    """Return the `era_order` that inner models get together with labels from
    `read_known`. It is a pair if the labels are times and groups.
    """
    return TIME_FIRST if eras.pair else "ordered" if is_ordered else "unordered"


def keep_pair(model: BaseEstimator, eras: EncodedEras | None) -> None:
    """Store in the model, for its predictions, which of two columns of eras is time;
    delete the groups of an earlier fit.
    """
    for name in ("_pair", "_known_groups"):
        vars(model).pop(name, None)
    if eras is not None and eras.pair is not None:
        model._pair = eras.pair


def likeness_to_time(labels: Labels) -> int:
    """Return how much labels look like times: from 0, not at all, to 3, like dates."""
    values = as_objects(labels)
    kinds = {*map(kind_of, values)}
    if categories_of(labels) is not None or kinds <= {"number", "duration"}:
        return 2
    if kinds == {"text"}:
        texts = [*map(decoded, values)]
        return 3 if are_dates(texts) else int(all(x.isdigit() for x in texts))
    return 3 if all(kind.startswith("date") for kind in kinds) else 0


def with_order(estimator: BaseEstimator, era_order: EraOrder, /, **params: Any) -> Any:
    """Return a copy of an estimator, also of a frozen one, with the given parameters.
    Set its `era_order`, and that of inner models, to the given one where the parameter
    is "auto" or a pair.
    """
    known: Any = clone(estimator)
    if known is estimator:  # as it is frozen
        known = copy(known)
    known.set_params(**params)
    names = [
        name
        for name, value in known.get_params().items()
        # A pair is that of columns as they were passed.
        if name.split("__")[-1] == "era_order"
        and (value == "auto" or not isinstance(value, str))
    ]
    known.set_params(**dict.fromkeys(names, era_order))
    return known  # `set_params` of a frozen model returns None
