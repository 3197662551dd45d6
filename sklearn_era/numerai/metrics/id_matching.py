"""Match predictions and targets by id, where they are not of the same rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.numerai.metrics._era_rows import (
    MAX_MISSING_SHARE,
    EraRows,
    as_column,
    check_share,
)


class MatchedRows(NamedTuple):
    """The rows that all of several series have, sorted by id.

    Attributes
    ----------
    ids : ndarray of shape (n_matched,)
        Sorted.
    predictions : ndarray of shape (n_matched,), dtype=float64
    targets : ndarray of shape (n_matched,), dtype=float64
        As they were passed.
    centered_targets : ndarray of shape (n_matched,), dtype=float64
        Minus the mean of all targets of the era, of those without a match too.
    meta_model : ndarray of shape (n_matched,), dtype=float64, or None
    eras : ndarray of shape (n_matched,), or None
    """

    ids: NDArray[Any]
    predictions: NDArray[np.float64]
    targets: NDArray[np.float64]
    centered_targets: NDArray[np.float64]
    meta_model: NDArray[np.float64] | None
    eras: NDArray[Any] | None


def match_ids(
    predictions: Any,
    targets: Any,
    *,
    meta_model: Any = None,
    eras: Any = None,
    max_missing_share: float = MAX_MISSING_SHARE,
) -> MatchedRows:
    r"""Match predictions and targets by id, and refuse to match too few.

    The series are matched one after the other: predictions, meta model, targets. At
    each step and in each era, with the ids A that are left and the ids B of the next
    series,

    .. math::

        |A \cap B| \ge 0.8\, |A| \quad\text{and}\quad |A \cap B| \ge 0.8\, |B|

    where NaN has no match but counts on the right-hand sides: the rule of
    numerai-tools 0.7.2 (``scoring.filter_sort_index``), which with unequal ids also
    centres targets for CORR before it matches them. So, for its results::

        rows = match_ids(predictions, targets, eras=eras)
        numerai_corr(rows.predictions, rows.centered_targets, rows.eras,
                     center_targets=False)

        rows = match_ids(predictions, targets, meta_model=meta_model, eras=eras)
        correlation_contribution(rows.predictions, rows.meta_model, rows.targets,
                                 rows.eras)

    FNC is the CORR of ``neutralize(gaussianize(rank_normalize(x, eras)), features,
    eras=eras)`` as predictions.

    Parameters
    ----------
    predictions, targets : pandas.Series of shape (n_predictions,) and (n_targets,)
        Numbers, with ids as the index, in any order.

    meta_model : pandas.Series of shape (n_meta_model,), default=None
        A third one, where it is needed.

    eras : pandas.Series, default=None
        The era of every id of the others, with ids as the index. None: all ids are of
        one era.

    max_missing_share : float, default=0.2
        The largest share that may have no match; 1 minus it is 0.8 above.

    Returns
    -------
    rows : MatchedRows

    Raises
    ------
    ValueError
        If too few ids match, naming the series and the era; if ids are missing or
        duplicate, or an id has no era.
    TypeError
        If an argument is no pandas Series.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_era.numerai.metrics import match_ids, numerai_corr
    >>> predictions = pd.Series({"n4": 0.8, "n1": 0.1, "n2": 0.3, "n3": 0.2})
    >>> targets = pd.Series({"n1": 0.0, "n2": 0.5, "n3": 0.25, "n4": 1.0, "n5": 1.0})
    >>> rows = match_ids(predictions, targets)
    >>> rows.ids.tolist(), rows.centered_targets.round(2).tolist()
    (['n1', 'n2', 'n3', 'n4'], [-0.55, -0.05, -0.3, 0.45])
    """
    check_share(max_missing_share, "max_missing_share", below_one=True)
    series = {"predictions": predictions, "meta_model": meta_model, "targets": targets}
    if meta_model is None:
        del series["meta_model"]
    for name, one in series.items():
        _check_series(one, name)
    if eras is not None:
        _check_series(eras, "eras")
    values = {name: as_column(one, name) for name, one in series.items()}
    present = {name: one.index[~np.isnan(values[name])] for name, one in series.items()}

    # Before any match, a series has the ids of its missing values too.
    left_name = "predictions"
    left, left_before = present[left_name], predictions.index
    for name in list(series)[1:]:
        matched = left.intersection(present[name])
        for one_name, ids, other in (
            (left_name, left_before, name),
            (name, series[name].index, left_name),
        ):
            own_eras = _eras_of(ids, one_name, eras)
            least = 1 - max_missing_share
            _check_matched(matched, ids, own_eras, (one_name, other), least)
        left = left_before = matched
        left_name += f" (matched with {name})"

    ids = left.sort_values()
    centered = values["targets"].copy()
    target_eras = _eras_of(targets.index, "targets", eras)
    for index in EraRows(target_eras, centered, name="targets"):
        centered[index] -= np.nanmean(centered[index])
    positions = {name: one.index.get_indexer(ids) for name, one in series.items()}
    taken = {name: values[name][positions[name]] for name in series}
    return MatchedRows(
        np.asarray(ids),
        taken["predictions"],
        taken["targets"],
        centered[positions["targets"]],
        taken.get("meta_model"),
        _eras_of(ids, "predictions", eras),
    )


def _check_series(series: Any, name: str) -> None:
    pandas = import_optional("pandas", extra="numerai")
    if not isinstance(series, pandas.Series):
        raise TypeError(
            f"{name} must be a pandas Series with ids as its index; got "
            f"{type(series).__name__}."
        )
    if series.index.hasnans:
        raise ValueError(f"{name} has a missing id in its index.")
    if not series.index.is_unique:
        twice = series.index[series.index.duplicated()].tolist()
        raise ValueError(
            f"{name} has {len(twice):,} duplicate ids, the first {twice[0]!r}: an id "
            "is one row of one era."
        )


def _eras_of(ids: Any, name: str, eras: Any) -> NDArray[Any] | None:
    """The eras of ids, or None where all are of one era."""
    if eras is None:
        return None
    positions = eras.index.get_indexer(ids)
    if (positions < 0).any():
        first = ids[positions < 0].tolist()[0]
        raise ValueError(
            f"eras lacks {np.count_nonzero(positions < 0):,} of {len(ids):,} ids of "
            f"{name}, the first {first!r}: give the era of every id."
        )
    return np.asarray(eras)[positions]


def _check_matched(
    matched: Any,
    ids: Any,
    eras: NDArray[Any] | None,
    names: tuple[str, str],
    least: float,
) -> None:
    """Refuse eras of which too few ids are matched.

    Parameters
    ----------
    matched, ids : pandas.Index
        The first are some of the second.

    eras : ndarray of shape (n_ids,) or None
        The era of each of `ids`.

    names : tuple of two str
        Whose ids they are, and with what they were matched.

    least : float
        The share to be matched in each era.

    Raises
    ------
    ValueError
        Naming the era of which the smallest share is matched.
    """
    rows = EraRows(eras, np.empty(len(ids)), name=names[0])
    is_matched = np.zeros(len(ids), dtype=bool)
    is_matched[ids.get_indexer(matched)] = True
    counts = rows.count(is_matched)
    shares = counts / rows.counts
    worst = int(np.argmin(shares))
    if shares[worst] >= least and counts[worst] > 0:
        return
    raise ValueError(
        f"{names[0]}: {counts[worst]:,} of {rows.counts[worst]:,} ids"
        f"{rows.describe(worst)} ({shares[worst]:.1%}) match {names[1]}, and at least "
        f"{least:.0%} must. Are they of the same round and eras? Ids whose value is "
        "NaN match none."
    )


__all__ = ["MatchedRows", "match_ids"]
