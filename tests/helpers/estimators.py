"""Small estimators, ours or scikit-learn's."""


def make_estimator(module, target: str, **params):
    """The estimator of a module for a target."""
    is_class = target in ("binary", "multiclass")
    name = f"HistGradientBoosting{'Classifier' if is_class else 'Regressor'}"
    params = {"max_iter": 5, "min_samples_leaf": 5, "random_state": 7} | params
    return getattr(module, name)(**params)
