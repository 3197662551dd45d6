"""What an estimator's fit takes beside X and y, itself or further inside."""

import inspect
from collections.abc import Callable
from typing import Any

from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter


def name_in_fit(estimator: Any, argument: str) -> str | None:
    """The name by which an estimator's fit takes an argument.

    Parameters
    ----------
    estimator : object
        Any estimator, a pipeline or a search around one among them.
    argument : str
        ``"eras"`` or ``"sample_weight"``.

    Returns
    -------
    name : str or None
        The name itself; in a pipeline without metadata routing, that of its last step
        with the step's name before it; None if neither the fit nor that of an estimator
        inside takes it.
    """
    if get_config()["enable_metadata_routing"]:
        requests = get_routing_for_object(estimator)
        return argument if requests.consumes("fit", [argument]) else None
    if has_fit_parameter(estimator, argument):
        return argument
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = None if last in (None, "passthrough") else name_in_fit(last, argument)
        return None if inner is None else f"{step}__{inner}"
    # `regressor` is that of a TransformedTargetRegressor.
    inner = getattr(estimator, "estimator", getattr(estimator, "regressor", None))
    if inner is None or not takes(estimator.fit, argument):
        return None
    return name_in_fit(inner, argument)


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Whether a function takes an argument, by its name or as one of any, as searches.

    Parameters
    ----------
    function : callable
        Such as a fit or a scorer.
    argument : str
        Its keyword.

    Returns
    -------
    takes : bool
    """
    parameters = inspect.signature(function).parameters
    return argument in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )
