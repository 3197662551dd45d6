"""Era-aware ensembles: boosters, under scikit-learn's own names, and forests.

A model uses the packages in this order: ``_binning``, ``_criteria``, ``_splitting``,
``_boosters`` or ``_forests``, ``_prediction``. ``_hist_gradient_boosting`` holds
scikit-learn's own code, patched, and ``_arrays`` declares the types of its arrays.
Boosters and forests share a base class (``_estimator``), parameters and their table
(``_parameters``, ``_parameter_table``), the plan of a criterion and splitter
(``_criterion_plan``), penalties of features (``_feature_penalty``), docstrings
(``_docstrings``), checks of warm starts (``_warm_start``), the state of a fit
(``_fit_state``), its callbacks (``_callbacks``), and the exchange between processes
that grow one tree (``_exchange``). ``_just_train_twice`` needs no eras.
"""

from typing import TYPE_CHECKING

from .._warnings import renamed

try:
    from ._binning.dataset import BinnedDataset
    from ._boosters.estimators import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from ._forests.estimators import EraForestClassifier, EraForestRegressor
    from ._forests.presets import (
        InvariantForestClassifier,
        InvariantForestRegressor,
        TimeRobustForestClassifier,
        TimeRobustForestRegressor,
    )
    from ._just_train_twice import JustTrainTwice
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("sklearn_era."):
        raise
    raise ImportError(
        f"{error.name} is missing: this is the source folder of sklearn_era, and it is "
        "not installed for this Python. Install it with `pip install .`"
    ) from error

__all__ = [
    "BinnedDataset", "EraForestClassifier", "EraForestRegressor",
    "HistGradientBoostingClassifier", "HistGradientBoostingRegressor",
    "InvariantForestClassifier", "InvariantForestRegressor", "JustTrainTwice",
    "TimeRobustForestClassifier", "TimeRobustForestRegressor",
]  # fmt: skip

if not TYPE_CHECKING:
    _AUTO = ("AutoEraClassifier", "AutoEraRegressor")
    __getattr__ = renamed(
        __name__, {name: f"sklearn_era.auto.{name}" for name in _AUTO}
    )
