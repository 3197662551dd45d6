"""Parameters of the generators that hold one number for each era."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_per_era(
    values: Sequence[float] | ArrayLike,
    name: str,
    *,
    largest: float = np.inf,
    n_least: int = 0,
) -> NDArray[np.float64]:
    """Return one number of at least 0 for each era, or say what is wrong.

    ValueError if there are fewer numbers, or others.
    """
    bounds = "of at least 0" if largest == np.inf else f"from 0 to {largest:g}"
    wanted = f"give a sequence with a number {bounds} for each era"
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={values!r} are no numbers; {wanted}.") from None
    if numbers.ndim != 1:
        raise ValueError(
            f"{name}={values!r} has {numbers.ndim} dimensions, not one; {wanted}."
        )
    if numbers.size < n_least:
        raise ValueError(
            f"{name}={values!r} has numbers for {numbers.size} eras; {wanted}, and at "
            f"least {n_least} of them."
        )
    allowed = np.isfinite(numbers) & (numbers >= 0) & (numbers <= largest)
    if not allowed.all():
        place = int(np.argmin(allowed))
        raise ValueError(f"{name}[{place}] is {numbers[place]:g}; {wanted}.")
    return numbers
