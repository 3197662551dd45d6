"""Check `feature_penalty`, and put the penalties in the order of trees' features."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._eras import Array
from .._trees.traversal import column_of_feature
from ..criteria._blend import as_float
from ._parameters import did_you_mean


def feature_penalties(estimator: BaseEstimator) -> Array | None:
    """Return the penalties in the order of the trees' features, or None if all are 0.
    Raise ValueError if no feature has a penalty below 1.
    """
    penalties = penalties_by_column(estimator)
    if not penalties.any():
        return None
    if (penalties >= 1.0).all():
        raise ValueError(
            "feature_penalty forbids all features: give one of them a penalty below 1."
        )
    return penalties[column_of_feature(estimator)]


def penalties_by_column(estimator: BaseEstimator) -> Array:
    """Return the penalty of each column of X, from a `feature_penalty` of any form.
    Raise ValueError for a wrong shape, an unknown column or a penalty below 0.
    """
    given, n_features = estimator.feature_penalty, estimator.n_features_in_
    if given is None:
        return np.zeros(n_features)
    if not (isinstance(given, Mapping) or _has_keys(given)):
        if np.shape(given) != (n_features,):
            raise ValueError(
                f"feature_penalty has shape {np.shape(given)}, but X has {n_features} "
                "features: give one number for each, or a mapping from some of them."
            )
        given = dict(enumerate(given))
    penalties = np.zeros(n_features)
    named: dict[int, Any] = {}
    for key, penalty in given.items():
        feature = _index_of(key, estimator)
        if feature in named:
            raise ValueError(
                f"feature_penalty names column {feature} twice, by "
                f"{named[feature]!r} and {key!r}; leave one of them out."
            )
        named[feature] = key
        penalties[feature] = as_float(penalty)
        if not penalties[feature] >= 0.0:
            raise ValueError(
                f"feature_penalty of feature {key!r} is {penalty!r}; penalties are "
                "numbers of 0 or more."
            )
    return penalties


def _has_keys(given: object) -> bool:
    """Return whether `given` is a Series with another index than 0, 1, 2 and so on."""
    index: Any = getattr(given, "index", ())  # a method, if it is a list
    return not callable(index) and [*index] != [*range(len(index))]


def _index_of(key: object, estimator: BaseEstimator) -> int:
    """Return the index of the column named or numbered `key`; raise ValueError if there
    is no such column.
    """
    n_features = estimator.n_features_in_
    if isinstance(key, Integral) and not isinstance(key, bool):
        column = int(key)
        if not 0 <= column < n_features:
            raise ValueError(
                f"feature_penalty has the feature {key}, but the {n_features} features "
                f"of X are counted from 0 to {n_features - 1}."
            )
        return column
    if (names := getattr(estimator, "feature_names_in_", None)) is None:
        raise ValueError(
            f"feature_penalty has the feature {key!r}, but X has no names of columns: "
            "count them, from 0, or pass a data frame whose columns have names."
        )
    names = names.tolist()
    if key not in names:
        hint = did_you_mean(key, names) if isinstance(key, str) else ""
        raise ValueError(
            f"feature_penalty has the feature {key!r}, which is no column of X.{hint}"
        )
    return names.index(key)
