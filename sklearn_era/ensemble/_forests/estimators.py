"""Define the forests, which bin and predict as scikit-learn's boosters do, but grow
each tree by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import ensemble
from sklearn.base import ClassifierMixin
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..._era_columns import without_eras
from ..._eras import Array
from ..._trees.traversal import gains_by_column
from ..._typing import ColumnChoice, Seed, Table
from ...criteria._criteria import SplitCriterion
from ...effects import Recency
from .._docstrings import CLASSES, PROBABILITIES, predicts
from .._estimator import EraEstimatorMixin
from .._parameter_table import CONSTRAINTS, PARAMETERS, stores_parameters
from .._parameters import encode_classes, weigh_classes
from .class_forest import fill_regressor, index_of_class
from .docstrings import forest_docstring
from .fit import ForestFitMixin

_Upstream = ensemble.HistGradientBoostingClassifier
_AS_BOOSTERS = (
    "max_leaf_nodes", "l2_regularization", "max_bins", "categorical_features",
    "warm_start", "verbose", "random_state",
)  # fmt: skip
_AT_LEAST_1 = Interval(Integral, 1, None, closed="left")
_SHARE = Interval(Real, 0, 1, closed="right")
_BOOTSTRAPS = StrOptions({"rows", "within_eras", "whole_eras"})

_PARAMETER_CONSTRAINTS: dict[str, list[Any]] = {
    "n_estimators": [_AT_LEAST_1],
    **{
        name: CONSTRAINTS[name] for name, row in PARAMETERS.items() if row.is_of_forests
    },
    "min_samples_leaf": CONSTRAINTS["min_samples_leaf"],
    # `GroupDRO` weighs by the loss so far, but trees of a forest are independent.
    "era_weighting": [StrOptions({"rows", "equal"}), Recency],
    **{name: _Upstream._parameter_constraints[name] for name in _AS_BOOSTERS},
    "max_depth": [Interval(Integral, 1, 2**31 - 1, closed="both"), None],  # a C int
    "bootstrap": [_BOOTSTRAPS, Options(bool, {False})],
    "max_samples": [None, _SHARE, _AT_LEAST_1],
    "max_features": [None, StrOptions({"sqrt", "log2"}), _AT_LEAST_1, _SHARE],
    "random_segments": [Interval(Integral, 2, None, closed="left"), None],
    "oob_score": ["boolean", callable],
}


_IGNORED = ("str", "The name of the column of eras in X, which is ignored.")


class _ForestMixin(EraEstimatorMixin, ForestFitMixin):
    """Methods that both forests add to scikit-learn's estimators."""

    # Predictions are the same in all eras, as those of boosters without intercepts:
    # models around forests and pipelines hand them no eras.
    era_effects: ClassVar[None] = None
    __metadata_request__predict: ClassVar = {"eras": False}
    __metadata_request__predict_proba: ClassVar = {"eras": False}

    @property
    def feature_importances_(self) -> Array:
        """Share of each feature in the gains of splits, averaged over trees.

        A negative gain counts as 0. All shares are 0 if no tree has a split.
        """
        check_is_fitted(self)
        gains = [gains_by_column(self, trees) for trees in self._predictors]
        shares = np.sum([each / (each.sum() or 1.0) for each in gains], axis=0)
        return shares / (shares.sum() or 1.0)

    def _staged_raw_predict(self, X: Table) -> Iterator[NDArray[Any]]:
        """Yield the mean prediction of the first tree, of the first two, and so on."""
        n_trees = len(self._predictors)
        for i, raw in enumerate(super()._staged_raw_predict(X), start=1):
            yield raw * (n_trees / i)


class EraForestRegressor(_ForestMixin, ensemble.HistGradientBoostingRegressor):
    __doc__ = forest_docstring("regressor")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _PARAMETER_CONSTRAINTS

    @stores_parameters
    def __init__(
        self, n_estimators: int = 100, *,
        split_criterion: str | dict[Any, float] | SplitCriterion = "gain",
        bootstrap: bool | str = "rows", max_samples: float | int | None = None,
        max_features: float | int | str | None = 1.0, max_depth: int | None = None,
        max_leaf_nodes: int | None = None, min_samples_leaf: int = 20,
        min_impurity_decrease: float = 0.0, l2_regularization: float = 0.0,
        max_bins: int = 255, categorical_features: ColumnChoice = "from_dtype",
        min_samples_per_era: float = 1, min_era_coverage: float = 0.1,
        min_gain_share: float = 0.5, era_order: str = "auto",
        era_weighting: str | Recency = "rows",
        feature_penalty: ArrayLike | Mapping[Any, float] | None = None,
        random_segments: int | None = None,
        oob_score: bool | Callable[..., Any] = False, warm_start: bool = False,
        n_jobs: int | None = None, random_state: Seed = None, verbose: int = 0,
    ) -> None: ...  # fmt: skip

    @predicts(
        "Predict the target of rows, the mean over trees.",
        CLASSES.format("predicted values"),
        *_IGNORED,
    )
    def predict(self, X: Table, *, eras: str | None = None) -> NDArray[Any]:
        return super().predict(without_eras(self, X, eras))

    # No parameter, but an attribute that SHAP reads from scikit-learn's models.
    loss: ClassVar[str] = "squared_error"

    def _encode_y(self, y: NDArray[Any] | None = None) -> Array:
        assert y is not None
        self.n_trees_per_iteration_ = 1
        return y.astype(np.float64, copy=False)


class EraForestClassifier(
    _ForestMixin, ClassifierMixin, gradient_boosting.BaseHistGradientBoosting
):
    # Not a subclass of scikit-learn's HistGradientBoostingClassifier: packages that
    # read those would silently take its proportions for log-odds.
    __doc__ = forest_docstring("classifier")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_PARAMETER_CONSTRAINTS,
        "class_weight": _Upstream._parameter_constraints["class_weight"],
    }

    @stores_parameters
    def __init__(
        self, n_estimators: int = 100, *,
        split_criterion: str | dict[Any, float] | SplitCriterion = "gain",
        bootstrap: bool | str = "rows", max_samples: float | int | None = None,
        max_features: float | int | str | None = 1.0, max_depth: int | None = None,
        max_leaf_nodes: int | None = None, min_samples_leaf: int = 20,
        min_impurity_decrease: float = 0.0, l2_regularization: float = 0.0,
        max_bins: int = 255, categorical_features: ColumnChoice = "from_dtype",
        min_samples_per_era: float = 1, min_era_coverage: float = 0.1,
        min_gain_share: float = 0.5, era_order: str = "auto",
        era_weighting: str | Recency = "rows",
        feature_penalty: ArrayLike | Mapping[Any, float] | None = None,
        random_segments: int | None = None,
        oob_score: bool | Callable[..., Any] = False, warm_start: bool = False,
        n_jobs: int | None = None, random_state: Seed = None, verbose: int = 0,
        class_weight: str | Mapping[Any, float] | None = None,
    ) -> None: ...  # fmt: skip

    @predicts(
        "Predict the most probable class; among equally probable ones, the first.",
        CLASSES.format("predicted classes"),
        *_IGNORED,
    )
    def predict(self, X: Table, *, eras: str | None = None) -> NDArray[Any]:
        return self._classes(self._raw_predict(without_eras(self, X, eras)))

    @predicts(
        "Predict the probability of each class, the mean proportion over trees.",
        PROBABILITIES,
        *_IGNORED,
    )
    def predict_proba(self, X: Table, *, eras: str | None = None) -> Array:
        return self._probabilities(self._raw_predict(without_eras(self, X, eras)))

    @predicts(
        "Predict by the first tree, the first two, and so on.",
        CLASSES.format("predicted classes"),
        heading="Yields",
    )
    def staged_predict(self, X: Table) -> Iterator[NDArray[Any]]:
        yield from map(self._classes, self._staged_raw_predict(X))

    @predicts(
        "Predict probabilities by the first tree, the first two, and so on.",
        PROBABILITIES,
        heading="Yields",
    )
    def staged_predict_proba(self, X: Table) -> Iterator[Array]:
        yield from map(self._probabilities, self._staged_raw_predict(X))

    def to_regressor(self, label: object = None) -> EraForestRegressor:
        """Return the trees of a class, as a fitted forest that predicts its proportion.

        The regressor is for tools that read scikit-learn's histogram gradient boosting
        regressors, such as SHAP, and for `sklearn_era.interop`. With a classifier,
        these tools would take sums over trees for log-odds.

        Parameters
        ----------
        label : object, default=None
            The class. With two classes, None stands for the second.

        Returns
        -------
        forest : EraForestRegressor
            The regressor predicts ``predict_proba`` of the class. With more than two
            classes, it predicts the mean proportion, before scaling to a sum of 1.

        Raises
        ------
        ValueError, sklearn.exceptions.NotFittedError
            If `label` is not a class, or is None although there are not two classes; if
            the forest is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_era.ensemble import EraForestClassifier
        >>> X = np.arange(40.0).reshape(20, 2)
        >>> forest = EraForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit(X, X[:, 0] > 11)
        >>> regressor = forest.to_regressor()
        >>> bool(np.allclose(regressor.predict(X), forest.predict_proba(X)[:, 1]))
        True
        """
        check_is_fitted(self)
        index = index_of_class(self, label)
        parameters = self.get_params(deep=False)
        del parameters["class_weight"]
        return fill_regressor(EraForestRegressor(**parameters), self, index)

    _encode_y = _Upstream._encode_y
    _encode_y_val = encode_classes
    _finalize_sample_weight = weigh_classes

    def _classes(self, raw: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[self._probabilities(raw).argmax(axis=1)]

    def _probabilities(self, raw: NDArray[Any]) -> Array:
        """Return class probabilities; with two classes, `raw` is of the second only."""
        if self.classes_.size == 1:
            return np.ones((raw.shape[0], 1))
        # Rounding may lift a mean of proportions above 1.
        proportions = np.clip(raw, 0.0, 1.0)
        if self.n_trees_per_iteration_ == 1:
            return np.column_stack([1.0 - proportions[:, 0], proportions[:, 0]])
        totals = proportions.sum(axis=1, keepdims=True)
        # Trees of different classes may all predict another one: then none is likelier.
        equal = np.full(proportions.shape, 1.0 / proportions.shape[1])
        return np.divide(proportions, totals, out=equal, where=totals > 0)
