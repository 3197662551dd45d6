"""Take out of predictions, era by era, what features explain of them linearly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpocon, dpotrf

from sklearn_era.numerai.metrics._era_rows import (
    check_same_index,
    check_share,
    feature_blocks,
    predictions_by_era,
)
from sklearn_era.numerai.metrics.ranks import gaussianize, rank_normalize

# Singular values below this share of the largest are taken for 0, as in numerai-tools.
_RCOND = 1e-6

# What is left of predictions, as a share of their spread, that is rounding: of those
# that the neutralizers explain fully, some 1e-13 remains.
_NOTHING_LEFT = 1e-9

# Below this reciprocal condition number of the normal equations, least squares by
# singular values. The limit at which `_RCOND` leaves out a direction is its square,
# 1e-12, and the estimate of LAPACK may be too large by some factor of 10.
_MIN_RECIPROCAL_CONDITION = 1e-10

# Sums of integers below it are exact in float32, which is twice as fast.
_EXACT_IN_FLOAT32 = 2**24

# One repetition does where the equations are well conditioned.
_MAX_REFINEMENTS = 3


def neutralize(
    predictions: ArrayLike,
    neutralizers: ArrayLike,
    proportion: float = 1.0,
    eras: ArrayLike | None = None,
    *,
    neutralizer_names: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    r"""Subtract from predictions what neutralizers explain of them linearly.

    In each era by itself, with the predictions y and the neutralizers and a column of
    ones as the columns of N:

    .. math::

        y' = y - c \, N b, \qquad b = \arg\min_b \lVert y - N b \rVert^2

    where c is the proportion. With c = 1, y' is uncorrelated with each neutralizer, and
    has mean 0 (numerai-tools 0.7.2, ``scoring.neutralize``; singular values of N below
    ``1e-6`` of the largest are taken for 0). With features that are small integers the
    two agree to 1e-12 of the spread of y, and to 1e-11 where floats nearly depend on
    each other, for which neither is exact.

    Neutralizers may depend on each other, and be constant. They are converted to
    float64 one era at a time, so small integers stay small.

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers. Before scores and submissions these are the gaussianized ranks
        of each era, ``gaussianize(rank_normalize(predictions, eras))``.

    neutralizers : array-like of shape (n_samples, n_neutralizers)
        Integers or finite floats, in the order of the predictions: rows are matched by
        position. A data frame is made an array as a whole; one with a single dtype is
        best.

    proportion : float, default=1.0
        c, between 0 (nothing is subtracted) and 1.

    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    neutralizer_names : sequence of str of length n_neutralizers, default=None
        What messages call the neutralizers. None: the columns of a data frame, or else
        their positions.

    Returns
    -------
    neutral : ndarray of shape (n_samples,), dtype=float64
        In the order and the unit of the predictions. They are no longer between 0 and
        1: rank them again.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value; if neutralizers are NaN or
        infinite, naming the columns; if the predictions of an era are all equal; or if
        ``proportion=1`` and nothing but rounding is left of them, which is so where an
        era has no more rows than independent neutralizers.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import neutralize
    >>> neutralize([1.0, 2.0, 4.0, 5.0], [[0], [0], [1], [1]]).round(6).tolist()
    [-0.5, 0.5, -0.5, 0.5]
    >>> neutralize([1.0, 2.0, 4.0, 5.0], [[0], [0], [1], [1]], 0.5).round(6).tolist()
    [0.25, 1.25, 1.75, 2.75]
    """
    check_same_index(predictions=predictions, neutralizers=neutralizers, eras=eras)
    check_share(proportion, "proportion")
    values, rows = predictions_by_era(predictions, eras)
    neutral = np.empty_like(values)
    blocks = feature_blocks(
        neutralizers, neutralizer_names, rows, values.size, argument="neutralizers"
    )
    for era, (index, block) in enumerate(blocks):
        own, where = values[index], rows.describe(era)
        if own.min() == own.max():
            raise ValueError(
                f"predictions{where} are all equal ({own[0]!s}): there is nothing to "
                "neutralize."
            )
        left = residual(own, block)
        if proportion == 1 and is_rounding(left, own):
            raise ValueError(
                f"neutralizers: {block.shape[1]:,} columns explain the predictions"
                f"{where}, of {own.size:,} rows, fully, and proportion=1 leaves nothing"
                " but rounding. Take fewer neutralizers or a smaller proportion."
            )
        neutral[index] = own - proportion * (own - left)
    return neutral


def neutralize_ranks(
    ranks: ArrayLike,
    neutralizers: ArrayLike,
    proportion: float,
    *,
    neutralizer_names: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Take what neutralizers explain linearly out of the ranks of one era.

    The neutralized ranks are ``rank(g - proportion * N b)``, where g are the
    gaussianized `ranks` and N b what linear regression explains of g: what Numerai's
    FNC neutralizes, made ranks again.

    Parameters
    ----------
    ranks : array-like of shape (n_samples,)
        Ranks in (0, 1), as of :func:`~sklearn_era.numerai.metrics.rank_normalize`.

    neutralizers : array-like of shape (n_samples, n_columns)
        N.

    proportion : float
        From 0 to 1.

    neutralizer_names : sequence of str, default=None
        The names of the columns, for messages.

    Returns
    -------
    ranks : ndarray of shape (n_samples,), dtype=float64
        In (0, 1).

    Raises
    ------
    ValueError
        As :func:`neutralize`.
    """
    neutral = neutralize(
        gaussianize(ranks),
        neutralizers,
        proportion,
        neutralizer_names=neutralizer_names,
    )
    return rank_normalize(neutral)


def residual(values: NDArray[np.float64], block: NDArray[Any]) -> NDArray[np.float64]:
    """Return what a linear regression with intercept does not explain, in one era.

    By the normal equations, whose solution is repeated for what it left over until
    that no longer matters, and by singular values where they are nearly singular.

    Parameters
    ----------
    values : ndarray of shape (n_samples,), dtype=float64
        Checked numbers, to be explained.

    block : ndarray of shape (n_samples, n_columns)
        Checked numbers that explain.

    Returns
    -------
    left : ndarray of shape (n_samples,), dtype=float64
    """
    design = _design(block)
    # A constant column says what the column of ones does: many features are constant in
    # early eras, and would make the equations singular.
    varies = np.append(~(block == block[0]).all(axis=0), True)
    columns = design if varies.all() else design[:, varies]
    left = None
    if columns.shape[0] >= columns.shape[1]:
        ignored = float(np.sum(design[0, ~varies] ** 2)) * values.size
        factor = _factorize(columns, _is_exact_in_float32(block), ignored)
        if factor is not None:
            left = _solve(values - values.mean(), columns, factor)
    if left is None:
        # Not of centred values: where singular values are left out, they matter.
        left = values - design @ np.linalg.lstsq(design, values, rcond=_RCOND)[0]
    return left


def is_rounding(left: NDArray[np.float64], values: NDArray[np.float64]) -> bool:
    """Whether a residual is no more than rounding beside the spread of the values."""
    return bool(
        np.linalg.norm(left) <= _NOTHING_LEFT * np.std(values) * values.size**0.5
    )


def _design(block: NDArray[Any]) -> NDArray[np.float64]:
    """Return the columns and one of ones, in the order in which the columns lie."""
    by_columns = block.strides[0] < block.strides[1]
    shape = (block.shape[0], block.shape[1] + 1)
    design = np.empty(shape, order="F" if by_columns else "C")
    design[:, :-1] = block
    design[:, -1] = 1.0
    return design


def _is_exact_in_float32(block: NDArray[Any]) -> bool:
    if block.dtype.kind not in "biu":
        return False
    largest = max(abs(int(block.min())), abs(int(block.max())), 1)
    return block.shape[0] * largest**2 < _EXACT_IN_FLOAT32


def _factorize(
    design: NDArray[np.float64], is_small: bool, ignored: float
) -> NDArray[np.float64] | None:
    """Return the Cholesky factor of N'N, or None where it is nearly singular.

    Parameters
    ----------
    design : ndarray of shape (n_samples, n_columns)
        N.

    is_small : bool
        Whether float32 holds the sums of N'N exactly.

    ignored : float
        The sum of squares of the constant columns that N lacks: with them, the largest
        singular value, which sets the limit for the others, would be larger.
    """
    columns = design.astype(np.float32) if is_small else design
    gram = (columns.T @ columns).astype(np.float64, copy=False)
    norm = float(np.abs(gram).sum(axis=0).max())
    # It is symmetric, so its transpose, which LAPACK need not copy, is the same.
    factor, info = dpotrf(gram.T, lower=1, clean=0, overwrite_a=1)
    if info:
        return None
    reciprocal_condition, _ = dpocon(factor, norm + ignored, uplo="L")
    return factor if reciprocal_condition >= _MIN_RECIPROCAL_CONDITION else None


def _solve(
    values: NDArray[np.float64],
    design: NDArray[np.float64],
    factor: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Return the residual, or None if repeating the solution does not settle it."""
    size = np.linalg.norm(values)
    left = values
    for _ in range(1 + _MAX_REFINEMENTS):
        right = design.T @ left
        explained = design @ cho_solve((factor, True), right, check_finite=False)
        left = left - explained
        # Each step leaves the same small share of the error, so the next one would
        # change the values by 1e-14 of their size at most.
        if np.linalg.norm(explained) <= 1e-7 * size:
            return left
    return None


__all__ = ["neutralize", "neutralize_ranks"]
