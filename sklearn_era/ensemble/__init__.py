"""Era-aware ensembles: boosters under scikit-learn's own names, and forests.

The packages, in the order of the pipeline: ``_binning``, ``_criteria``, ``_splitting``,
``_boosters`` and ``_forests``, ``_prediction``; ``_hist_gradient_boosting`` is
scikit-learn's own, and ``_arrays`` has the types of its arrays. Boosters and forests
share ``_estimator``, ``_parameters`` with their ``_parameter_table``, the plan of a
criterion and splitter (``_criterion_plan``), ``_feature_penalty``, ``_docstrings``,
checks of warm starts (``_warm_start``), the ``_fit_state`` and its ``_callbacks``, and
the ``_exchange`` of processes that grow one tree; ``_just_train_twice`` needs no eras.
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
