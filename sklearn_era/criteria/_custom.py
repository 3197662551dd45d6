"""Define the base class of criteria that users write in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._criteria import EraCriterion

_Numbers = NDArray[np.float64]


class EraSums(NamedTuple):
    """Sums over rows, by era, on one side of each split of a node.

    Attributes
    ----------
    gradients, hessians, counts : ndarray of shape (n_splits, n_eras)
        Sums of gradients, sums of hessians, and numbers of rows. In forests, and with
        the squared error, the gradient of a row is ``weight * (prediction - target)``,
        and its hessian is its weight.
    """

    gradients: _Numbers
    hessians: _Numbers
    counts: _Numbers


class SplitKeys(NamedTuple):
    """Keys of the splits of a node, with optional keys for ties and priorities.

    Attributes
    ----------
    primary : array-like of shape (n_splits,)
        The keys that rank the splits of a node; the largest wins.
    secondary : array-like of shape (n_splits,), default=0
        Keys that rank splits of the same primary key, before their pooled gains do.
    priority : array-like of shape (n_splits,), default=None
        Keys that compare the best splits of different nodes, to choose the next node to
        split, if a tree grows best first and `min_gain_share` is 0. None stands for
        `primary`.
    """

    primary: ArrayLike
    secondary: ArrayLike = 0.0
    priority: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class ListedSplits:
    """The candidate splits of a node; a criterion chooses one of them.

    These splits meet `min_samples_leaf`, the constraints, `min_era_coverage` and
    `min_gain_share`. Eras are those of training, in their order; an era without rows in
    the node has sums of 0. (An era that a forest draws twice has two columns.)

    Attributes
    ----------
    left, right : EraSums
        Sums of `gradients`, `hessians` and `counts` on each side, arrays of shape
        (n_splits, n_eras).
    pooled_gains : ndarray of shape (n_splits,)
        Gains over the rows of all eras.
    era_labels : ndarray of shape (n_eras,)
        The labels as passed to ``fit``, such as dates, sorted. Labels of text are in
        order of time only if eras are ordered (see `era_order`).
    sum_hessians, gradient_variance : float
        The node's sum of hessians, and the variance of the gradients (per unit of
        hessian) at the root of the tree. A pooled gain divided by both has no unit, as
        with ``normalize=True`` of other criteria.
    l2_regularization : float
        The estimator's parameter.
    min_samples_per_era : ndarray of shape (n_eras,)
        Rows of an era that a split needs on each side to cover the era.
    era_sizes : ndarray of shape (n_eras,)
        Rows of each era in the tree's training set.
    gains, effects, covered : ndarray of shape (n_splits, n_eras)
        For each split and era: the gain; the value of the left side minus that of the
        right side; and whether the split covers the era. Gain and effect are 0 if the
        era is not covered or has a side without weight.
    impurities : ndarray of shape (n_eras,)
        Mean squared deviation of the gradients of each era, before the split.
    """

    _sides: _Numbers  # (2, n_planes, n_eras, n_splits): gradients, rows, maybe hessians
    pooled_gains: _Numbers
    era_labels: NDArray[Any]
    sum_hessians: float
    l2_regularization: float
    min_samples_per_era: _Numbers
    era_sizes: _Numbers
    # The kernel's functions.
    _compare: Callable[[_Numbers, _Numbers, float], _Numbers]
    _measure_impurities: Callable[[], _Numbers]
    _measure_variance: Callable[[], float]

    @cached_property
    def left(self) -> EraSums:
        """Return the sums over each era's rows on the left side of each split."""
        return self._side(0)

    @cached_property
    def right(self) -> EraSums:
        """Return the sums over each era's rows on the right side of each split."""
        return self._side(1)

    def _side(self, i: int) -> EraSums:
        gradients, counts, *hessians = self._sides[i].transpose(0, 2, 1)
        return EraSums(gradients, hessians[0] if hessians else counts, counts)

    @cached_property
    def _comparison(self) -> _Numbers:
        found = self._compare(
            self._sides, self.min_samples_per_era, self.l2_regularization
        )
        return found.transpose(0, 2, 1)

    @property
    def gains(self) -> _Numbers:
        """Return the gain of each split in each era."""
        return self._comparison[0]

    @property
    def effects(self) -> _Numbers:
        """Return the left value minus the right value of each split, in each era."""
        return self._comparison[1]

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Return, for each split and era, whether the split covers the era: whether
        both sides have at least `min_samples_per_era` of the era's rows.
        """
        fewer = np.minimum(self.left.counts, self.right.counts)
        return fewer >= self.min_samples_per_era

    @cached_property
    def gradient_variance(self) -> float:
        """Return the variance of gradients, per unit of hessian, at the tree's root."""
        return self._measure_variance()

    @cached_property
    def impurities(self) -> _Numbers:
        """Return the impurity of each era in the node, before the split."""
        return self._measure_impurities()


class CustomCriterion(EraCriterion):
    """The base of criteria that users define, in NumPy.

    A subclass defines :meth:`keys`, which returns a number for each split of a node;
    the largest wins. It is called once for each node that may be split. Coverage,
    constraints, missing values, categories, ties and forests work as for the other
    criteria. A :class:`Blend` may have one CustomCriterion, and takes its keys as they
    are, whatever `normalize`. As in scikit-learn, ``__init__`` takes the parameters and
    stores them; a dataclass needs ``eq=False, repr=False``. Models are saved by pickle,
    which has to import the class.

    Parameters
    ----------
    rule : {'every_era'} or None, default=None
        As in :class:`Era`.

    Attributes
    ----------
    asks_coverage : bool
        Class attribute, True by default: whether splits have to cover the share
        `min_era_coverage` of the eras.

    Examples
    --------
    The second smallest gain of the eras, which forgives one bad era:

    >>> import numpy as np
    >>> from sklearn_era.criteria import CustomCriterion
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> class SecondWorst(CustomCriterion):
    ...     def keys(self, splits):
    ...         keys = np.sort(splits.gains, axis=1)[:, :2].max(axis=1)
    ...         return np.where(keys <= 0, -np.inf, keys)
    >>> rng = np.random.default_rng(0)
    >>> X, eras = rng.normal(size=(500, 3)), np.repeat(np.arange(5), 100)
    >>> y = X[:, 0] + X[:, 1] * (eras < 2)
    >>> model = HistGradientBoostingRegressor(split_criterion=SecondWorst())
    >>> model.fit(X, y, eras=eras).score(X, y) > 0.5
    True
    """

    name = "custom"
    is_gain_of_one_era = False

    def keys(self, splits: ListedSplits) -> ArrayLike | SplitKeys:
        """Return the key of each split of a node; the largest wins.

        Parameters
        ----------
        splits : ListedSplits
            The splits, at least one.

        Returns
        -------
        keys : array-like of shape (n_splits,) or SplitKeys
            The keys; ``-inf`` refuses a split. A split also needs, in a blend, a sum
            above 0 and, with a `feature_penalty`, a key above the penalty.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no keys(splits).")

    def _kernel_parameters(self) -> dict[str, Any]:
        return super()._kernel_parameters() | {"custom": self}

    def _checked_keys(self, splits: ListedSplits) -> _Numbers:
        """Call `keys`; return an array of shape (3, n_splits), with rows of primary
        keys, secondary keys and priorities. Raise ValueError for invalid shapes or
        types, and for NaN.
        """
        keys = self.keys(splits)
        if not isinstance(keys, SplitKeys):
            keys = SplitKeys(keys)
        if keys.priority is None:
            keys = keys._replace(priority=keys.primary)
        n_splits = splits.pooled_gains.size
        result = np.empty((3, n_splits))
        for row, name, given in zip(result, SplitKeys._fields, keys, strict=True):
            values = np.asarray(given)
            may_be_one = name == "secondary" and values.ndim == 0
            if values.dtype.kind not in "fiub" or not (
                values.shape == (n_splits,) or may_be_one
            ):
                what = f"an array of shape {values.shape} and dtype {values.dtype}"
                raise ValueError(
                    f"{type(self).__name__}.keys returned "
                    f"{'None' if given is None else what} for {n_splits} splits; return"
                    " one number for each, or SplitKeys."
                )
            row[:] = values
        if (lost := np.isnan(result).any(axis=0)).any():
            raise ValueError(
                f"{type(self).__name__}.keys returned nan for {lost.sum()} of "
                f"{n_splits} splits; return -inf for those that are not valid."
            )
        return result

    def __eq__(self, other: object) -> bool:  # parameters may be arrays
        return type(other) is type(self) and joblib.hash(vars(other)) == joblib.hash(
            vars(self)
        )

    def __hash__(self) -> int:
        return hash(type(self))
