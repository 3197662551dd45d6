"""Sums over the rows of each era, and the correlations that follow from them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Added to the variances of a subset, where those of the whole are 1: a feature that is
# constant in a subset is uncorrelated there, instead of 0 / 0.
_RIDGE = 1e-6


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
        """What the objective and its slopes are made of, era by era."""
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
