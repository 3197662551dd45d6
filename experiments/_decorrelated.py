"""Subsets of rows in which features are as little correlated as can be, as eras.

Where a feature predicts only since it goes along with another one, a subset in which
the two do not go along shows it. That is the idea of Decorr (Liao, Wu and Yan 2022,
arXiv:2211.10054), with which Liao et al. (2024), section 5.3, make environments where
the data have none. The objective is theirs but for a factor, ::

    J = 1/M Σ_e J_e,    J_e = 1/(p (p-1)) Σ_{j≠k} R_e,jk²

with M eras, p features, and R_e the correlations of era e. The search is not: Decorr
learns weights of rows by gradient descent, and this moves batches of rows between eras.

By chance alone J_e is about 1/n_e with n_e rows, and a search lowers it further by
picking rows: with few rows and many features, what it finds is noise.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

# Rows whose moves are weighed, and then made, together; fewer in small data.
_BATCH_SIZE = 512
_BATCHES_IN_A_SWEEP = 20
# The search ends with a sweep that takes less than this share off J; 5 to 10 are usual.
_MOST_SWEEPS = 100
_TOLERANCE = 1e-3
# Added to the variances in an era, where those of all rows are 1: a feature that is
# constant in an era is uncorrelated there, instead of 0 / 0.
_RIDGE = 1e-6


def decorrelated_partition(
    X: NDArray[np.float64], n_eras: int, *, random_state: int
) -> NDArray[np.intp]:
    """Labels of eras of hardly correlated features, from 0, the era of most rows.

    Each era has half of its equal share of the rows at least: small ones can be less
    correlated, and leave more rows to one that is as correlated as the whole. Columns
    that are constant are left out.
    """
    varying = X[:, X.min(axis=0) < X.max(axis=0)]
    n_samples, n_features = varying.shape
    if n_features < 2 or n_samples < 3 * n_eras:
        raise ValueError(
            f"X has {n_samples} rows and {n_features} column(s) that vary; "
            f"n_eras={n_eras} takes {3 * n_eras} rows and 2 columns."
        )
    rng = np.random.RandomState(random_state)
    standardised = StandardScaler().fit_transform(varying)
    half = math.ceil(round(0.5 / n_eras * n_samples, 9))
    least = min(max(3, half), n_samples // n_eras)
    labels = rng.permutation(np.arange(n_samples) % n_eras)
    search = Search(standardised, labels, EraMoments.of(standardised, labels, n_eras))
    # The products are too small for BLAS to gain by threads, which then only wait.
    with threadpool_limits(1, user_api="blas"):
        for _ in range(_MOST_SWEEPS):
            before = search.objective
            search.sweep(rng, least)
            # Not `<`: where no two features are correlated, J is 0 and stays so.
            if before - search.objective <= _TOLERANCE * before:
                break
    by_size = np.argsort(-np.bincount(search.labels, minlength=n_eras), kind="stable")
    return np.argsort(by_size)[search.labels]


@dataclass(frozen=True)
class EraMoments:
    """Sums over the rows of each era, of which its correlations follow."""

    counts: NDArray[np.float64]  # (n_eras,), rows
    sums: NDArray[np.float64]  # (n_eras, n_features), of x
    products: NDArray[np.float64]  # (n_eras, n_features, n_features), of x xᵀ

    @classmethod
    def of(cls, X: NDArray[Any], labels: NDArray[Any], n_eras: int) -> "EraMoments":
        groups = [X[labels == era] for era in range(n_eras)]
        return cls(
            np.array([len(rows) for rows in groups], dtype=np.float64),
            np.stack([rows.sum(axis=0) for rows in groups]),
            np.stack([rows.T @ rows for rows in groups]),
        )

    def after(
        self, X: NDArray[Any], sources: NDArray[Any], targets: NDArray[Any]
    ) -> "EraMoments":
        """These sums after the rows X have gone from eras to other ones."""
        counts, sums = self.counts.copy(), self.sums.copy()
        products = self.products.copy()
        for era in range(counts.size):
            come, go = X[targets == era], X[sources == era]
            counts[era] += len(come) - len(go)
            sums[era] += come.sum(axis=0) - go.sum(axis=0)
            products[era] += come.T @ come - go.T @ go
        return EraMoments(counts, sums, products)

    def correlations(self) -> tuple[NDArray[np.float64], ...]:
        """Return the parts of the objective and its slopes, by era."""
        means = self.sums / self.counts[:, np.newaxis]
        covariances = (
            self.products / self.counts[:, np.newaxis, np.newaxis]
            - means[:, :, np.newaxis] * means[:, np.newaxis, :]
        )
        n_features = means.shape[1]
        diagonal = np.arange(n_features)
        # Differences of sums, which rounding can bring below 0.
        variances = np.maximum(covariances[:, diagonal, diagonal], 0)
        scales = np.sqrt(variances + _RIDGE)
        correlations = covariances
        correlations /= scales[:, :, np.newaxis] * scales[:, np.newaxis, :]
        correlations[:, diagonal, diagonal] = 0.0
        n_pairs = n_features * (n_features - 1)
        mean_squares = np.square(correlations).sum(axis=(1, 2)) / n_pairs
        return means, scales, correlations, mean_squares


class Search:
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

    def sweep(self, rng: np.random.RandomState, least: int) -> None:
        """Go through the rows once, in random order."""
        n_samples = len(self.labels)
        size = min(_BATCH_SIZE, max(1, n_samples // _BATCHES_IN_A_SWEEP))
        order = rng.permutation(n_samples)
        for start in range(0, n_samples, size):
            rows = order[start : start + size]
            self._move(rows, *self.best_moves(rows), least=least)

    def best_moves(
        self, rows: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """For each row the best era, and by how much J would change.

        One more row x in era e changes J to first order by ::

            2/(M p (p-1) n_e) [ Σ_{j≠k} R_jk z_j z_k - Σ_j z_j² Σ_{k≠j} R_jk² ]

        with z = (x - mean_e) / std_e, and one row less by the opposite.
        """
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
