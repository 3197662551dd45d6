"""Era-aware ensembles: boosters under scikit-learn's own names, and forests."""

try:
    from sklearn_era.ensemble._era_forest.estimators import (
        EraForestClassifier,
        EraForestRegressor,
    )
    from sklearn_era.ensemble._era_forest.presets import (
        InvariantForestClassifier,
        InvariantForestRegressor,
        TimeRobustForestClassifier,
        TimeRobustForestRegressor,
    )
    from sklearn_era.ensemble._estimators import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from sklearn_era.ensemble._hist_gradient_boosting.binned_dataset import (
        BinnedDataset,
    )
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("sklearn_era."):
        raise
    raise ImportError(
        f"{error.name} is missing: this is the source folder of sklearn_era, and it is "
        "not installed for this Python. Install it with `pip install .`"
    ) from error

__all__ = [
    "BinnedDataset",
    "EraForestClassifier",
    "EraForestRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "InvariantForestClassifier",
    "InvariantForestRegressor",
    "TimeRobustForestClassifier",
    "TimeRobustForestRegressor",
]
