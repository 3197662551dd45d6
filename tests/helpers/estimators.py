"""Small estimators, ours or scikit-learn's."""

import warnings

import numpy as np
import sklearn.ensemble
from sklearn.linear_model import LogisticRegression, Ridge

import sklearn_era.ensemble
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor


def make_estimator(module, target: str, **params):
    is_class = target in ("binary", "multiclass")
    name = f"HistGradientBoosting{'Classifier' if is_class else 'Regressor'}"
    # scikit-learn takes the quantiles of weighted rows one at a time: for 255 bins of
    # each feature, that would be most of the time of a test.
    few = {"max_iter": 5, "max_bins": 32, "min_samples_leaf": 5, "random_state": 7}
    return getattr(module, name)(**few | params)


def ours(target: str = "real", **params):
    return make_estimator(sklearn_era.ensemble, target, **params)


def stock(target: str = "real", **params):
    return make_estimator(sklearn.ensemble, target, **params)


def fit_average(kind):
    """An average of "reals", of numbered classes or of "text", and its rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(480, 4)).astype("f4").astype("f8")
    z, eras = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=480), np.arange(480) // 40
    y = {
        "reals": z, "two": 1 * (z > 0), "three": np.digitize(z, [-0.5, 0.5]),
        "text": np.where(z > 0, "yes", "no"),
    }[kind]  # fmt: skip
    if kind == "reals":
        average, booster, linear = AutoEraRegressor, Regressor, Ridge()
    else:
        average, booster, linear = AutoEraClassifier, Classifier, LogisticRegression()
    members = {
        "plain": booster(max_iter=8), "small": booster(max_iter=2), "linear": linear,
    }  # fmt: skip
    if kind == "reals":
        members["forest"] = EraForestRegressor(3, random_state=0)
        members["level"] = Regressor(max_iter=3, era_effects="intercept")
    rest = list(members.items())[1:]
    model = average(members["plain"], members=rest, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, eras=eras)
        for name, member in members.items():
            known = {"eras": eras} if name == "level" else {}
            model.members_[name] = member.fit(X, y, **known)
    weights = np.arange(1.0, len(members) + 1)
    members = {name: model.members_[name] for name in members}
    model.members_ = members
    model.weights_ = dict(zip(members, (weights / weights.sum()).tolist(), strict=True))
    return model, X
