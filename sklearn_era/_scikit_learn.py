"""Hide differences between releases of scikit-learn, and add checks that it lacks."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import sklearn
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    _get_feature_names,
)

from ._tables.checks import check_mask
from ._typing import ColumnChoice, Table

try:  # from 1.9
    from sklearn.callback import CallbackSupportMixin, ScoringMonitor
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's class in releases without callbacks."""

    ScoringMonitor = ()

try:  # from 1.8
    from sklearn.utils._dataframe import is_pandas_df, is_polars_df
except ImportError:
    from sklearn.utils.validation import _is_pandas_df as is_pandas_df
    from sklearn.utils.validation import _is_polars_df as is_polars_df

try:  # from 1.9
    from sklearn.utils._bitset import set_raw_bitset_from_binned_bitset
except ImportError:
    from sklearn.ensemble._hist_gradient_boosting._bitset import (
        set_raw_bitset_from_binned_bitset,
    )

_IS_1_9 = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)

# Sample weights affect the thresholds of bins and the rows drawn for them.
BINS_ARE_WEIGHTED = _IS_1_9


def check_categorical_features(X: Table, categorical_features: ColumnChoice) -> Any:
    """Return the mask of categorical columns, or None if there are none."""
    if _IS_1_9:
        from sklearn.utils.validation import _check_categorical_features

        return _check_categorical_features(X, categorical_features)
    from sklearn.ensemble._hist_gradient_boosting import gradient_boosting

    booster = SimpleNamespace(categorical_features=categorical_features)
    base: Any = gradient_boosting.BaseHistGradientBoosting
    return base._check_categorical_features(booster, X)


def check_sample_weight(
    sample_weight: ArrayLike | None, X: Any, *, allow_all_zero_weights: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    """Return the checked weights. Raise ValueError for negative or masked weights and,
    unless `allow_all_zero_weights`, if all are 0; scikit-learn itself refuses the
    latter only from release 1.9 on.
    """
    check_mask(sample_weight, "sample_weight")
    options["ensure_non_negative"] = True
    if _IS_1_9:
        options["allow_all_zero_weights"] = allow_all_zero_weights
    checked = _check_sample_weight(sample_weight, X, **options)
    if not allow_all_zero_weights and checked.size and not checked.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return checked


__all__ = [
    "BINS_ARE_WEIGHTED", "CallbackSupportMixin", "ScoringMonitor",
    "check_categorical_features", "check_sample_weight", "is_pandas_df", "is_polars_df",
    "set_raw_bitset_from_binned_bitset",
]  # fmt: skip


def refuse_bools(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError for values that are bools, as `validate_params` allows bools."""
    for name, value in parameters.items():
        if isinstance(value, bool):
            raise ValueError(f"{name} must be an integer; got {value!r}.")


@contextmanager
def names_checked_once(estimator: BaseEstimator, X: Any) -> Iterator[None]:
    """Warn in the estimator's name if only one of X and the fit's X has column names.
    In the block, hide such warnings of inner estimators.
    """
    if (_get_feature_names(X) is None) == hasattr(estimator, "feature_names_in_"):
        _check_feature_names(estimator, X, reset=False)
    with warnings.catch_warnings():
        for message in ("X does not have valid feature", "X has feature names, but"):
            warnings.filterwarnings("ignore", message=message)
        yield
