"""Subtract from columns the part that other columns explain within the era."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpocon, dpotrf
from sklearn.preprocessing._data import _is_constant_feature
from sklearn.utils._param_validation import Interval

from .._eras import EncodedEras
from .._parameter_object import parameter, with_parameters
from .._tables.columns import choose_columns
from .._typing import Eras, Table
from ._base import REST, SMOOTH, UNSEEN, Array, EraTransformer

# A share of the values' spread: less is rounding, and columns explain all.
_NOTHING_LEFT = 1e-9
# The least reciprocal condition of N'N to solve by; else by singular values, without
# those below 1e-6 of N, as in numerai-tools: 1e-12 for N'N, and LAPACK's estimate may
# be 10 times too large.
_MIN_RECIPROCAL_CONDITION = 1e-10


def regression(
    values: Array, block: NDArray[Any], weights: Array | None = None
) -> tuple[Array, Array]:
    """Regress values, of shape (n, m), on the columns of `block` and a constant. Return
    (residuals, coefficients). Residuals are multiplied by the roots of the weights, if
    any, and are 0 in columns where they may be rounding errors. The last row of
    coefficients is that of the constant.
    """
    design = np.column_stack([block, np.ones(len(block))])
    is_constant = np.ptp(values, axis=0) == 0
    known = np.ones(len(block)) if weights is None else weights
    # Centred columns of norm 1 have a condition that no mean and no unit changes.
    center = np.append(known @ design[:, :-1] / known.sum(), 0.0)
    design -= center
    if weights is not None:
        roots = np.sqrt(weights)[:, np.newaxis]
        design, values = design * roots, values * roots
    scales = np.sqrt(np.einsum("ij,ij->j", design, design))
    # A constant column is what the ones are, and many are constant in early eras.
    squares = (scales / scales[-1]) ** 2
    varies = ~_is_constant_feature(squares, center, len(block))
    design, scales = design[:, varies], scales[varies]
    design /= scales
    # 3 times as fast as numerai-tools with 400 columns, and 7 times with 2,000.
    gram = design.T @ design
    norm = np.linalg.norm(gram, 1)
    # It is symmetric: its transpose, which LAPACK need not copy, is the same.
    factor, info = dpotrf(gram.T, lower=1, clean=0, overwrite_a=1)
    found = np.zeros((scales.size, values.shape[1]))
    found[-1] = design[:, -1] @ values
    left = values - design[:, -1:] * found[-1]
    rounding = _NOTHING_LEFT * np.linalg.norm(left, axis=0)
    if not info and dpocon(factor, norm, uplo="L")[0] > _MIN_RECIPROCAL_CONDITION:
        for _ in range(3):  # repeated, for the digits that the condition of N'N costs
            step = cho_solve((factor, True), design.T @ left, check_finite=False)
            found += step
            left = left - design @ step
    else:  # nearly singular
        step = np.linalg.lstsq(design, left, rcond=1e-6)[0]
        found += step
        left = left - design @ step
    left[:, is_constant | (np.linalg.norm(left, axis=0) <= rounding)] = 0.0
    coefficients = np.zeros((varies.size, values.shape[1]))
    coefficients[varies] = found / scales[:, np.newaxis]
    coefficients[-1] -= center @ coefficients
    return left, coefficients


@with_parameters
class EraNeutralizer(EraTransformer):
    __doc__ = f"""Subtract from columns the part that neutralizers explain in each era.

    Let N be the matrix whose columns are the neutralizers of an era and a column of
    ones. A column x becomes ``x - c N b``, where b has the coefficients of a regression
    of x on N, by least squares in the era, mixed with training coefficients (see
    `smooth`; n is the number of the era's rows less the number of neutralizers). The
    neutralizers are returned as they are. With ``smooth=0`` this is
    :func:`~sklearn_era.numerai.metrics.neutralize`.

    Parameters
    ----------
    neutralizers : list of str, int or bool
        Columns of X, by names, places or one bool per column, without missing values.
    proportion : float, default=1.0
        c, between 0 (nothing is subtracted) and 1.
    {SMOOTH}
    {UNSEEN}

    Attributes
    ----------
    coef_ : ndarray of shape (n_neutralizers + 1, n_features)
        The training coefficients; the last row is that of the column of ones.
    {REST}

    Examples
    --------
    >>> from sklearn_era.preprocessing import EraNeutralizer
    >>> X = [[0, 1.0], [0, 2.0], [1, 4.0], [1, 5.0]]
    >>> EraNeutralizer([0], smooth=0).fit_transform(X, eras=[1] * 4)[:, 1].round(6)
    array([-0.5,  0.5, -0.5,  0.5])
    """
    _takes_nan = False
    neutralizers: list[str] | list[int] | list[bool] = parameter(
        [list, tuple], kw_only=False
    )
    proportion: float = parameter([Interval(Real, 0, 1, closed="both")], default=1.0)
    smooth: float = 10.0
    unseen: str = "batch"

    def _read(
        self, X: Table, eras: Eras | None, *, reset: bool
    ) -> tuple[Array, EncodedEras]:
        values, encoded = super()._read(X, eras, reset=reset)
        if reset:
            are_named = hasattr(self, "feature_names_in_")
            names = [*getattr(self, "feature_names_in_", range(values.shape[1]))]
            given = self.neutralizers
            mask = choose_columns(given, names, are_named, name="neutralizers")
            self._columns = np.flatnonzero(mask).tolist()
            if not any(isinstance(x, bool | np.bool_) for x in given):  # in their order
                at = (names.index(x) if isinstance(x, str) else x for x in given)
                self._columns = [*dict.fromkeys(map(int, at))]
        return values, encoded

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        super()._learn(X, eras, weights)
        has_values = ~np.isnan(X).all(axis=0)  # others stay NaN
        if np.isnan(self._training[:, has_values]).any():
            raise ValueError(
                f"neutralizers: no era has more rows with values than these "
                f"{len(self._columns)} columns (n_samples={X.shape[0]}): pass fewer, "
                "or larger weights, each of which counts as so many rows."
            )
        self.coef_ = self._training

    def _by(self, X: Array) -> Array:
        by = X[:, self._columns]
        if np.isnan(by).any():
            raise ValueError(
                "neutralizers has columns of X with missing values (NaN): fill them, "
                "such as by a SimpleImputer, or leave these columns out."
            )
        return by

    def _measure(self, X: Array, weights: Array) -> tuple[Array, Array]:
        by, is_known = self._by(X), ~np.isnan(X)
        n = np.maximum(0.0, weights @ is_known - by.shape[1])
        n[self._columns] = 0.0
        table = np.zeros((by.shape[1] + 1, X.shape[1]))
        # Columns that lack the same rows are regressed at once.
        alike: dict[bytes, list[int]] = {}
        for j in np.flatnonzero(n > 0).tolist():
            alike.setdefault(is_known[:, j].tobytes(), []).append(j)
        for columns in alike.values():
            rows = is_known[:, columns[0]]
            known = X[rows][:, columns], by[rows], weights[rows]
            table[:, columns] = regression(*known)[1]
        n[self._columns] = 1.0  # their coefficients are known to be 0
        return n, table

    def _apply(self, X: Array, n: Array, own: Array) -> Array:
        coefficients = self._mixed(n, own, self._training)
        explained = self._by(X) @ coefficients[:-1] + coefficients[-1]
        return X - self.proportion * explained
