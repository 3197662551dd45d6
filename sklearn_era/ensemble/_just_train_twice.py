"""Just train twice: upweight the rows that a first, weak model gets wrong."""

from __future__ import annotations

import inspect
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    _fit_context,
    clone,
    is_classifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from .._era_arguments import eras_by_name
from .._era_columns import take_era_column
from .._era_routing import (
    ask,
    prepares_by_era,
    requests_of,
    routed,
    score,
    with_requests,
)
from .._eras import Array
from .._fit_attributes import restores_on_failure
from .._scikit_learn import check_sample_weight
from .._tables.no_value import no_value_noted
from .._tables.target import check_y
from .._typing import Eras, Estimator, Table
from .._warnings import warn_user
from ..model_selection._out_of_era import (
    name_in_fit,
    no_weights,
    take_attributes,
)
from ..model_selection._search_scores import prediction


def _has(name: str) -> Any:
    """Return a function that checks whether the inner estimator has a method `name`."""
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), name)


class JustTrainTwice(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Train, upweight the misclassified rows, and train again.

    *Experimental*: it may change without a deprecation.

    A model that is trained briefly, or is weak otherwise, learns a rule that holds for
    most rows. If the rule is a shortcut, it is wrong on rows without the shortcut. In
    the second fit, these rows weigh `upweight` times as much, which improves the
    predictions for groups of rows that need not be known [1]_. For known groups, see
    :class:`~sklearn_era.effects.GroupDRO`.

    Parameters
    ----------
    estimator : object
        The classifier of the second fit. Its ``fit``, or the ``fit`` of a pipeline's
        last step, must take `sample_weight`. With metadata routing enabled, the last
        step must request weights by ``set_fit_request(sample_weight=True)``, and other
        steps whose ``fit`` takes weights must set this request to True or False. If you
        pass weights, every classifier that gets them must request them.
    identification_estimator : object, default=None
        The classifier of the first fit. With None, it is a clone of `estimator` with
        fewer iterations (see `identification_iterations`).
    identification_iterations : int, default=10
        Maximum number of iterations of the first fit if `identification_estimator` is
        None, since a fully trained model gets hardly any row wrong. The number sets
        `max_iter` or `n_estimators` of an estimator, or of a pipeline's last step, that
        also has a `learning_rate`: boosters of scikit-learn, LightGBM and XGBoost, and
        scikit-learn's networks and `SGDClassifier`. Other estimators are fitted
        unchanged, and should be regularised.
    upweight : float, default=5.0
        Factor, above 0, that multiplies the weights of the rows that the first
        classifier gets wrong.

    Attributes
    ----------
    estimator_, identification_estimator_ : object
        The fitted classifiers of the second fit, which makes the predictions, and of
        the first fit.
    is_upweighted_ : ndarray of shape (n_samples,), dtype=bool
        For each training row, whether the first classifier predicts a wrong class.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    n_features_in_, feature_names_in_ : int, and ndarray of shape (n_features,)
        The attributes of `estimator_`, if it has them.

    See Also
    --------
    HistGradientBoostingClassifier : Weighs eras, which are known groups.

    References
    ----------
    .. [1] E. Z. Liu, B. Haghgoo, A. S. Chen, A. Raghunathan, P. W. Koh, S. Sagawa,
       P. Liang, C. Finn (2021), Just Train Twice: Improving Group Robustness without
       Training Group Information. Algorithm 1. :arxiv:`2107.09044`

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_era.ensemble import HistGradientBoostingClassifier, JustTrainTwice
    >>> X, y = make_classification(random_state=0)
    >>> model = JustTrainTwice(HistGradientBoostingClassifier(random_state=0))
    >>> model.fit(X, y).predict(X).shape
    (100,)
    >>> model.identification_estimator_.n_iter_
    10
    """

    _hands_eras_on: ClassVar = True  # to its model
    __metadata_request__predict: ClassVar = {"eras": True}
    __metadata_request__predict_proba: ClassVar = {"eras": True}
    __metadata_request__decision_function: ClassVar = {"eras": True}
    __metadata_request__score: ClassVar = {"eras": False}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "identification_estimator": [HasMethods(["fit", "predict"]), None],
        "identification_iterations": [Interval(Integral, 1, None, closed="left")],
        "upweight": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, estimator: Estimator, *,
        identification_estimator: Estimator | None = None,
        identification_iterations: int = 10, upweight: float = 5.0,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.identification_estimator = identification_estimator
        self.identification_iterations = identification_iterations
        self.upweight = upweight

    @_fit_context(prefer_skip_nested_validation=False)
    @eras_by_name
    @restores_on_failure
    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:  # fmt: skip
        """Fit both classifiers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, used in both fits.
        **fit_params : dict
            Further arguments of both fits, such as `eras`. With metadata routing
            enabled, each fit gets only the arguments that it requests.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If `estimator` is not a classifier or takes no weights; if
            `identification_estimator` is not a classifier, or takes no weights although
            `sample_weight` is given; if `y` has a single class.

        Warns
        -----
        UserWarning
            If the first classifier gets all rows right, so that none is upweighted; if
            `identification_iterations` is set and has no effect.
        """
        if "eras" in fit_params:
            X, fit_params["eras"] = take_era_column(X, fit_params["eras"])
        y = check_y(y, self)
        check_classification_targets(y)
        check_consistent_length(X, y)
        classes = np.unique(y)
        if classes.size < 2:
            raise ValueError(
                f"y has {classes.size} class(es), {classes.tolist()}: pass rows of two "
                "or more, of which some may come out wrong."
            )
        first, shortened = self._make_first()
        first, second = with_requests(first), with_requests(clone(self.estimator))
        both = {"estimator": self.estimator, "identification_estimator": first}
        for name, estimator in both.items():
            if not is_classifier(estimator):
                raise ValueError(
                    f"{name} is a {type(estimator).__name__}, which is no classifier: "
                    "JustTrainTwice needs one."
                )
        weights = check_sample_weight(sample_weight, X, dtype=np.float64)
        is_own = sample_weight is None
        given = None if is_own else weights
        # Checks weights before the first fit, which may take long.
        self._arguments("estimator", self.estimator, weights, fit_params, is_own)
        arguments = self._arguments(
            "identification_estimator", first, given, fit_params
        )
        # The second fit warns of the same columns without a value.
        with no_value_noted(), routed(first):
            if shortened:
                # The fit is meant to end early.
                warnings.simplefilter("ignore", ConvergenceWarning)
            first.fit(X, y, **arguments)
        self.identification_estimator_ = first
        eras = fit_params.get("eras") if prepares_by_era(first) else None
        self.is_upweighted_ = is_wrong = np.asarray(ask(first, "predict", X, eras) != y)
        if not is_wrong.any():
            warn_user(
                "The first classifier is right on all rows, so that none is weighed up "
                "and the second fit is a plain one: pass a weaker "
                "identification_estimator, or fewer identification_iterations where "
                "they apply."
            )
        weights = np.where(is_wrong, self.upweight * weights, weights)
        arguments = self._arguments(
            "estimator", self.estimator, weights, fit_params, is_own
        )
        with routed(second):
            self.estimator_ = second.fit(X, y, **arguments)
        take_attributes(self, self.estimator_)
        return self

    def _make_first(self) -> tuple[Any, bool]:
        """Return the unfitted first classifier, and whether a parameter of it limits
        its iterations.
        """
        given, name = self.identification_estimator, None
        if given is None:
            name = _iterations_parameter(self.estimator)
        first = clone(self.estimator if given is None else given)
        n_iter = self.identification_iterations
        # A subclass may lack the parameter, or have another default.
        known = inspect.signature(type(self)).parameters
        default = getattr(known.get("identification_iterations"), "default", n_iter)
        if name is not None:
            now = first.get_params()[name]  # None is XGBoost's own default
            if now is None or now > n_iter:
                first.set_params(**{name: n_iter})
        elif n_iter != default:
            reader = "estimator" if given is None else "identification_estimator"
            warn_user(
                f"{reader}={getattr(self, reader)!r} makes no use of "
                f"identification_iterations={n_iter!r}: leave that out."
            )
        return first, name is not None

    def _arguments(
        self, name: str, estimator: BaseEstimator, weights: Array | None,
        fit_params: dict[str, Any], is_own: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the arguments of an estimator's fit, by name. Raise ValueError if
        `weights` are given and the fit takes none. If `is_own`, the user has passed no
        weights, and `weights` need no metadata request.
        """
        own, is_routed = {}, _routing_enabled()
        if is_own and is_routed and has_fit_parameter(estimator, "sample_weight"):
            requests = get_routing_for_object(estimator).fit.requests
            if requests.get("sample_weight") in (None, True):
                own, weights = {"sample_weight": weights}, None
        if weights is not None:
            weight_name = name_in_fit(estimator, "sample_weight")
            if weight_name is None:
                why = no_weights(estimator, "pass a classifier whose fit does")
                raise ValueError(f"{name}: {why}")
            fit_params = {**fit_params, weight_name: weights}
        if not is_routed:
            eras_name = name_in_fit(estimator, "eras") or "eras"
            return {eras_name if k == "eras" else k: x for k, x in fit_params.items()}
        return process_routing(self, "fit", **fit_params)[name]["fit"] | own

    def get_metadata_routing(self) -> MetadataRouter:
        first = self.identification_estimator
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(requests_of(self)).add(
            method_mapping=mapping, estimator=self.estimator,
            identification_estimator=self.estimator if first is None else first,
        )  # fmt: skip

    predict = prediction("predict", "classes")
    predict_proba = available_if(_has("predict_proba"))(
        prediction("predict_proba", "the probabilities of classes")
    )
    decision_function = available_if(_has("decision_function"))(
        prediction("decision_function", "values whose signs or order are the classes")
    )

    score = score

    def _ask(self, method: str, X: Table, eras: Eras | None) -> NDArray[Any]:
        return ask(self.estimator_, method, X, eras)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        return tags


def _iterations_parameter(estimator: BaseEstimator) -> str | None:
    """Return the name of the parameter for the number of iterations; None if the
    estimator lacks it, or has no learning rate.
    """
    prefix = ""
    while isinstance(estimator, Pipeline):
        step, estimator = estimator.steps[-1]
        prefix += f"{step}__"
    if not hasattr(estimator, "get_params"):
        return None
    params = estimator.get_params(deep=False)
    names = [name for name in ("max_iter", "n_estimators") if name in params]
    return prefix + names[0] if names and "learning_rate" in params else None
