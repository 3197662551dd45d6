"""Subsets of rows in which features are as little correlated as can be, as eras."""

import math
from collections import defaultdict, deque
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from threadpoolctl import threadpool_limits

from sklearn_era._eras import check_eras, encode_eras
from sklearn_era._warnings import warn_user
from sklearn_era.environments._era_moments import EraMoments
from sklearn_era.environments._numeric import check_numbers, number_by_size

# Rows whose moves are weighed, and then made, together; fewer in small data.
_BATCH_SIZE = 512
_BATCHES_IN_A_SWEEP = 20


@validate_params(
    {
        "n_eras": [Interval(Integral, 2, None, closed="left")],
        "min_share": [Interval(Real, 0, 1, closed="right"), None],
        "missing": [StrOptions({"raise", "median"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def decorrelated_partition(
    X: Any,
    n_eras: int,
    *,
    min_share: float | None = None,
    missing: str = "raise",
    max_iter: int = 100,
    tol: float = 1e-3,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """Make eras of subsets of rows whose features are hardly correlated.

    *Experimental*: it may change without a deprecation.

    Where a feature predicts only since it goes along with another one, a subset in
    which the two do not go along shows it. That is the idea of Decorr [1]_, which [2]_
    uses to make environments where the data have none. This is not its algorithm:
    Decorr learns weights of the rows by gradient descent, a subset at a time, and this
    is a local search over all subsets at once. The objective is the same but for a
    factor, the squared Frobenius distance of correlations to the identity ::

        J = 1/M Σ_e J_e,    J_e = 1/(p (p-1)) Σ_{j≠k} R_e,jk²

    with M eras, p features, and R_e the correlation matrix of the rows of era e. Each
    era counts the same, as it does in the split criteria.

    Labels begin at random, with eras of equal size. Rows are then gone through in
    random order, in batches of at most 512. One more row with the values x in era e, of
    n_e rows, changes J to first order by ::

        s_e(x) = 2/(M p (p-1) n_e) [ Σ_{j≠k} R_jk z_j z_k - Σ_j z_j² Σ_{k≠j} R_jk² ]

    where ``z = (x - mean_e) / std_e``, and one row less by the opposite. Each row of
    the batch is to go to the era of least s, if that is less than the s of its own. Of
    the moves that would leave an era too small, those of the largest effects are made
    as far as they are allowed, or in exchange for a row of the other era. The sums over
    x and x xᵀ of each era are brought up to date, and J is computed anew. Unless it is
    less than before, the half of the moves with the largest effects is tried instead,
    and so on. So J falls with every batch that moves, and the search ends near a local
    minimum, where a sweep over all rows lowers J by no more than the share `tol`.

    A sweep takes ``O(n p² M)`` operations. Memory is that of a float64 copy of X.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Numbers, in any units. Columns that are constant have no correlation, and are
        left out.

    n_eras : int
        Number of subsets; at least 2.

    min_share : float, default=None
        Least share of the rows in each subset, in (0, 1 / n_eras]. None is
        ``0.5 / n_eras``. Small subsets can be less correlated, and leave more rows to
        one large subset that is as correlated as the whole.

    missing : {'raise', 'median'}, default='raise'
        What to do about missing values: refuse them, or take the median of the column
        (:class:`sklearn.impute.SimpleImputer`).

    max_iter : int, default=100
        Most sweeps over the rows; 5 to 10 are usual.

    tol : float, default=1e-3
        Share of J that a sweep has to take off for another one to follow.

    random_state : int, RandomState instance or None, default=None
        Determines the first labels and the order of the rows. Pass an int for
        reproducible output across calls.

    Returns
    -------
    labels : ndarray of shape (n_samples,), dtype=intp
        The era of each row, from 0, the one of most rows, to ``n_eras - 1``.

    Raises
    ------
    ValueError
        If columns hold categories, infinity or, with ``missing="raise"``, missing
        values; if fewer than two columns vary; if `min_share` is more than
        ``1 / n_eras``; or if there are fewer than three rows an era.

    Warns
    -----
    ConvergenceWarning
        If J still falls after `max_iter` sweeps.

    See Also
    --------
    within_era_correlation : J_e of any eras.

    Notes
    -----
    Correlations of n_e rows are about 1/sqrt(n_e) by chance alone, J_e is then about
    1/n_e, and a search can lower it further by picking rows. With few rows and many
    features, low correlations say nothing of the world: compare with other rows.

    References
    ----------
    .. [1] Y. Liao, Q. Wu and X. Yan, "Decorr: Environment Partitioning for Invariant
           Learning and OOD Generalization", 2022, arXiv:2211.10054.
    .. [2] Y. Liao, Q. Wu and X. Yan, "Invariant Random Forest: Tree-Based Model
           Solution for OOD Generalization", AAAI 2024, section 5.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.environments import (
    ...     decorrelated_partition, within_era_correlation
    ... )
    >>> rng = np.random.default_rng(0)
    >>> common = rng.normal(size=(1000, 1))
    >>> X = common + rng.normal(size=(1000, 5))  # correlations of 0.5
    >>> labels = decorrelated_partition(X, 2, random_state=0)
    >>> bool(within_era_correlation(X, np.zeros(1000))[0] > 0.2)
    True
    >>> bool(within_era_correlation(X, labels).mean() < 0.1)
    True
    """
    values, _ = check_numbers(X, missing)
    varying = values[:, values.min(axis=0) < values.max(axis=0)]
    n_samples, n_features = varying.shape
    if n_features < 2:
        raise ValueError(
            f"X has {n_features} column(s) that vary, and a correlation takes two; "
            "pass more columns, or make eras with kmeans_partition or time_blocks."
        )
    if n_samples < 3 * n_eras:
        raise ValueError(
            f"X has {n_samples} rows, but n_eras={n_eras} needs {3 * n_eras}, three "
            "an era; lower n_eras, or pass more rows."
        )
    share = 0.5 / n_eras if min_share is None else min_share
    if share * n_eras > 1:
        raise ValueError(
            f"min_share={min_share!r} of the rows is more than n_eras={n_eras} eras "
            f"can all have; lower it to {1 / n_eras:.3g} or less."
        )
    rng = check_random_state(random_state)
    standardised = StandardScaler().fit_transform(varying)
    # Eras begin with n // M rows, which 1 / n_eras of them may be a fraction less than.
    least = min(max(3, math.ceil(round(share * n_samples, 9))), n_samples // n_eras)
    labels = rng.permutation(np.arange(n_samples) % n_eras)
    search = _Search(standardised, labels, EraMoments.of(standardised, labels, n_eras))
    # The products are too small for BLAS to gain by threads, which then only wait.
    with threadpool_limits(1, user_api="blas"):
        has_converged = search.run(rng, least, max_iter, tol)
    if not has_converged:
        warn_user(
            f"The search for {n_eras} decorrelated eras has not ended in max_iter="
            f"{max_iter} sweeps; raise max_iter or tol.",
            ConvergenceWarning,
        )
    return number_by_size(search.labels, n_eras)


def within_era_correlation(
    X: Any, eras: Any, *, missing: str = "raise"
) -> NDArray[np.float64]:
    """Compute the mean squared correlation of the features in each era.

    That is J_e of `decorrelated_partition`, 0 where no two features are correlated,
    and 1 where all are multiples of each other. A feature that is constant in an era
    counts as uncorrelated there; one that is constant in all rows is left out. For
    that, 1e-6 of a feature's variance over all rows is added to that in each era: the
    correlations of one whose standard deviation in an era is less than about a
    hundredth of that over all rows come out too low. Take logarithms of features that a
    few values dominate, or ranks.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Numbers, in any units.

    eras : array-like of shape (n_samples,)
        Era of each row.

    missing : {'raise', 'median'}, default='raise'
        What to do about missing values: refuse them, or take the median of the column.

    Returns
    -------
    mean_squares : ndarray of shape (n_eras,), dtype=float64
        In the order of the sorted labels.

    Raises
    ------
    ValueError
        If X is refused as by `decorrelated_partition`, or `eras` does not label its
        rows.

    Examples
    --------
    >>> from sklearn_era.environments import within_era_correlation
    >>> X = [[0, 0], [1, 1], [0, 0], [0, 1], [1, 0], [1, 1]]
    >>> within_era_correlation(X, ["a", "a", "b", "b", "b", "b"]).round(3)
    array([1., 0.])
    """
    if missing not in ("raise", "median"):
        raise ValueError(f"missing must be 'raise' or 'median'; got {missing!r}.")
    values, _ = check_numbers(X, missing)
    encoded = encode_eras(check_eras(eras, values))
    varying = values[:, values.min(axis=0) < values.max(axis=0)]
    if varying.shape[1] < 2:
        raise ValueError(
            f"X has {varying.shape[1]} column(s) that vary, and a correlation takes "
            "two; pass more columns."
        )
    standardised = StandardScaler().fit_transform(varying)
    n_eras = encoded.labels.size
    return EraMoments.of(standardised, encoded.codes, n_eras).correlations()[3]


class _Search:
    """The local search: labels, and the sums that go with them."""

    def __init__(
        self, X: NDArray[np.float64], labels: NDArray[np.intp], moments: EraMoments
    ) -> None:
        self.X = X
        self.labels = labels
        self._set(moments, moments.correlations())

    def _set(
        self, moments: EraMoments, correlations: tuple[NDArray[np.float64], ...]
    ) -> None:
        self.moments = moments
        self.means, self.scales, self.correlations, mean_squares = correlations
        self.objective = float(mean_squares.mean())

    def run(
        self, rng: np.random.RandomState, least: int, max_iter: int, tol: float
    ) -> bool:
        """Sweep until a sweep is of little use, and tell whether one was."""
        for _ in range(max_iter):
            before = self.objective
            self.sweep(rng, least)
            # Not `<`: where no two features are correlated, J is 0 and stays so.
            if before - self.objective <= tol * before:
                return True
        return False

    def sweep(self, rng: np.random.RandomState, least: int) -> None:
        """Go through the rows once, in random order."""
        n_samples = len(self.labels)
        size = min(_BATCH_SIZE, max(1, n_samples // _BATCHES_IN_A_SWEEP))
        order = rng.permutation(n_samples)
        for start in range(0, n_samples, size):
            rows = order[start : start + size]
            self._move(rows, *self._best_moves(rows), least=least)

    def _best_moves(
        self, rows: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """For each row the best era, and by how much the objective would change."""
        X = self.X[rows]
        n_eras, n_features = self.means.shape
        slopes = np.empty((len(rows), n_eras))
        for era in range(n_eras):
            z = (X - self.means[era]) / self.scales[era]
            R = self.correlations[era]
            slopes[:, era] = (z @ R * z).sum(axis=1)
            slopes[:, era] -= np.square(z) @ np.square(R).sum(axis=1)
        slopes *= 2 / (n_eras * n_features * (n_features - 1) * self.moments.counts)
        targets = slopes.argmin(axis=1)
        every = np.arange(len(rows))
        return targets, slopes[every, targets] - slopes[every, self.labels[rows]]

    def _move(
        self,
        rows: NDArray[np.intp],
        targets: NDArray[np.intp],
        changes: NDArray[np.float64],
        least: int,
    ) -> None:
        """Make those of the moves that together lower the objective."""
        sources = self.labels[rows]
        wanted = np.argsort(changes, kind="stable")
        wanted = wanted[changes[wanted] < 0]
        units = list(self._allowed(wanted, sources, targets, least))
        while units:
            moves = np.array([move for unit in units for move in unit])
            moments = self.moments.after(
                self.X[rows[moves]], sources[moves], targets[moves]
            )
            correlations = moments.correlations()
            if correlations[3].mean() < self.objective:
                self.labels[rows[moves]] = targets[moves]
                self._set(moments, correlations)
                return
            units = units[: len(units) // 2]

    def _allowed(
        self,
        wanted: NDArray[np.intp],
        sources: NDArray[np.intp],
        targets: NDArray[np.intp],
        least: int,
    ) -> Iterator[tuple[int, ...]]:
        """Yield the moves, one after the other, that leave every era `least` rows; one
        that has no more exchanges rows, by two moves yielded together.
        """
        counts = self.moments.counts.astype(int).tolist()
        waiting: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        for move in wanted.tolist():
            source, target = int(sources[move]), int(targets[move])
            if counts[source] > least:
                counts[source] -= 1
                counts[target] += 1
                yield (move,)
            elif waiting[target, source]:
                yield waiting[target, source].popleft(), move
            else:
                waiting[source, target].append(move)
