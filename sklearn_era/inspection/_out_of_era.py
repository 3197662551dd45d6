"""Effects of features in eras that a model has not seen, by random values of each."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import narwhals
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed

from sklearn_era._eras import EncodedEras
from sklearn_era._tables.columns import Column
from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.inspection._turning import Rows as TurningRows
from sklearn_era.inspection._turning import make_design, turning_of
from sklearn_era.model_selection._fit_arguments import fit_arguments

_N_BINS = 10
# Rarer categories share a bin.
_MOST_CATEGORIES = 15
_MAX_SEED = np.iinfo(np.int32).max

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


def as_estimator(estimator: Any, y: Any, rng: np.random.RandomState) -> Any:
    """Return the estimator, or the default one for the targets, checked."""
    if estimator is None:
        are_numbers = type_of_target(y).startswith("continuous")
        booster: Any = (
            HistGradientBoostingRegressor
            if are_numbers
            else HistGradientBoostingClassifier
        )
        return booster(early_stopping=False, random_state=rng.randint(_MAX_SEED))
    if is_classifier(estimator) and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"estimator: {type(estimator).__name__} is a classifier without "
            "predict_proba, and residuals are those of probabilities; pass one that "
            "has it."
        )
    return estimator


def measure_features(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    eras: EncodedEras,
    sample_weight: Array | None,
    cv: Any,
    n_repeats: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> Bunch:
    """Return the `importances` of features, of shape (n_features, n_folds, n_eras), and
    `rows` left out with their `residuals`, of shape (n_features, n_rows, n_outputs).
    """
    n_eras = eras.labels.size
    if n_eras < 2:
        raise ValueError(
            f"eras has the one label {eras.labels[0]!s}, and nothing is left out to "
            "test on; pass rows of two eras or more."
        )
    cv = GroupKFold(min(cv, n_eras)) if isinstance(cv, Integral) else check_cv(cv)
    params = fit_arguments(estimator, eras.decode(), sample_weight)
    # Targets are numbers, or rows of 0 and 1, of which two classes need one column.
    targets, classes = np.asarray(y)[:, np.newaxis], None
    if is_classifier(estimator):
        classes = np.unique(y)
        targets = (targets == classes).astype(np.float64)
    weights = np.ones(len(targets)) if sample_weight is None else sample_weight
    folds = [
        delayed(_measure_fold)(
            clone(estimator), X, y, targets, classes, weights, params, eras, train,
            test, n_repeats, rng.randint(_MAX_SEED),
        )
        for train, test in cv.split(eras.codes, y, eras.codes)
    ]  # fmt: skip
    found = Parallel(n_jobs=n_jobs)(folds)
    return Bunch(
        importances=np.stack([fold[0] for fold in found], axis=1),
        rows=np.concatenate([fold[1] for fold in found]),
        residuals=np.concatenate([fold[2] for fold in found], axis=1),
    )


def _measure_fold(
    model: Any, X: Any, y: Any, targets: Array, classes: Any, weights: Array,
    params: dict[str, Any], eras: EncodedEras, train: Rows, test: Rows, n_repeats: int,
    seed: int,
) -> tuple[Array, Rows, Array]:  # fmt: skip
    """The importances of a fold by feature and era, and residuals without a feature."""
    rng = np.random.default_rng(seed)
    model.fit(
        _safe_indexing(X, train), y[train], **{k: v[train] for k, v in params.items()}
    )
    rows, target = _safe_indexing(X, test), targets[test]

    def respond(rows: Any) -> Array:
        if classes is None:
            return np.asarray(model.predict(rows), dtype=np.float64).reshape(-1, 1)
        found = np.zeros(target.shape)
        found[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(rows)
        return found

    def loss(predicted: Array) -> Array:
        if classes is None:
            return ((target - predicted) ** 2)[:, 0]
        of_class = (target * predicted).sum(axis=1)
        return -np.log(np.maximum(of_class, np.finfo(float).eps))

    codes, n_eras = eras.codes[test], eras.labels.size
    of_era = np.bincount(codes, weights[test], n_eras)
    base, importances, residuals = loss(respond(rows)), [], []
    for j in range(np.shape(X)[1]):
        rise, mean = np.zeros(test.size), np.zeros(target.shape)
        for _ in range(n_repeats):
            drawn = _safe_indexing(X, rng.choice(train, test.size))
            predicted = respond(_with_column(rows, j, drawn))
            rise += (loss(predicted) - base) / n_repeats
            mean += predicted / n_repeats
        with np.errstate(invalid="ignore"):
            sums = np.bincount(codes, weights[test] * rise, n_eras)
            importances.append(sums / np.where(of_era > 0, of_era, np.nan))
        left = target - mean
        residuals.append(left[:, 1:] if left.shape[1] == 2 else left)
    return np.array(importances), test, np.array(residuals)


def _with_column(X: Any, j: int, other: Any) -> Any:
    """Return a table with column j of another one, of the same rows."""
    if hasattr(X, "iloc"):
        X = X.copy()
        X.isetitem(j, other.iloc[:, j].array)
        return X
    frame = narwhals.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, narwhals.DataFrame):
        name = frame.columns[j]
        return frame.with_columns(narwhals.from_native(other)[name]).to_native()
    X = np.array(X)
    X[:, j] = np.asarray(other)[:, j]
    return X


def find_turning(
    columns: Sequence[Column],
    eras: EncodedEras,
    measured: Bunch,
    weights: Array | None,
    rng: np.random.RandomState,
) -> dict[str, Array]:
    """Return `effects` and `errors` by era and feature, and the `p_value` of each."""
    # By era, and in an era as they are.
    order = np.lexsort((measured.rows, eras.codes[measured.rows]))
    rows, n_eras = measured.rows[order], eras.labels.size
    codes = eras.codes[rows].astype(np.intp)
    design = make_design(codes, n_eras, rng)
    of_rows = np.ones(rows.size) if weights is None else weights[rows]
    found = [
        turning_of(
            TurningRows(
                residuals[order],
                _bins(column)[rows],
                codes,
                of_rows,
            ),
            n_eras,
            design,
        )
        for column, residuals in zip(columns, measured.residuals, strict=True)
    ]
    return {
        "effects": np.array([each.effects for each in found]).T,
        "errors": np.array([each.errors for each in found]).T,
        "p_value": np.array([each.p_value for each in found]),
    }


def _bins(column: Column) -> NDArray[np.intp]:
    """Number the quantiles or categories of a column; missing values have a bin."""
    if column.is_categorical:
        values = np.array(column.values, dtype=object)
        distinct = {value: place for place, value in enumerate(dict.fromkeys(values))}
        codes = np.array([distinct[value] for value in values], dtype=np.intp)
        counts = np.bincount(codes)
        place = np.empty(counts.size, dtype=np.intp)
        place[np.argsort(-counts, kind="stable")] = np.arange(counts.size)
        return np.minimum(place, _MOST_CATEGORIES)[codes]
    known = column.values[~np.isnan(column.values)]
    shares = np.arange(1, _N_BINS) / _N_BINS
    edges = np.unique(np.quantile(known, shares)) if known.size else known
    bins = np.searchsorted(edges, column.values)
    return np.where(np.isnan(column.values), edges.size + 1, bins)


__all__ = ["as_estimator", "find_turning", "measure_features"]
