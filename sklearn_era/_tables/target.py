"""Check the values of a target, and find out whether they are classes."""

from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import _check_y

from .._era_labels import missing_rows, with_nulls
from .checks import check_mask
from .columns import as_frame, to_numbers


def check_y(y: ArrayLike, estimator: BaseEstimator) -> Any:
    """Check the target by `check_values`, then by scikit-learn, and return it."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    check_values(y, are_numbers=is_regressor(estimator))
    return _check_y(y, estimator=estimator)


def check_values(y: Any, *, are_numbers: bool, name: str = "y") -> None:
    """Raise ValueError if the target has masked or missing values or, if `are_numbers`,
    values that are no numbers, such as dates or text. NaN in a NumPy array of floats is
    left to scikit-learn's own check.
    """
    check_mask(y, name)
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return
    try:
        listed = with_nulls(y)
        values = np.asarray(as_frame(listed))
    except ValueError:  # of lists of different lengths: scikit-learn refuses them
        return
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or (values.dtype.kind in "biuf" and listed is y):
        return
    if (missing := missing_rows(values)).size:
        raise ValueError(
            f"{name} has {missing.size} missing value(s), the first at row {missing[0]}"
            f" ({values[missing[0]]}): drop these rows."
        )
    if are_numbers:
        try:
            to_numbers(values)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} is not numeric: {error}. Drop rows without a number, and pass "
                "dates as numbers, such as days since a start."
            ) from error


def are_classes(y: NDArray[Any]) -> bool:
    """Return whether a target of unknown kind holds classes: names, booleans or two
    whole numbers. All other numbers, also counts, are amounts.
    """
    if y.dtype.kind == "O" and all(isinstance(x, Number) for x in y):
        y = np.array(y.tolist())
        y = y.astype(np.float64) if y.dtype.kind == "O" else y
    if y.dtype.kind not in "iuf":
        return True
    with np.errstate(invalid="ignore"):  # of infinite values
        is_label = (y % 1 == 0) & (np.abs(y) < 2.0**63)
    return np.unique(y).size == 2 and bool(is_label.all())
