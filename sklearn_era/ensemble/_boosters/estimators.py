"""Define the boosters: scikit-learn's own, with the parameters and fit for eras."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn import ensemble
from sklearn._loss.loss import BaseLoss

from ..._typing import ColumnChoice, Scoring, Seed
from ...criteria._criteria import SplitCriterion
from ...effects import GroupDRO, Intercepts, Recency
from .._docstrings import era_docstring
from .._estimator import EraEstimatorMixin
from .._parameter_table import CONSTRAINTS, stores_parameters
from .._parameters import encode_classes, weigh_classes
from .hooks import EraFitMixin
from .predictions import EraClassPredictionMixin, EraPredictionMixin


class HistGradientBoostingRegressor(
    EraEstimatorMixin, EraFitMixin, EraPredictionMixin,
    ensemble.HistGradientBoostingRegressor,
):  # fmt: skip
    __doc__ = era_docstring(ensemble.HistGradientBoostingRegressor)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = (
        ensemble.HistGradientBoostingRegressor._parameter_constraints | CONSTRAINTS
    )

    @stores_parameters
    def __init__(
        self, loss: str | BaseLoss = "squared_error", *, quantile: float | None = None,
        learning_rate: float = 0.1, max_iter: int = 100,
        max_leaf_nodes: int | None = 31, max_depth: int | None = None,
        min_samples_leaf: int = 20, l2_regularization: float = 0.0,
        max_features: float = 1.0, max_bins: int = 255,
        categorical_features: ColumnChoice = "from_dtype",
        monotonic_cst: ArrayLike | Mapping[str, int] | None = None,
        interaction_cst: str | Iterable[Iterable[int]] | None = None,
        warm_start: bool = False, early_stopping: str | bool = "auto",
        scoring: Scoring = "loss", validation_fraction: float | int | None = 0.1,
        n_iter_no_change: int = 10, tol: float = 1e-7, verbose: int = 0,
        random_state: Seed = None,
        split_criterion: str | dict[Any, float] | SplitCriterion = "gain",
        min_samples_per_era: float = 1, min_era_coverage: float = 0.1,
        min_gain_share: float = 0.5, min_impurity_decrease: float = 0.0,
        era_order: str = "auto", validation_eras: str | None = "auto",
        era_weighting: str | Recency | GroupDRO = "rows",
        leaf_shrinkage: str | None = None, era_effects: str | Intercepts | None = None,
        feature_penalty: ArrayLike | Mapping[Any, float] | None = None,
        colsample_bytree: float = 1.0, n_jobs: int | None = None,
    ) -> None: ...  # fmt: skip


class HistGradientBoostingClassifier(
    EraEstimatorMixin, EraFitMixin, EraClassPredictionMixin,
    ensemble.HistGradientBoostingClassifier,
):  # fmt: skip
    __doc__ = era_docstring(ensemble.HistGradientBoostingClassifier)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = (
        ensemble.HistGradientBoostingClassifier._parameter_constraints | CONSTRAINTS
    )

    @stores_parameters
    def __init__(
        self, loss: str | BaseLoss = "log_loss", *, learning_rate: float = 0.1,
        max_iter: int = 100, max_leaf_nodes: int | None = 31,
        max_depth: int | None = None, min_samples_leaf: int = 20,
        l2_regularization: float = 0.0, max_features: float = 1.0, max_bins: int = 255,
        categorical_features: ColumnChoice = "from_dtype",
        monotonic_cst: ArrayLike | Mapping[str, int] | None = None,
        interaction_cst: str | Iterable[Iterable[int]] | None = None,
        warm_start: bool = False, early_stopping: str | bool = "auto",
        scoring: Scoring = "loss", validation_fraction: float | int | None = 0.1,
        n_iter_no_change: int = 10, tol: float = 1e-7, verbose: int = 0,
        random_state: Seed = None,
        class_weight: str | Mapping[Any, float] | None = None,
        split_criterion: str | dict[Any, float] | SplitCriterion = "gain",
        min_samples_per_era: float = 1, min_era_coverage: float = 0.1,
        min_gain_share: float = 0.5, min_impurity_decrease: float = 0.0,
        era_order: str = "auto", validation_eras: str | None = "auto",
        era_weighting: str | Recency | GroupDRO = "rows",
        leaf_shrinkage: str | None = None, era_effects: str | Intercepts | None = None,
        feature_penalty: ArrayLike | Mapping[Any, float] | None = None,
        colsample_bytree: float = 1.0, n_jobs: int | None = None,
    ) -> None: ...  # fmt: skip

    _encode_y_val = encode_classes
    _finalize_sample_weight = weigh_classes


class SymmetricRegressor(HistGradientBoostingRegressor):
    """A booster of symmetric trees, in which all nodes of a level share a split. Trees
    have ``max_depth`` levels, at most 8, and no other limit: constraints, minimum rows
    of leaves, split criteria of eras and draws of features do not affect them. The unit
    of ``l2_regularization`` is the mean weight of a row.
    """

    _is_symmetric = True


class SymmetricClassifier(HistGradientBoostingClassifier):
    """A booster of symmetric trees; see `SymmetricRegressor`."""

    _is_symmetric = True
