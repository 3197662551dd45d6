"""Make the candidates for an average: default models and models of the user."""

from typing import Any, TypeGuard

from sklearn.base import BaseEstimator, clone, is_classifier

from ..criteria import Gain
from ..effects import Intercepts
from ..ensemble import EraForestClassifier, EraForestRegressor
from ..ensemble._boosters.estimators import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    SymmetricClassifier,
    SymmetricRegressor,
)
from ..model_selection._out_of_era import name_in_fit
from ._linear import LinearClassifier, LinearRegressor
from ._other_packages import PEERS, as_peer, limits_of, make_peer, package_of
from ._row_losses import Loss

BOOSTERS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
PLAIN = "plain"

# The best for their cost on public data first (docs/natural-eras.md).
_DEFAULT = (
    "linear", "additive", "symmetric", "level", "large", "leaves_4", "last_levels",
)  # fmt: skip
# Members that learn from eras need so many of them.
_LEAST_ERAS = 6
# Members to fit first if time is short and known groups are asked for.
FIRST = (PLAIN, "level", "last_levels")
# With few rows, weights of many members are noise.
_ROWS_PER_MEMBER = 50
# Boosters are made quicker up to this rate.
_MOST_RATE = 0.5
# Losses whose best prediction is the mean.
_OF_MEANS = ("squared_error", "poisson", "gamma", "log_loss")


def default_members(
    plain: BaseEstimator, loss: Loss, n_eras: int, are_ordered: bool, horizon: int = 1
) -> dict[str, Any]:
    """Return a dict from names to unfitted models: the default members that suit the
    data and `plain`, which is the user's booster or a default one.
    """

    def booster(factor: float, leaves: int, **params: Any) -> Any:
        params |= {"max_leaf_nodes": leaves, "max_iter": round(factor * plain.max_iter)}
        if plain.split_criterion == "gain":  # as good splits, in half the time
            params["split_criterion"] = Gain(splitter="era")
        return clone(plain).set_params(early_stopping=False, **params)

    # Half the trees of these and of `large` lose nothing (docs/natural-eras.md).
    members = {"leaves_4": quick(booster(4, 4))}
    members["additive"] = quick(booster(4, 4, interaction_cst="no_interactions"))
    if n_eras >= _LEAST_ERAS:
        level = Intercepts(forecast="auto" if are_ordered else "mean", horizon=horizon)
        members["level"] = booster(3, 8, era_effects=level)
        if are_ordered:  # whose last ones may do to forecast
            members["last_levels"] = booster(3, 8, era_effects=Intercepts())
    members["large"] = booster(1.5, plain.max_leaf_nodes, colsample_bytree=0.5)
    # These do not keep to the constraints of trees, and a linear model predicts means.
    is_free = not limits_of(plain)
    if is_free:
        symmetric = SymmetricClassifier if is_classifier(plain) else SymmetricRegressor
        names = symmetric._get_param_names()  # a subclass may have more
        given = {name: getattr(plain, name) for name in names}
        members["symmetric"] = clone(symmetric(**given)).set_params(
            max_leaf_nodes=None, max_depth=6, max_iter=round(2.5 * plain.max_iter),
            l2_regularization=max(3.0, plain.l2_regularization), colsample_bytree=1.0,
            max_features=1.0, early_stopping=False, split_criterion="gain",
        )  # fmt: skip
    if is_free and loss.name in _OF_MEANS:
        linear = LinearClassifier if is_classifier(plain) else LinearRegressor
        members["linear"] = linear(loss.name, plain.categorical_features)
    return {name: members[name] for name in _DEFAULT if name in members}


def quick(model: BaseEstimator) -> Any:
    """Return a copy of a booster for fits in folds, with half the trees at twice the
    learning rate (up to 0.5); return any other model as it is.
    """
    if not isinstance(model, BOOSTERS):
        return model
    factor = max(1.0, min(2.0, _MOST_RATE / model.learning_rate))
    n_trees, rate = round(model.max_iter / factor), factor * model.learning_rate
    return clone(model).set_params(max_iter=max(1, n_trees), learning_rate=rate)


def make_members(
    plain: BaseEstimator, given: Any, loss: Loss, n_rows: int, n_eras: int,
    are_ordered: bool, horizon: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Return a dict from names to unfitted models: `plain`, then the members in
    `given`. Raise ValueError if a member is invalid, has the name of another one, or is
    a default member that does not suit the data.
    """
    if plain.early_stopping == "auto":  # in folds as in a fit to all rows
        plain = clone(plain).set_params(early_stopping=n_rows > 10_000)
    members = {PLAIN: plain}
    default = default_members(plain, loss, n_eras, are_ordered, horizon)
    for member in [given] if isinstance(given, str) else given:
        name = member if isinstance(member, str) else None
        if is_pair(member):
            found = {member[0]: _checked(*member, plain)}
        elif name == "default":
            found = dict([*default.items()][: n_rows // _ROWS_PER_MEMBER])
        elif name in PEERS:
            found = {name: make_peer(name, plain, loss.name)}
        elif name == PLAIN:
            found = {}  # it is a member in any case
        elif name in default:
            found = {name: default[name]}
        elif name in _DEFAULT:
            raise ValueError(
                f"members has {name!r}, which these data or the plain model do not "
                "have: level and last_levels need six eras, last_levels ordered ones; "
                "symmetric and linear need no constraints on columns, and linear a "
                "loss whose best prediction is a mean."
            )
        else:
            raise ValueError(
                "members must be 'default', or a list of names of default members "
                f"({', '.join(_DEFAULT)}, or 'default' for all), 'plain', 'catboost', "
                f"'lightgbm', and pairs of a name and a model; got {member!r}."
            )
        if twice := found.keys() & members.keys():
            raise ValueError(
                f"members has the name {sorted(twice)[0]!r} twice (the plain model is "
                f"{PLAIN!r}); give each member a name of its own."
            )
        members |= found
    return members


def is_pair(member: Any) -> TypeGuard[tuple[Any, Any]]:
    """Return whether a member is a pair of a name and a model, and not a name."""
    return isinstance(member, tuple | list) and len(member) == 2


def _checked(name: Any, model: BaseEstimator, plain: BaseEstimator) -> Any:
    """Return the user's model, as a `Peer` if it is of CatBoost or LightGBM; raise
    ValueError if the name or the model is invalid.
    """
    method = "predict_proba" if is_classifier(plain) else "predict"
    if not (isinstance(name, str) and hasattr(model, "fit") and hasattr(model, method)):
        raise ValueError(
            f"members: {name!r} must be a string, and its model have fit and "
            f"{method}; got {type(model).__name__}."
        )
    if is_classifier(model) != is_classifier(plain):
        kind = "classifier" if is_classifier(plain) else "regressor"
        raise ValueError(
            f"members: {name!r} is {type(model).__name__}, which is no {kind}."
        )
    return as_peer(model, plain) if package_of(model) in PEERS else model


def uses_eras(model: BaseEstimator) -> bool:
    """Return whether a member learns from eras. A booster or forest does so by
    intercepts or by its criterion; any other model does so if its `fit` takes eras.
    """
    if not isinstance(model, (*BOOSTERS, EraForestClassifier, EraForestRegressor)):
        return name_in_fit(model, "eras") is not None
    criterion = model.split_criterion
    has_gain = criterion == "gain" or isinstance(criterion, Gain)
    return getattr(model, "era_effects", None) is not None or not has_gain
