"""Compute the variance term: the variance of loss or score within groups."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .._eras import encode_eras
from ._refinements import RefinementCounter


def make_term(
    labels: NDArray[Any], is_positive: NDArray[np.bool_], class_label: object,
    *term: Any,
) -> "VarianceTerm":  # fmt: skip
    """Return a `VarianceTerm` whose groups are the rows of one label and class; raise
    ValueError if a group has a single row.
    """
    encoded = encode_eras(labels)
    pairs = 2 * encoded.codes.astype(np.int64) + is_positive
    present, codes, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    if (counts < 2).any():
        pair = int(present[np.argmin(counts)])
        raise ValueError(
            f"groups: {np.count_nonzero(counts < 2)} of {present.size} groups of a "
            "label and a class are a single row, which has no variance; the first is "
            f"label {encoded.labels[pair // 2]!s} "
            f"{'in' if pair % 2 else 'outside'} class {class_label!s}. Merge small "
            "groups, drop these rows, or set variance_penalty=0."
        )
    return VarianceTerm(codes.astype(np.int32), (present % 2).astype(np.uint8), *term)


@dataclass(frozen=True)
class VarianceTerm:
    """The term C of the loss, the mean over groups of ``Var(v in the group) ** power``:
    section III-C of Du et al. (2025). The field `of` chooses v: the loss ``exp(-y F)``,
    the score F, or the probability (the sigmoid of F). A new rule adds one step to F
    for the rows it covers, and another step for all others, so that ``exp(-y F)`` is
    multiplied by one of two factors (equation 5). The new variances follow from sums
    over the covered rows; variances of probabilities take a pass over all rows.
    """

    groups: NDArray[np.int32]  # (n_samples,): of the same class and label, (Y, ID)
    is_positive: NDArray[np.uint8]  # (n_groups,)
    of: str
    penalty: float
    power: float

    def sums(
        self, values: NDArray[np.float64], rows: slice | NDArray[Any] = slice(None)
    ) -> NDArray[np.float64]:
        """Return the sum of each column of `values` over `rows`, for each group."""
        groups, n_groups = self.groups[rows], self.is_positive.size
        sums = [np.bincount(groups, column[rows], n_groups) for column in values.T]
        # Counts of no rows are integers, whatever the type of the column.
        return np.stack(sums, axis=1, dtype=np.float64)

    def start_round(
        self, counter: RefinementCounter, scores: NDArray[np.float64],
        sample_weight: NDArray[np.float64], residuals: NDArray[np.float64],
        **steps: float,
    ) -> NDArray[np.float64] | None:  # fmt: skip
        """Pass a round's sums to the counter; return two moments per row: weight times
        v, and the weight (times ``v ** 2`` for a loss). Return None for probabilities.
        """
        if self.of == "probability":
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            values = scores
            if self.of == "loss":
                is_positive = self.is_positive[self.groups]
                values = np.exp(np.where(is_positive, -scores, scores))
            first = sample_weight * values
            squares = first * values
        second = squares if self.of == "loss" else sample_weight
        moments = np.stack([first, second], axis=1)
        totals = self.sums(np.stack([sample_weight, first, squares], axis=1))
        steps["sum_residuals"] = residuals.sum()
        counter.penalize_variance(self, moments, totals, **steps)
        return moments

    def of_probability(
        self, scores: NDArray[np.float64], sample_weight: NDArray[np.float64]
    ) -> float:
        """Return the term's value for the probabilities of rows with these scores."""
        p, weight = expit(scores), sample_weight
        powers = np.stack([weight, weight * p, weight * p**2], axis=1)
        total, first, second = self.sums(powers).T
        variances = np.maximum(second / total - (first / total) ** 2, 0.0)
        return float(np.mean(variances**self.power))
