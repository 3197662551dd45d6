"""What weights of classes may be."""

import math
from numbers import Real
from typing import Any


def check_class_weight(class_weight: Any) -> None:
    """Check the weights of classes, which scikit-learn's boosters take as they are.

    Parameters
    ----------
    class_weight : dict, 'balanced' or None

    Raises
    ------
    ValueError
        If a class has a weight that is negative, infinite or no number.
    """
    if not isinstance(class_weight, dict):
        return
    for label, weight in class_weight.items():
        if not (isinstance(weight, Real) and 0 <= float(weight) < math.inf):
            raise ValueError(
                f"class_weight gives class {label!r} the weight {weight!r}; weights "
                "have to be finite numbers of at least 0."
            )


__all__ = ["check_class_weight"]
