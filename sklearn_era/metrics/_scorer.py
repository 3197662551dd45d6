"""Make scorers that receive the eras of the rows to score."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics._scorer import _cached_call, _Scorer
from sklearn.utils._param_validation import StrOptions, validate_params

from .._era_columns import take_era_column
from .._era_routing import of_all_classes, prepares_by_era, takes, with_eras
from ._aggregation import (
    CONSTRAINTS,
    Aggregation,
    check_direction,
    check_undefined,
    direction_of,
)
from ._era_scores import era_scores
from ._metric import (
    Metric,
    check_metric,
    find_direction,
    metric_name,
    parameters_of,
    positive_class,
)

_UNCACHED: Any = partial(_cached_call, None)
_RESPONSES = {"predict", "predict_proba", "decision_function"}


@validate_params(
    {"metric": [callable], "eras": [str, None], "greater_is_better": ["boolean", None]}
    | {"response_method": [list, tuple, StrOptions(_RESPONSES)]}
    | CONSTRAINTS,
    prefer_skip_nested_validation=True,
)
def make_era_scorer(
    metric: Metric, *, eras: str | None = None, aggregation: Aggregation = "mean",
    greater_is_better: bool | None = None,
    response_method: str | list[str] | tuple[str, ...] = "predict",
    undefined: str | float = "raise", **kwargs: Any,
) -> EraScorer:  # fmt: skip
    """Make a scorer that computes a metric era by era, and aggregates the scores.

    This is :func:`sklearn.metrics.make_scorer` for scorers that are called with eras:
    ``scorer(estimator, X, y, eras=...)``. Greater results are always better: errors,
    and aggregates by "std" or "max_drawdown", are returned with a *minus* sign.

    With metadata routing enabled, searches and ``cross_validate`` pass the eras of the
    test rows, as the scorer requests. Without routing, and in
    ``permutation_importance``, eras are not passed: name a column of X by `eras`, or
    bind the eras of all rows with ``functools.partial(scorer, eras=eras)``. Early
    stopping of this package's estimators always passes the eras of ``fit``.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_pred, **kwargs) -> float``, as in :func:`era_scores`.
    eras : str, default=None
        The column of eras in the data frame X. The column is read if no eras are
        passed, and then dropped unless it is a feature of the estimator.
    aggregation, greater_is_better :
        As in :meth:`EraScores.aggregate` and :func:`era_scores`.
    response_method : {"predict", "predict_proba", "decision_function"} or \
list/tuple of such str, default="predict"
        The method of the estimator to call; of several, the first that it has.
    undefined : {"raise", "omit"} or float, default="raise"
        See :meth:`EraScores.aggregate`. In early stopping, the first scored model
        predicts a constant: for a correlation, and for "sharpe", pass the number that
        such a model should get, such as 0.0.
    **kwargs : dict
        Further arguments of `metric`, the same for all eras.

    Returns
    -------
    scorer : EraScorer
        ``scorer(estimator, X, y, *, eras=None, sample_weight=None) -> float``. To route
        weights too, call ``scorer.set_score_request(sample_weight=True)``.

    Raises
    ------
    ValueError
        If `metric` is a scorer, or requires a parameter `eras`; if it is not known
        whether `metric` is an error; or if an error is aggregated by "sharpe" or
        "max_drawdown".

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.metrics import mean_absolute_error
    >>> from sklearn_era.metrics import make_era_scorer
    >>> scorer = make_era_scorer(mean_absolute_error, aggregation="worst")
    >>> model = LinearRegression().fit([[0], [1]], [0, 1])
    >>> round(scorer(model, [[0], [1], [2], [3]], [0, 1, 2, 7], eras=[0, 0, 1, 1]), 6)
    -2.0
    """
    check_metric(metric)
    check_undefined(undefined)
    name = metric_name(metric)
    is_score = find_direction(metric, greater_is_better)
    check_direction(aggregation, is_score, name, "the sign of a scorer")
    sign = 1 if direction_of(aggregation, is_score) else -1
    by_era = _EraMetric(metric, eras, aggregation, is_score, undefined)
    return EraScorer(by_era, sign, kwargs, response_method)


@dataclass(frozen=True)
class _EraMetric:
    """A metric with an additional parameter `eras`. Its value is the aggregate of the
    scores of all eras.
    """

    metric: Metric
    eras: str | None  # a column of X
    aggregation: Aggregation
    greater_is_better: bool | None
    undefined: str | float

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, eras: Any = None, **kwargs: Any
    ) -> float:
        name = metric_name(self.metric)
        if eras is None:
            raise ValueError(
                f"eras were not handed to the scorer of {name}. In a call, pass eras=. "
                "In cross-validation and searches, name a column of X by "
                "make_era_scorer(eras=...), or enable metadata routing by "
                "sklearn.set_config(enable_metadata_routing=True), and pass eras to "
                "fit, or as params={'eras': eras} to cross_validate. In early stopping,"
                " pass eras to fit, and eras_val with X_val."
            )
        of = {"metric": self.metric, "greater_is_better": self.greater_is_better}
        with warnings.catch_warnings():  # `aggregate` tells of such eras
            text = ".* is undefined in .* era"
            warnings.filterwarnings("ignore", text, UndefinedMetricWarning)
            scores = era_scores(y_true, y_pred, eras=eras, **of, **kwargs)
        try:
            return scores.aggregate(self.aggregation, undefined=self.undefined)
        except ValueError as error:
            if np.isfinite(scores.scores).all():
                raise
            raise ValueError(
                f"{error} The scorer of {name} got {scores.n_samples.sum()} "
                f"rows of {len(scores)} era(s), from {scores.eras[0]!s} to "
                f"{scores.eras[-1]!s}. In early stopping these are the rows held out, "
                "or rows that are trained on (all of them, or whole eras of about "
                "10,000 rows together), and the first model scored predicts a constant."
            ) from error

    @property
    def __signature__(self) -> inspect.Signature:
        # scikit-learn reads requestable metadata here, and the metric's `pos_label`.
        eras = inspect.Parameter("eras", inspect.Parameter.KEYWORD_ONLY, default=None)
        # Its own `eras`, if any, stays None: it is called with the rows of an era.
        parameters = [x for x in parameters_of(self.metric) if x.name != "eras"]
        at_end = bool(parameters) and parameters[-1].kind is parameters[-1].VAR_KEYWORD
        parameters.insert(len(parameters) - at_end, eras)
        return inspect.Signature(parameters)


def _ask(
    classes: NDArray[Any], model: Any, method: str, X: Any, **_: Any
) -> NDArray[np.float64]:
    """Return probabilities of `classes`, some of which the model may not know."""
    return of_all_classes(getattr(model, method)(X), model.classes_, classes)


# `make_scorer` takes eras with metadata routing alone, and does not request them.
class EraScorer(_Scorer):
    """A scorer that computes a metric era by era, made by :func:`make_era_scorer`."""

    def _get_metadata_request(self) -> Any:
        requests = super()._get_metadata_request()
        for name, request in {"eras": True, "sample_weight": None}.items():
            if requests.score.requests.get(name) is None:
                requests.score.add_request(param=name, alias=request)
        return requests

    def __call__(
        self, estimator: Any, X: Any, y_true: Any, *, eras: Any = None,
        sample_weight: Any = None, **kwargs: Any,
    ) -> float:  # fmt: skip
        """Score predictions of `estimator` on `X`, era by era; greater is better."""
        if sample_weight is not None:
            kwargs["sample_weight"] = sample_weight
        return self._score(_UNCACHED, estimator, X, y_true, eras=eras, **kwargs)

    # A dict as `scoring`, and `cross_val_score`, call it alone: several scorers then
    # share answers, which scikit-learn keeps by the name of the method.
    def _score(
        self, method_caller: Any, estimator: Any, X: Any, y_true: Any, *,
        eras: Any = None, **kwargs: Any,
    ) -> float:  # fmt: skip
        name = self._score_func.eras if eras is None else eras
        rest, eras = take_era_column(X, name)
        features = getattr(estimator, "feature_names_in_", ())
        if name is not eras and name not in features:
            X, method_caller = rest, _UNCACHED
        # A copy that answers for rows of known eras takes none.
        if prepares_by_era(estimator) and takes(estimator.predict, "eras"):
            estimator, method_caller = with_eras(estimator, eras), _UNCACHED
        # An era may lack classes that the estimator knows, or have others.
        names = set(inspect.signature(self._score_func).parameters) - set(self._kwargs)
        methods = np.atleast_1d(self._response_method)
        method = next((x for x in methods if hasattr(estimator, x)), None)
        if method == "predict_proba" and "labels" in names:
            known = kwargs["labels"] = estimator.classes_
            kwargs |= positive_class(self._score_func.metric, self._kwargs, known)
            is_simple = isinstance(known, np.ndarray) and np.ndim(y_true) == 1
            if is_simple and not np.isin(y_true, known).all():
                kwargs["labels"] = np.union1d(known, y_true)
                method_caller = partial(_ask, kwargs["labels"])
        return super()._score(method_caller, estimator, X, y_true, eras=eras, **kwargs)

    def __repr__(self) -> str:
        shown = vars(self._score_func) | {"response_method": self._response_method}
        metric = shown.pop("metric")
        arguments = "".join(
            f", {name}={metric_name(value) if callable(value) else repr(value)}"
            for name, value in (shown | self._kwargs).items()
            if value is not None
        )
        return f"make_era_scorer({metric_name(metric)}{arguments})"
