"""Take out of predictions, era by era, what features explain of them linearly."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpocon, dpotrf
from sklearn.utils import check_scalar

from sklearn_era.numerai.metrics._era_rows import Column, EraRows
from sklearn_era.numerai.metrics.ranks import gaussianize, rank_normalize

# Singular values below this share of the largest are taken for 0, as in numerai-tools.
_RCOND = 1e-6
# A share of the predictions' spread that is rounding: where neutralizers explain them
# fully, some 1e-13 is left.
_NOTHING_LEFT = 1e-9
# Of the normal equations; below it, least squares by singular values. `_RCOND` leaves a
# direction out at its square, 1e-12, and LAPACK's estimate may be 10 times too large.
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

    In each era, with the predictions y, and the neutralizers and ones as columns of N:

    .. math:: y' = y - c \, N b, \qquad b = \arg\min_b \lVert y - N b \rVert^2

    With c = 1, y' has mean 0 and is uncorrelated with each neutralizer (numerai-tools
    0.7.2, ``scoring.neutralize``: to 1e-12 of the spread of y, and to 1e-11 where float
    neutralizers nearly depend on each other). Singular values of N below ``1e-6`` of
    the largest are taken for 0.

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers; for scores and submissions,
        ``gaussianize(rank_normalize(predictions, eras))``.
    neutralizers : array-like of shape (n_samples, n_neutralizers)
        Integers or finite floats, converted to float64 one era at a time.
    proportion : float, default=1.0
        c, between 0 (nothing is subtracted) and 1.
    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.
    neutralizer_names : sequence of str of length n_neutralizers, default=None
        What messages call them. None: the columns of a data frame, or positions.

    Returns
    -------
    neutral : ndarray of shape (n_samples,), dtype=float64
        In the unit of the predictions.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value; if the predictions of an era are
        all equal; or if ``proportion=1`` leaves nothing of them but rounding.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import neutralize
    >>> neutralize([1.0, 2.0, 4.0, 5.0], [[0], [0], [1], [1]]).round(6).tolist()
    [-0.5, 0.5, -0.5, 0.5]
    """
    check_scalar(proportion, "proportion", Real, min_val=0, max_val=1)
    rows = EraRows(predictions, eras)
    neutral = np.empty_like(rows.x)
    blocks = rows.blocks(neutralizers, "neutralizers", neutralizer_names)
    for era, index, block in blocks:
        own, where = rows.x[index], rows.describe(era)
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
    r"""Neutralize the ranks of one era, and rank the result.

    .. math:: \operatorname{rank}(g - c \, N b), \qquad g = \Phi^{-1}(r)

    with the ranks r, and c and N b of :func:`neutralize`: what Numerai's FNC takes out.

    Parameters
    ----------
    ranks : array-like of shape (n_samples,)
        Strictly between 0 and 1, as ``rank_normalize`` returns them.
    neutralizers : array-like of shape (n_samples, n_neutralizers)
        Integers or finite floats.
    proportion : float
        c, between 0 and 1.
    neutralizer_names : sequence of str of length n_neutralizers, default=None
        What messages call them. None: the columns of a data frame, or positions.

    Returns
    -------
    ranks : ndarray of shape (n_samples,), dtype=float64
        Between 0 and 1.

    Raises
    ------
    ValueError
        As :func:`neutralize`.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import neutralize_ranks
    >>> neutralize_ranks([0.1, 0.4, 0.5, 0.9], [[0], [1], [0], [1]], 1.0).tolist()
    [0.375, 0.125, 0.625, 0.875]
    """
    values, names = gaussianize(ranks), neutralizer_names
    neutral = neutralize(values, neutralizers, proportion, neutralizer_names=names)
    return rank_normalize(neutral)


def residual(values: Column, block: NDArray[Any]) -> Column:
    """What a linear regression with intercept does not explain, in one era.

    By the normal equations, or by singular values where they are nearly singular.
    """
    by_columns = block.strides[0] < block.strides[1]
    shape = (block.shape[0], block.shape[1] + 1)
    design = np.empty(shape, order="F" if by_columns else "C")
    design[:, :-1] = block
    design[:, -1] = 1.0
    # A constant column says what the column of ones does: many features are constant in
    # early eras, and would make the equations singular.
    varies = np.append(~(block == block[0]).all(axis=0), True)
    columns = design if varies.all() else design[:, varies]
    if columns.shape[0] >= columns.shape[1]:
        # With the constant columns, the largest singular value would be larger, and so
        # would the limit for the others.
        ignored = float(np.sum(design[0, ~varies] ** 2)) * values.size
        factor = _factorize(columns, block, ignored)
        if factor is not None:
            left = _solve(values - values.mean(), columns, factor)
            if left is not None:
                return left
    # Not of centered values: where singular values are left out, they matter.
    return values - design @ np.linalg.lstsq(design, values, rcond=_RCOND)[0]


def is_rounding(left: Column, values: Column) -> bool:
    """Whether a residual is no more than rounding beside the spread of the values."""
    size = np.std(values) * values.size**0.5
    return bool(np.linalg.norm(left) <= _NOTHING_LEFT * size)


def _factorize(columns: Column, block: NDArray[Any], ignored: float) -> Column | None:
    """The Cholesky factor of N'N, or None where it is nearly singular."""
    if block.dtype.kind in "biu":
        largest = max(abs(int(block.min())), abs(int(block.max())), 1)
        if block.shape[0] * largest**2 < _EXACT_IN_FLOAT32:
            columns = columns.astype(np.float32)
    gram = (columns.T @ columns).astype(np.float64, copy=False)
    norm = float(np.abs(gram).sum(axis=0).max())
    # It is symmetric, so its transpose, which LAPACK need not copy, is the same.
    factor, info = dpotrf(gram.T, lower=1, clean=0, overwrite_a=1)
    if info:
        return None
    reciprocal_condition, _ = dpocon(factor, norm + ignored, uplo="L")
    return factor if reciprocal_condition >= _MIN_RECIPROCAL_CONDITION else None


def _solve(left: Column, design: Column, factor: Column) -> Column | None:
    """The residual, or None if repeating the solution for it does not settle it."""
    size = np.linalg.norm(left)
    for _ in range(1 + _MAX_REFINEMENTS):
        right = design.T @ left
        explained = design @ cho_solve((factor, True), right, check_finite=False)
        left = left - explained
        # Each step leaves the same small share of the error, so the next one would
        # change the values by 1e-14 of their size at most.
        if np.linalg.norm(explained) <= 1e-7 * size:
            return left
    return None
