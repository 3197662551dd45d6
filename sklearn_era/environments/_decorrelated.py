"""Split rows into eras within which features are hardly correlated."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from threadpoolctl import threadpool_limits

from .._tables.columns import as_numeric

_BATCH_SIZE, _BATCHES_IN_A_SWEEP = 512, 20  # rows moved together: fewer in small data
_MOST_SWEEPS, _TOLERANCE = 100, 1e-3  # it ends where a sweep takes a lesser share off J
# Added to variances in an era, where those of all rows are 1: constants there have
# correlations of 0, not of 0 / 0.
_RIDGE = 1e-6

Array = NDArray[Any]


@validate_params(
    {
        "X": ["array-like"], "random_state": ["random_state"],
        "n_eras": [Interval(Integral, 2, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)  # fmt: skip
def decorrelated_partition(
    X: ArrayLike, n_eras: int, *,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:  # fmt: skip
    """Split rows into eras in which features are as little correlated as possible.

    A feature may predict only because it is correlated with another one; rows without
    this correlation reveal it. For data without environments, section 5.3 of [1]_ makes
    environments by Decorr [2]_, whose objective is, up to a factor, ::

        J = 1/M Σ_e J_e,    J_e = 1/(p (p-1)) Σ_{j≠k} R_e,jk²

    with M eras, p features that vary, and R_e the correlations in era e. Decorr learns
    weights of rows; the search here moves rows between eras, in batches. By chance
    alone, J_e is about 1 / n in an era of n rows, and a search picks rows: with few
    rows and many features, it finds noise.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows, without missing values.
    n_eras : int
        The number M of eras, at least 2. Each has at least n_samples / (2 M) rows.
    random_state : int, RandomState instance or None, default=None
        Determines where the search starts, and in which order it goes through rows.

    Returns
    -------
    labels : ndarray of shape (n_samples,), dtype=intp
        The era of each row, numbered from 0 by size: era 0 has the most rows.

    Raises
    ------
    ValueError
        If fewer than two columns vary, or there are under three rows per era.

    References
    ----------
    .. [1] Y. Liao, Q. Wu, X. Yan (2024), Invariant Random Forest: Tree-Based Model
           Solution for OOD Generalization. AAAI.
    .. [2] Y. Liao, Q. Wu, X. Yan (2022), Decorr: Environment Partitioning for Invariant
           Learning and OOD Generalization. arXiv:2211.10054.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.environments import decorrelated_partition
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> X[:300, 1] = X[:300, 0]
    >>> labels = decorrelated_partition(X, 2, random_state=0)
    >>> both = [np.corrcoef(X[labels == era].T)[0, 1] for era in (0, 1)]
    >>> float(np.abs(both).max().round(2))
    0.0
    """
    values: Array = check_array(as_numeric(X), dtype=np.float64, input_name="X")
    Z: Array = values[:, values.min(axis=0) < values.max(axis=0)]
    n_samples, n_features = Z.shape
    if n_features < 2 or n_samples < 3 * n_eras:
        raise ValueError(
            f"X has {n_samples} rows and {n_features} column(s) that vary; "
            f"n_eras={n_eras} takes {3 * n_eras} rows and 2 columns."
        )
    rng, unit = check_random_state(random_state), np.eye(n_eras)
    Z = StandardScaler().fit_transform(Z)
    half = math.ceil(round(0.5 / n_eras * n_samples, 9))
    least = min(max(3, half), n_samples // n_eras)
    size = min(_BATCH_SIZE, max(1, n_samples // _BATCHES_IN_A_SWEEP))
    labels = rng.permutation(np.arange(n_samples) % n_eras)
    # Products are too small for BLAS to gain by threads.
    with threadpool_limits(1, user_api="blas"):
        sums = _sums(Z, unit[labels])
        found = _correlations(*sums)
        for _ in range(_MOST_SWEEPS):
            before, order = found[-1], rng.permutation(n_samples)
            for rows in np.split(order, range(size, n_samples, size)):
                *state, J = found
                targets, changes = _best_moves(Z[rows], labels[rows], sums[0], *state)
                wanted = np.argsort(changes, kind="stable")
                wanted = wanted[changes[wanted] < 0]
                moves = [*_allowed(wanted, labels[rows], targets, sums[0], least)]
                while moves:  # those that together lower J
                    moved = np.concatenate(moves)
                    old, new = unit[labels[rows[moved]]], unit[targets[moved]]
                    change = _sums(Z[rows[moved]], new - old)
                    after = [x + y for x, y in zip(sums, change, strict=True)]
                    if (tried := _correlations(*after))[-1] < J:
                        labels[rows[moved]] = targets[moved]
                        sums, found = after, tried
                        break
                    moves = moves[: len(moves) // 2]
            # Not `<`: where no two features are correlated, J is 0 and stays so.
            if before - found[-1] <= _TOLERANCE * before:
                break
    by_size = np.argsort(-np.bincount(labels, minlength=n_eras), kind="stable")
    return np.argsort(by_size)[labels]


def _sums(X: Array, weights: Array) -> list[Array]:
    """Return each era's sums of 1, x and x xᵀ over the rows x of X, weighted by
    `weights`, of shape (n_rows, n_eras).
    """
    products = [(X * w[:, np.newaxis]).T @ X for w in weights.T]
    return [weights.sum(axis=0), weights.T @ X, np.array(products)]


def _correlations(counts: Array, sums: Array, products: Array) -> tuple[Any, ...]:
    """Return each era's means, deviations and correlations (0 on the diagonal), and J,
    the mean square of all correlations.
    """
    means, n_features = sums / counts[:, np.newaxis], sums.shape[1]
    R = products / counts[:, np.newaxis, np.newaxis]
    R -= means[:, :, np.newaxis] * means[:, np.newaxis]
    diagonal = np.arange(n_features)
    # Rounding can bring variances below 0.
    scales = np.sqrt(np.maximum(R[:, diagonal, diagonal], 0) + _RIDGE)
    R /= scales[:, :, np.newaxis] * scales[:, np.newaxis]
    R[:, diagonal, diagonal] = 0.0
    J = np.square(R).sum() / (counts.size * n_features * (n_features - 1))
    return means, scales, R, float(J)


def _best_moves(
    X: Array, labels: Array, counts: Array, means: Array, scales: Array, R: Array
) -> tuple[Array, Array]:
    """Return (targets, changes): for each row, the era to which a move lowers J most,
    and the change of ``J M p (p-1) / 2`` by this move, to first order. J is the mean of
    squared correlations over M eras and pairs of p columns, and R has the correlations
    in each era. A row that enters era e of n_e rows, where it has standard scores z,
    adds
    ``(Σ_{j≠k} R_jk z_j z_k - Σ_j z_j² Σ_{k≠j} R_jk²) / n_e``; a row that leaves the era
    subtracts this term.
    """
    z = (X[:, np.newaxis] - means) / scales  # (n_rows, n_eras, n_features)
    slopes = (np.einsum("nej,ejk->nek", z, R, optimize=True) * z).sum(axis=2)
    slopes -= (np.square(z) * np.square(R).sum(axis=1)).sum(axis=2)
    slopes /= counts
    targets, every = slopes.argmin(axis=1), np.arange(labels.size)
    return targets, slopes[every, targets] - slopes[every, labels]


def _allowed(
    wanted: Array, sources: Array, targets: Array, counts: Array, least: int
) -> Iterator[list[int]]:
    """Yield lists of moves to make one after another, such that each era always keeps
    at least `least` rows. A row of an era with just `least` rows waits for a row that
    moves from its target to its era; then both moves are yielded as one list.
    """
    counts = counts.astype(int)
    waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
    for move in wanted.tolist():
        source, target = int(sources[move]), int(targets[move])
        if counts[source] > least:
            counts[source] -= 1
            counts[target] += 1
            yield [move]
        elif waiting[target, source]:
            yield [waiting[target, source].pop(0), move]
        else:
            waiting[source, target].append(move)
