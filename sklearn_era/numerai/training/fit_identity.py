"""Whether two fits are the same: what their trees depend on, and what differs."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era.ensemble import BinnedDataset, HistGradientBoostingRegressor
from sklearn_era.numerai.training.model_store import plain

# Parameters of which trees do not depend.
_FREE_PARAMETERS = ("n_jobs", "warm_start", "verbose")


@dataclass(frozen=True)
class FitDescription:
    """What the trees of a fit depend on: of two that are equal, trees are the same.

    Attributes
    ----------
    parameters : dict
        All parameters of the estimator, those not set too.
    target : str
        The column of the target.
    features : list of str
        The columns of the features, in order.
    data : dict
        Which rows were taken from the files, in numbers for people.
    data_fingerprint : str
        What `fingerprint` returned; empty while the data are not read.
    """

    parameters: dict[str, Any]
    target: str
    features: list[str]
    data: dict[str, Any] = field(default_factory=dict)
    data_fingerprint: str = ""


def describe_parameters(estimator: HistGradientBoostingRegressor) -> dict[str, Any]:
    """The parameters that trees depend on, as JSON has them."""
    parameters = {
        name: value
        for name, value in estimator.get_params().items()
        if name not in _FREE_PARAMETERS
    }
    return json.loads(json.dumps(parameters, default=plain))


def fingerprint(dataset: BinnedDataset) -> str:
    """The blake2b of all that a fit takes from a data set.

    Parameters
    ----------
    dataset : BinnedDataset
        The data set. No part of it is copied.

    Returns
    -------
    digest : str
        64 hexadecimal digits.
    """
    digest = hashlib.blake2b(digest_size=32)

    def add(name: str, array: NDArray[Any]) -> None:
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        # Flat in the order of memory, and so a view.
        digest.update(array.reshape(-1, order="A").view(np.uint8).data)

    add("X_binned", dataset.X_binned)
    add("y", dataset.y)
    for i, thresholds in enumerate(dataset.bin_mapper.bin_thresholds_):
        add(f"thresholds {i}", thresholds)
    if dataset.eras is not None:
        add("eras", dataset.eras.codes)
    if dataset.sample_weight is not None:
        add("sample_weight", dataset.sample_weight)
    return digest.hexdigest()


def differences(one: FitDescription, other: FitDescription) -> list[str]:
    """What differs between two fits, in words.

    Parameters
    ----------
    one : FitDescription
        What was.
    other : FitDescription
        What is. Fingerprints are compared if both are there.

    Returns
    -------
    different : list of str
        A part of a sentence for each difference; empty if the fits are the same.
    """
    found = _changed_items(one.parameters, other.parameters)
    if one.target != other.target:
        found.append(f"target was {one.target!r} and is {other.target!r}")
    if one.features != other.features:
        found.append(_changed_features(one.features, other.features))
    found += _changed_items(one.data, other.data)
    digests = (one.data_fingerprint, other.data_fingerprint)
    if not found and all(digests) and digests[0] != digests[1]:
        found.append(
            "the files hold other values in these rows than they did (their "
            "fingerprint differs)"
        )
    return found


def _changed_items(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    # In the order of `one`, what is new last.
    return [
        f"{name} was {one.get(name)!r} and is {other.get(name)!r}"
        for name in {**one, **other}
        if one.get(name) != other.get(name)
    ]


def _changed_features(one: list[str], other: list[str]) -> str:
    # A mapping keeps the order, and finds a name among thousands at once.
    was, now = dict.fromkeys(one), dict.fromkeys(other)
    gone = [name for name in was if name not in now]
    new = [name for name in now if name not in was]
    parts = [
        f"{len(names)} {what} (the first is {names[0]!r})"
        for names, what in ((gone, "are gone"), (new, "are new"))
        if names
    ]
    if not parts:
        return "the features are in another order"
    return f"of the features, {' and '.join(parts)}"


__all__ = ["FitDescription", "describe_parameters", "differences", "fingerprint"]
