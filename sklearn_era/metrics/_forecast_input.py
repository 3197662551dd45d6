"""Read the input of a forecast of scores: the scores, their errors and their eras."""

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from .._era_axes import EraAxes, read_axes
from .._era_labels import label_texts
from .._eras import EncodedEras, encode_eras, read_eras
from .._label_columns import label_columns
from .._warnings import listed, warn_user
from ._era_scores import EraScores

Array = NDArray[np.float64]


def read_pairs(scores: Any, eras: Any, order: Any) -> tuple[Array, EraAxes] | None:
    """Return the scores and the `EraAxes` of their pairs (group, era) if eras have two
    columns; else return None.
    """
    found = scores
    if isinstance(scores, EraScores):
        found, eras = scores.scores, scores.levels if eras is None else eras
    n_columns = 0 if eras is None else len(label_columns(eras))
    if n_columns != 2 or isinstance(found, dict):
        if not isinstance(order, str):
            raise ValueError(
                f"era_order={order!r} needs scores of one metric and eras of two "
                "columns, times and groups."
            )
        return None
    if order in ("ordered", "unordered"):
        raise ValueError(
            f"era_order={order!r} is for one column of eras; of two, times and groups, "
            "pass ('ordered', 'unordered') in their order, or 'auto'."
        )
    found = np.asarray(getattr(found, "era_scores_", found), dtype=np.float64)
    return found, read_axes(eras, found, order, "EraScoreForecast")


def read_errors(errors: Any, scores: Array, has_right_shape: bool, one: str) -> Array:
    """Return the sampling errors of scores, or zeros if `errors` is None. Raise
    ValueError if `has_right_shape` is False, or if there is not one error for each
    score. In the message, scores are counted per `one`, which is "era" or "pair".
    """
    errors = np.zeros(scores.shape[-1]) if errors is None else errors
    found = np.asarray(errors, dtype=np.float64)
    if not has_right_shape or found.shape != scores.shape[-1:]:
        raise ValueError(
            f"scores has the shape {scores.shape}, and standard_errors {found.shape}: "
            f"pass one of each per {one}."
        )
    return found


def known_places(
    scores: Array, errors: Array, labels: NDArray[Any]
) -> NDArray[np.intp]:
    """Return the indices of the scores that are known and have a known error; warn of
    scores without an error, which are left out. Raise ValueError if fewer than two
    scores are left, if a score is infinite, or if an error is negative or infinite.
    """
    is_lost = ~np.isnan(scores) & np.isnan(errors)
    places = np.flatnonzero(~np.isnan(scores) & ~is_lost)
    if is_lost.any() and places.size > 1:
        warn_user(
            f"standard_errors is NaN for era {listed(label_texts(labels[is_lost]))}, "
            "whose rows do not tell it: left out."
        )
    if places.size < 2:
        raise ValueError(
            f"scores has {places.size} known score(s): a spread takes two or more."
        )
    values, errors = scores[places], errors[places]
    is_finite = np.isfinite(values)
    is_right = is_finite & (errors >= 0) & (errors < np.inf)
    if not is_right.all():
        row = int(is_right.argmin())
        era, kind = label_texts(labels[places])[row], "scores of era {} is"
        if is_finite[row]:
            kind = "standard_errors of era {} is negative or"
        raise ValueError(
            f"{kind.format(era)} infinite: leave the era out by a score of NaN."
        )
    return places


def check_number(value: Any, name: str, kind: Any = Real, **limits: Any) -> Any:
    """Return `value`; raise an error if it is NaN, or not a number within `limits`."""
    found = check_scalar(value, name, kind, **limits)
    if math.isnan(found):
        raise ValueError(f"{name} is NaN: pass a number.")
    return found


def check_level(level: Any) -> float:
    ends: Any = {"min_val": 0, "max_val": 1, "include_boundaries": "neither"}
    return check_number(level, "level", **ends)


def check_of(of: Any) -> None:
    """Raise ValueError unless `of` is "next_era" or "mean"."""
    if of not in ("next_era", "mean"):
        raise ValueError(f"of must be 'next_era' or 'mean'; got {of!r}.")


def read_scores(scores: Any, eras: Any) -> tuple[Any, EncodedEras, str]:
    """Return scores as a table with a row for each candidate, the encoded eras, and how
    these are ordered: "ordered", "unordered" or, if unknown, "auto".
    """
    found: Any = getattr(scores, "era_scores_", scores)
    own, order = None, getattr(scores, "era_order_", "auto")
    if isinstance(scores, EraScores):
        found, [own, *others] = scores.scores, scores._columns.values()
        found = {} if others else found
    elif found is not scores:
        own = encode_eras(scores.era_labels_)
    if isinstance(found, dict):
        raise ValueError(
            "scores are of several metrics, or by several columns of labels: pass an "
            "array of those of one, and eras=..."
        )
    table = np.atleast_2d(np.asarray(found, dtype=np.float64))
    if eras is not None:
        own = read_eras(eras, table[0], X_name="scores")
    if own is None:
        own, order = encode_eras(np.arange(table.shape[-1])), "unordered"
    return table, own, order


def best_candidate(scores: Any, table: Array) -> tuple[int, float]:
    """Return the chosen candidate's row in `table`, and by how much its mean score is
    expected to be too high, as the largest of all means; 0 if it was chosen otherwise.
    """
    if hasattr(scores, "weights_"):  # the average is the last one
        is_plain = next(iter(scores.weights_.values())) == 1
        return (0 if is_plain else len(table) - 1), 0.0
    has_scores = ~np.isnan(table).all(axis=1)
    rivals, means = table[has_scores], np.full(len(table), -np.inf)
    means[has_scores] = np.nanmean(rivals, axis=1)
    best = int(means.argmax())
    chosen = getattr(scores, "best_index_", best)
    if chosen != best or len(rivals) < 2:
        return chosen, 0.0
    known = np.flatnonzero(np.isfinite(rivals).all(axis=0))
    # Sums of the eras before and after each one: a difference could lose all digits.
    around = np.pad(np.where(np.isnan(rivals), 0.0, rivals), ((0, 0), (1, 1)))
    before, after = (x.cumsum(axis=1)[:, :-2] for x in (around, around[:, ::-1]))
    counts = (~np.isnan(rivals)).sum(axis=1, keepdims=True) - 1
    with np.errstate(invalid="ignore"):  # of rivals without other scores
        without = ((before + after[:, ::-1]) / counts)[:, known].argmax(axis=0)
    gains = table[best, known] - rivals[without, known]
    return best, max(0.0, float(gains.mean())) if known.size else 0.0
