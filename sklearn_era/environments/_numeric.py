"""Tables of numbers to make eras of, and labels of eras by their size."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer

from sklearn_era._tables.columns import as_matrix, list_columns, read_columns

# The largest number that is taken: squares, and their sums, have to be finite.
_LARGEST = 1e150


def check_numbers(X: Any, missing: str) -> NDArray[np.float64]:
    """Read a table of numbers, without missing values or after filling them."""
    columns = read_columns(X)
    categorical = [column.name for column in columns if column.is_categorical]
    if categorical:
        raise ValueError(
            f"X: column(s) {list_columns(categorical)} hold categories or text, among "
            "which there is no distance; leave them out, or encode them as numbers "
            "(sklearn.preprocessing.TargetEncoder, OneHotEncoder)."
        )
    values, _ = as_matrix(columns)
    names = [column.name for column in columns]
    infinite = np.flatnonzero((np.abs(values) > _LARGEST).any(axis=0))
    if infinite.size:
        raise ValueError(
            f"X: column(s) {list_columns([names[j] for j in infinite])} hold infinite "
            f"values, or some beyond {_LARGEST:g}; clip them, or leave the columns out."
        )
    is_missing = np.isnan(values)
    with_missing = np.flatnonzero(is_missing.any(axis=0))
    if with_missing.size == 0:
        return values
    if missing == "raise":
        raise ValueError(
            f"X has {is_missing.sum()} missing value(s), in column(s) "
            f"{list_columns([names[j] for j in with_missing])}; pass missing='median' "
            "to take the column's median for them, or fill them beforehand."
        )
    empty = np.flatnonzero(is_missing.all(axis=0))
    if empty.size:
        raise ValueError(
            f"X: column(s) {list_columns([names[j] for j in empty])} hold missing "
            "values only, and have no median; leave them out."
        )
    return SimpleImputer(strategy="median").fit_transform(values)


def number_by_size(labels: NDArray[np.intp], n_eras: int) -> NDArray[np.intp]:
    """Number eras from the largest to the smallest; of equals, the first met first."""
    counts = np.bincount(labels, minlength=n_eras)
    first_rows = np.full(n_eras, labels.size)
    np.minimum.at(first_rows, labels, np.arange(labels.size))
    new_label = np.empty(n_eras, dtype=np.intp)
    new_label[np.lexsort((first_rows, -counts))] = np.arange(n_eras)
    return new_label[labels]
