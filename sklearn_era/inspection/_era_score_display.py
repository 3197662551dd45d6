"""Draw figures of a model's score in each era."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._era_labels import label_texts
from .._plotting import BLUE, GRAY, ORANGE, axes_or_new, label_eras, legend_above
from .._typing import Axes, Eras, Estimator, Scoring, Table
from ..metrics import EraComparison, EraScoreForecast, era_scores, era_standard_errors
from ..metrics._aggregation import check_direction
from ..metrics._metric import find_direction, metric_name
from ..model_selection._search_scores import score_era
from ._era_scorer import scorer_of_an_era
from ._forest_plot import draw_forest, next_text


class EraScoreDisplay:
    """Score of a model in each era, with the mean and the worst era marked.

    Parameters
    ----------
    scores : EraScores or array-like of shape (n_eras,), dtype=float
        Score of each era. Scores that are NaN or infinite are left out of the mean and
        the figure, and the legend counts the others.
    era_labels : array-like of shape (n_eras,)
        Labels of the eras, in the order of the figure.
    score_name : str, default='score'
        The name of the score in the figure.
    greater_is_better : bool, default=True
        Whether the worst era has the lowest score (True) or the highest (False).
    standard_errors : EraScores or array-like of shape (n_eras,), default=None
        Standard errors of the scores, as by `sklearn_era.metrics.era_standard_errors`.
        Bars reach 1.96 errors to both sides; an error of NaN has no bar.
    n_samples : array-like of shape (n_eras,), default=None
        Number of rows in each era, which a forest plot prints.

    Attributes
    ----------
    mean, worst : float, int
        The mean over eras, each counting once; and the index of the (first) worst era.
    bars_, line_, mean_line_, forecast_ : matplotlib BarContainer and Line2D
        `bars_` or `line_` has the scores; `mean_line_` has their mean, and `forecast_`
        the mean of the forecast. Each is None if it is not drawn.
    errorbar_ : matplotlib ErrorbarContainer
        The error bars, or None.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure of the drawing.

    Raises
    ------
    ValueError
        If the arrays differ in length, or no era has a score.

    Examples
    --------
    >>> from sklearn_era.inspection import EraScoreDisplay
    >>> display = EraScoreDisplay(scores=[0.9, 0.4, 0.8], era_labels=["a", "b", "c"])
    >>> round(display.mean, 6), display.worst
    (0.7, 1)
    >>> display.plot()  # doctest: +SKIP
    """

    def __init__(
        self, *, scores: ArrayLike, era_labels: ArrayLike, score_name: str = "score",
        greater_is_better: bool = True, standard_errors: ArrayLike | None = None,
        n_samples: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        self.scores = np.asarray(scores, dtype=np.float64)
        self.era_labels = np.asarray(era_labels)
        self.score_name = score_name
        self.greater_is_better = greater_is_better
        self.standard_errors = None
        if standard_errors is not None:
            self.standard_errors = np.asarray(standard_errors, dtype=np.float64)
        self.n_samples = None if n_samples is None else np.asarray(n_samples)
        arrays = self.scores, self.era_labels, self.standard_errors, self.n_samples
        shapes = [x.shape for x in arrays if x is not None]
        if self.scores.ndim != 1 or len({*shapes}) > 1:
            raise ValueError(
                "scores, era_labels, standard_errors and n_samples must be "
                "one-dimensional, with one value an era each; got the shapes "
                f"{' and '.join(map(str, shapes))}."
            )
        defined = np.flatnonzero(np.isfinite(self.scores))
        if defined.size == 0:
            raise ValueError(
                f"scores: none of the {self.scores.size} eras has a score that is not "
                "NaN or infinite, and there is nothing to draw."
            )
        self.mean = float(np.mean(self.scores[defined]))
        worst = np.argmin if greater_is_better else np.argmax
        self.worst = int(defined[worst(self.scores[defined])])

    def plot(
        self, ax: Axes | None = None, *, kind: str = "bar",
        forecast: EraScoreForecast | None = None, next_error: float | None = None,
        numbers: bool | None = None, **kwargs: Any,
    ) -> EraScoreDisplay:  # fmt: skip
        """Draw the score of each era, with eras at equal distances.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        kind : {'bar', 'line', 'forest'}, default='bar'
            The marks; a line suits many eras, and a forest plot has a row for each era.
            The axis of bars does not include 0 if the range of scores (with error bars)
            is smaller than its distance from 0.
        forecast : EraScoreForecast, default=None
            The forecast of the next era, drawn last: its mean, with intervals of 80 %
            (thick) and 95 % (thin). A forest plot adds a band for 95 %, and a diamond
            for the pooled mean, as wide as the mean's interval of 95 %.
        next_error : float, default=None
            The sampling error of the next era's score, which widens its intervals. None
            takes the root mean square of the errors of known scores ("measured" in the
            figure); 0 is for the true score, which infinitely many rows would give, as
            in R's package metafor.
        numbers : bool, default=None
            Whether to print `n_samples`, scores and their intervals of 95 % at the
            right of a forest plot. None prints them in every forest plot.
        **kwargs : dict
            Passed to the ``bar`` or ``plot`` of the axes.

        Returns
        -------
        display : EraScoreDisplay
            This object.

        Raises
        ------
        ValueError, MissingPackageError
            If `kind` is unknown, `numbers` is True but `kind` is not 'forest',
            `next_error` comes without a forecast, or matplotlib is not installed.
        """
        if kind not in ("bar", "line", "forest"):
            raise ValueError(f"kind must be 'bar', 'line' or 'forest'; got {kind!r}.")
        if numbers and kind != "forest":
            raise ValueError(f"numbers are for kind='forest', and kind is {kind!r}.")
        if next_error is not None and forecast is None:
            raise ValueError("next_error is for a forecast: pass one, or leave it out.")
        places = np.arange(self.scores.size)
        ax = axes_or_new(ax, places.size if kind == "forest" else 0)
        is_defined, texts = np.isfinite(self.scores), label_texts(self.era_labels)
        scores = np.where(is_defined, self.scores, np.nan)
        errors = self.standard_errors
        errors = None if errors is None else norm.ppf(0.975) * errors
        self.ax_, self.figure_ = ax, ax.figure
        self.bars_ = self.line_ = self.mean_line_ = self.forecast_ = None
        if kind == "forest":
            found = draw_forest(
                ax, scores, errors, texts, forecast, kwargs, counts=self.n_samples,
                numbers=numbers is not False, next_error=next_error,
            )  # fmt: skip
            self.line_, self.errorbar_, self.forecast_ = found
            ax.set_xlabel(self.score_name)
            return self
        # Also in a legend of the user, a $ in a label is no formula.
        worst_label = f"worst: {texts[self.worst]}".replace("$", r"\$")
        if kind == "bar":
            style = {"color": BLUE, "label": "_eras"} | kwargs
            self.bars_ = ax.bar(places, scores, **style)
            self.bars_[self.worst].set_facecolor(ORANGE)
            self.bars_[self.worst].set_label(worst_label)
        else:
            style = {"color": BLUE, "marker": ".", "label": "_eras"} | kwargs
            (self.line_,) = ax.plot(places, scores, **style)
            style = {"color": ORANGE, "label": worst_label}
            ax.plot(self.worst, scores[self.worst], "o", **style)
        ends = scores[is_defined]
        self.errorbar_ = None
        if errors is not None:
            style = {"fmt": "none", "ecolor": "black", "elinewidth": 1}
            self.errorbar_ = ax.errorbar(places, scores, yerr=errors, **style)
            ends = np.concatenate([ends, scores - errors, scores + errors])
        of = "" if is_defined.all() else f" of {is_defined.sum()} of {scores.size} eras"
        style = {"color": GRAY, "label": f"mean{of}: {self.mean:.4g}"}
        self.mean_line_ = ax.axhline(self.mean, linestyle="--", **style)
        if forecast is not None:
            next_place = scores.size
            given: Any = {"standard_error": next_error}
            wide, near = (forecast.interval(x, **given) for x in (0.95, 0.8))
            ends, name = np.append(ends, wide), f"next{next_text(forecast, next_error)}"
            ax.vlines(next_place, *wide, color=ORANGE, linewidth=1)
            ax.vlines(next_place, *near, color=ORANGE, linewidth=4)
            label = f"{name}: {forecast.mean_:.4g}, 80 % {near[0]:.4g} to {near[1]:.4g}"
            style = {"color": ORANGE, "label": label}
            (self.forecast_,) = ax.plot(next_place, forecast.mean_, "D", **style)
        label_eras(ax, texts)
        ax.set_ylabel(self.score_name)
        low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
        if kind == "bar" and min(abs(low), abs(high)) <= high - low:
            low, high = min(low, 0.0), max(high, 0.0)
        elif self.bars_:
            low -= (high - low) / 4  # so that the lowest bar is one
            for bar in self.bars_:  # whose ends would hold the axis
                bar.sticky_edges.y.clear()
        legend_above(ax, low, high)
        return self

    @classmethod
    def from_forecast(
        cls, forecast: EraScoreForecast, *, score_name: str = "score",
        kind: str = "forest", ax: Axes | None = None, **kwargs: Any,
    ) -> EraScoreDisplay:  # fmt: skip
        """Draw a forecast and the scores that it was fitted to, as a forest plot.

        Parameters
        ----------
        forecast : EraScoreForecast
            A fitted forecast, for eras with one column of labels.
        score_name : str, default='score'
            The name of the score.
        kind, ax, **kwargs :
            Passed to :meth:`plot`.

        Returns
        -------
        display : EraScoreDisplay

        Raises
        ------
        ValueError
            If the forecast is for two columns of labels, groups and eras.
        """
        check_is_fitted(forecast)
        if forecast.pooled_ is None:
            raise ValueError(
                "forecast is of two columns of labels: a figure takes one."
            )
        errors = forecast.standard_errors_
        display = cls(
            scores=forecast.scores_, era_labels=forecast.eras_, score_name=score_name,
            standard_errors=errors if errors.any() else None,
            n_samples=forecast._counts,
        )  # fmt: skip
        return display.plot(ax, kind=kind, forecast=forecast, **kwargs)

    @classmethod
    def from_comparison(
        cls, comparison: EraComparison, *, ax: Any = None, **kwargs: Any
    ) -> EraScoreDisplay:
        """Draw how much better a challenger is in each era, and on average.

        Parameters
        ----------
        comparison : EraComparison
            The result of `sklearn_era.metrics.compare_predictions`. A band shows the
            interval of 95 % of the mean difference.
        ax, **kwargs :
            Passed to :meth:`plot`. By default, `kind` is 'line' for ordered eras and
            'forest' for other eras.

        Returns
        -------
        display : EraScoreDisplay
        """
        errors = comparison.standard_errors
        display = cls(
            scores=comparison.differences, era_labels=comparison.scores.eras,
            score_name=f"gain of b, {comparison.metric_name.replace('_', ' ')}",
            standard_errors=errors if np.isfinite(errors).any() else None,
            n_samples=comparison.scores.n_samples,
        )  # fmt: skip
        kind = "line" if comparison.is_ordered else "forest"  # which names each era
        style: dict[str, Any] = {"kind": kind} | kwargs
        if style["kind"] == "line":
            style = {"linestyle": "none", "marker": "o"} | style
        display.plot(ax, forecast=comparison.forecast, **style)
        ax, is_forest = display.ax_, style["kind"] == "forest"
        band = {"color": BLUE, "alpha": 0.15, "linewidth": 0}
        (ax.axvspan if is_forest else ax.axhspan)(*comparison.interval(), **band)
        (ax.axvline if is_forest else ax.axhline)(0, color=GRAY, linewidth=1)
        return display

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, X: Table, y: ArrayLike, *, eras: Eras,
        scoring: Scoring = None, sample_weight: ArrayLike | None = None,
        score_name: str | None = None, ax: Axes | None = None, **kwargs: Any,
    ) -> EraScoreDisplay:  # fmt: skip
        """Score a fitted model in each era, and draw the scores.

        Parameters
        ----------
        estimator, X : object, and array-like of shape (n_samples, n_features)
            Any fitted estimator, and the rows to score.
        y, eras : array-like of shape (n_samples,)
            Targets and eras of the rows.
        scoring : str, callable or None, default=None
            A scorer, as `sklearn.metrics.check_scoring` takes it; None is the ``score``
            of the estimator. A scorer of `sklearn_era.metrics.make_era_scorer` gives
            each era the value of its metric, with a minus sign for an error.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        score_name : str, default=None
            The name of the score; None takes the name of `scoring`, or of its metric.
        ax, **kwargs :
            Passed to :meth:`plot`.

        Returns
        -------
        display : EraScoreDisplay

        Raises
        ------
        ValueError, NotFittedError
            If lengths differ, a label is missing, `scoring` is several scorers or asks
            for eras, the score fails in an era (the message names the era), or
            `estimator` is not fitted.
        """
        check_is_fitted(estimator)
        scorer, name = scorer_of_an_era(estimator, scoring)
        check_consistent_length(X, y)

        def score(y: ArrayLike, rows: NDArray[np.intp], **weights: Any) -> float:
            return score_era(scorer, estimator, _safe_indexing(X, rows), y, **weights)

        # A scorer predicts by itself: in the place of predictions it gets the rows.
        rows = np.arange(_num_samples(X))
        result = era_scores(
            y, rows, eras=eras, metric=score, sample_weight=sample_weight
        )
        name = name if score_name is None else score_name
        display = cls(
            scores=result.scores, era_labels=result.eras, score_name=name,
            n_samples=result.n_samples,
        )  # fmt: skip
        return display.plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, *, eras: Eras,
        metric: Callable[..., float], greater_is_better: bool | None = None,
        sample_weight: ArrayLike | None = None, n_resamples: int = 0,
        score_name: str | None = None, ax: Axes | None = None, **kwargs: Any,
    ) -> EraScoreDisplay:  # fmt: skip
        """Score predictions in each era, and draw the scores.

        Parameters
        ----------
        y_true, y_pred, eras : array-like of shape (n_samples,), or more for `y_pred`
            Targets, predictions as `metric` takes them, and eras.
        metric, greater_is_better, sample_weight :
            As `sklearn_era.metrics.era_scores` takes them, with a single metric.
        n_resamples : int, default=0
            Number of bootstrap samples for the errors of metrics without a closed form,
            as in `sklearn_era.metrics.era_standard_errors`; 0 leaves these errors out.
        score_name : str, default=None
            The name of the score; None takes the name of the function.
        ax, **kwargs :
            Passed to :meth:`plot`.

        Returns
        -------
        display : EraScoreDisplay

        Raises
        ------
        ValueError
            As `sklearn_era.metrics.era_scores`, or if `metric` is not one function.
        """
        if not callable(metric):
            raise ValueError(
                f"metric must be one function, not {metric!r}: an era has one score."
            )
        is_score = find_direction(metric, greater_is_better)
        check_direction("worst", is_score, metric_name(metric))
        given: Any = {"eras": eras, "metric": metric, "sample_weight": sample_weight}
        result = era_scores(y_true, y_pred, **given)
        errors = era_standard_errors(y_true, y_pred, n_resamples=n_resamples, **given)
        if score_name is None:
            score_name = metric_name(metric).replace("_", " ")
        display = cls(
            scores=result.scores, era_labels=result.eras, score_name=score_name,
            greater_is_better=bool(is_score),
            standard_errors=errors if np.isfinite(errors.scores).any() else None,
            n_samples=result.n_samples,
        )  # fmt: skip
        return display.plot(ax, **kwargs)
