"""Scorers that are handed the eras of the rows that they score."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import make_scorer
from sklearn.metrics._scorer import _cached_call, _Scorer
from sklearn.utils._param_validation import StrOptions, validate_params

from sklearn_era.metrics._aggregation import (
    AGGREGATION_CONSTRAINT,
    LOWER_IS_BETTER,
    UNDEFINED_CONSTRAINT,
    aggregate_era_scores,
    check_direction,
    check_undefined,
)
from sklearn_era.metrics._era_scores import (
    check_metric,
    era_scores,
    metric_name,
    parameters_of,
)


@validate_params(
    {
        "metric": [callable],
        "aggregation": AGGREGATION_CONSTRAINT,
        "greater_is_better": ["boolean"],
        "response_method": [
            list,
            tuple,
            StrOptions({"predict", "predict_proba", "decision_function"}),
        ],
        "undefined": UNDEFINED_CONSTRAINT,
    },
    prefer_skip_nested_validation=True,
)
def make_era_scorer(
    metric: Callable[..., float],
    *,
    aggregation: str | Callable[[NDArray[np.float64]], float] = "mean",
    greater_is_better: bool = True,
    response_method: str | list[str] | tuple[str, ...] = "predict",
    undefined: str | float = "raise",
    **kwargs: Any,
) -> "EraScorer":
    """Make a scorer that computes a metric era by era, and aggregates.

    As :func:`sklearn.metrics.make_scorer`, but ``scorer(estimator, X, y, eras=...)``.
    Of what it returns, greater is always better, so it is *minus* the
    aggregate where `greater_is_better=False`, and where `aggregation` is "std" or
    "max_drawdown".

    The scorer requests `eras` by itself, so that with metadata routing enabled
    ``GridSearchCV(...).fit(X, y, eras=eras)`` and
    ``cross_validate(..., params={"eras": eras})`` hand the test rows' eras over.
    Without metadata routing these tools hand nothing to scorers. As `scoring` of this
    package's estimators, for early stopping, it gets the eras in both cases.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_pred, **kwargs) -> float``, such as
        :func:`sklearn.metrics.r2_score`.

    aggregation : {"mean", "std", "sharpe", "worst", "max_drawdown"} or callable, \
default="mean"
        How to make one number of the eras' scores; see :func:`aggregate_era_scores`. A
        callable gets what `metric` returned, and its value the sign of
        `greater_is_better`.

    greater_is_better : bool, default=True
        Whether `metric` is a score (True) or an error.

    response_method : {"predict", "predict_proba", "decision_function"} or \
list/tuple of such str, default="predict"
        What to call on the estimator; of several, the first that it has.

    undefined : {"raise", "omit"} or float, default="raise"
        What to do where the metric is undefined; see :func:`aggregate_era_scores`. In
        early stopping, the first model scored predicts a constant. Where the metric is
        undefined for constants (a correlation), or the same in all eras and then
        divided by its spread ("sharpe"), pass the number that such a model should get,
        such as 0.0.

    **kwargs : dict
        Further arguments of `metric`, the same for each era.

    Returns
    -------
    scorer : EraScorer
        ``scorer(estimator, X, y, *, eras, sample_weight=None) -> float``. To have
        weights routed too, call ``scorer.set_score_request(sample_weight=True)`` with
        metadata routing enabled. It can be pickled where `metric` and a callable
        `aggregation` can.

    Raises
    ------
    ValueError
        If `metric` is a scorer itself or has a parameter `eras`, for it is called era
        by era; or if an error is to be aggregated by "sharpe" or "max_drawdown".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.metrics import mean_absolute_error
    >>> from sklearn_era.metrics import make_era_scorer
    >>> scorer = make_era_scorer(
    ...     mean_absolute_error, aggregation="worst", greater_is_better=False
    ... )
    >>> X, y = np.arange(4.0).reshape(-1, 1), [0, 1, 2, 7]
    >>> model = LinearRegression().fit(X[:3], y[:3])
    >>> round(scorer(model, X, y, eras=[0, 0, 1, 1]), 6)
    -2.0
    """
    check_metric(metric)
    check_direction(aggregation, greater_is_better)
    check_undefined(undefined)
    minimised = not greater_is_better or (
        isinstance(aggregation, str) and aggregation in LOWER_IS_BETTER
    )
    return EraScorer(
        _EraMetric(metric, aggregation, greater_is_better, undefined),
        sign=-1 if minimised else 1,
        kwargs=kwargs,
        response_method=response_method,
    )


@dataclass(frozen=True)
class _EraMetric:
    """An aggregated metric, of the signature of the metric with `eras` added to it."""

    metric: Callable[..., float]
    aggregation: str | Callable[[NDArray[np.float64]], float]
    greater_is_better: bool
    undefined: str | float

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, eras: Any = None, **kwargs: Any
    ) -> float:
        if eras is None:
            raise ValueError(
                f"eras were not handed to the scorer of {metric_name(self.metric)}. In "
                "a call, pass scorer(estimator, X, y, eras=...). In cross-validation "
                "and searches, enable metadata routing by "
                "sklearn.set_config(enable_metadata_routing=True), and pass eras to "
                "fit, or as params={'eras': eras} to cross_validate. In early "
                "stopping, pass eras to fit, and eras_val with X_val."
            )
        scores = era_scores(y_true, y_pred, eras=eras, metric=self.metric, **kwargs)
        try:
            return aggregate_era_scores(
                scores,
                self.aggregation,
                greater_is_better=self.greater_is_better,
                undefined=self.undefined,
            )
        except ValueError as error:
            if np.isfinite(scores.scores).all():
                raise
            raise ValueError(
                f"{error} The scorer of {metric_name(self.metric)} was handed "
                f"{scores.n_samples.sum()} rows of {scores.eras.size} era(s), from "
                f"{scores.eras[0]!s} to {scores.eras[-1]!s}. In early stopping these "
                "are the rows held out, or rows that are trained on (all of them, or "
                "whole eras of about 10,000 rows together), and the first model scored "
                "predicts a constant."
            ) from error

    @property
    def __signature__(self) -> inspect.Signature:
        # scikit-learn reads off what can be requested, and the metric's `pos_label`.
        eras = inspect.Parameter("eras", inspect.Parameter.KEYWORD_ONLY, default=None)
        parameters = parameters_of(self.metric)
        at_end = bool(parameters) and parameters[-1].kind is parameters[-1].VAR_KEYWORD
        parameters.insert(len(parameters) - at_end, eras)
        return inspect.Signature(parameters)


def make_scorer_of_one_era(scorer: "EraScorer") -> _Scorer:
    """Make scikit-learn's scorer of an era scorer's metric, as it scores one era."""
    metric = scorer._score_func
    return make_scorer(
        metric.metric,
        greater_is_better=metric.greater_is_better,
        response_method=scorer._response_method,
        **scorer._kwargs,
    )


# A subclass of what `make_scorer` returns, which shares predictions with other metrics
# of one search, and whose `set_score_request` routes metadata. Made by `make_scorer`
# alone, it would take eras only with metadata routing enabled, and not request them.
class EraScorer(_Scorer):
    """A metric, era by era, as a scorer: what :func:`make_era_scorer` returns.

    Made by that function, and not by its own constructor. It is public for annotations
    and for `isinstance`.

    See Also
    --------
    make_era_scorer : Makes it.

    Examples
    --------
    >>> from sklearn.metrics import r2_score
    >>> from sklearn_era.metrics import EraScorer, make_era_scorer
    >>> isinstance(make_era_scorer(r2_score), EraScorer)
    True
    """

    __metadata_request__score: ClassVar = {"eras": True}

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y_true: Any,
        *,
        eras: Any = None,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> float:
        """Score the predictions of `estimator` on `X`, era by era.

        Parameters
        ----------
        estimator : object
            Fitted estimator.

        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        y_true : array-like of shape (n_samples,)
            True targets.

        eras : array-like of shape (n_samples,)
            Era of each row.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows within their era, for a metric that takes them.

        **kwargs : dict
            Other arguments of the metric, as routed.

        Returns
        -------
        score : float
            Greater is better.

        Raises
        ------
        ValueError
            If `eras` was not handed over, or the metric is undefined.
        """
        if sample_weight is not None:
            kwargs["sample_weight"] = sample_weight
        return self._score(
            partial(_cached_call, None), estimator, X, y_true, eras=eras, **kwargs
        )

    def set_score_request(self, **kwargs: Any) -> "EraScorer":
        """Set the metadata that is requested, eras being so in any case.

        Parameters
        ----------
        **kwargs : dict
            ``name=True``, ``False``, ``None`` or an alias, as in scikit-learn;
            `eras` is True unless it is given.

        Returns
        -------
        self : object
            The scorer.
        """
        return super().set_score_request(**{"eras": True, **kwargs})

    def __repr__(self) -> str:
        metric = self._score_func
        shown = {
            "aggregation": metric.aggregation,
            "greater_is_better": metric.greater_is_better,
            "response_method": self._response_method,
            "undefined": metric.undefined,
            **self._kwargs,
        }
        arguments = "".join(
            f", {name}={metric_name(value) if callable(value) else repr(value)}"
            for name, value in shown.items()
        )
        return f"make_era_scorer({metric_name(metric.metric)}{arguments})"
