"""Losses and residuals out of era with random values in place of a feature's own."""

from numbers import Integral
from typing import Any

import narwhals
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from sklearn_era._eras import EncodedEras, era_means
from sklearn_era.model_selection._fit_arguments import fit_arguments
from sklearn_era.model_selection._out_of_era import fit_folds, folds_of_eras, respond

MAX_SEED = np.iinfo(np.int32).max

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


def measure_features(
    estimator: Any, X: Any, y: NDArray[Any], eras: EncodedEras,
    sample_weight: Array | None, cv: Any, n_repeats: int, n_jobs: int | None,
    rng: np.random.RandomState,
) -> Bunch:  # fmt: skip
    """Return the `importances` of features, of shape (n_features, n_folds, n_eras), and
    `rows` left out with their `residuals`, of shape (n_features, n_rows, n_outputs).
    """
    n_eras = eras.labels.size
    if n_eras < 2:
        raise ValueError(
            f"eras has the one label {eras.labels[0]!s}, and nothing is left out to "
            "test on; pass rows of two eras or more."
        )
    if isinstance(cv, Integral):
        cv = folds_of_eras(cv, n_eras, are_ordered=False)
    folds = list(check_cv(cv).split(eras.codes, y, eras.codes))
    params = fit_arguments(estimator, eras.decode(), sample_weight)
    models = fit_folds(estimator, X, y, folds, params, n_jobs)
    # Targets are numbers, or rows of 0 and 1.
    targets, classes = y[:, np.newaxis], None
    if is_classifier(estimator):
        classes = np.unique(y)
        targets = (targets == classes).astype(np.float64)
    weights = np.ones(y.size) if sample_weight is None else sample_weight
    found = Parallel(n_jobs=n_jobs)(
        delayed(_measure_fold)(
            model, X, targets, classes, weights, eras, *fold, n_repeats,
            rng.randint(MAX_SEED),
        )
        for model, fold in zip(models, folds, strict=True)
    )  # fmt: skip
    importances, residuals = zip(*found, strict=True)
    return Bunch(
        importances=np.stack(importances, axis=1),
        rows=np.concatenate([test for _, test in folds]),
        residuals=np.concatenate(residuals, axis=1),
    )


def _measure_fold(
    model: Any, X: Any, targets: Array, classes: Any, weights: Array, eras: EncodedEras,
    train: Rows, test: Rows, n_repeats: int, seed: int,
) -> tuple[Array, Array]:  # fmt: skip
    """Return importances by feature and era, and residuals without each feature."""
    rng = np.random.default_rng(seed)
    rows, target = _safe_indexing(X, test), targets[test]

    def predict(rows: Any) -> tuple[Array, Array]:
        """Return predictions and their losses."""
        p = respond(model, rows, classes).reshape(target.shape)
        if classes is None:
            return p, ((target - p) ** 2)[:, 0]
        return p, -np.log(np.maximum((target * p).sum(axis=1), np.finfo(float).eps))

    importances, residuals, base = [], [], predict(rows)[1]
    for j in range(np.shape(X)[1]):
        rise, mean = np.zeros(test.size), np.zeros(target.shape)
        for _ in range(n_repeats):
            drawn = _safe_indexing(X, rng.choice(train, test.size))
            p, loss = predict(_with_column(rows, j, drawn))
            rise += (loss - base) / n_repeats
            mean += p / n_repeats
        codes, n_eras = eras.codes[test], eras.labels.size
        importances.append(era_means(codes, weights[test], rise, n_eras))
        left = target - mean
        residuals.append(left[:, 1:] if left.shape[1] == 2 else left)
    return np.array(importances), np.array(residuals)


def _with_column(X: Any, j: int, other: Any) -> Any:
    """Return a table with column j of another one, of the same number of rows."""
    if hasattr(X, "iloc"):
        X = X.copy()
        X.isetitem(j, other.iloc[:, j].array)
        return X
    frame = narwhals.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, narwhals.DataFrame):
        column = narwhals.from_native(other)[frame.columns[j]]
        return frame.with_columns(column).to_native()
    X = np.array(X)
    X[:, j] = np.asarray(other)[:, j]
    return X


__all__ = ["MAX_SEED", "measure_features"]
