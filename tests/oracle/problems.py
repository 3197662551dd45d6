"""The trees of a fitted model, each with its problem, of gradients computed anew."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_monotonic_cst

from oracle.rules import rules_of
from oracle.splits import Problem


def fitted_trees(est: Any, X, y, eras, sample_weight) -> Iterator[tuple[Problem, Any]]:
    """Each tree with the problem that it solved, in the order of fitting."""
    X_binned = est._bin_mapper.transform(est._preprocess_X(X, reset=False))
    n_samples, n_features = X_binned.shape
    missing_bin = est._bin_mapper.missing_values_bin_idx_
    y = np.searchsorted(est.classes_, y) if is_classifier(est) else np.asarray(y)
    y = y.astype(np.float64)
    relative_weights = None
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight, dtype=np.float64)
        relative_weights = sample_weight / math.fsum(sample_weight) * n_samples
    eras = np.zeros(n_samples) if eras is None else np.asarray(eras)
    labels, is_categorical = sorted(set(eras.tolist())), est._is_categorical_remapped
    if is_categorical is None:
        is_categorical = np.zeros(n_features, dtype=bool)
    monotonic_cst = _check_monotonic_cst(est, est.monotonic_cst)
    order = np.arange(n_features)
    if est.is_categorical_ is not None:
        # scikit-learn brings categorical features to the front before it bins.
        order = np.argsort(~est.is_categorical_, kind="stable")
        monotonic_cst = monotonic_cst[order]
    penalties, usable = est.feature_penalty, list(range(n_features))
    if penalties is not None:
        penalties = np.asarray(penalties, dtype=np.float64)[order]
        usable = np.flatnonzero(penalties < 1).tolist()

    # The generator of `colsample_bytree` and `max_features`, which draw in turns: in
    # the state that it had before the first tree.
    rng = check_random_state(est.random_state)
    rng.randint(np.iinfo(np.uint32).max, dtype="u8")
    draws = np.random.default_rng(rng.randint(np.iinfo(np.uint32).max, dtype="u8"))

    def draw(features: list[int], n_drawn: int) -> list[int]:
        mask = np.arange(len(features)) < n_drawn
        draws.shuffle(mask)
        return [f for f, is_drawn in zip(features, mask, strict=True) if is_drawn]

    def draw_features(allowed: list[int]) -> list[int]:
        if est.max_features == 1:
            return allowed
        return draw(allowed, max(1, math.ceil(est.max_features * len(allowed))))

    def draw_tree_features() -> list[set[int]] | None:
        interaction_cst = est._check_interaction_cst(n_features)
        # As a ratio, since 0.1 is not a tenth, and three of thirty are.
        share = Fraction(est.colsample_bytree).limit_denominator(10**6)
        n_drawn = max(1, math.ceil(share * len(usable)))
        if n_drawn == len(usable):
            return interaction_cst
        features = set(draw(usable, n_drawn))
        if interaction_cst is None:
            return [features]
        return [group & features for group in interaction_cst]

    raw = np.zeros((n_samples, est.n_trees_per_iteration_), order="F")
    raw += est._baseline_prediction
    loss = est._loss
    gradients, hessians = loss.init_gradient_and_hessian(n_samples, np.float32, "F")
    for predictors in est._predictors:
        if loss.constant_hessian:
            loss.gradient(y, raw, sample_weight, gradients)
        else:
            loss.gradient_hessian(y, raw, sample_weight, gradients, hessians)
        for k, predictor in enumerate(predictors):
            g, h = gradients.reshape(n_samples, -1)[:, k], np.ones(n_samples)
            if not loss.constant_hessian:
                h = hessians.reshape(n_samples, -1)[:, k]

            problem = Problem(
                X_binned, g.copy(), h.copy(), [eras == label for label in labels],
                n_bins_non_missing=est._bin_mapper.n_bins_non_missing_,
                has_missing=(X_binned == missing_bin).any(axis=0),
                missing_bin=missing_bin, is_categorical=is_categorical,
                monotonic_cst=monotonic_cst, interaction_cst=draw_tree_features(),
                rules=rules_of(est, len(labels)), is_positive=y == 1,
                relative_weights=relative_weights, penalties=penalties,
                l2=est.l2_regularization, min_samples_leaf=est.min_samples_leaf,
                max_depth=est.max_depth, max_leaf_nodes=est.max_leaf_nodes,
                draw_features=draw_features, draws_features=est.max_features < 1,
                sorts_features=est.colsample_bytree < 1,
                leaf_value=_leaf_value(est, y, raw[:, k], sample_weight),
            )  # fmt: skip
            yield problem, predictor
        for k, predictor in enumerate(predictors):
            raw[:, k] += predictor.predict_binned(X_binned, missing_bin, 1)


def _leaf_value(est, y, raw, sample_weight):
    """The value that a leaf gets, from its rows and its Newton value."""

    def leaf_value(rows: np.ndarray, newton_value: float) -> float:
        if est._loss.differentiable:
            return est.learning_rate * newton_value
        weights = None if sample_weight is None else sample_weight[rows]
        median = est._loss.fit_intercept_only(y[rows] - raw[rows], weights)
        return est.learning_rate * median

    return leaf_value
