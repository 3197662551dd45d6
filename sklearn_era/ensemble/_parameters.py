"""What the estimators' parameters may be, and what a pickle says of its versions."""

import difflib
import inspect
import math
import warnings
from collections.abc import Iterable, Mapping
from itertools import chain
from numbers import Integral, Real
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    RealNotInt,
    StrOptions,
)

import sklearn_era

from .._criterion_table import CRITERIA, parameters_read, unread_era_effects
from .._threads import N_JOBS_CONSTRAINTS
from .._warnings import warn_user
from ._criterion_plan import INVARIANCE_STATISTICS, as_float

ERA_PARAMETER_CONSTRAINTS: dict[str, list[Any]] = {
    "split_criterion": [StrOptions(set(CRITERIA)), dict],
    "boltzmann_alpha": [Interval(Real, None, None, closed="both")],
    "min_direction_agreement": [Interval(Real, 0, 1, closed="both")],
    "min_samples_per_era": [Interval(Integral, 1, None, closed="left")],
    "min_era_coverage": [Interval(Real, 0, 1, closed="right"), StrOptions({"auto"})],
    "min_gain_share": [Interval(Real, 0, 1, closed="both"), None],
    "normalize_era_gain": ["boolean"],
    "period_aggregation": [StrOptions({"max", "mean"})],
    "invariance_penalty": [Interval(Real, 0, None, closed="left")],
    "invariance_statistic": [StrOptions(INVARIANCE_STATISTICS.keys())],
    "min_impurity_decrease": [Interval(Real, 0, None, closed="left")],
    # What a C unsigned int holds.
    "min_samples_leaf": [Interval(Integral, 1, 2**32 - 1, closed="both")],
    "validation_eras": [StrOptions({"last", "random"}), None],
    "era_weighting": [StrOptions({"rows", "equal", "recency", "group_dro"})],
    "era_half_life": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0, 1, closed="right"),
    ],
    "group_dro_step_size": [Interval(Real, 0, None, closed="left")],
    "leaf_shrinkage": [StrOptions({"eras"}), None],
    "era_effects": [StrOptions({"intercept"}), None],
    "era_forecast": [StrOptions({"last", "mean", "exponential"})],
    "n_forecast_eras": [Interval(Integral, 1, None, closed="left")],
    "feature_penalty": ["array-like", Mapping, None],
    "colsample_bytree": [Interval(Real, 0, 1, closed="right")],
    "fast_gain": ["boolean"],
    "n_jobs": N_JOBS_CONSTRAINTS,
}


# What asks for eras beside the criterion, and the values with which it does not.
_WITHOUT_ERAS = {"era_weighting": "rows", "leaf_shrinkage": None, "era_effects": None}


def uses_of_eras(estimator: Any, is_plain_gain: bool) -> dict[str, Any]:
    """The parameters by which an estimator needs eras; what to set each to, if not."""
    uses = {} if is_plain_gain else {"split_criterion": "gain"}
    return uses | {
        name: default
        for name, default in _WITHOUT_ERAS.items()
        if getattr(estimator, name, default) != default
    }


def check_class_weight(class_weight: Any) -> None:
    """Raise ValueError for a class weight that is negative, infinite or no number."""
    if not isinstance(class_weight, dict):
        return
    for label, weight in class_weight.items():
        if not 0 <= as_float(weight) < math.inf:
            raise ValueError(
                f"class_weight gives class {label!r} the weight {weight!r}; weights "
                "have to be finite numbers of at least 0."
            )


def weigh_classes(
    estimator: Any, sample_weight: NDArray[np.float64] | None, y: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return the weights of rows with those of their classes, which have numbers in
    `y`; a dict has them by label, where scikit-learn's boosters take these numbers.
    """
    if estimator.class_weight is None:
        return sample_weight
    check_class_weight(estimator.class_weight)
    labels = estimator.classes_[y.astype(np.intp)]
    class_weight = compute_sample_weight(estimator.class_weight, labels)
    return class_weight if sample_weight is None else sample_weight * class_weight


def check_weights(estimator: Any, sample_weight: NDArray[np.float64] | None) -> None:
    """Raise ValueError for negative weights of rows where eras are compared; the plain
    gain takes them, as scikit-learn's boosters do.
    """
    state = estimator._fit_state
    names = [*uses_of_eras(estimator, state.plan.is_plain_gain)]
    names += [
        name
        for name in ("min_impurity_decrease", "fast_gain")
        if getattr(estimator, name, 0) != 0
    ]
    names += ["feature_penalty"] * (state.penalties is not None)
    if sample_weight is None or not names:
        return
    n_negative = np.count_nonzero(sample_weight < 0)
    if n_negative:
        name = names[0]
        raise ValueError(
            f"sample_weight is negative in {n_negative} of {sample_weight.size} rows, "
            f"and {name}={getattr(estimator, name)!r} takes weights of 0 or more."
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the one that was meant, if any."""
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


class ParametersMixin(BaseEstimator):
    """Parameters that are misspelt, or without effect, are told of."""

    split_criterion: str | dict[str, float]
    invariance_penalty: float

    def set_params(self, **params: Any) -> Any:
        """Set the parameters of this estimator.

        Parameters
        ----------
        **params : dict
            The parameters to change, by name.

        Returns
        -------
        self : object
            This estimator.
        """
        known = self._get_param_names()
        for name in params:
            if name not in known and (hint := did_you_mean(name, known)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}.{hint}"
                )
        return super().set_params(**params)

    def _validate_params(self) -> None:
        """As scikit-learn does at the beginning of a fit."""
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            for name, constraints in self._parameter_constraints.items():
                value = getattr(self, name)
                options = [
                    option
                    for constraint in constraints
                    if isinstance(constraint, StrOptions)
                    for option in constraint.options
                ]
                if isinstance(value, str) and f"The {name!r} parameter" in str(error):
                    raise InvalidParameterError(
                        f"{error}{did_you_mean(value, options)}"
                    ) from None
            raise
        self._warn_of_parameters_without_effect()

    def _warn_of_parameters_without_effect(self) -> None:
        """Warn of parameters that were set, and that no other one reads as it is."""
        read = parameters_read(self.split_criterion, self.invariance_penalty)
        names = dict.fromkeys(chain(*(row.parameters for row in CRITERIA.values())))
        self._warn_of_unread(
            "split_criterion",
            [name for name in names if name not in read],
            ", or choose another criterion",
        )
        for reader, unread in unread_era_effects(**self.get_params(False)).items():
            self._warn_of_unread(reader, unread)

    def _warn_of_unread(
        self, reader: str, names: Iterable[str], remedy: str = ""
    ) -> None:
        defaults = inspect.signature(type(self).__init__).parameters
        unread = [
            f"{name}={getattr(self, name)!r}"
            for name in names
            # A subclass may have fewer of them.
            if name in defaults and getattr(self, name) != defaults[name].default
        ]
        if unread:
            warn_user(
                f"{reader}={getattr(self, reader)!r} makes no use of "
                f"{', '.join(unread)}: leave that out{remedy}."
            )


class VersionedStateMixin(BaseEstimator):
    """Keep both versions in pickles, and warn where another one reads them:
    scikit-learn does so for classes of its own modules only.
    """

    def __getstate__(self) -> dict[str, Any]:
        return dict(
            super().__getstate__(),
            _sklearn_version=sklearn.__version__,
            _sklearn_era_version=sklearn_era.__version__,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        sklearn_version = state.pop("_sklearn_version", "unknown")
        if sklearn_version != sklearn.__version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=sklearn.__version__,
                    original_sklearn_version=sklearn_version,
                ),
                stacklevel=2,
            )
        era_version = state.pop("_sklearn_era_version", "unknown")
        if era_version != sklearn_era.__version__:
            warnings.warn(
                f"Unpickling a {type(self).__name__} that sklearn_era {era_version} "
                f"wrote with sklearn_era {sklearn_era.__version__}: predictions may "
                "be wrong. Fit it again, or install the version that wrote it.",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(state)
