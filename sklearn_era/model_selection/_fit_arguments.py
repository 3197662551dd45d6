"""The arguments of an estimator's fit beside X and y, also of one further inside."""

from typing import Any

from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _num_samples, has_fit_parameter

from .._era_routing import prepares_by_era, takes


def name_in_fit(estimator: Any, argument: str) -> str | None:
    """Return the name by which an estimator's fit takes an argument."""
    if get_config()["enable_metadata_routing"] or prepares_by_era(estimator):
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


def fit_arguments(
    estimator: Any, eras: NDArray[Any], sample_weight: NDArray[Any] | None
) -> dict[str, NDArray[Any]]:
    """Return the eras, if a fit takes any, and the weights, if there are some, by the
    names that it has for them.
    """
    arguments = {}
    if (eras_name := name_in_fit(estimator, "eras")) is not None:
        arguments[eras_name] = eras
    if sample_weight is not None:
        weight_name = name_in_fit(estimator, "sample_weight")
        if weight_name is None:
            raise ValueError(
                f"sample_weight: the fit of {type(estimator).__name__} takes no "
                "weights; leave sample_weight out, or, with metadata routing, request "
                "it by set_fit_request(sample_weight=True)."
            )
        arguments[weight_name] = sample_weight
    return arguments


def with_order(estimator: Any, era_order: str) -> Any:
    """Return a copy of an estimator whose steps know the order of eras, where their own
    `era_order` is "auto".
    """
    known = clone(estimator)
    names = [
        name
        for name, value in known.get_params().items()
        if name.split("__")[-1] == "era_order" and value == "auto"
    ]
    return known.set_params(**dict.fromkeys(names, era_order)) if names else known


def check_target(y: Any, X: Any) -> None:
    """Raise ValueError for a target that is missing, or of another length than X."""
    if y is None:
        raise ValueError("The fit requires y to be passed, but the target y is None.")
    if _num_samples(y) != _num_samples(X):
        raise ValueError(
            f"y has {_num_samples(y)} rows, but X has {_num_samples(X)}; pass the same "
            "rows in both."
        )
