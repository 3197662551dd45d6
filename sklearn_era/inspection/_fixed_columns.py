"""Columns of a table that are held at a value, in the columns' own dtypes."""

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._missing import is_pandas_na

# How many categories a message names before it only counts them.
_MAX_NAMED = 10

# Of pandas and of polars.
_CATEGORICAL_DTYPES = ("category", "categorical", "enum")


def hold_column(
    estimator: Any, X: Any, column: int, value: Any, names: list[Any]
) -> Any:
    """Return X with one value, which model and dtype know, in all rows of a column."""
    what = f"fixed: {value!r} is not a value of column {names[column]!r}"
    if np.ndim(value) or isinstance(value, (list, tuple, dict, set)):
        raise ValueError(f"{what}; pass one value, and not several.")
    missing = _is_missing(value)
    known = _known_categories(estimator, X, column, names)
    if known is not None and not missing and not any(_equal(value, k) for k in known):
        raise ValueError(
            f"{what}, whose categories are {_name_categories(known)}; pass one of "
            "them, or None for a missing value."
        )
    is_number = isinstance(value, (Real, np.bool_))
    if known is None and _is_numeric(X, column) and not (missing or is_number):
        raise ValueError(f"{what}, which holds numbers; pass a number or None.")
    try:
        return _fill(X, column, None if missing else value, names[column])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{what}, of dtype {_dtype(X, column)}: {error}.") from error
    except Exception as error:  # polars has errors of its own, of no common base
        if type(error).__module__.partition(".")[0] != "polars":
            raise
        raise ValueError(f"{what}, of dtype {_dtype(X, column)}: {error}.") from error


def is_categorical(estimator: Any, X: Any, column: int, names: list[Any]) -> bool:
    """Whether a column of X holds categories, by its dtype or as the model was told."""
    feature = _feature_of_fit(estimator, X, column, names)
    by_model = getattr(estimator, "is_categorical_", None)
    by_dtype = str(_dtype(X, column)).lower().startswith(_CATEGORICAL_DTYPES)
    return by_dtype or (by_model is not None and bool(by_model[feature]))


def _feature_of_fit(estimator: Any, X: Any, column: int, names: list[Any]) -> int:
    """The place that a column of X had in the fit: frames are matched by name."""
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is None or not hasattr(X, "columns") or names[column] not in fitted:
        return column
    return list(fitted).index(names[column])


def _known_categories(
    estimator: Any, X: Any, column: int, names: list[Any]
) -> list[Any] | None:
    """The categories of a column, as far as model and dtype tell; None: any value."""
    by_model = getattr(estimator, "is_categorical_", None)
    feature = _feature_of_fit(estimator, X, column, names)
    if by_model is not None and by_model[feature] and hasattr(estimator, "_predictors"):
        encoder = estimator._preprocessor.named_transformers_["encoder"]
        # The encoder holds the categorical features alone.
        categories = encoder.categories_[np.count_nonzero(by_model[:feature])]
        return [category for category in categories if not _is_missing(category)]
    dtype = _dtype(X, column)
    categories = getattr(dtype, "categories", None)
    return None if categories is None else list(categories)


def _dtype(X: Any, column: int) -> Any:
    if not hasattr(X, "columns"):
        return X.dtype
    return X.dtypes.iloc[column] if hasattr(X.dtypes, "iloc") else X.dtypes[column]


def _is_numeric(X: Any, column: int) -> bool:
    dtype = _dtype(X, column)
    if hasattr(dtype, "is_numeric"):  # polars
        return dtype.is_numeric()
    return getattr(dtype, "kind", "O") in "iuf"


def _fill(X: Any, column: int, value: Any, name: Any) -> Any:
    n_samples = X.shape[0]
    if not hasattr(X, "columns"):
        X = X.copy()
        X[:, column] = np.nan if value is None else value
        return X
    dtype = _dtype(X, column)
    if hasattr(X, "with_columns"):  # polars
        import polars

        if _is_numeric(X, column) and not dtype.is_float():
            dtype = polars.Float64  # which has room for a missing value or a fraction
        filled = polars.Series(name, [value] * n_samples, dtype=dtype)
        return X.with_columns(filled)
    import pandas

    if _is_numeric(X, column) and isinstance(dtype, np.dtype) and dtype.kind in "iu":
        dtype = np.dtype(np.float64)
    X = X.copy()
    X.isetitem(column, pandas.Series([value] * n_samples, index=X.index, dtype=dtype))
    return X


def _is_missing(value: Any) -> bool:
    if value is None or is_pandas_na(value):
        return True
    return isinstance(value, Real) and bool(value != value)


def _equal(value: Any, category: Any) -> bool:
    """As `==`, but text is no number, and True is not 1."""
    if isinstance(value, (bool, np.bool_)) != isinstance(category, (bool, np.bool_)):
        return False
    return isinstance(value, str) == isinstance(category, str) and value == category


def _name_categories(known: Iterable[Any]) -> str:
    known = [k.item() if isinstance(k, np.generic) else k for k in known]
    more = f", … ({len(known)} in all)" if len(known) > _MAX_NAMED else ""
    return ", ".join(map(repr, known[:_MAX_NAMED])) + more
