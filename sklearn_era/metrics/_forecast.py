"""Forecast the next era's score: its mean, an interval and a probability."""

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._era_labels import find
from .._eras import are_ordered
from .._fit_attributes import restores_on_failure
from .._optional import import_optional
from .._parameter_object import parameter, with_parameters
from ._crossed import CrossedEras
from ._era_scores import EraScores, join_columns
from ._forecast_input import (
    best_candidate,
    check_level,
    check_number,
    check_of,
    known_places,
    read_errors,
    read_pairs,
    read_scores,
)
from ._pooled import PooledScore, pool
from ._spread import AnyEras, Mixture, make_link

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@with_parameters
class EraScoreForecast(BaseEstimator):
    """Predict the score of a model in an era that it has not seen.

    The random-effects model (Higgins, Thompson, Spiegelhalter 2009) is ::

        s_j = m + e_j + d_j,    e ~ N(0, T^2 K),    d_j ~ N(0, se_j^2),

    with the mean m, the spread T of eras, and the sampling errors se_j of finitely many
    rows. Forecasts average over the confidence distribution of T (Viechtbauer 2007;
    Nagashima, Noma, Furukawa 2019). With M scores of equal errors, or of none, an
    interval is ``mean(s) ± t_{M-1} std(s) sqrt(1 + 1 / M)``.

    For groups, K is the identity. Eras that follow each other may also have a slope, or
    resemble their neighbours, ``K_ij = rho^|i-j|`` with rho from .3 to .95. The prior
    probability is 1/4 of a slope, 1/4 of resemblance, and 1/2 of neither; restricted
    likelihoods weigh the three (Hoeting et al. 1999). The more scores show a slope or
    resemblance, the more the last eras count, and the wider intervals become with the
    horizon.

    With two columns of labels in `fit`, scores are of groups g in eras t ::

        s_gt = m + a_g + b_t + e_gt + d_gt,    a_g ~ N(0, A^2),    b_t ~ N(0, B^2 K),

    with residuals e_gt ~ N(0, E^2). By default, forecasts are of a new group in a later
    era. Eras may have a slope or resemble their neighbours, as above; groups and
    residuals are independent. Henderson's equations with groups absorbed (1953) give
    the restricted likelihoods (Patterson, Thompson 1971). The prior of variances
    matches probabilities of the sum of new effects' variances (Peers 1965), as for
    independent mean squares; intervals and means average over all variances.

    Parameters
    ----------
    trend : {'auto', 'none'}, default='auto'
        Whether eras that follow each other may be related. With 'none', they are
        exchangeable, as eras without an order always are.
    bounds : tuple of (float or None, float or None), default=None
        Ends of the metric's range, within which intervals stay, such as (0, 1) for an
        area under the ROC curve or (None, 1) for R^2. With bounds, the model is of
        ``log((s - low) / (high - s))``, without the part whose end is None (Snell et
        al. 2018), and `mean_` is a median.
    era_order : {'auto', 'ordered', 'unordered'} or tuple of two, default='auto'
        Whether eras follow each other in the order of their labels. With 'auto',
        numbers do, so that hospitals called 101, 102, ... need 'unordered'. For two
        columns, a tuple such as ("unordered", "ordered") marks the second as time.

    Attributes
    ----------
    era_order_ : {'ordered', 'unordered'}
        Whether eras were taken in the order of their labels, or as exchangeable.
    mean_ : float
        The expected score of the next era.
    spread_ : float
        T, the standard deviation between eras, without sampling errors: the median of
        its distribution, in units of the score at `mean_`. For groups and eras, it is
        ``sqrt(A^2 + B^2 + E^2)``.
    sampling_error_ : float
        The root mean square of `standard_errors`; 0 where there are none.
    related_, optimism_ : float
        The probability of a slope, or of similar neighbours; and by how much the mean
        score is too high because the same scores chose the model. `optimism_` is
        subtracted from scores; with `bounds`, it is first multiplied by the slope of
        the scale without bounds at the mean score.
    components_ : dict of str to float
        A ("groups"), B ("eras") and E ("residual"), by restricted maximum likelihood
        with K the identity, in units of the score at `mean_`; empty for one column.
    pooled_ : PooledScore or None
        The meta-analysis of independent eras: the mean with its interval, tau, I2, Q;
        `optimism_` is subtracted. None for two columns.
    scores_, standard_errors_, eras_ : ndarray of shape (n_eras,)
        The scores, without `optimism_` subtracted; errors, or 0; and labels. They are
        sorted by label or, for two columns with labels (time, group), as in `fit`.

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
    >>> low, high = forecast.interval(level=0.95, of="mean")
    >>> f"pooled {forecast.pooled_.mean:.2f}, 95 % interval {low:.2f} to {high:.2f}"
    'pooled 0.75, 95 % interval 0.70 to 0.79'
    """

    trend: str = parameter(
        [StrOptions({"auto", "none"})], default="auto", kw_only=False
    )
    bounds: Any = parameter([tuple, list, None], default=None)
    era_order: Any = parameter(
        [StrOptions({"auto", "ordered", "unordered"}), tuple, list], default="auto"
    )

    @restores_on_failure
    def fit(self, scores: Any, standard_errors: Any = None, eras: Any = None) -> Self:
        """Estimate the mean and the spread.

        Parameters
        ----------
        scores : EraScores, fitted search or AutoEra, or array-like of shape (n_eras,) \
or (n_candidates, n_eras)
            Scores of one metric in eras the model had not seen; NaN scores are dropped.
            In a table of candidates, the one with the best mean was chosen. Without era
            j, another might be chosen, with a lower score in j: `optimism_` is the mean
            of these differences over all j. It is not known, and 0, for an ``AutoEra``.
        standard_errors : EraScores, or array-like of shape (n_eras,), default=None
            Sampling errors, such as those of :func:`era_standard_errors`. With None,
            sampling errors are a part of the spread, and the new era is taken to have
            about as many rows as other eras.
        eras : array-like of shape (n_eras,) or (n_eras, 2), default=None
            Labels of the eras; None takes the labels of `scores`. An array without
            labels has no order. A table of two columns, or a tuple of two arrays, has
            the group and the time of each score.

        Returns
        -------
        self : object
            The forecast, fitted.

        Raises
        ------
        ValueError
            If fewer than two scores with their errors are known; scores are infinite,
            of several metrics or not within `bounds`; an error is negative or infinite;
            lengths differ; a label or pair comes twice; labels are text without a known
            order; or there is only one group or time.
        """
        self._validate_params()
        both = isinstance(scores, EraScores) and isinstance(standard_errors, EraScores)
        if both and list(scores) != list(standard_errors):
            raise ValueError("standard_errors has other labels than scores have.")
        self._counts = scores.n_samples if isinstance(scores, EraScores) else None
        if (pairs := read_pairs(scores, eras, self.era_order)) is not None:
            return self._fit_pairs(*pairs, standard_errors)
        self._groups = None
        table, encoded, order = read_scores(scores, eras)
        order = order if self.era_order == "auto" else self.era_order
        errors = read_errors(standard_errors, table, table.ndim == 2, "era")
        if encoded.labels.size < errors.size:
            raise ValueError("eras has a label twice: pass one score an era.")
        by_label = encoded.codes.argsort()
        table, errors = table[:, by_label], errors[by_label]
        if self._counts is not None:
            self._counts = self._counts[by_label]
        remedy = "pass era_order='unordered' for groups, such as hospitals"
        is_ordered = self.trend == "auto" and are_ordered(
            encoded, order, "trend='auto'", remedy
        )
        self.era_order_ = "ordered" if is_ordered else "unordered"
        best, self.optimism_ = best_candidate(scores, table)
        scaled, errors = self._take_known(table[best], errors, encoded.labels)
        middle = self._link.inverse(scaled.mean())
        scaled = scaled - self.optimism_ * self._link.slope(middle)
        self.pooled_: PooledScore | None = pool(scaled, errors, self._link)
        related = is_ordered and scaled.size > 2
        model = AnyEras(scaled, errors, self._places, related)
        return self._describe(model, self.scores_.size)

    def _fit_pairs(self, values: Array, axes: Any, standard_errors: Any) -> Any:
        """Fit to scores of pairs (group, era); set attributes, and return self."""
        time, groups = axes.time, axes.groups
        errors = read_errors(standard_errors, values, values.ndim == 1, "pair")
        shape, at = (groups.labels.size, time.labels.size), (groups.codes, time.codes)
        if np.unique(np.ravel_multi_index(at, shape)).size < values.size:
            raise ValueError("eras has a pair of labels twice: pass one score a pair.")
        labels = join_columns([time.decode(), groups.decode()])
        scaled, scaled_errors = self._take_known(values, errors, labels)
        at = groups.codes[self._places], time.codes[self._places]
        for axis, codes in zip(("group", "time"), at, strict=True):
            if np.unique(codes).size < 2:
                raise ValueError(
                    f"scores are known of a single {axis}: pass several, or eras as "
                    "one column."
                )
        self.optimism_, self._groups, self.pooled_ = 0.0, groups.labels, None
        table, of_table = np.full(shape, np.nan), np.zeros(shape)
        table[at], of_table[at] = scaled, scaled_errors
        self.era_order_ = "ordered" if self.trend == "auto" else "unordered"
        model = CrossedEras(table, of_table, self.trend == "auto" and shape[1] > 2)
        return self._describe(model, shape[1])

    def _take_known(
        self, scores: Array, errors: Array, labels: NDArray[Any]
    ) -> tuple[Array, Array]:
        """Store scores, errors, labels and the link. Return the scores that have an
        error, and their errors, both on the scale of the link.
        """
        self.scores_, self.standard_errors_, self.eras_ = scores, errors, labels
        self._places = known_places(scores, errors, labels)
        values, errors = scores[self._places], errors[self._places]
        self._link = make_link(self.bounds, values)
        self.sampling_error_ = float(np.sqrt(np.mean(errors**2)))
        return self._link(values), errors * self._link.slope(values)

    def _describe(self, model: Any, n_eras: int) -> "EraScoreForecast":
        """Set attributes from the model and from its forecast of the next era."""
        self._model, self._n_eras = model, n_eras
        self.related_ = float(1 - model.weights[0])
        ahead = model.predict(float(n_eras), 0.0)
        self.mean_ = float(self._link.inverse(ahead.weights @ ahead.means))
        unit = float(self._link.slope(self.mean_))
        self.spread_ = model.spread() / unit
        self.components_ = {x: y / unit for x, y in model.components.items()}
        return self

    def _ahead(self, of: str, horizon: int, error: float | None, group: Any) -> Mixture:
        """Return the distribution, on the link's scale, of the score `horizon` eras
        ahead or, if `of` is "mean", of the mean score of all possible eras.
        """
        check_is_fitted(self)
        check_of(of)
        if of == "mean":
            if horizon != 1 or error is not None or group is not None:
                raise ValueError(
                    "of='mean' is of all eras there could be: leave out horizon, "
                    "standard_error and group, which are of a new one."
                )
            return self._model.mean()
        check_number(horizon, "horizon", Integral, min_val=1)
        error = self.sampling_error_ if error is None else error
        check_number(error, "standard_error", min_val=0)
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
        self, level: float = 0.8, *, of: str = "next_era", horizon: int = 1,
        standard_error: float | None = None, group: Any = None,
    ) -> tuple[float, float]:  # fmt: skip
        """Return an interval that contains a new era's score with probability `level`.

        Parameters
        ----------
        level : float, default=0.8
            The probability, between 0 and 1.
        of : {'next_era', 'mean'}, default='next_era'
            Whether the interval is for the next era's score, or for the mean of all
            possible eras by the same model.
        horizon, standard_error : int, default=1, and float, default=None
            By how many eras the new era follows the last one, if eras have an order;
            and the sampling error of the new score, by default `sampling_error_`.
        group : object, default=None
            The label of a known group, if scores are by groups and eras. None is for a
            new group.

        Returns
        -------
        low, high : float
            Both ends.
        """
        ahead = self._ahead(of, horizon, standard_error, group)
        tail = (1 - check_level(level)) / 2
        ends = np.array([ahead.quantile(x) for x in (tail, 1 - tail)])
        low, high = self._link.inverse(ends).tolist()
        return low, high

    def _intervals_of(self, scores: Array, half: Array) -> list[Array]:
        """Return the lower and the upper ends of intervals about scores ± `half`. They
        are symmetric on the link's scale, which has no bounds, so that ends keep to
        `bounds`.
        """
        with np.errstate(divide="ignore", invalid="ignore"):  # scores at a bound
            center, half = self._link(scores), half * self._link.slope(scores)
            return [self._link.inverse(center + sign * half) for sign in (-1, 1)]

    def probability_above(
        self, threshold: float, *, of: str = "next_era", horizon: int = 1,
        standard_error: float | None = None, group: Any = None,
    ) -> float:  # fmt: skip
        """Return the probability that the score of a new era is above a threshold.

        Parameters
        ----------
        threshold : float
            The score to exceed. One minus the result is the probability of a lower one.
        of, horizon, standard_error, group :
            As in :meth:`interval`.

        Returns
        -------
        probability : float
            From 0 to 1.
        """
        check_number(threshold, "threshold")
        ahead = self._ahead(of, horizon, standard_error, group)
        if threshold <= self._link.low or threshold >= self._link.high:
            return float(threshold <= self._link.low)
        return min(1.0, max(0.0, 1 - ahead.below(float(self._link(threshold)))))

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas table with one row for each era, as a forest plot shows it.

        Returns
        -------
        table : pandas.DataFrame
            Indexed by label: `score`, `standard_error`; for one column of labels, also
            `weight` and `shrunken` of `pooled_`; and `n_samples`, if :class:`EraScores`
            were given.
        """
        check_is_fitted(self)
        pandas = import_optional("pandas", extra="cli")
        columns: dict[str, Any] = {"score": self.scores_}
        columns["standard_error"] = self.standard_errors_
        if self.pooled_ is not None:
            for name in ("weight", "shrunken"):
                columns[name] = np.full(self.scores_.size, np.nan)
                columns[name][self._places] = getattr(self.pooled_, name)
        if self._counts is not None:
            columns["n_samples"] = self._counts
        labels = self.eras_ if self._groups is None else list(self.eras_)
        return pandas.DataFrame(columns, pandas.Index(labels))

    def eras_needed(
        self, width: float, level: float = 0.8, *, of: str = "next_era"
    ) -> float:
        """Return how many eras are needed for an interval of at most this width.

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
        check_number(width, "width", min_val=0, include_boundaries="neither")
        check_of(of)
        n = np.arange(2, 10_001)
        deviation = np.hypot(self.spread_, self.sampling_error_)
        half = t.ppf((1 + check_level(level)) / 2, n - 1) * deviation
        is_enough = 2 * half * np.sqrt((of == "next_era") + 1 / n) <= width
        return int(n[is_enough.argmax()]) if is_enough.any() else math.inf
