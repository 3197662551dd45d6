"""Cross-validate by walking forward through eras, with a gap before each test."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import TimeSeriesSplit
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from .._eras import TIME_ONLY, EncodedEras, check_order, read_eras
from .._parameter_object import parameter, with_parameters
from .._scikit_learn import refuse_bools
from .._warnings import refuses_moved

COUNT = Interval(Integral, 1, None, closed="left")
COUNT_OR_ZERO = Interval(Integral, 0, None, closed="left")
_GAP = "gap, which is purge and embargo together"


def check_splitter(splitter: Any) -> None:
    """Raise ValueError if a parameter is invalid."""
    constraints = splitter._parameter_constraints
    # A subclass may have set attributes of its own.
    given = {name: getattr(splitter, name) for name in constraints}
    name = f"{type(splitter).__name__}.__init__"
    validate_parameter_constraints(constraints, given, name)
    refuse_bools(given)  # which count as numbers


class SplitsRowsOfEras(GroupsConsumerMixin):
    """A splitter whose `groups` are eras; subclasses make the splits in `_splits`."""

    _splits: Any

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Generate indices of the rows to train and to test on.

        Parameters
        ----------
        X, y : array-like of shape (n_samples, n_features) and (n_samples,)
            The rows, of which only the number matters; `y` is ignored.
        groups : array-like of shape (n_samples,)
            Era of each row: any label that `np.unique` sorts. Rows may be in any order.

        Yields
        ------
        train, test : ndarray of shape (n_train,) and (n_test,), dtype=intp
            Rows to train and to test on, ascending.

        Raises
        ------
        ValueError
            If `groups` is missing, does not label the rows of `X`, has too few eras or
            rows per era, or has no order although splits depend on it.

        Warns
        -----
        UserWarning
            If splits depend on the order of labels that are text, which is read as
            numbers or dates of one form.
        """
        if groups is None:
            raise ValueError(
                "groups is missing: pass the era of each row, split(X, y, groups=eras) "
                "or fit(X, y, groups=eras) of the search."
            )
        yield from self._splits(read_eras(groups, X, name="groups"))


@refuses_moved(purge=_GAP, embargo=_GAP, train_size="max_train_size")
@with_parameters
class EraWalkForwardSplit(SplitsRowsOfEras, TimeSeriesSplit):
    """Walk-forward cross-validator along eras, with a gap: `TimeSeriesSplit` of eras.

    Each split tests on a block of consecutive eras, and trains on eras before it. The
    blocks follow each other without a gap or an overlap, and the last one ends with the
    last era. Between training and test, `gap` eras are left out. With 10 eras and
    ``n_splits=3, test_size=2, gap=1``::

        max_train_size=None             max_train_size=2

        era      0 1 2 3 4 5 6 7 8 9    era      0 1 2 3 4 5 6 7 8 9
        split 0  # # # - T T . . . .    split 0  . # # - T T . . . .
        split 1  # # # # # - T T . .    split 1  . . . # # - T T . .
        split 2  # # # # # # # - T T    split 2  . . . . . # # - T T

        # train   - gap   T test   . not used

    Leave a gap if targets span several eras: targets of the last eras before the test
    overlap those of the test, and a model trained on these eras knows part of the
    answers. Targets that span h eras need ``gap=h - 1``, and more if neighbouring eras
    resemble each other in other ways, or if targets become known late. The gap is the
    sum of the purge and the embargo of [1]_, both of which precede the test here, as
    every training era does. Later splits train on past test blocks and on the eras
    after these, as would have been possible at that time.

    All sizes are numbers of eras, not of rows. Only eras that occur are counted: with
    weeks missing, a gap of 8 eras is longer than 8 weeks.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits; at least 1.
    max_train_size : int, default=None
        The most eras to train on in a split, the last before the gap; None takes all.
    test_size : int, default=None
        Eras in each test block. By default ``(n_eras - gap) // (n_splits + 1)``: the
        first split has at least this many eras to train on.
    gap : int, default=0
        Eras left out before each test block.
    era_order : {'auto', 'ordered'}, default='auto'
        How the order of eras is known. With 'auto', numbers, dates, periods and ordered
        categoricals follow each other, and so does text that is numbers or dates of one
        form (``"0001"``, ``"2024-01"``, ``"2024-W07"``); other text raises an error.
        With 'ordered', other text is taken in its sorted order.

    See Also
    --------
    EraSplit : The same, with groups left out as well, and sizes in durations.
    sklearn.model_selection.TimeSeriesSplit : The same for rows, already in order.
    sklearn.model_selection.GroupKFold : Folds of whole eras, without regard to time.
    sklearn.model_selection.LeaveOneGroupOut : Each era a fold of its own.

    References
    ----------
    .. [1] M. López de Prado, "Advances in Financial Machine Learning", 2018, chapter 7.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.model_selection import EraWalkForwardSplit
    >>> eras = np.repeat([2019, 2020, 2021, 2022, 2023], 2)
    >>> cv = EraWalkForwardSplit(n_splits=2, test_size=1, gap=1)
    >>> for train, test in cv.split(eras, groups=eras):
    ...     print(np.unique(eras[train]), np.unique(eras[test]))
    [2019 2020] [2022]
    [2019 2020 2021] [2023]
    """

    n_splits: int = parameter([COUNT], default=5, kw_only=False)
    max_train_size: int | None = parameter([COUNT, None], default=None)
    test_size: int | None = parameter([COUNT, None], default=None)
    gap: int = parameter([COUNT_OR_ZERO], default=0)
    era_order: str = parameter([StrOptions({"auto", "ordered"})], default="auto")

    def __post_init__(self) -> None:
        check_splitter(self)

    def split_eras(
        self, eras: ArrayLike
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Generate the labels of the eras to train and to test on.

        Parameters
        ----------
        eras : array-like of shape (n_samples,)
            Era of each row, or each era once.

        Yields
        ------
        train, test : ndarray of shape (n_train_eras,) and (n_test_eras,)
            Labels of the training and test eras, sorted.

        Raises
        ------
        ValueError
            If labels are missing, or there are too few eras.

        Warns
        -----
        UserWarning
            If labels are texts, which are read as numbers or dates of one form.
        """
        if eras is None:
            raise ValueError(
                "eras is missing: pass the era of each row, or each era once, "
                "split_eras(eras)."
            )
        labels = self._in_order(read_eras(eras, eras, X_name="the data")).labels
        for train, test in self._blocks(labels.size):
            yield labels[train.start : train.stop], labels[test.start : test.stop]

    def _splits(self, eras: EncodedEras) -> Iterator[tuple[Any, ...]]:
        codes, n_eras = eras.codes, self._in_order(eras).labels.size
        for blocks in self._blocks(n_eras):
            yield tuple(np.flatnonzero(np.isin(codes, block)) for block in blocks)

    def _in_order(self, eras: EncodedEras) -> EncodedEras:
        """Return the eras as they are; raise ValueError if they have no order."""
        name, remedy = type(self).__name__, f"{TIME_ONLY}; for groups use GroupKFold"
        check_order(eras, self.era_order, name, "GroupKFold", remedy)
        return eras

    def _blocks(self, n_eras: int) -> Iterator[tuple[range, range]]:
        """For each split, yield a range of eras to train on, and a range to test on."""
        n_test = self.test_size
        if n_test is None:
            n_test = max(1, (n_eras - self.gap) // (self.n_splits + 1))
        needed = 1 + self.gap + self.n_splits * n_test
        if n_eras < needed:
            raise ValueError(
                f"{n_eras} eras are too few to walk forward, which takes {needed}: one "
                f"to train on, gap={self.gap}, and n_splits={self.n_splits} times "
                f"{n_test} to test on (test_size={self.test_size}). Lower one of "
                "these, or pass more eras."
            )
        for test_start in range(n_eras - self.n_splits * n_test, n_eras, n_test):
            stop = test_start - self.gap
            start = max(0, stop - (self.max_train_size or stop))
            yield range(start, stop), range(test_start, test_start + n_test)
