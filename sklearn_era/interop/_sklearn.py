"""Convert fitted models to scikit-learn's own estimators."""

import copy
import pickle
import pickletools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn import ensemble
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.metrics import check_scoring
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from sklearn_era._warnings import warn_user
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.ensemble import (
    EraForestClassifier,
    EraForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

_OWN = (
    EraForestRegressor, HistGradientBoostingRegressor, HistGradientBoostingClassifier,
)  # fmt: skip

# The attributes of scikit-learn's own fit, except the scorer of early stopping, which
# is bound to the estimator. Our estimators have more.
_FITTED_ATTRIBUTES = (
    "_baseline_prediction", "_bin_mapper", "_feature_subsample_rng", "_fitted_with_sw",
    "_is_categorical_remapped", "_label_encoder", "_loss", "_n_features", "_predictors",
    "_preprocessor", "_random_seed", "_use_validation_data", "classes_",
    "do_early_stopping_", "feature_names_in_", "is_categorical_", "n_features_in_",
    "n_trees_per_iteration_", "train_score_", "validation_score_",
)  # fmt: skip

# The parameters of a forest with the same meaning in a booster.
_FOREST_PARAMETERS = (
    "max_leaf_nodes", "max_depth", "min_samples_leaf", "l2_regularization", "max_bins",
    "categorical_features", "verbose", "random_state",
)  # fmt: skip


def to_sklearn(
    model: HistGradientBoostingRegressor
    | HistGradientBoostingClassifier
    | EraForestRegressor
    | AutoEraRegressor
    | AutoEraClassifier,
) -> Any:
    """Convert a fitted model to scikit-learn's own estimator with the same trees.

    The result's predictions are bit-identical to those of `model`; for an average, they
    are equal up to rounding. To unpickle the result needs the same version of
    scikit-learn, but not sklearn_era.

    Parameters
    ----------
    model : HistGradientBoostingRegressor, HistGradientBoostingClassifier, \
            EraForestRegressor, AutoEraRegressor or AutoEraClassifier
        A fitted estimator, which is not changed. The result shares its trees' arrays.

    Returns
    -------
    estimator : HistGradientBoostingRegressor, HistGradientBoostingClassifier, \
            VotingRegressor or VotingClassifier
        A fitted estimator of `sklearn.ensemble`, with the parameters that it shares
        with `model`. Callbacks, metadata requests and all other parameters are left
        out. A forest becomes a regressor with an iteration per tree; fitted again, it
        would be boosted. An average becomes a vote with the same weights, and with
        numbered classes in its members. The vote takes no eras: it predicts each row
        like a row of a new era.

    Raises
    ------
    TypeError
        If `model` is none of these estimators.
    ValueError, sklearn.exceptions.NotFittedError
        If `model` is not fitted or is an `EraForestClassifier`; or if it is an average
        with encoded columns, or with a member of sklearn_era that is none of the
        estimators above, such as a linear model of AutoEra's own.

    Warns
    -----
    UserWarning
        If `scoring` depends on sklearn_era: the result gets ``scoring="loss"``, which
        matters only if the result is fitted again.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.interop import to_sklearn
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> eras = np.arange(100) % 2
    >>> model = HistGradientBoostingRegressor(split_criterion="era")
    >>> stock = to_sklearn(model.fit(X, X[:, 0], eras=eras))
    >>> type(stock).__module__.partition(".")[0]
    'sklearn'
    >>> bool((stock.predict(X) == model.predict(X)).all())
    True
    """
    if isinstance(model, AutoEraRegressor | AutoEraClassifier):
        vote = as_vote(model, to_sklearn)
        for name, member in vote.named_estimators_.items():
            if _is_of_this_package(member):
                raise ValueError(
                    f"Member {name!r} of {type(model).__name__} is made of "
                    "sklearn_era's, which the vote is to do without: fit without this "
                    "member, or pickle the average."
                )
        return vote
    check_model(model, _OWN)
    is_forest = isinstance(model, EraForestRegressor)
    stock_class: Any = ensemble.HistGradientBoostingRegressor
    if isinstance(model, HistGradientBoostingClassifier):
        stock_class = ensemble.HistGradientBoostingClassifier
    names = _FOREST_PARAMETERS if is_forest else stock_class().get_params(deep=False)
    parameters = {name: copy.deepcopy(getattr(model, name)) for name in names}
    if is_forest:
        parameters |= {"max_iter": model.n_iter_, "early_stopping": False}
    elif _is_of_this_package(parameters["scoring"]):
        warn_user(
            f"scoring={parameters['scoring']!r} is made of sklearn_era's, which "
            "scikit-learn's estimator is to do without: it gets scoring='loss', which "
            "matters only if it is fitted again."
        )
        parameters["scoring"] = "loss"
    stock = stock_class(**parameters)
    fitted = vars(model)
    vars(stock).update({x: fitted[x] for x in _FITTED_ATTRIBUTES if x in fitted})
    # A copy: a warm start changes it.
    stock._predictors = list(model._predictors)
    if is_forest:
        stock.do_early_stopping_ = False
        stock.train_score_ = stock.validation_score_ = np.array([])
        return stock
    stock._feature_subsample_rng = copy.deepcopy(model._feature_subsample_rng)
    stock._scorer = None
    if fitted.get("_scorer") is not None and stock.scoring != "loss":
        stock._scorer = check_scoring(stock, stock.scoring)
    return stock


def as_vote(model: BaseEstimator, convert: Callable[[Any], Any]) -> Any:
    """Convert a fitted AutoEra to scikit-learn's voting model; convert its members, if
    they are of this package, by `convert`. Raise ValueError if a member cannot be
    converted or takes encoded columns.
    """
    check_is_fitted(model)
    if vars(model).get("_encoded"):
        raise ValueError(
            f"{type(model).__name__} gives its members encoded columns, which only it "
            "can make: fit with encode_categories=False."
        )
    vote_class: Any = ensemble.VotingRegressor
    weights = np.array([model.weights_[name] for name in model.members_])
    options: dict[str, Any] = {"weights": weights}
    if is_classifier(model):
        vote_class = ensemble.VotingClassifier
        options |= {"voting": "soft", "flatten_transform": False}
    members = {}
    for name, member in model.members_.items():
        if isinstance(member, EraForestClassifier) or hasattr(member, "_codings"):
            raise ValueError(
                f"Member {name!r} of {type(model).__name__}, a "
                f"{type(member).__name__}, cannot be converted: fit with members of "
                "boosters alone, or keep the average in a model file."
            )
        is_own = isinstance(member, _OWN)
        members[name] = convert(member) if is_own else copy.copy(member)
        if is_classifier(model):  # as in the vote's own fit
            with suppress(AttributeError):  # of a pipeline, which has none of its own
                members[name].classes_ = np.arange(model.classes_.size)
    vote = vote_class(list(members.items()), **options)
    vote.estimators_, vote.named_estimators_ = [*members.values()], Bunch(**members)
    if hasattr(model, "feature_names_in_"):
        vote.feature_names_in_ = model.feature_names_in_
    if is_classifier(model):
        vote.le_, vote.classes_ = LabelEncoder().fit(model.classes_), model.classes_
    return vote


def _is_of_this_package(value: object) -> bool:
    """Return whether the pickle of a scorer or an estimator would need sklearn_era."""
    try:
        pickled = pickle.dumps(value)
    except (AttributeError, TypeError, pickle.PicklingError):  # a nested function
        return type(value).__module__.partition(".")[0] == "sklearn_era"
    return any(
        isinstance(argument, str)
        and argument.replace(" ", ".").partition(".")[0] == "sklearn_era"
        for _, argument, _ in pickletools.genops(pickled)
    )


def check_model(model: BaseEstimator, classes: Any = BaseHistGradientBoosting) -> None:
    """Raise an error if a model is not fitted, is of none of `classes`, or is a forest
    classifier.
    """
    refuse_forest_classifier(model)
    if not isinstance(model, classes):
        raise TypeError(
            "model must be a HistGradientBoostingRegressor, "
            "HistGradientBoostingClassifier or EraForestRegressor, got "
            f"{type(model).__module__}.{type(model).__qualname__}; of a pipeline, pass "
            "the last step, of EraSearchCV its best_estimator_, and of AutoEra each of "
            "its members_, whose predictions it averages by weights_."
        )
    check_is_fitted(model)


def refuse_forest_classifier(model: BaseEstimator) -> None:
    """Raise ValueError for a forest classifier, whose trees do not sum to log-odds."""
    if isinstance(model, EraForestClassifier):
        raise ValueError(
            "An EraForestClassifier cannot be converted: its trees add up to "
            "proportions of classes, and the sums would be taken for log-odds; convert "
            "what its method to_regressor(label) returns, which predicts the "
            "probability of a class."
        )
