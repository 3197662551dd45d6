"""Parameters of an estimator that have parameters of their own."""

from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator, clone

# Makes the constructor of an estimator; the rest is scikit-learn's.
with_parameters = dataclass(kw_only=True, eq=False, repr=False)


class ParameterObject(BaseEstimator):
    """An object that equals others of its class with the same parameters, and hashes by
    them: do not change one that is a key of a dict.
    """

    def _check(self) -> None:
        """Raise InvalidParameterError for a parameter with a bad value."""
        self._validate_params()

    def _changed(self, **params: Any) -> Any:
        """Return a copy with some parameters changed."""
        return clone(self).set_params(**params)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        values = (
            frozenset(value.items()) if isinstance(value, dict) else value
            for _, value in sorted(vars(self).items())
        )
        return hash((type(self), *values))
