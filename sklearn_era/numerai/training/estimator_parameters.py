"""The table ``[train.parameters]``: checked before any data are read."""

import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_monotonic_cst

from sklearn_era._criterion_table import ERA_EFFECT_NAMES, ERA_PARAMETER_NAMES
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.ensemble._criteria.parameters import CriterionPlan
from sklearn_era.numerai.errors import ConfigError

_TABLE = "[train.parameters]"

# What a training sets itself, and what it leaves out, with the reason.
_EARLY_STOPPING = (
    "it belongs to early stopping, and a training here makes all of its max_iter "
    "trees, which the validation file is to judge. Leave it out"
)
_REFUSED = {
    "early_stopping": _EARLY_STOPPING,
    "scoring": _EARLY_STOPPING,
    "validation_fraction": _EARLY_STOPPING,
    "validation_eras": _EARLY_STOPPING,
    "n_iter_no_change": _EARLY_STOPPING,
    "tol": _EARLY_STOPPING,
    "random_state": "set random_state in [train] instead",
    "warm_start": "a training is resumed with --resume. Leave it out",
    "verbose": "progress is shown without it. Leave it out",
    "categorical_features": "the features are numbers. Leave it out",
}

# What the plain model, which knows no eras, does without.
_ERA_PARAMETERS = ("split_criterion", *ERA_PARAMETER_NAMES, *ERA_EFFECT_NAMES)

# scikit-learn's sentence about a bad parameter, and the beginning of one of ours.
_BAD_PARAMETER = re.compile(
    r"The '(\w+)' parameter of \w+ (must be .*)\. Got (.*?)"
    r"(?: instead)?\.?( Did you mean .*)?"
)
_OWN_PARAMETER = re.compile(r"(\w+)(?=: |=)")


def make_estimator(
    parameters: Mapping[str, Any], *, features: Sequence[str], random_state: int
) -> HistGradientBoostingRegressor:
    """The estimator of a training, with all of its parameters checked.

    Parameters
    ----------
    parameters : mapping of str to object
        Parameters of :class:`~sklearn_era.ensemble.HistGradientBoostingRegressor`,
        without those that a training sets itself.
    features : sequence of str
        The columns to train on, which constraints may name.
    random_state : int
        The seed of all that is drawn.

    Returns
    -------
    estimator : HistGradientBoostingRegressor
        Unfitted, without early stopping.

    Raises
    ------
    ConfigError
        If a parameter is unknown, is not to be set, or has a bad value. The message
        names it.
    """
    signature = inspect.signature(HistGradientBoostingRegressor.__init__)
    known = [name for name in signature.parameters if name != "self"]
    for name in parameters:
        if name in _REFUSED:
            raise ConfigError(f"{_TABLE} {name} is not to be set: {_REFUSED[name]}.")
        if name not in known:
            allowed = [other for other in known if other not in _REFUSED]
            close = difflib.get_close_matches(str(name).lower(), allowed, n=1)
            raise ConfigError(
                f"{_TABLE} {name} is no parameter of HistGradientBoostingRegressor; "
                + (
                    f"did you mean {close[0]!r}?"
                    if close
                    else f"known: {', '.join(allowed)}."
                )
            )
    estimator = HistGradientBoostingRegressor(
        **parameters, early_stopping=False, random_state=random_state
    )
    _check_values(estimator, features)
    return estimator


def gain_parameters(
    parameters: Mapping[str, Any], model: HistGradientBoostingRegressor
) -> dict[str, Any]:
    """The parameters of a model to compare with: by gain, and without those of eras.

    Parameters
    ----------
    parameters : mapping of str to object
        Those that were set for the model.
    model : HistGradientBoostingRegressor
        The model that they make.

    Raises
    ------
    ConfigError
        If the model itself splits by the gain.
    """
    if CriterionPlan.of(model).is_plain_gain:
        raise ConfigError(
            f"compare_with_gain has nothing to compare: {_TABLE} split_criterion = "
            f"{model.split_criterion!r} is the gain itself. Set another criterion, "
            "or compare_with_gain = false."
        )
    kept = {name: x for name, x in parameters.items() if name not in _ERA_PARAMETERS}
    return {**kept, "split_criterion": "gain"}


def blame_parameter(error: Exception) -> ConfigError:
    """An error of the estimator about one of its parameters, as one about the table."""
    message = " ".join(str(error).split())
    if match := _BAD_PARAMETER.fullmatch(message):
        name, demand, value, hint = match.groups("")
        return ConfigError(f"{_TABLE} {name} {demand}, got {value}.{hint}")
    known = HistGradientBoostingRegressor().get_params()
    match = _OWN_PARAMETER.match(message)
    if match and match[1] in known:
        return ConfigError(f"{_TABLE} {message}")
    return ConfigError(f"{_TABLE}: {message}")


def _check_values(
    estimator: HistGradientBoostingRegressor, features: Sequence[str]
) -> None:
    """Check values as ``fit`` would, before there are data."""
    try:
        estimator._validate_params()
        CriterionPlan.of(estimator)
        estimator._get_loss(sample_weight=None)
        named = clone(estimator)
        named.n_features_in_ = len(features)
        named.feature_names_in_ = np.array(features, dtype=object)
        _check_monotonic_cst(named, named.monotonic_cst)
        named._check_interaction_cst(len(features))
    except (TypeError, ValueError) as error:
        raise blame_parameter(error) from error
    if estimator.max_iter < 1:
        raise ConfigError(
            f"{_TABLE} max_iter = {estimator.max_iter} makes no tree: set 1 at least."
        )


__all__ = ["blame_parameter", "gain_parameters", "make_estimator"]
