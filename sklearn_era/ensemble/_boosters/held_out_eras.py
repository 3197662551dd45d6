"""Choose the eras, and their rows, that early stopping holds out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.utils import _safe_indexing

from ..._eras import (
    EncodedEras,
    are_ordered,
    check_order,
    min_rows_of_side,
    number_of_share,
)
from ..._typing import Table
from ..._warnings import warn_user
from ...effects import Recency, intercepts_of


def resolve_validation_eras(
    estimator: BaseEstimator, eras: EncodedEras, n_rows: int
) -> str | None:
    """Return `validation_eras`, with "auto" replaced by "last" or "random" if early
    stopping holds out eras. Raise ValueError if a parameter needs an order of eras, and
    the eras have none.
    """
    order, held_out = estimator.era_order, estimator.validation_eras
    stops_early = estimator.early_stopping is True or (
        # scikit-learn's rule
        estimator.early_stopping == "auto" and n_rows > 10_000
    )
    if stops_early and n_rows > 0 and estimator.validation_fraction is not None:
        what = f"early stopping with validation_eras={held_out!r}"
        if held_out == "auto":
            held_out = "last" if are_ordered(eras, order, what) else "random"
        elif held_out == "last":
            check_order(eras, order, what, "'random', or None for rows")
    if isinstance(estimator.era_weighting, Recency):
        what = f"era_weighting={estimator.era_weighting!r}"
        check_order(eras, order, what, "'rows' or 'equal'")
    effects = intercepts_of(estimator)
    if effects is not None and effects._is_ordered:
        what = f"era_effects={effects!r}"
        check_order(eras, order, what, "Intercepts(forecast='mean')")
    return held_out


def split_rows_of_eras(
    eras: EncodedEras, *, validation_fraction: float | int, validation_eras: str | None,
    stratify: NDArray[Any] | None, random_state: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # fmt: skip
    """Return the indices of training rows, and of validation rows. If `validation_eras`
    is None, or if there is a single era, `validation_fraction` is a share or number of
    rows, otherwise of eras. Raise ValueError if no era is left to train on.
    """
    n_eras = eras.labels.size
    if validation_eras is None or n_eras == 1:
        # The indices that scikit-learn draws for the same arguments.
        return train_test_split(
            np.arange(eras.codes.size), test_size=validation_fraction,
            stratify=stratify, random_state=random_state,
        )  # fmt: skip
    n_held_out = int(validation_fraction)
    if validation_fraction < 1:
        n_held_out = number_of_share(validation_fraction, n_eras)
    if n_held_out >= n_eras:
        raise ValueError(
            f"validation_fraction={validation_fraction!r} of {n_eras} eras leaves no "
            "era to train on: early stopping holds out whole eras. Lower it, set "
            "validation_eras=None to hold out rows of all eras, or pass X_val and "
            "y_val."
        )
    if validation_eras == "last":
        is_held_out = eras.codes >= n_eras - n_held_out
        return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
    splitter = GroupShuffleSplit(1, test_size=n_held_out, random_state=random_state)
    return next(splitter.split(eras.codes, groups=eras.codes))


def split_arrays(
    X: Table, y: ArrayLike, *sample_weight: Any, train: NDArray[np.intp],
    validation: NDArray[np.intp],
) -> list[Any]:  # fmt: skip
    """Return a list with the training rows, then the validation rows, of each array.
    Raise ValueError if all weights of one of these parts are 0.
    """
    for weights in sample_weight:
        for indices, of_part in ((validation, "holds out"), (train, "leaves to train")):
            if not weights[indices].any():
                raise no_weight(of_part)
    return [
        _safe_indexing(array, indices)
        for array in (X, y, *sample_weight)
        for indices in (train, validation)
    ]


def no_weight(of_part: str) -> ValueError:
    """Return a ValueError that all weights are 0 in the rows that `of_part` names."""
    return ValueError(
        f"sample_weight is 0 in all rows that early stopping {of_part}: change "
        "validation_eras or validation_fraction, pass X_val and y_val, or set "
        "early_stopping=False."
    )


def check_rows_left(
    eras: EncodedEras, train: NDArray[np.intp], validation_fraction: float | int,
    min_samples_per_era: float,
) -> None:  # fmt: skip
    """Raise ValueError if an era has too few rows in `train` for any split to have
    `min_samples_per_era` of them on both sides.
    """
    left = np.bincount(eras.codes[train], minlength=eras.labels.size)
    for j in np.flatnonzero(left < 2 * min_rows_of_side(min_samples_per_era, left)):
        raise ValueError(
            f"eras: early stopping has held out validation_fraction="
            f"{validation_fraction!r} of the rows at random, which leaves "
            f"{left[j]} of the {eras.counts[j]} rows of era {eras.labels[j]!s} to "
            "train on, too few to split with min_samples_per_era="
            f"{min_samples_per_era}. Hold out whole eras (validation_eras='last'), "
            "pass X_val and y_val, set early_stopping=False, or merge the era with "
            "others."
        )


def warn_of_unseen_classes(classes: NDArray[Any], is_seen: NDArray[np.bool_]) -> None:
    """Warn of classes that only held-out eras have; `is_seen` is False for these."""
    if unseen := classes[~is_seen].tolist():
        warn_user(
            f"The eras that early stopping holds out are the only ones with class(es) "
            f"{', '.join(map(str, unseen))} of y, which the model will not learn. Set "
            "validation_eras=None to hold out rows of all eras, or pass X_val and "
            "y_val."
        )
