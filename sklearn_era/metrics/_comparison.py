"""Compare two models' predictions of the same rows by their scores in eras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t
from sklearn.utils._param_validation import StrOptions, validate_params

from .._eras import are_ordered
from .._warnings import warned_once
from ._aggregation import check_direction
from ._era_scores import EraScores, era_scores
from ._forecast import EraScoreForecast
from ._forecast_input import check_level, known_places
from ._mean_errors import error_of_neighbours, mean_and_error
from ._metric import (
    Metric,
    check_lengths,
    check_metric,
    find_direction,
    metric_name,
)
from ._pooled import PooledScore
from ._standard_errors import RESAMPLING, errors_by_era

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class EraComparison:
    """How much better b predicts than a: the result of :func:`compare_predictions`.

    Attributes
    ----------
    scores : EraScores
        The scores of "a" and "b" in each era.
    differences, standard_errors : ndarray of shape (n_eras,)
        Scores of b minus scores of a (for an error, a minus b), positive where b is
        better; and the standard errors of differences, from the rows of each era. If
        two or more errors are known, a difference whose error is NaN is NaN, too.
    mean, standard_error : float
        The mean difference, each era counting once, and its standard error.
    p_value : float
        The two-sided p-value of the hypothesis that the mean difference over all
        possible eras is 0.
    probability_next : float
        The probability that b is better in the next era.
    is_ordered : bool
        Whether eras were taken in the order of labels; neighbours may then be related.
    n_effective : float
        The number of independent eras that would have this `standard_error`.
    metric_name : str
        The name of the metric.
    forecast : EraScoreForecast
        The forecast of the difference in the next era.

    Examples
    --------
    >>> from sklearn.metrics import accuracy_score
    >>> from sklearn_era.metrics import compare_predictions
    >>> found = compare_predictions([0, 1, 1, 0], [1, 0, 1, 1], [0, 1, 1, 1],
    ...                             eras=[1, 1, 2, 2], metric=accuracy_score)
    >>> found.differences
    array([1., 0.])
    """

    scores: EraScores
    differences: Array
    standard_errors: Array
    mean: float
    standard_error: float
    p_value: float
    probability_next: float
    is_ordered: bool
    n_effective: float
    metric_name: str
    forecast: EraScoreForecast

    @property
    def pooled(self) -> PooledScore:
        """The mean difference of independent eras, weighted by their errors."""
        errors = self.standard_errors if _are_known(self.standard_errors) else None
        pooled = EraScoreForecast("none").fit(self.differences, errors).pooled_
        assert pooled is not None  # of one column of eras
        return pooled

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of the mean difference, by Student's t.

        Parameters
        ----------
        level : float, default=0.95
            The probability that the interval contains the mean over all possible eras.

        Returns
        -------
        low, high : float
            Both ends.
        """
        freedom = max(1.0, self.n_effective - 1)
        half = t.ppf((1 + check_level(level)) / 2, freedom) * self.standard_error
        return float(self.mean - half), float(self.mean + half)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row for each era.

        Returns
        -------
        table : pandas.DataFrame
            Indexed by label: the scores `a` and `b`, `n_samples`, the `difference` and
            its `standard_error`.
        """
        found = {"difference": self.differences, "standard_error": self.standard_errors}
        return self.scores.to_frame().assign(**found)

    def __repr__(self) -> str:
        known = self.differences[~np.isnan(self.differences)]
        low, high = self.interval()
        order = "in the order of their labels" if self.is_ordered else "without order"
        return (
            f"EraComparison of {known.size} eras {order} by {self.metric_name}\n"
            f"  gain of b: {self.mean:.4g} ± {self.standard_error:.2g}, 95 % from "
            f"{low:.4g} to {high:.4g}, p = {self.p_value:.2g}\n"
            f"  b is better in {np.count_nonzero(known > 0)} of {known.size} eras, and "
            f"in the next one with a probability of {self.probability_next:.0%}"
        )


def _are_known(errors: Array) -> bool:
    """Return whether at least two eras have a known error; if not, use no errors."""
    return bool(np.isfinite(errors).sum() > 1)


@validate_params(
    {name: ["array-like"] for name in ("y_true", "a", "b", "eras")}
    | {"metric": [callable], "sample_weight": ["array-like", None]}
    | {"era_order": [StrOptions({"auto", "ordered", "unordered"})]}
    | {"greater_is_better": ["boolean", None], "row_params": [dict, None]}
    | RESAMPLING,
    prefer_skip_nested_validation=True,
)
def compare_predictions(
    y_true: ArrayLike, a: ArrayLike, b: ArrayLike, *, eras: Any, metric: Metric,
    era_order: str = "auto", sample_weight: ArrayLike | None = None,
    greater_is_better: bool | None = None, row_params: Mapping[str, Any] | None = None,
    n_resamples: int = 0, random_state: Any = 0, **metric_params: Any,
) -> EraComparison:  # fmt: skip
    """Compare a champion's and a challenger's predictions of the same rows, by era.

    Each era counts once, and the error of the mean comes from the variation between
    eras: an era whose difference has no sampling error, as where both models have an
    AUC of 1, counts as much as any other. Eras whose rows give no error, such as eras
    with a single row or a single positive row, are left out with a warning. If fewer
    than two eras have an error, none is left out for this reason.

    If eras follow each other, the error of the mean difference is that of an AR(1)
    process, as in :class:`~sklearn_era.model_selection.EraSearchCV`; groups, such as
    hospitals, are taken for independent. Neither model may have been fitted to these
    eras.

    Parameters
    ----------
    y_true, a, b : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets, and the predictions of the champion and the challenger, as
        `metric` takes them.
    eras, metric :
        As in :func:`era_scores`, with a single metric and one column of eras.
    era_order : {'auto', 'ordered', 'unordered'}, default='auto'
        Whether eras follow each other in the order of their labels. With 'auto',
        numbers do, so that hospitals called 101, 102, ... need 'unordered'; names raise
        an error.
    sample_weight, greater_is_better, row_params :
        As in :func:`era_scores`.
    n_resamples, random_state :
        As in :func:`era_standard_errors`, for metrics without a closed form; with 0,
        the default, their `standard_errors` are NaN.
    **metric_params : dict
        Further arguments of the metric.

    Returns
    -------
    comparison : EraComparison
        Differences by era, their mean with its error, interval and p-value, and the
        probability that b is better in the next era.

    Raises
    ------
    ValueError
        As :func:`era_scores`; if it is not known whether `metric` is an error, or
        whether eras are ordered; or if fewer than two eras have a difference.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import mean_squared_error
    >>> from sklearn_era.metrics import compare_predictions
    >>> rng, months = np.random.default_rng(0), np.repeat(np.arange(24), 50)
    >>> y, noise = rng.normal(size=1200), rng.normal(size=(2, 1200))
    >>> compare_predictions(y, y + noise[0], y + 0.9 * noise[1], eras=months,
    ...                     metric=mean_squared_error)
    EraComparison of 24 eras in the order of their labels by mean_squared_error
      gain of b: 0.2454 ± 0.051, 95 % from 0.1391 to 0.3518, p = 0.00014
      b is better in 19 of 24 eras, and in the next one with a probability of 86%
    """
    check_metric(metric)
    name, is_score = metric_name(metric), find_direction(metric, greater_is_better)
    check_direction("mean", is_score, name, "compare_predictions")
    check_lengths(y_true, {"a": a, "b": b})
    given: Any = {"eras": eras, "sample_weight": sample_weight}
    given["row_params"] = row_params
    with warned_once():
        of_a, of_b = (
            era_scores(y_true, x, metric=metric, **given, **metric_params)
            for x in (a, b)
        )
    if len(of_a.levels) > 1:
        raise ValueError(
            f"eras has {len(of_a.levels)} columns: pass one, such as the time."
        )
    [labels] = of_a._columns.values()
    is_ordered = are_ordered(labels, era_order, "compare_predictions")
    both = {"a": of_a.scores, "b": of_b.scores}
    directions = dict.fromkeys(both, is_score)
    scores = EraScores(of_a._columns, both, of_a.n_samples, directions=directions)
    differences = (of_b.scores - of_a.scores) * (1 if is_score else -1)
    errors = errors_by_era(
        y_true, [a, b], metric, metric_params, n_resamples, random_state, **given
    ).scores
    if _are_known(errors):
        known = known_places(differences, errors, labels.labels)
        differences[np.setdiff1d(np.arange(errors.size), known)] = np.nan
    trend, places = "auto" if is_ordered else "none", np.arange(differences.size)
    forecast = EraScoreForecast(trend).fit(differences, eras=places)
    mean, error_of_mean = map(float, mean_and_error(differences))
    n_effective = float(np.isfinite(differences).sum())
    if is_ordered:
        error_of_mean, n_effective = error_of_neighbours(differences)
    p_value = float(mean == 0)
    if error_of_mean > 0:
        statistic = abs(mean) / error_of_mean
        p_value = 2 * float(t.sf(statistic, max(1.0, n_effective - 1)))
    return EraComparison(
        scores, differences, errors, mean, error_of_mean, p_value,
        forecast.probability_above(0.0), is_ordered, n_effective, name, forecast,
    )  # fmt: skip
