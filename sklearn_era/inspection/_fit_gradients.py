"""The gradients that each iteration of a fit would have on given rows."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.common import G_H_DTYPE, Y_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from sklearn_era._eras import EncodedEras
from sklearn_era.ensemble._boosters.era_weights import weights_by_label
from sklearn_era.ensemble._boosters.known_eras import as_keys
from sklearn_era.ensemble._forests.fit import ForestFitMixin


class FitGradients(Protocol):
    """The gradients of a fit, iteration by iteration."""

    def of_iteration(
        self, predictors: list[TreePredictor]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Gradients and hessians, both of shape (n_samples, n_outputs)."""

    def add_tree(self, output: int, values: NDArray[np.float64]) -> None:
        """Take in what a tree of the iteration predicts of each row."""


def gradients_of_fit(
    estimator: Any,
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    eras: EncodedEras,
    n_threads: int,
) -> FitGradients:
    """Return what the trees of a model were grown from, on these rows."""
    if hasattr(estimator, "_era_intercepts"):
        raise ValueError(
            "era_effects: the trees were grown beside intercepts of eras that moved "
            "with each iteration, and their gradients cannot be found again. Fit with "
            "era_effects=None to look into splits."
        )
    if isinstance(estimator, ForestFitMixin):
        return _ForestGradients(estimator, y, sample_weight)
    factors = None
    if hasattr(estimator, "_era_log_weights"):
        # As recorded: a warm start may have changed the step. Other eras count once.
        known, ones = weights_by_label(estimator), np.ones(estimator.n_iter_)
        of_eras = [known.get(label, ones) for label in as_keys(eras.labels)]
        factors = np.nan_to_num(np.stack(of_eras), nan=1.0), eras.codes
    return _BoostingGradients(estimator, y, sample_weight, factors, n_threads)


class _BoostingGradients:
    """Those of the loss, at the sum of the trees before."""

    def __init__(
        self,
        estimator: Any,
        y: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None,
        factors: tuple[NDArray[np.float64], NDArray[np.int32]] | None,
        n_threads: int,
    ) -> None:
        self._loss, self._factors, self._iteration = estimator._loss, factors, 0
        self._y, self._sample_weight, self._n_threads = y, sample_weight, n_threads
        shape = (y.shape[0], estimator.n_trees_per_iteration_)
        self._raw_predictions = np.zeros(shape, dtype=Y_DTYPE, order="F")
        self._raw_predictions += estimator._baseline_prediction
        self._gradients = np.empty(shape, dtype=G_H_DTYPE, order="F")
        self._hessians = np.empty(shape, dtype=G_H_DTYPE, order="F")

    def of_iteration(
        self, predictors: list[TreePredictor]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        sample_weight = self._sample_weight
        if self._factors is not None:
            by_era, codes = self._factors
            factors = by_era[codes, self._iteration]
            sample_weight = factors * (1.0 if sample_weight is None else sample_weight)
        self._iteration += 1
        single = self._gradients.shape[1] == 1
        # Hessians are always filled in. The loss of the fit may say that they are
        # constant, which holds for the weights of the fit and not for those given.
        self._loss.gradient_hessian(
            y_true=self._y,
            raw_prediction=self._raw_predictions,
            sample_weight=sample_weight,
            gradient_out=self._gradients[:, 0] if single else self._gradients,
            hessian_out=self._hessians[:, 0] if single else self._hessians,
            n_threads=self._n_threads,
        )
        return self._gradients, self._hessians

    def add_tree(self, output: int, values: NDArray[np.float64]) -> None:
        self._raw_predictions[:, output] += values


class _ForestGradients:
    """Those of the squared error, at the mean of each tree's own rows."""

    def __init__(
        self,
        estimator: Any,
        y: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None,
    ) -> None:
        self._n_trees = estimator.n_iter_
        self._targets = estimator._make_targets(y)
        weights = np.ones(y.shape[0]) if sample_weight is None else sample_weight
        self._weights = weights[:, np.newaxis]
        self._hessians = np.empty(self._targets.shape, dtype=G_H_DTYPE, order="F")
        self._hessians[:] = self._weights

    def of_iteration(
        self, predictors: list[TreePredictor]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        # A root has its tree's mean, divided like all values by the number of trees.
        roots = np.array([tree.nodes["value"][0] for tree in predictors])
        gradients = self._weights * (self._n_trees * roots - self._targets)
        return gradients.astype(G_H_DTYPE), self._hessians

    def add_tree(self, output: int, values: NDArray[np.float64]) -> None:
        """Nothing: no tree of a forest builds on another."""


__all__ = ["FitGradients", "gradients_of_fit"]
