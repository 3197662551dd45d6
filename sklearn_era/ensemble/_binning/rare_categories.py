"""Let the rarest categories share a bin in columns with more categories than bins.
scikit-learn's own encoder gives these categories one code, so that scikit-learn's own
estimators predict the same.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OrdinalEncoder

from ..._warnings import warn_user

# Maximum number of columns that a message names; others are counted.
_MOST_NAMED = 5


def encoder_of(estimator: BaseEstimator) -> OrdinalEncoder:
    """Return the encoder of categorical columns, which are trees' first features."""
    return estimator._preprocessor.named_transformers_["encoder"]


def numbers_of_categories(encoder: OrdinalEncoder) -> NDArray[np.intp]:
    """Return the number of categories of each column; missing values do not count."""
    sizes = [categories.size for categories in encoder.categories_]
    return np.array([n - (i in encoder._missing_indices) for i, n in enumerate(sizes)])


def take_none_for_missing(estimator: BaseEstimator, X: NDArray[np.float64]) -> None:
    """Treat None as missing in columns with more categories than bins: drop it from the
    encoder, and set NaN in the encoded rows X. In other columns, None stays a category.
    """
    encoder = encoder_of(estimator)
    for i, n in enumerate(numbers_of_categories(encoder).tolist()):
        known, code = encoder.categories_[i], n - 1  # None is after all others
        if n > estimator.max_bins and known[code] is None:
            encoder.categories_[i] = np.delete(known, code)
            if i in encoder._missing_indices:
                encoder._missing_indices[i] = code
            X[X[:, i] == code, i] = np.nan


def share_bins(
    estimator: BaseEstimator, X: NDArray[np.float64], n_rows: NDArray[Any] | None = None
) -> None:
    """Give the rare categories of a column one code, in the encoder and in the encoded
    rows X, and warn once. `n_rows`, of shape (n_samples, n_encoded), is the number of
    rows that each value of X stands for; with None, each value stands for one row.
    """
    encoder, max_bins = encoder_of(estimator), estimator.max_bins
    if numbers_of_categories(encoder).max() <= max_bins:
        return
    rows, codes, counts = [], [], []
    for i, categories in enumerate(encoder.categories_):
        rows.append(np.flatnonzero(~np.isnan(X[:, i])))
        codes.append(X[rows[i], i].astype(np.intp))
        weights = None if n_rows is None else n_rows[rows[i], i]
        counts.append(np.bincount(codes[i], weights, categories.size))
    encoder.max_categories = max_bins
    encoder._check_infrequent_enabled()
    encoder._fit_infrequent_category_mapping(0, counts, encoder._missing_indices)
    names = [str(column) for column in np.flatnonzero(estimator.is_categorical_)]
    if hasattr(encoder, "feature_names_in_"):
        names = [repr(name) for name in encoder.feature_names_in_.tolist()]
    shared = []
    for i, rare in enumerate(encoder._infrequent_indices):
        if rare is not None:
            X[rows[i], i] = codes_of_categories(encoder, i)[codes[i]]
            n_shared = int(counts[i][rare].sum())
            shared.append(f"{rare.size:,} of column {names[i]} ({n_shared:,} rows)")
    n_more = len(shared) - _MOST_NAMED
    warn_user(
        f"X has columns of more than {max_bins} categories, the rarest of which share "
        f"a bin: {', '.join(shared[:_MOST_NAMED])}"
        f"{f' and those of {n_more} more columns' if n_more > 0 else ''}."
    )


def set_bins(encoder: OrdinalEncoder, i: int, bins: NDArray[np.intp]) -> None:
    """Set the bins of column `i`'s categories, some of which may share a bin."""
    if not hasattr(encoder, "_default_to_infrequent_mappings"):
        n_columns = len(encoder.categories_)
        encoder._infrequent_enabled = True
        encoder._infrequent_indices = [None] * n_columns
        encoder._default_to_infrequent_mappings = [None] * n_columns
    encoder._default_to_infrequent_mappings[i] = bins
    encoder._infrequent_indices[i] = np.flatnonzero(np.bincount(bins)[bins] > 1)


def codes_of_categories(encoder: OrdinalEncoder, i: int) -> NDArray[np.intp]:
    """Return the bin of each category of column `i`; rare categories share a bin."""
    mappings = getattr(encoder, "_default_to_infrequent_mappings", None)
    if mappings is None or mappings[i] is None:
        return np.arange(numbers_of_categories(encoder)[i])
    return mappings[i]
