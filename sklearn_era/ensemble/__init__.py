"""Era-aware ensembles, under the names that `sklearn.ensemble` gives them."""

try:
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
        f"{error.name} is missing: this is the source folder of sklearn_era, not an "
        "installed package. Run Python from another folder, or install in place with "
        "`pip install --no-build-isolation --editable .`"
    ) from error

__all__ = [
    "BinnedDataset",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
]
