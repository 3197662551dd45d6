"""List categories and their bins, for formats that have categories but no bins."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_era._trees.traversal import is_sent_left
from sklearn_era.ensemble._binning.rare_categories import (
    codes_of_categories,
    encoder_of,
)


def categories_of_features(
    model: BaseEstimator,
) -> list[tuple[NDArray[Any], NDArray[np.intp]]]:
    """Return a pair for each categorical feature: its categories, and their bins."""
    if model.is_categorical_ is None or not model.is_categorical_.any():
        return []
    encoder = encoder_of(model)
    bins = [codes_of_categories(encoder, i) for i in range(len(encoder.categories_))]
    return [(c[: b.size], b) for c, b in zip(encoder.categories_, bins, strict=True)]


def listed_categories(tree: object, split: Any, bins: NDArray[np.intp]) -> Any:
    """Return a mask of the categories with these `bins`: True if a split sends the
    category to one side, and missing and unknown values to the other.
    """
    return is_sent_left(tree, split, bins) != bool(split["missing_go_to_left"])
