"""Eras in early stopping: which rows are held out, and the eras that a scorer sees."""

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils._metadata_requests import _routing_enabled

from ..._eras import EncodedEras, number_of_share
from ..._warnings import warn_user

# Training rows that a scorer sees, or a few more to fill an era up: as in scikit-learn.
N_ROWS_SCORED = 10_000


def split_rows_of_eras(
    eras: EncodedEras,
    *,
    validation_fraction: float | int,
    validation_eras: str | None,
    stratify: NDArray[Any] | None,
    random_state: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and validation rows of early stopping.

    Parameters
    ----------
    eras : EncodedEras
        Eras of all rows.
    validation_fraction : float or int
        Share of the eras to hold out, rounded up, or their number; with
        ``validation_eras=None``, of the rows.
    validation_eras : {"last", "random"} or None
        The latest eras in the order of their labels, random ones, or rows of all eras
        at random.
    stratify : ndarray of shape (n_samples,) or None
        Classes to keep the shares of, where rows are drawn.
    random_state : int
        Seed of the draw.

    Returns
    -------
    train, validation : ndarray of shape (n_rows,), dtype=intp
        Row indices.

    Raises
    ------
    ValueError
        If no era would be left to train on.
    """
    n_samples, n_eras = eras.codes.size, eras.labels.size
    if validation_eras is None or n_eras == 1:
        # The indices that scikit-learn draws for the same arguments.
        train, validation = train_test_split(
            np.arange(n_samples),
            test_size=validation_fraction,
            stratify=stratify,
            random_state=random_state,
        )
        return train, validation
    n_held_out = (
        int(validation_fraction)
        if validation_fraction >= 1
        else number_of_share(validation_fraction, n_eras)
    )
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
    train, validation = next(splitter.split(eras.codes, groups=eras.codes))
    return train, validation


def split_arrays(
    X: Any,
    y: Any,
    *sample_weight: Any,
    train: NDArray[np.intp],
    validation: NDArray[np.intp],
    **options: Any,
) -> list[Any]:
    """Split arrays as `train_test_split` does, by the indices given.

    Stands in for that function, whose options were heeded in making the indices.

    Raises
    ------
    ValueError
        If all rows of a part have no weight.
    """
    for weights in sample_weight:
        for indices, of_part in ((validation, "holds out"), (train, "leaves to train")):
            if not weights[indices].any():
                raise ValueError(
                    f"sample_weight is 0 in all rows that early stopping {of_part}: "
                    "change validation_eras or validation_fraction, pass X_val and "
                    "y_val, or set early_stopping=False."
                )
    return [
        _safe_indexing(array, indices)
        for array in (X, y, *sample_weight)
        for indices in (train, validation)
    ]


def check_rows_left(
    before: EncodedEras,
    after: EncodedEras,
    validation_fraction: float | int,
    min_samples_per_era: int,
) -> None:
    """Check what random validation rows have left of each era.

    Raises
    ------
    ValueError
        If an era has too few rows left for the two sides of a split.
    """
    left = dict(zip(after.labels.tolist(), after.counts.tolist(), strict=True))
    for label, count in zip(
        before.labels.tolist(), before.counts.tolist(), strict=True
    ):
        if left.get(label, 0) < 2 * int(min_samples_per_era):
            raise ValueError(
                f"eras: early stopping has held out validation_fraction="
                f"{validation_fraction!r} of the rows at random, which leaves "
                f"{left.get(label, 0)} of the {count} rows of era {label!s} to train "
                f"on, too few to split with min_samples_per_era="
                f"{min_samples_per_era}. Hold out whole eras (validation_eras='last'), "
                "pass X_val and y_val, set early_stopping=False, or merge the era with "
                "others."
            )


class ScoringEras:
    """Eras of the two sets of rows which a scorer sees in the course of a fit."""

    def __init__(self, eras: EncodedEras | None, eras_val: NDArray[Any] | None):
        self._eras = eras
        self._eras_val = eras_val
        self._X_train: Any = None
        self._indices: Any = slice(None)
        self._scorer: Any = None
        self._is_asked_for = False

    def draw_training_rows(self, seed: int) -> NDArray[np.intp] | None:
        """Rows of random whole eras, enough to score by; None for all rows.

        Of rows drawn one by one, an era of many would have a handful left, and its
        score would be noise.
        """
        if self._eras is None or self._eras.codes.size <= N_ROWS_SCORED:
            return None
        order = np.random.default_rng(seed).permutation(self._eras.labels.size)
        n_rows = np.cumsum(self._eras.counts[order])
        drawn = order[: np.searchsorted(n_rows, N_ROWS_SCORED) + 1]
        return np.flatnonzero(np.isin(self._eras.codes, drawn))

    def keep_training_subset(self, X: Any, indices: Any) -> None:
        """Remember which training rows a scorer gets, and as which array."""
        self._X_train = X
        self._indices = indices

    def are_asked_for_by(self, scorer: Any) -> bool:
        """As `asks_for_eras`, but looked up once for a scorer."""
        if scorer is not self._scorer:
            self._scorer = scorer
            self._is_asked_for = asks_for_eras(scorer)
        return self._is_asked_for

    def of(self, X: Any) -> NDArray[Any]:
        """Era labels of `X`, which is one of the two sets.

        Raises
        ------
        ValueError
            If `fit` was not given them.
        """
        if X is self._X_train:
            if self._eras is None:
                raise _missing("eras")
            return self._eras.labels[self._eras.codes[self._indices]]
        if self._eras_val is None:
            raise _missing("eras_val")
        return self._eras_val


def _missing(name: str) -> ValueError:
    return ValueError(
        f"scoring asks for eras, but {name} was not provided: pass it to fit, or use a "
        "scoring without eras."
    )


def asks_for_eras(scorer: Any) -> bool:
    """Whether `scorer` takes eras: by its metadata request, else by its signature."""
    if _routing_enabled() and hasattr(scorer, "get_metadata_routing"):
        request = scorer.get_metadata_routing().score.requests.get("eras")
        return request is True or isinstance(request, str)
    try:
        return "eras" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):  # no callable, or one without a signature
        return False


def warn_of_unseen_classes(
    y: NDArray[Any],
    train: NDArray[np.intp],
    classes: NDArray[Any],
) -> None:
    """Warn of classes that only occur in the eras that are held out.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Classes, encoded.
    train : ndarray of shape (n_train,), dtype=intp
        The rows to train on.
    classes : ndarray of shape (n_classes,)
        Labels of the classes.
    """
    is_seen = np.zeros(classes.size, dtype=bool)
    is_seen[y[train].astype(np.intp)] = True
    unseen = classes[~is_seen].tolist()
    if unseen:
        warn_user(
            f"The eras that early stopping holds out are the only ones with class(es) "
            f"{', '.join(map(str, unseen))} of y, which the model will not learn. Set "
            "validation_eras=None to hold out rows of all eras, or pass X_val and "
            "y_val."
        )
