"""Compute any metric era by era."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import validate_params
from sklearn.utils.validation import _num_samples

from .._era_arguments import encode_groups
from .._era_labels import as_objects, key_of, keys_of, label_texts
from .._eras import EncodedEras, encode_eras
from .._optional import import_optional
from .._scikit_learn import check_sample_weight
from .._warnings import listed, warn_user, warned_once
from ._aggregation import CONSTRAINTS, Aggregation, aggregate, direction_of
from ._metric import (
    Metric,
    check_lengths,
    find_direction,
    is_defined,
    is_number,
    metric_name,
    metrics_by_name,
    positive_class,
    take_by_row,
)

if TYPE_CHECKING:
    import pandas as pd

_MOST_NAMED = 50  # eras in a warning


class EraScores(Mapping[Any, Any]):
    """Scores of eras and their aggregates: the result of :func:`era_scores`.

    A mapping: ``scores[era]`` is the score in an era, or a dict of scores for several
    metrics. The labels of two-way groups are tuples, as in ``scores["shop", 3]``. To
    NumPy, the scores of a single metric are an array.

    Attributes
    ----------
    eras : ndarray of shape (n_eras,)
        Distinct labels, sorted; for two-way groups, an object array of tuples.
    scores : ndarray of shape (n_eras,), dtype=float64, or dict of str to such
        The metric in each era, NaN if undefined; for several metrics, a dict by name.
    n_samples : ndarray of shape (n_eras,), dtype=intp
        Number of rows in each era.
    levels : dict of str or int to ndarray of shape (n_eras,)
        The columns of labels, by name or number; a single column is ``"era"``.
    directions : dict of str to bool or None
        For each metric, whether greater is better; None if that is not known.
    """

    def __init__(
        self, eras: NDArray[Any] | Mapping[Any, EncodedEras], scores: Any,
        n_samples: NDArray[np.intp], *, directions: Mapping[str, bool | None],
    ) -> None:  # fmt: skip
        if not isinstance(eras, Mapping):
            eras = {"era": EncodedEras(eras, np.arange(eras.size, dtype=np.int32))}
        self._columns = eras
        self.levels = {name: column.decode() for name, column in eras.items()}
        self.eras = join_columns(list(self.levels.values()))
        self.scores, self.n_samples = scores, n_samples
        self.directions = dict(directions)

    @cached_property
    def _by_metric(self) -> dict[str, Any]:
        is_dict = isinstance(self.scores, dict)
        return self.scores if is_dict else {next(iter(self.directions)): self.scores}

    def _like_scores(self, by_metric: dict[str, Any]) -> Any:
        """Return `by_metric` if there are several metrics, else its only value."""
        return by_metric if isinstance(self.scores, dict) else by_metric.popitem()[1]

    # Not `_places`: pickles of older versions have it by label.
    @cached_property
    def _places_by_key(self) -> dict[Any, int]:
        return {key: place for place, key in enumerate(keys_of(self.eras))}

    def __iter__(self) -> Iterator[Any]:
        return iter(as_objects(self.eras))

    def __len__(self) -> int:
        return self.n_samples.size

    # NumPy would take the labels, as those of any mapping.
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if isinstance(self.scores, dict):
            raise ValueError(
                f"EraScores of several metrics, {[*self.scores]}, are no array: pass "
                f"those of one, such as scores.scores[{next(iter(self.scores))!r}]."
            )
        found = np.asarray(self.scores, dtype)
        return found.copy() if copy else found

    def __getitem__(self, era: Any) -> Any:
        try:
            is_date = self.eras.dtype.kind == "M" and isinstance(era, str)
            place = self._places_by_key[key_of(np.datetime64(era) if is_date else era)]
        except (KeyError, TypeError, ValueError):
            known = ", ".join(map(repr, list(self)[:3]))
            raise KeyError(f"no era {era!r}; the first are {known}") from None
        return self._like_scores(
            {x: float(y[place]) for x, y in self._by_metric.items()}
        )

    def __repr__(self) -> str:
        by = f" by {', '.join(map(str, self.levels))}" if len(self.levels) > 1 else ""
        lines, texts = [f"EraScores of {len(self)} eras{by}"], label_texts(self.eras)
        for name, scores in self._by_metric.items():
            order = np.argsort(scores)[: np.count_nonzero(~np.isnan(scores))]
            ends = [f"{scores[i]:.4g} in {texts[i]}" for i in (*order[:1], *order[-1:])]
            mean = f"mean {np.mean(scores[order]):.4g}, from " if ends else "undefined"
            n = len(self) - order.size
            more = f", undefined in {n}" if ends and n else ""
            lines.append(f"  {name}: {mean}{' to '.join(ends)}{more}")
        return "\n".join(lines)

    def mean(self, **options: Any) -> Any:
        """Return the mean over eras, each counting once.

        Parameters
        ----------
        **options : dict
            `by` and `undefined` of :meth:`aggregate`.
        """
        if "axis" in options:  # of `np.mean`, which calls this method
            return np.asarray(self).mean(**options)
        return self.aggregate("mean", **options)

    def worst(self, **options: Any) -> Any:
        """Return the smallest score, or the largest error.

        Parameters
        ----------
        **options : dict
            `by` and `undefined` of :meth:`aggregate`.
        """
        return self.aggregate("worst", **options)

    @validate_params(CONSTRAINTS, prefer_skip_nested_validation=True)
    def aggregate(
        self, aggregation: Aggregation, *, by: Any = None,
        undefined: str | float = "raise",
    ) -> Any:  # fmt: skip
        """Aggregate the scores s_1, …, s_M, in the order of the labels, to one number.

        ================ ============================================== =============
        aggregation      value                                          of M = 1 era
        ================ ============================================== =============
        "mean"           (s_1 + … + s_M) / M                            s_1
        "std"            population standard deviation (``ddof=0``)     0
        "sharpe"         mean / std, not annualised                     undefined
        "worst"          the smallest score, or the largest error       s_1
        "max_drawdown"   max_j (max_{i <= j} c_i - c_j), where          0
                         c_j = s_1 + … + s_j
        ================ ============================================== =============

        A standard deviation of at most ``16 * eps * max(1, max_j |s_j|)``, with eps =
        2.2e-16, counts as rounding (for errors, which have a unit, the 1 is left out):
        "std" is then 0, and "sharpe" undefined. The drawdown's running sum starts with
        the first era, whose loss does not count.

        Each pair of two-way groups, such as a shop in a week, is an era. With
        ``by="shop"``, the weeks of each shop are aggregated:
        ``scores.mean(by="shop").worst()`` is the mean of the worst shop. With three
        columns, ``scores.mean(by=["group", "horizon"])`` has the means over the third.

        Parameters
        ----------
        aggregation : {"mean", "std", "sharpe", "worst", "max_drawdown"} or callable
            An aggregation above, or a function from an ndarray of shape (n_eras,) to a
            finite number, such as `np.median`.
        by : str or int, or list of such, default=None
            One or several columns of `levels`, if eras have more. Eras are aggregated
            for each label, or combination of labels, in these columns.
        undefined : {"raise", "omit"} or float, default="raise"
            For eras whose score is NaN or infinite: "raise" raises a `ValueError`,
            "omit" leaves these eras out with a warning, and a number is taken as their
            score. The number also replaces a Sharpe ratio without spread, and a NaN or
            infinity that a callable `aggregation` returns.

        Returns
        -------
        value : float, dict or EraScores
            The aggregate, in the unit of the scores. A dict for several metrics; with
            `by`, `EraScores` with the labels of the columns in `by`.

        Raises
        ------
        ValueError
            If scores are undefined, and `undefined` is "raise" or leaves no era; if a
            callable returns no number; if `aggregation` depends on whether greater is
            better, which is not known; if errors are aggregated by "sharpe" or
            "max_drawdown"; if a drawdown is over several columns; or if `by` has an
            unknown column, or all columns.
        """
        names = by if isinstance(by, list) else [] if by is None else [by]
        others = {name: x for name, x in self.levels.items() if name not in names}
        is_known = len(others) + len(names) == len(self.levels)
        if by is not None and not (names and others and is_known):
            raise ValueError(
                f"by={by!r} must be some of the columns of eras, {[*self.levels]}, and "
                "leave at least one to aggregate over."
            )
        if aggregation == "max_drawdown" and len(others) > 1:
            raise ValueError(
                "aggregation='max_drawdown' adds up scores in one order, and eras have "
                f"{len(others)} columns: pass by=, one of {[*others]}."
            )
        labels = join_columns(list(others.values()))
        rows: Any = [slice(None)]
        if by is not None:
            table = np.column_stack([self._columns[name].codes for name in names])
            cells, places = np.unique(table, axis=0, return_inverse=True)
            rows = encode_eras(places.ravel()).rows
        found = {}
        for name, scores in self._by_metric.items():
            of: Any = {"greater_is_better": self.directions[name], "name": name}
            found[name] = np.array([
                aggregate(scores[x], labels[x], aggregation, undefined=undefined, **of)
                for x in rows
            ])  # fmt: skip
        if by is None:
            return self._like_scores({name: float(x[0]) for name, x in found.items()})
        directions = self.directions.items()
        return EraScores(
            {
                name: replace(self._columns[name], codes=codes)
                for name, codes in zip(names, cells.T, strict=True)
            },
            self._like_scores(found),
            np.array([self.n_samples[own].sum() for own in rows]),
            directions={x: direction_of(aggregation, y) for x, y in directions},
        )  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table of metrics and `n_samples`, with labels as index."""
        pandas = import_optional("pandas", extra="cli")
        columns = [*self.levels.values()]
        index = pandas.MultiIndex.from_arrays(columns, names=self.levels)
        index = index if len(self.levels) > 1 else index.get_level_values(0)
        return pandas.DataFrame({**self._by_metric, "n_samples": self.n_samples}, index)


@validate_params(
    {name: ["array-like"] for name in ("y_true", "y_pred", "eras")}
    | {"metric": [callable, list, tuple, dict], "sample_weight": ["array-like", None]}
    | {"greater_is_better": ["boolean", None], "row_params": [dict, None]},
    prefer_skip_nested_validation=True,
)
def era_scores(
    y_true: ArrayLike, y_pred: ArrayLike, *, eras: Any,
    metric: Metric | Sequence[Metric] | Mapping[str, Metric],
    sample_weight: ArrayLike | None = None, greater_is_better: bool | None = None,
    row_params: Mapping[str, Any] | None = None, **metric_params: Any,
) -> EraScores:  # fmt: skip
    """Compute one or several metrics in each era separately.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets, and the predictions, decisions or probabilities that `metric`
        compares with them.
    eras : array-like of shape (n_samples,) or (n_samples, n_columns), or dict of such
        Era of each row: labels of any type that sorts (int, str, datetime64). Several
        columns, as of a data frame, make two-way groups, such as shops by weeks.
    metric : callable, list or tuple of callable, or dict of str to callable
        ``metric(y_true, y_pred, **metric_params) -> float``, such as
        :func:`sklearn.metrics.r2_score`. It is called once per era, with that era's
        rows in their original order. In a list, metrics are named by their functions.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, passed to `metric` era by era; eras themselves are not weighted. Rows
        of weight 0 do not count.
    greater_is_better : bool, default=None
        Whether `metric` is a score (True) or an error. None decides by scikit-learn's
        names: ``*_score`` and ``*_corr`` are scores; ``*_error``, ``*_loss`` and
        ``*_deviance`` are errors. For other names, aggregations that depend on this
        raise an error.
    row_params : dict of str to array-like, default=None
        Arguments of the metric with one value per row, by name, such as
        ``{"meta_model": ...}``. Each call gets the values of its rows.
    **metric_params : dict
        Further arguments of each metric, the same for all eras.

    Returns
    -------
    scores : EraScores
        A mapping of labels to scores, with `mean`, `worst`, `aggregate` and `to_frame`.
        A metric is NaN in eras where it is undefined, or all weights are 0. Binary
        ``f1_score``, ``recall_score``, ``precision_score``, ``jaccard_score`` and
        ``average_precision_score`` are undefined without the positive class, unless
        `zero_division` is passed. ``matthews_corrcoef`` and ``hinge_loss`` are
        undefined in eras of one class.

    Warns
    -----
    UndefinedMetricWarning
        If the metric is undefined in some eras; the message names them.

    Raises
    ------
    ValueError
        If lengths differ, there are no rows, or a label is missing; if `metric` is a
        scorer, requires a parameter `eras`, does not return a real number, or raises a
        `ValueError` or `ArithmeticError` (the message then names the era).

    Examples
    --------
    >>> from sklearn.metrics import mean_absolute_error
    >>> from sklearn_era.metrics import era_scores
    >>> scores = era_scores([1, 2, 3, 4], [1, 3, 3, 6], eras=["b", "a", "b", "a"],
    ...                     metric=mean_absolute_error)
    >>> dict(scores)
    {'a': 1.5, 'b': 0.0}
    >>> scores.mean(), scores.worst()
    (0.75, 1.5)
    """
    metrics = metrics_by_name(metric)
    by_row = {"y_pred": y_pred, "sample_weight": sample_weight, **(row_params or {})}
    check_lengths(y_true, by_row)
    columns, groups = encode_groups(eras, y_true, "y_true")
    if groups.codes.size == 0:
        raise ValueError("y_true has no rows; there is no era to score.")
    weights = None
    if sample_weight is not None:
        may: Any = {"allow_all_zero_weights": True}
        weights = check_sample_weight(sample_weight, y_true, **may)
        row_params = {**(row_params or {}), "sample_weight": weights}
    by_name = {name: np.full(groups.labels.size, np.nan) for name in metrics}
    found = EraScores(
        columns, next(iter(by_name.values())) if callable(metric) else by_name,
        groups.counts,
        directions={x: find_direction(metrics[x], greater_is_better) for x in metrics},
    )  # fmt: skip
    of_all = {x: positive_class(y, metric_params, y_true) for x, y in metrics.items()}
    undefined: dict[str, dict[int, str]] = {name: {} for name in metrics}
    with warned_once() as caught:
        warnings.simplefilter("always")  # of each era
        for place, rows in enumerate(groups.rows):
            if weights is not None:
                rows = rows[weights[rows] > 0]
            if not rows.size:
                continue
            params = metric_params | take_by_row(row_params, rows)
            own = _safe_indexing(y_true, rows), _safe_indexing(y_pred, rows)
            for name, one in metrics.items():
                n_known, era = len(caught), found.eras[place]
                score = _score(one, own, params | of_all[name], era)
                by_name[name][place] = score
                for warning in caught[n_known:] if np.isnan(score) else ():
                    if issubclass(warning.category, UndefinedMetricWarning):
                        undefined[name][place] = str(warning.message)
                        caught.remove(warning)
    for name, why in undefined.items():
        if not why:
            continue
        eras = label_texts(found.eras[[*why]])
        warn_user(
            f"{metric_name(metrics[name])} is undefined in {len(eras)} era(s) "
            f"({listed(eras, _MOST_NAMED)}): {next(iter(why.values()))}",
            UndefinedMetricWarning,
        )
    return found


def _score(metric: Metric, own: Any, params: dict[str, Any], era: Any) -> float:
    """Return the metric of an era's rows; raise ValueError with the era if it fails."""
    name = metric_name(metric)
    if not is_defined(metric, params, own[0], np.ndim(own[1]) == 1):
        return np.nan
    try:
        score = metric(*own, **params)
    except (ValueError, ArithmeticError) as error:
        raise ValueError(
            f"metric {name} failed in era {era!s}, of {_num_samples(own[0])} rows: "
            f"{error}"
        ) from error
    if not is_number(score):
        raise ValueError(
            f"metric must return one number; {name} returned {score!r} in era {era!s}."
        )
    return score


def join_columns(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels of a single column, or tuples of labels of all columns."""
    if len(columns) == 1:
        return columns[0]
    return np.fromiter(zip(*map(as_objects, columns), strict=True), dtype=object)
