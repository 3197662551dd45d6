"""Small estimators, ours or scikit-learn's."""

import sklearn.ensemble

import sklearn_era.ensemble


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
