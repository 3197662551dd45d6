"""What a forest asks of the values of the target and of the weights."""

import numpy as np
from numpy.typing import NDArray


def check_single_precision(
    y: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> None:
    """Check that what trees sum up, differences of y times weights, is in range.

    Out of it, splits would be lost without a word.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), dtype=float64
        The target, encoded.
    sample_weight : ndarray of shape (n_samples,), dtype=float64, or None
        Not all 0.

    Raises
    ------
    ValueError
        If the largest is above what float32 holds, or below what it holds in full.
    """
    limits = np.finfo(np.float32)
    tiny, huge = float(limits.tiny), float(limits.max)
    largest = 1.0
    if sample_weight is not None:
        y = y[sample_weight > 0]
        largest = float(sample_weight.max())
        if not tiny <= largest <= huge:
            raise ValueError(
                f"sample_weight is up to {largest:.3g}, out of the range of single "
                f"precision ({tiny:.2g} to {huge:.2g}), in which trees are grown; "
                "divide the weights by their mean."
            )
    with np.errstate(over="ignore"):
        spread = float(np.ptp(y)) * largest
    if spread != 0.0 and not tiny <= spread <= huge:
        weighted = "" if sample_weight is None else " times the largest weight"
        raise ValueError(
            f"y: the largest difference of two targets{weighted} is {spread:.3g}, out "
            f"of the range of single precision ({tiny:.2g} to {huge:.2g}), in which "
            "trees are grown; divide y by a constant."
        )


__all__ = ["check_single_precision"]
