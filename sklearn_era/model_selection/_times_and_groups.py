"""Cross-validate on later eras, on groups left out, or on both at once."""

from __future__ import annotations

import datetime
import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from copy import copy
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, GroupKFold
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils._param_validation import StrOptions

from .._era_axes import TIME_FIRST, EraAxes, read_axes
from .._era_calendar import instants_of
from .._era_labels import Labels, keys_of
from .._eras import EncodedEras
from .._parameter_object import parameter, with_parameters
from .._typing import Duration, EraOrder, Folds, Table
from ._walk_forward import COUNT, COUNT_OR_ZERO, check_splitter

_TIMES: Any = (str, datetime.timedelta, np.timedelta64)
SIZE = [*_TIMES, COUNT]
_SIZE_OR_ZERO = [*_TIMES, COUNT_OR_ZERO]
# Parameters of models that take times and groups as two columns of eras.
OF_AXES: dict[str, list[Any]] = {
    "era_order": [StrOptions({"auto", "ordered", "unordered"}), tuple, list],
    "horizon": SIZE,
    "group": [StrOptions({"new", "known"})],
}
_PAIRS = [("ordered", "unordered"), ("unordered", "ordered")]
_NO_LENGTH = ("m8", "m8[M]", "m8[Y]")  # dtypes
_SIZES = ("test_size", "max_train_size", "horizon", "gap", "purge")
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_NANOSECONDS = {
    name: seconds * 10**9
    for names, seconds in (
        ("w week weeks", 604_800), ("d day days", 86_400), ("h hour hours", 3600),
        ("min minute minutes", 60), ("s second seconds", 1),
    )
    for name in names.split()
}  # fmt: skip


@with_parameters
class EraSplit(GroupsConsumerMixin, BaseCrossValidator):
    """Cross-validator of later eras, of groups left out, or of both at once.

    A model of shops and weeks may be asked four questions: about shops that it knows or
    new ones, in the next week or later. With two columns of labels, times and groups,
    each split trains on earlier eras of some groups, and tests on later eras of other
    groups (``group="new"``) or of the same ones (``group="known"``), which have rows in
    training. `horizon` is the number of eras from training to test. With 3 groups, 8
    eras and ``n_splits=2, n_group_folds=3, test_size=2, horizon=2``, the last three
    splits are ::

        era     0 1 2 3 4 5 6 7    era     0 1 2 3 4 5 6 7    era     0 1 2 3 4 5 6 7
        shop a  . . . . . . T T    shop a  # # # # # - . .    shop a  # # # # # - . .
        shop b  # # # # # - . .    shop b  . . . . . . T T    shop b  # # # # # - . .
        shop c  # # # # # - . .    shop c  # # # # # - . .    shop c  . . . . . . T T

        # train   - left out by time   T test, with group="new"   . not used

    ``group="known"`` trains on the same rows, and tests on the last two eras of the
    shops in training. No split trains on an era of the test or after it, nor on a group
    that is left out.

    With one column, splits are by this column alone: by times as in
    :class:`EraWalkForwardSplit`, by groups as in scikit-learn's
    :class:`~sklearn.model_selection.GroupKFold`.

    Parameters
    ----------
    n_splits : int, default=3
        Number of test blocks in time, which follow each other and end with the last
        era.
    n_group_folds : int, default=3
        Number of folds of groups, which have about equally many rows: at least 2, or 1
        to leave no group out, with ``group="known"``. With both axes, the splits are
        all pairs of blocks and folds.
    group : {'new', 'known'}, default='new'
        With two columns, whether to test on groups left out or on groups of training.
    test_size : int or duration, default=None
        Eras in each test block. By default, the largest number that leaves the first
        split at least as many eras to train on, if `horizon`, `gap` and `purge` are
        numbers of eras.
    max_train_size : int or duration, default=None
        The most eras to train on, the last ones; None takes all.
    horizon : int or duration, default=1
        How many eras ahead models predict: the distance from the last known era to the
        first era of a test block, 1 for the next era.
    gap : int or duration, default=0
        The number of last known eras whose rows arrive too late to train on.
    purge : int or duration, default=0
        The number of eras before the gap whose targets are not complete: h - 1 for
        targets that span h eras.
    era_order : {'auto', 'ordered', 'unordered'} or tuple of two, default='auto'
        How the order of eras is known. For two columns, ``("ordered", "unordered")`` is
        times first, and ``("unordered", "ordered")`` is groups first. With 'auto',
        times are the column whose kind comes first in this list: dates and text of
        dates; numbers, durations and ordered categoricals; numbers in text; other text
        and booleans. Two columns of one kind raise an error. One column is read as in
        :class:`EraSearchCV`, and needs 'unordered' for names of groups.

    Attributes
    ----------
    question : str
        The question that splits of two columns answer: "new group, next era", "new
        group, later era", "known group, next era" or "known group, later era"; the era
        is later for a `horizon` other than 1, and for each duration.

    See Also
    --------
    EraWalkForwardSplit : The same for times alone, with labels of eras.
    sklearn.model_selection.GroupKFold : The same for groups alone.
    EraKFold : Folds of the rows of each era.

    Notes
    -----
    A number counts the eras that occur in the data. A duration is a text such as "28D"
    or "4 weeks" (weeks, days, hours, minutes or seconds), a ``timedelta`` or a
    ``timedelta64``, for labels that are dates, or numbers and text that hold dates: for
    an era at time t, a `horizon`, `gap` or `purge` of d leads to the last era at t - d
    or before, a `max_train_size` keeps the eras after t - d, and test blocks are the
    intervals of length `test_size` that end with the last era.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_era.model_selection import EraSplit
    >>> weeks = pd.date_range("2024-01-01", periods=6, freq="7D")
    >>> eras = pd.MultiIndex.from_product([weeks, ["rome", "oslo", "bonn"]])
    >>> eras = eras.to_frame(index=False, name=["week", "shop"])
    >>> cv = EraSplit(n_splits=1, test_size=1, horizon="14D")
    >>> cv.question
    'new group, later era'
    >>> for train, test in cv.split(eras, groups=eras):
    ...     test = eras.iloc[test]
    ...     print(eras.week[train].max().date(), [*test.shop], test.week.min().date())
    2024-01-22 ['rome'] 2024-02-05
    2024-01-22 ['oslo'] 2024-02-05
    2024-01-22 ['bonn'] 2024-02-05
    """

    n_splits: int = parameter([COUNT], default=3, kw_only=False)
    n_group_folds: int = parameter([COUNT], default=3, kw_only=False)
    group: str = parameter(OF_AXES["group"], default="new")
    test_size: Duration | None = parameter([*SIZE, None], default=None)
    max_train_size: Duration | None = parameter([*SIZE, None], default=None)
    horizon: Duration = parameter(SIZE, default=1)
    gap: Duration = parameter(_SIZE_OR_ZERO, default=0)
    purge: Duration = parameter(_SIZE_OR_ZERO, default=0)
    era_order: EraOrder = parameter(OF_AXES["era_order"], default="auto")

    def __post_init__(self) -> None:
        check_splitter(self)
        era_order = self.era_order
        if self.n_group_folds < 2 and self.group == "new":
            raise ValueError(
                "n_group_folds=1 leaves no group out: it must be 2 or more, or group "
                "must be 'known'."
            )
        if not isinstance(era_order, str) and tuple(era_order) not in _PAIRS:
            raise ValueError(
                f"era_order of two columns must be one of {_PAIRS[0]} and {_PAIRS[1]}; "
                f"got {era_order!r}."
            )
        for name in _SIZES:
            if (size := getattr(self, name)) is not None:
                _length_of(size, name)

    @property
    def question(self) -> str:
        when = "next" if is_same(self.horizon, 1) else "later"
        return f"{self.group} group, {when} era"

    def split(
        self, X: Table, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Generate indices of the rows to train and to test on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, of which only the number matters.
        y : array-like of shape (n_samples,), default=None
            Ignored, exists for compatibility.
        groups : array-like of shape (n_samples,) or (n_samples, 2), or tuple of two
            Labels of each row: times, groups, or both as two columns, such as a data
            frame's, or as a tuple of two arrays. Rows may be in any order.

        Yields
        ------
        train, test : ndarray of shape (n_train,) and (n_test,), dtype=intp
            Rows to train and to test on, ascending. With two columns, all folds of
            groups of the first block in time come first, then all folds of the next.

        Raises
        ------
        ValueError
            If `groups` is missing, does not label the rows of `X` or does not tell
            which column is time; if there are too few eras or groups; if a size is a
            duration and times are not dates; or if a split has no row to test on.

        Warns
        -----
        UserWarning
            If times are texts, which are read as numbers or dates of one form.
        """
        axes = self._read(X, groups)
        blocks = self._blocks(axes.time) if axes.time else [None]
        folds = self._folds(axes.groups) if axes.groups else [None]
        for number, (block, left_out) in enumerate(product(blocks, folds)):
            train = test = np.ones(axes.n_rows, dtype=bool)
            if axes.time and block:
                train, test = (np.isin(axes.time.codes, eras) for eras in block)
            if axes.groups and left_out is not None:
                codes = axes.groups.codes
                is_left_out = np.isin(codes, left_out)
                train = train & ~is_left_out
                is_known = np.isin(codes, codes[train])
                test = test & (is_left_out if self.group == "new" else is_known)
            for rows, what in ((train, "train"), (test, "test")):
                if not rows.any():
                    raise ValueError(
                        f"groups: split {number} has no row to {what} on, as its "
                        "groups have none in its eras: lower n_splits or "
                        "n_group_folds, or raise test_size or max_train_size."
                    )
            yield np.flatnonzero(train), np.flatnonzero(test)

    def get_n_splits(
        self, X: Table | None = None, y: ArrayLike | None = None, groups: Any = None
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y : object
            Ignored, exist for compatibility.
        groups : array-like of shape (n_samples,) or (n_samples, 2), or tuple of two
            Labels of each row, as for :meth:`split`.

        Returns
        -------
        n_splits : int
            The number of blocks in time times the number of folds of groups.
        """
        axes = self._read(None, groups)
        n_folds = self.n_group_folds if axes.groups else 1
        return (self.n_splits if axes.time else 1) * n_folds

    def _read(self, X: Any, groups: Any) -> EraAxes:
        """Return the encoded times and groups of rows. Raise ValueError if `groups` is
        missing, or has only one column although `group` is "known".
        """
        if groups is None:
            raise ValueError(
                "groups is missing: pass the times of rows, their groups, or both as "
                "two columns, split(X, y, groups=eras)."
            )
        axes = read_axes(groups, X, self.era_order, type(self).__name__, "groups")
        if self.group == "known" and not (axes.time and axes.groups):
            raise ValueError(
                "group='known' is for two columns, of times and of groups, and groups "
                "has one: leave it out."
            )
        return axes

    def _folds(self, groups: EncodedEras) -> list[NDArray[np.intp]]:
        """Return the codes of the groups that each fold leaves out."""
        n_groups, n_folds = groups.labels.size, self.n_group_folds
        if n_folds == 1 and self.group == "known":
            return [np.array([], dtype=np.intp)]
        if n_groups < n_folds:
            raise ValueError(
                f"groups has {n_groups} group(s), of which {n_folds} folds cannot be "
                "made: lower n_group_folds."
            )
        folds = GroupKFold(n_folds).split(groups.codes, None, groups.codes)
        return [np.unique(groups.codes[test]) for _, test in folds]

    def _blocks(self, eras: EncodedEras) -> list[tuple[range, range]]:
        """Return, for each block, a range of eras to train on and a range to test."""
        n_eras, given = eras.labels.size, {name: getattr(self, name) for name in _SIZES}
        timed = [x for x, size in given.items() if is_duration(size)]
        times = instants_of(eras.labels, timed[0]) if timed else []
        if self.test_size is None:
            lengths: Any = (self.horizon, self.gap, self.purge)
            n_counted = sum(x for x in lengths if not is_duration(x))
            n_left = n_eras - n_counted + (not is_duration(self.horizon))
            given["test_size"] = max(1, n_left // (self.n_splits + 1))

        def first_within(size: Duration, place: int, n_times: int = 1) -> int:
            """Return the first era after `place` minus `n_times` times `size`."""
            at = times if is_duration(size) else range(n_eras)
            return bisect_right(at, at[place] - n_times * _length_of(size, "gap"))

        blocks, stop = [], n_eras
        for number in range(self.n_splits):
            start = first_within(given["test_size"], n_eras - 1, number + 1)
            last = start
            for name in ("horizon", "gap", "purge"):
                last = first_within(given[name], last) - 1 if last >= 0 else -1
            if last < 0 or start == stop:
                raise ValueError(
                    f"groups has {n_eras} eras, and block {self.n_splits - number} of "
                    f"n_splits={self.n_splits} would have none to "
                    f"{'train on before it' if last < 0 else 'test on'}: "
                    f"{', '.join(f'{x}={size!r}' for x, size in given.items())}. Lower "
                    "one of these, or pass more eras."
                )
            first = 0
            if self.max_train_size is not None:
                first = first_within(self.max_train_size, last)
            blocks.append((range(first, last + 1), range(start, stop)))
            stop = start
        return blocks[::-1]


def in_order(cv: Folds, era_order: Any) -> Any:
    """Return an `EraSplit`'s copy with this `era_order`, or any other `cv` itself."""
    if not isinstance(cv, EraSplit):
        return cv
    other = copy(cv)
    other.era_order = era_order
    return other


def times_first(cv: Folds) -> Any:
    """Return a copy of an `EraSplit` that takes times before groups, unless the
    splitter is for one column; return any other `cv` as it is.
    """
    is_for_one = getattr(cv, "era_order", "") in ("ordered", "unordered")
    return cv if is_for_one else in_order(cv, TIME_FIRST)


def is_duration(size: Any) -> bool:
    """Return whether a size is a duration, not a number of eras. A `timedelta64`, which
    is an `Integral` and equals its number, is a duration.
    """
    return isinstance(size, _TIMES)


def is_same(size: Any, other: Any) -> bool:
    """Return whether two sizes or texts are equal; no duration equals a number."""
    return is_duration(size) == is_duration(other) and bool(size == other)


def steps_of(horizon: Any, labels: Labels, name: str = "horizon") -> int:
    """Return a horizon as a number of eras. Divide a duration by the median time
    between labels, and round up.
    """
    if not is_duration(horizon):
        return int(horizon)
    length = _length_of(horizon, name)
    return max(1, math.ceil(length / np.median(np.diff(instants_of(labels, name)))))


def _length_of(size: Any, name: str) -> int:
    """Return a number of eras as it is, or a duration in nanoseconds. Raise ValueError
    for a duration that cannot be read, is negative, or is 0 and not a gap or purge.
    """
    if not is_duration(size):
        return int(size)
    length = -1
    if isinstance(size, str):
        match = _DURATION.fullmatch(size)
        if match and (unit := _NANOSECONDS.get(match[2].lower())):
            length = round(float(match[1]) * unit)
    elif isinstance(size, datetime.timedelta) or size.dtype not in _NO_LENGTH:
        [length] = keys_of(np.array([size], dtype=object))
    if length < 0 or (length == 0 and name not in ("gap", "purge")):
        raise ValueError(
            f"{name} must be a number of eras or a duration above 0, such as '28D' or "
            f"'4 weeks', in weeks, days, hours, minutes or seconds; got {size!r}."
        )
    return length
