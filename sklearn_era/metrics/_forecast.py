"""The forecast of the next era's score: its mean, an interval and a probability."""

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._era_axes import EraAxes, read_axes
from .._era_columns import label_columns
from .._era_labels import as_objects, find
from .._eras import EncodedEras, are_ordered, encode_eras, label_texts, read_eras
from ._crossed import CrossedEras
from ._era_scores import EraScores
from ._spread import AnyEras, Mixture, make_link

Array = NDArray[np.float64]


class EraScoreForecast(BaseEstimator):
    """Predict the score of a model in an era that it has not seen.

    The random-effects model (Higgins, Thompson, Spiegelhalter 2009) is ::

        s_j = m + e_j + d_j,    e ~ N(0, T^2 K),    d_j ~ N(0, se_j^2),

    with the mean m, the spread T of eras, and sampling errors se_j, by finitely many
    rows. T has its confidence distribution (Viechtbauer 2007; Nagashima, Noma, Furukawa
    2019). With M scores of equal error, or of none, an interval is
    ``mean(s) ± t_{M-1} std(s) sqrt(1 + 1 / M)``.

    K is the identity for groups. Eras that follow each other may have a slope, or
    resemble their neighbours, ``K_ij = rho^|i-j|``, with rho of .3 to .95, each with
    the prior probability 1/4; restricted likelihoods weigh them (Hoeting et al. 1999).
    The more the scores show it, the more the last eras count, and the wider intervals
    become with the horizon.

    Scores of groups in eras, by two columns of labels in `fit`, are of ::

        s_gt = m + a_g + b_t + e_gt + d_gt,    a_g ~ N(0, A^2),    b_t ~ N(0, B^2 K),

    with residuals e_gt ~ N(0, E^2), and forecasts are of a new group in a later era.
    Eras alone may have a slope or resemble their neighbours, as above; groups and
    residuals are independent. Henderson's equations, groups absorbed (1953), have the
    restricted likelihoods (Patterson, Thompson 1971). Variances have the prior that
    matches the probability of the sum of those that are new (Peers 1965), as for
    independent mean squares, and interval and mean are of all of them.

    Parameters
    ----------
    trend : {'auto', 'none'}, default='auto'
        Whether eras that follow each other, by their labels, may be related; of
        thousands, that takes minutes.
    bounds : tuple of (float or None, float or None), default=None
        Ends of the metric's range, within which intervals stay, such as (0, 1) for an
        area under the ROC curve or (None, 1) for R^2. The model is of
        ``log((s - low) / (high - s))``, or the part that has an end (Snell et al.
        2018), and `mean_` is then a median.
    era_order : 'auto' or tuple of two, default='auto'
        Which of two columns of labels is time, such as ("unordered", "ordered") where
        groups come first; by default their labels tell.

    Attributes
    ----------
    mean_ : float
        The score to expect of the next era.
    spread_ : float
        T, the standard deviation between eras, without sampling errors: the median of
        its distribution, in units of the score at `mean_`. By groups and eras,
        ``sqrt(A^2 + B^2 + E^2)``.
    sampling_error_ : float
        The root mean square of `standard_errors`; 0 where there are none.
    related_, optimism_ : float
        The probability of a slope, or of similar neighbours; and the gain of the choice
        of the model by the same scores, which is taken off them, on the scale of
        `bounds` by its slope at their mean.
    components_ : dict of str to float
        A of "groups", B of "eras" and E, "residual", by restricted maximum likelihood,
        with K the identity, in units of the score at `mean_`; empty of one column.
    scores_, eras_ : ndarray of shape (n_eras,)
        The scores, `optimism_` not taken off, and the labels, sorted; of two columns in
        the order of `fit`, with pairs (time, group).

    Examples
    --------
    >>> from sklearn_era.metrics import EraScoreForecast
    >>> areas = [0.71, 0.78, 0.74, 0.69, 0.80, 0.75]  # in six hospitals
    >>> forecast = EraScoreForecast(bounds=(0, 1)).fit(areas)
    >>> low, high = forecast.interval(level=0.8)
    >>> f"{forecast.mean_:.2f}, 80 % interval {low:.2f} to {high:.2f}"
    '0.75, 80 % interval 0.68 to 0.81'
    >>> round(forecast.probability_above(0.7), 2)
    0.82
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "trend": [StrOptions({"auto", "none"})], "bounds": [tuple, list, None],
        "era_order": [StrOptions({"auto"}), tuple, list],
    }  # fmt: skip

    def __init__(
        self, trend: str = "auto", *, bounds: Any = None, era_order: Any = "auto"
    ) -> None:
        self.trend = trend
        self.bounds = bounds
        self.era_order = era_order

    def fit(
        self, scores: Any, standard_errors: Any = None, eras: Any = None
    ) -> "EraScoreForecast":
        """Estimate the mean and the spread.

        Parameters
        ----------
        scores : EraScores, fitted search or AutoEra, or array-like of shape (n_eras,) \
or (n_candidates, n_eras)
            Scores of one metric in eras that the model had not seen; NaN are left out.
            Of several rows, candidates, that of the best mean was chosen. Choosing
            without era j may take another one, whose score in j is less: the mean
            difference over all j is `optimism_`; that of an ``AutoEra`` is not known.
        standard_errors : EraScores, or array-like of shape (n_eras,), default=None
            Sampling errors, such as those of :func:`era_standard_errors`. With None
            they are a part of the spread, and the new era has about as many rows.
        eras : array-like of shape (n_eras,) or (n_eras, 2), default=None
            Labels of the eras; None takes those of `scores`. An array without labels
            has no order. A table of two columns, or a tuple of two arrays, has the
            group and the time of each score.

        Returns
        -------
        self : object
            The forecast, fitted.

        Raises
        ------
        ValueError
            If scores are fewer than two, infinite, of several metrics or not within
            `bounds`, lengths differ, an error is negative, infinite or missing, a label
            or pair comes twice, labels are text, which has no known order, or there is
            but one group or time.
        """
        self._validate_params()
        both = isinstance(scores, EraScores) and isinstance(standard_errors, EraScores)
        if both and list(scores) != list(standard_errors):
            raise ValueError("standard_errors has other labels than scores have.")
        if (pairs := _read_pairs(scores, eras, self.era_order)) is not None:
            return self._fit_pairs(*pairs, standard_errors)
        table, encoded, order = _read(scores, eras)
        errors = _read_errors(standard_errors, table, table.ndim == 2, "era")
        if encoded.labels.size < errors.size:
            raise ValueError("eras has a label twice: pass one score an era.")
        table, errors = (x[..., encoded.codes.argsort()] for x in (table, errors))
        remedy = "pass trend='none' for groups, such as hospitals"
        is_ordered = self.trend == "auto" and are_ordered(
            encoded, order, "trend='auto'", remedy
        )
        best, self.optimism_ = _best(scores, table)
        self.eras_, self.scores_, self._groups = encoded.labels, table[best], None
        places = _known(self.scores_, errors, self.eras_)
        values, errors = self.scores_[places], errors[places]
        self._link = make_link(self.bounds, values)
        slope, scaled = self._link.slope, self._link(values)
        scaled = scaled - self.optimism_ * slope(self._link.inverse(scaled.mean()))
        related = is_ordered and places.size > 2
        model = AnyEras(scaled, errors * slope(values), places, related)
        return self._describe(model, self.scores_.size, errors)

    def _fit_pairs(
        self, values: Array, axes: Any, standard_errors: Any
    ) -> "EraScoreForecast":
        """Estimate the mean and spreads of scores by groups and eras."""
        time, groups = axes.time, axes.groups
        errors = _read_errors(standard_errors, values, values.ndim == 1, "pair")
        pairs = zip(*(as_objects(x.decode()) for x in (time, groups)), strict=True)
        self.eras_ = np.fromiter(pairs, dtype=object)
        shape, at = (groups.labels.size, time.labels.size), (groups.codes, time.codes)
        if np.unique(np.ravel_multi_index(at, shape)).size < values.size:
            raise ValueError("eras has a pair of labels twice: pass one score a pair.")
        known = _known(values, errors, self.eras_)
        for axis, codes in zip(("group", "time"), at, strict=True):
            if np.unique(codes[known]).size < 2:
                raise ValueError(
                    f"scores are known of a single {axis}: pass several, or eras as "
                    "one column."
                )
        self.scores_, self.optimism_, self._groups = values, 0.0, groups.labels
        values, errors = values[known], errors[known]
        self._link = make_link(self.bounds, values)
        table, of_table = np.full(shape, np.nan), np.zeros(shape)
        at = groups.codes[known], time.codes[known]
        table[at], of_table[at] = self._link(values), errors * self._link.slope(values)
        model = CrossedEras(table, of_table, self.trend == "auto" and shape[1] > 2)
        return self._describe(model, shape[1], errors)

    def _describe(self, model: Any, n_eras: int, errors: Array) -> "EraScoreForecast":
        """Keep the model and what it says of the era after the last one."""
        self._model, self._n_eras = model, n_eras
        self.related_ = float(1 - model.weights[0])
        self.sampling_error_ = float(np.sqrt(np.mean(errors**2)))
        ahead = model.predict(float(n_eras), 0.0)
        self.mean_ = self._link.inverse(float(ahead.weights @ ahead.means))
        unit = float(self._link.slope(self.mean_))
        self.spread_ = model.spread() / unit
        self.components_ = {x: y / unit for x, y in model.components.items()}
        return self

    def _ahead(
        self, horizon: int, standard_error: float | None, group: Any = None
    ) -> Mixture:
        """Return the distribution of a score to come, on the scale of the link."""
        check_is_fitted(self)
        check_scalar(horizon, "horizon", Integral, min_val=1)
        error = self.sampling_error_ if standard_error is None else standard_error
        check_scalar(error, "standard_error", Real, min_val=0)
        error *= float(self._link.slope(self.mean_))
        place = float(self._n_eras - 1 + horizon)
        if group is None:
            return self._model.predict(place, error)
        if self._groups is None:
            raise ValueError(
                f"group={group!r} is for scores by groups and eras: pass eras of two "
                "columns to fit."
            )
        [at] = find(self._groups, np.array([group]), None)
        if at < 0:
            raise ValueError(
                f"group={group!r} is no group of fit: pass None for a new one."
            )
        return self._model.predict(place, error, at)

    def interval(
        self, level: float = 0.8, *, horizon: int = 1,
        standard_error: float | None = None, group: Any = None,
    ) -> tuple[float, float]:  # fmt: skip
        """Return an interval that contains a new era's score with a probability.

        Parameters
        ----------
        level : float, default=0.8
            The probability, between 0 and 1.
        horizon, standard_error : int, default=1, and float, default=None
            The new era's place after the last one, where eras follow each other; and
            the sampling error of its score, None for `sampling_error_`.
        group : object, default=None
            The label of a known group, of scores by groups and eras; None is a new one.

        Returns
        -------
        low, high : float
            Both ends.
        """
        ahead = self._ahead(horizon, standard_error, group)
        tail = (1 - _check_level(level)) / 2
        low, high = (self._link.inverse(ahead.quantile(x)) for x in (tail, 1 - tail))
        return low, high

    def probability_above(
        self, threshold: float, *, horizon: int = 1,
        standard_error: float | None = None, group: Any = None,
    ) -> float:  # fmt: skip
        """Return the probability that the score of a new era is above a threshold.

        Parameters
        ----------
        threshold : float
            The score to exceed. For an error, take one minus the result.
        horizon, standard_error, group :
            As in :meth:`interval`.

        Returns
        -------
        probability : float
            From 0 to 1.
        """
        check_scalar(threshold, "threshold", Real)
        ahead = self._ahead(horizon, standard_error, group)
        if threshold <= self._link.low or threshold >= self._link.high:
            return float(threshold <= self._link.low)
        return min(1.0, max(0.0, 1 - ahead.below(float(self._link(threshold)))))

    def eras_needed(
        self, width: float, level: float = 0.8, *, of: str = "next_era"
    ) -> float:
        """Return how many eras make an interval as narrow as a width.

        With M unrelated eras and ``V = spread_^2 + sampling_error_^2``, the widths are
        ``2 t_{M-1} sqrt(V (1 + 1 / M))`` for the next era, and ``2 t_{M-1}
        sqrt(V / M)`` for the mean of all possible eras.

        Parameters
        ----------
        width, level : float
            The width, and the interval's probability, by default 0.8.
        of : {'next_era', 'mean'}, default='next_era'
            Whether the interval is for the next era's score or for the mean.

        Returns
        -------
        n_eras : int or float
            Eras in all, at least 2; infinity if 10,000 are too few.
        """
        check_is_fitted(self)
        if self._groups is not None:
            raise ValueError(
                "eras_needed counts eras of one column of labels, and fit had two: fit "
                "to the scores of one group, or to means of eras."
            )
        check_scalar(width, "width", Real, min_val=0, include_boundaries="neither")
        if of not in ("next_era", "mean"):
            raise ValueError(f"of must be 'next_era' or 'mean'; got {of!r}.")
        n = np.arange(2, 10_001)
        deviation = np.hypot(self.spread_, self.sampling_error_)
        half = t.ppf((1 + _check_level(level)) / 2, n - 1) * deviation
        is_enough = 2 * half * np.sqrt((of == "next_era") + 1 / n) <= width
        return int(n[is_enough.argmax()]) if is_enough.any() else math.inf


def _read_pairs(scores: Any, eras: Any, order: Any) -> tuple[Array, EraAxes] | None:
    """Return scores, their times and groups; None for one column of labels."""
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
    found = np.asarray(getattr(found, "era_scores_", found), dtype=np.float64)
    return found, read_axes(eras, found, order, "EraScoreForecast")


def _read_errors(errors: Any, scores: Array, has_right_shape: bool, one: str) -> Array:
    """Return sampling errors, 0 for None, of one row of scores."""
    raw = errors.scores if isinstance(errors, EraScores) else errors
    raw = np.zeros(scores.shape[-1]) if raw is None else raw
    found = np.asarray(raw, dtype=np.float64)
    if not has_right_shape or found.shape != scores.shape[-1:]:
        raise ValueError(
            f"scores has the shape {scores.shape}, and standard_errors {found.shape}: "
            f"pass one of each per {one}."
        )
    return found


def _known(scores: Array, errors: Array, labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return where scores are known, with errors that are checked."""
    places = np.flatnonzero(~np.isnan(scores))
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
            kind = "standard_errors of era {} is negative, missing or"
        raise ValueError(
            f"{kind.format(era)} infinite: leave the era out by a score of NaN."
        )
    return places


def _check_level(level: Any) -> float:
    return check_scalar(
        level, "level", Real, min_val=0, max_val=1, include_boundaries="neither"
    )


def _read(scores: Any, eras: Any) -> tuple[Any, EncodedEras, str]:
    """Return scores, their eras, and the known order of these."""
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


def _best(scores: Any, table: Array) -> tuple[int, float]:
    """Return the row of the model that was chosen, and the gain of the choice."""
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
    without = [np.nanmean(np.delete(rivals, j, axis=1), axis=1).argmax() for j in known]
    gains = table[best, known] - rivals[without, known]
    return best, max(0.0, float(gains.mean())) if known.size else 0.0
