"""Check the estimators' parameters, and the versions in a pickle."""

import math
import warnings
from collections.abc import Mapping
from itertools import chain
from typing import Any, Self

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import InvalidParameterError, StrOptions

import sklearn_era

from .._eras import Array
from .._parameter_object import ParameterObject
from .._warnings import did_you_mean, refuse_moved
from ..criteria._blend import Blend, as_float
from ..criteria._criteria import CRITERIA, refuse_removed
from ..effects import Intercepts
from ._exchange import ALONE, Exchange
from ._parameter_table import MOVED, MOVED_VALUES

# Parameters beside the criterion that need eras, with the values that do not.
_WITHOUT_ERAS: dict[str, tuple[Any, ...]] = {
    "era_weighting": ("rows",), "leaf_shrinkage": (None,), "era_effects": (None,),
    "bootstrap": ("rows", False), "random_segments": (None,),
}  # fmt: skip


def uses_of_eras(estimator: BaseEstimator, is_plain_gain: bool) -> dict[str, Any]:
    """Return the parameters whose values need eras, as keys of a dict. The dict maps
    each parameter to a value that needs no eras.
    """
    uses = {} if is_plain_gain else {"split_criterion": "gain"}
    return uses | {
        name: values[0]
        for name, values in _WITHOUT_ERAS.items()
        if getattr(estimator, name, values[0]) not in values
    }


def refuse_uses_of_eras(estimator: BaseEstimator, is_plain_gain: bool) -> None:
    """Raise ValueError if a parameter needs eras; call this if ``fit`` got no eras."""
    for name, other in uses_of_eras(estimator, is_plain_gain).items():
        raise ValueError(
            f"{name}={getattr(estimator, name)!r} needs eras: pass fit(X, y, eras=...) "
            "with one label a row (in a pipeline of make_pipeline, "
            f"{type(estimator).__name__.lower()}__eras=...), or use {name}={other!r}."
        )


def check_class_weight(class_weight: str | Mapping[Any, float] | None) -> None:
    """Raise ValueError if a class weight is negative, infinite or not a number."""
    weights = class_weight.items() if isinstance(class_weight, dict) else ()
    for label, weight in weights:
        if not 0 <= as_float(weight) < math.inf:
            raise ValueError(
                f"class_weight gives class {label!r} the weight {weight!r}; weights "
                "have to be finite numbers of at least 0."
            )


def weigh_classes(
    estimator: BaseEstimator, sample_weight: Array | None, y: Array
) -> Array | None:
    """Return the weights of rows, multiplied by `class_weight` of their classes. `y`
    has the index of each row's class. A dict of class weights has labels as keys;
    scikit-learn's boosters would look up the indices in the dict.
    """
    if estimator.class_weight is None:
        return sample_weight
    check_class_weight(estimator.class_weight)
    labels = estimator.classes_[y.astype(np.intp)]
    class_weight = compute_sample_weight(estimator.class_weight, labels)
    return class_weight if sample_weight is None else sample_weight * class_weight


def encode_classes(estimator: BaseEstimator, y: Array) -> Array:
    """Return the class of each row as an index into `classes_`. Raise ValueError for
    classes that are not in `classes_`. Do not cast labels to the dtype of `classes_`,
    as scikit-learn does: the cast would cut off text and digits.
    """
    known = estimator.classes_.tolist()
    if unknown := sorted(set(y.tolist()).difference(known), key=str):
        name = "y_val" if hasattr(estimator, "_fit_state") else "y"
        raise ValueError(
            f"{name} has {len(unknown)} class(es) that were not in the fit, the first "
            f"is {unknown[0]!r}; the model knows {known}. Drop these rows."
        )
    return np.searchsorted(estimator.classes_, y).astype(np.float64)


def check_weights(
    estimator: BaseEstimator, sample_weight: Array | None, exchange: Exchange = ALONE
) -> None:
    """Raise ValueError for weights beyond single precision and, if a parameter in use
    requires weights of 0 or more, for negative weights.
    """
    if sample_weight is not None:
        check_weight_size(sample_weight, exchange)
    state = estimator._fit_state
    names = [*uses_of_eras(estimator, state.plan.is_plain_gain)]
    names += ["min_impurity_decrease"] * bool(estimator.min_impurity_decrease)
    names += ["split_criterion"] * state.plan.is_by_kernel
    names += ["feature_penalty"] * (state.penalties is not None)
    if sample_weight is None or not names:
        return
    counts = np.count_nonzero(sample_weight < 0), sample_weight.size
    n_negative, n_rows = exchange.sum_of(*counts)
    if n_negative:
        raise ValueError(
            f"sample_weight is negative in {n_negative:.0f} of {n_rows:.0f} rows, "
            f"and {names[0]}={getattr(estimator, names[0])!r} takes weights of 0 or "
            "more."
        )


def check_weight_size(sample_weight: Array, exchange: Exchange = ALONE) -> float:
    """Return the largest absolute weight. Raise ValueError if it is too large or too
    small for single precision.
    """
    (largest,) = exchange.max_of(np.abs(sample_weight).max(initial=0.0))
    if largest > 0:  # scikit-learn's checks are of weights that are all 0
        what, divide = "sample_weight is up to", "the weights by their mean"
        check_single_precision(largest, what, divide)
    return largest


def check_single_precision(size: float, what: str, divide: str) -> None:
    """Raise ValueError if `size` is too large or too small for single precision. `what`
    begins the message; `divide` names the values to divide, and by which number.
    """
    tiny, huge = np.finfo(np.float32).tiny.item(), np.finfo(np.float32).max.item()
    if not tiny <= size <= huge:
        raise ValueError(
            f"{what} {size:.3g}, out of the range of single precision ({tiny:.2g} to "
            f"{huge:.2g}), in which trees are grown; divide {divide}."
        )


def _as_object(value: object) -> Any:
    """Return the object that a string or dict stands for, or else the value itself."""
    if isinstance(value, Mapping):
        return Blend(value)
    if isinstance(value, str) and value in CRITERIA:
        return CRITERIA[value]()
    return Intercepts() if value == "intercept" else value


class ParametersMixin(BaseEstimator):
    """Check the names of parameters, also nested ones, and the parameters' values."""

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this estimator.

        Parameters
        ----------
        **params : dict
            The parameters to change, by name. ``split_criterion__min_agreement`` is a
            parameter of the criterion, even if the criterion is a string so far.

        Returns
        -------
        self : object
            This estimator.
        """
        known = self._get_param_names()
        nested: dict[str, dict[str, Any]] = {}
        refuse_moved(MOVED, params, "the estimators")
        for name in list(params):
            owner, _, own = name.partition("__")
            if own and owner in ("split_criterion", "era_weighting", "era_effects"):
                nested.setdefault(owner, {})[own] = params.pop(name)
            elif name not in known and (hint := did_you_mean(name, known)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}.{hint}"
                )
        super().set_params(**params)
        for owner, own_params in nested.items():
            # A copy, since other estimators may have the same object.
            value = _as_object(getattr(self, owner))
            if not isinstance(value, ParameterObject):
                raise ValueError(
                    f"{owner}={value!r} has no parameter {next(iter(own_params))!r}: "
                    "set an object first."
                )
            setattr(self, owner, value._changed(**own_params))
        return self

    def _validate_params(self) -> None:
        """Check parameters as scikit-learn's fit does; add hints to its errors."""
        refuse_removed(self.split_criterion)
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            for name, constraints in self._parameter_constraints.items():
                value = getattr(self, name)
                if isinstance(value, str) and f"The {name!r} parameter" in str(error):
                    options = [x.options for x in constraints if type(x) is StrOptions]
                    hint = did_you_mean(value, chain.from_iterable(options))
                    if (new := MOVED_VALUES.get((name, value))) is not None:
                        hint = f" It is {new} now."
                    raise InvalidParameterError(f"{error}{hint}") from None
            if callable(value := self.split_criterion):
                raise InvalidParameterError(
                    f"{error} Pass an object, as MyCriterion(); a class of your own is "
                    "derived from sklearn_era.criteria.CustomCriterion."
                ) from None
            raise
        for name in ("era_weighting", "era_effects"):
            if isinstance(value := getattr(self, name, None), ParameterObject):
                value._check()


class VersionedStateMixin(BaseEstimator):
    """Store the versions of scikit-learn and sklearn_era in pickles, and warn if either
    version differs when a pickle is read; scikit-learn warns for its own classes only.
    """

    def __getstate__(self) -> dict[str, Any]:
        return dict(
            super().__getstate__(), _sklearn_version=sklearn.__version__,
            _sklearn_era_version=sklearn_era.__version__,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        state, name = dict(state), type(self).__name__
        theirs = state.pop("_sklearn_version", "unknown")
        if theirs != sklearn.__version__:
            warning = InconsistentVersionWarning(
                estimator_name=name, current_sklearn_version=sklearn.__version__,
                original_sklearn_version=theirs,
            )  # fmt: skip
            warnings.warn(warning, stacklevel=2)
        ours = state.pop("_sklearn_era_version", "unknown")
        if ours != sklearn_era.__version__:
            warnings.warn(
                f"Unpickling a {name} that sklearn_era {ours} "
                f"wrote with sklearn_era {sklearn_era.__version__}: predictions may "
                "be wrong. Fit it again, or install the version that wrote it.",
                stacklevel=2,
            )
        super().__setstate__(state)
