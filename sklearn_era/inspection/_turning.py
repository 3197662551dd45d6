"""Estimate effects of features in eras left out, and test if effects have both signs.
Bins of a feature get scores in one half of an era's rows, and effects are slopes on
these scores in the other half. Then the halves change places.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import narwhals
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, chi2, norm
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from .._eras import EncodedEras, era_means
from .._progress import Progress
from .._tables.columns import Column
from .._typing import Folds, Table
from ..ensemble._binning.thresholds import bin_numbers
from ..model_selection import _out_of_era as out_of_era

MAX_SEED = np.iinfo(np.int32).max
_N_BINS = 10
_MOST_CATEGORIES = 15  # rarer ones share a bin
_N_BLOCKS = 10  # blocks of rows of an era, in either half in turn
_LEAST_ROWS = 20
_N_SHIFTS = 10  # of the feature, for errors

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class Rows(NamedTuple):
    """Rows sorted by era, with the bins of a feature, and with the residuals of
    predictions that were made without this feature.
    """

    residuals: Array  # (n_rows, n_outputs)
    bins: Codes  # of the feature
    codes: Codes  # of eras
    weights: Array

    def take(self, rows: NDArray[np.bool_]) -> "Rows":
        return Rows._make(values[rows] for values in self)


class Design(NamedTuple):
    """The rows, shifts and blocks of eras that the tests of all features share."""

    is_used: NDArray[np.bool_]  # rows of eras that have enough of them
    is_second: NDArray[np.bool_]  # rows of the second half
    shifts: Codes  # (n_shifts, n_rows), rows of values shifted within eras, for errors
    levels: Sequence[Codes]  # the first eras of blocks; at first each era is a block


def measure_in_folds(
    measure: Callable[..., Any], model: BaseEstimator, X: Table, y: ArrayLike,
    eras: EncodedEras, weights: Any, *, cv: Folds, n_jobs: int | None,
    rng: np.random.RandomState, name: str, verbose: int,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Fit a model in folds of whole eras; return the folds, and for each fold the
    result of ``measure(model, train, test, seed)``, with the model of the fold.
    """
    out_of_era.check_enough(eras, False, name)
    quietly = out_of_era.folds_warned_once(n_jobs)
    with quietly, Progress(name, verbose, "steps") as progress:
        rows = eras.rows_with_weight(weights)
        folds = out_of_era.split_eras(cv, X, y, eras, False, name, rows=rows)
        params, n = out_of_era.fit_arguments(model, eras.decode(), weights), len(folds)
        progress.expect(2 * n)
        models = out_of_era.fit_folds(model, X, y, eras, folds, params, n_jobs)
        progress.step(n, f"fitted {n} models")
        found = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(measure)(model, *fold, rng.randint(MAX_SEED))
            for model, fold in zip(models, folds, strict=True)
        )
        texts = [f"measured features in fold {i + 1} of {n}" for i in range(n)]
        return folds, [*progress.of(found, texts)]


def measure_features(
    estimator: BaseEstimator, X: Any, y: NDArray[Any], eras: EncodedEras,
    sample_weight: Any, n_repeats: int, **folds_and_name: Any,
) -> Bunch:  # fmt: skip
    """Return a Bunch: `importances` of shape (n_features, n_folds, n_eras); `rows`, the
    indices of rows left out; the `residuals` of these rows from predictions without
    each feature, of shape (n_features, n_rows, n_outputs); and `weights` of all rows.
    """
    # Targets are numbers, or rows of 0 and 1.
    targets, classes = y[:, np.newaxis], None
    if is_classifier(estimator):
        classes = np.unique(y)
        targets = (targets == classes).astype(np.float64)
    weights = np.ones(y.size) if sample_weight is None else sample_weight
    measure = partial(_measure_fold, X, targets, classes, weights, eras, n_repeats)
    folds, found = measure_in_folds(
        measure, estimator, X, y, eras, sample_weight, **folds_and_name
    )
    importances, residuals = zip(*found, strict=True)
    return Bunch(
        importances=np.stack(importances, axis=1), weights=weights,
        rows=np.concatenate([test for _, test in folds]),
        residuals=np.concatenate(residuals, axis=1),
    )  # fmt: skip


def _measure_fold(
    X: Any, targets: Array, classes: NDArray[Any] | None, weights: Array,
    eras: EncodedEras, n_repeats: int, model: BaseEstimator, train: Codes, test: Codes,
    seed: int,
) -> tuple[Array, Array]:  # fmt: skip
    """Return importances (rises of the loss) by feature and era, and the residuals of
    the rows `test` from predictions without each feature.
    """
    rng = np.random.default_rng(seed)
    rows, target = _safe_indexing(X, test), targets[test]
    labels = eras.labels[eras.codes[test]]

    def predict(rows: NDArray[Any]) -> tuple[Array, Array]:
        """Return the predictions of rows, and the loss of each row."""
        p = out_of_era.respond(model, rows, classes, labels).reshape(target.shape)
        if classes is None:
            return p, ((target - p) ** 2)[:, 0]
        return p, -np.log(np.maximum((target * p).sum(axis=1), np.finfo(float).eps))

    importances, residuals, base = [], [], predict(rows)[1]
    for j in range(np.shape(X)[1]):
        rise, mean = np.zeros(test.size), np.zeros(target.shape)
        for _ in range(n_repeats):
            drawn = _safe_indexing(X, rng.choice(train, test.size))
            p, loss = predict(with_column(rows, j, drawn))
            rise += (loss - base) / n_repeats
            mean += p / n_repeats
        codes, n_eras = eras.codes[test], eras.labels.size
        importances.append(era_means(codes, weights[test], rise, n_eras))
        left = target - mean
        residuals.append(left[:, 1:] if left.shape[1] == 2 else left)
    return np.array(importances), np.array(residuals)


def with_column(X: Any, j: int, other: Any) -> Any:
    """Return a copy of X whose column j is taken from the table `other`."""
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


def find_turning(
    columns: Sequence[Column], eras: EncodedEras, measured: Any, are_ordered: bool,
    rng: np.random.RandomState,
) -> dict[str, Array]:  # fmt: skip
    """Return a dict: `effects` and their `errors`, of shape (n_eras, n_features), and
    `p_value` and `n_merged` (the number of eras in a block of the test with the least
    p-value), of shape (n_features,). See `turning_of`.
    """
    order = np.lexsort((measured.rows, eras.codes[measured.rows]))
    rows, n_eras = measured.rows[order], eras.labels.size
    # A row that several folds test counts once, with its mean residual.
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    n_tests = np.diff(starts, append=rows.size)[:, np.newaxis]
    rows = rows[starts]
    codes, weights = eras.codes[rows].astype(np.intp), measured.weights[rows]
    design, found = make_design(codes, n_eras, are_ordered, rng), []
    for column, residuals in zip(columns, measured.residuals, strict=True):
        left = np.add.reduceat(residuals[order], starts, axis=0) / n_tests
        own = Rows(left, _bins(column)[rows], codes, weights)
        found.append(turning_of(own, n_eras, design))
    effects, errors, p_value, n_merged = map(np.array, zip(*found, strict=True))
    return {
        "effects": effects.T, "errors": errors.T, "p_value": p_value,
        "n_merged": n_merged,
    }  # fmt: skip


def _bins(column: Column) -> Codes:
    """Return the bin of each value, by its quantile or its category. Missing numbers
    have a bin of their own, and rare categories share a bin.
    """
    if column.is_categorical:
        ranked = Counter(column.values.tolist()).most_common()
        place = {value: i for i, (value, _) in enumerate(ranked)}
        return np.array([min(place[x], _MOST_CATEGORIES) for x in column.values])
    return bin_numbers(column.values, _N_BINS, "linear")


def make_design(
    codes: Codes, n_eras: int, are_ordered: bool, rng: np.random.RandomState
) -> Design:
    """Return a `Design` for rows sorted by era. Blocks of an era's rows belong to the
    first half and to the second half in turn. At the first of the `levels`, each era is
    a block. If eras are ordered, each further level has half as many blocks of eras as
    the level before, down to two.
    """
    counts = np.bincount(codes, minlength=n_eras)
    is_used = (counts >= _LEAST_ROWS)[codes]
    used = codes[is_used]
    of_row, first = counts[used], np.searchsorted(used, used)
    place = np.arange(used.size) - first
    by = rng.uniform(0.1, 0.9, (_N_SHIFTS, n_eras))[:, used] * of_row
    shifts = first + (place + by.astype(np.intp)) % of_row
    levels, n_blocks = [np.arange(n_eras)], n_eras
    while are_ordered and (n_blocks := -(-n_blocks // 2)) > 1:
        levels.append(np.arange(n_blocks) * n_eras // n_blocks)
    return Design(is_used, place * _N_BLOCKS // of_row % 2 == 1, shifts, levels)


def turning_of(
    rows: Rows, n_eras: int, design: Design
) -> tuple[Array, Array, float, int]:
    """Return four results: a feature's effects by era, positive if they have the pooled
    effect's sign; their errors; the p-value of the hypothesis that all effects have one
    sign; and the number of eras in a block of the test with the least p-value.
    """
    rows = rows.take(design.is_used)
    if not rows.codes.size:
        return np.full(n_eras, np.nan), np.full(n_eras, np.nan), 1.0, 1
    scores = _directions(rows, n_eras, design.is_second)
    sums, left = _measure(rows, scores, n_eras, design.is_second)
    # Scores that fit noise vary faster along the rows than those that fit an effect.
    of_effect, of_noise = [], []
    for shift in design.shifts:
        moved = rows._replace(residuals=left, bins=rows.bins[shift])
        fitted = _directions(moved, n_eras, design.is_second)
        of_effect.append(_measure(moved, scores, n_eras, design.is_second)[0])
        of_noise.append(_measure(moved, fitted, n_eras, design.is_second)[0])
    n_rows = rows.codes.size / (2 * np.unique(rows.codes).size)  # of a half
    found = []
    for starts in design.levels:
        effects, errors = _merge(sums, starts)
        of_shifts = np.array([of_effect, of_noise])
        inflation = max(_inflation(each, starts, n_rows) for each in of_shifts)
        errors *= np.sqrt(inflation)
        found.append((qualitative(effects, errors), effects, errors))
    p_values = [p_value for p_value, *_ in found]
    least = int(np.argmin(p_values))  # the bound of Bonferroni
    return *found[0][1:], min(1.0, len(found) * p_values[least]), 2**least


def _merge(sums: Array, starts: Codes) -> tuple[Array, Array]:
    """Return the effects of blocks of eras, and the errors of these effects by White
    (1980). `sums` are those of `_measure`, of shape (..., 3, 2, n_eras); `starts` has
    the first era of each block.
    """
    of_blocks = np.add.reduceat(sums, starts, axis=-1)
    products, squares, noise = np.moveaxis(of_blocks, -3, 0)
    squares = np.where(squares > 0, squares, np.nan)
    errors = np.sqrt((noise / squares**2).sum(axis=-2)) / 2
    return (products / squares).mean(axis=-2), errors


def _inflation(of_shifts: Array, starts: Codes, n_rows: float) -> float:
    """Return the factor, 1 or more, by which the variance of effects is larger than for
    independent rows, estimated from the effects of shifted values.
    """
    effects, errors = _merge(of_shifts, starts)
    z = effects[errors > 0] / errors[errors > 0]
    variance = float(np.mean(z**2)) if z.size else 1.0
    # The slopes that are taken out fit one of about n_rows / variance independent rows.
    return max(1.0, variance / (1 - min(0.5, variance / n_rows)))


def _directions(
    rows: Rows, n_eras: int, is_second: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return the scores of bins for each half of the rows, learnt in the other half."""
    n_bins = int(rows.bins.max()) + 1
    halves = rows.take(~is_second), rows.take(is_second)
    (first, shape), (second, _) = (_direction(half, n_eras, n_bins) for half in halves)
    of_bin = np.bincount(rows.bins, rows.weights, n_bins)[:, np.newaxis]
    # Both have the sign of each other, and then that of the shape that eras share.
    if (of_bin * first * second).sum() < 0:
        second = -second
    if (of_bin * (first + second) * shape).sum() < 0:
        first, second = -first, -second
    return second, first


def _measure(
    rows: Rows, scores: tuple[Array, Array], n_eras: int, is_second: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return (sums, left): the sums of `_slopes` by era, for each half of the rows, and
    the residuals that remain after the slopes.
    """
    left, sums = np.empty_like(rows.residuals), []
    for of_half, half in zip(scores, (~is_second, is_second), strict=True):
        found, left[half] = _slopes(of_half, rows.take(half), n_eras)
        sums.append(found)
    return np.stack(sums, axis=1), left


def _centered(values: Array, rows: Rows, n_eras: int) -> Array:
    """Return the values of rows minus the weighted mean of each row's era."""
    means = era_means(rows.codes, rows.weights, values.T, n_eras)
    return values - np.nan_to_num(means.T)[rows.codes]


def _direction(rows: Rows, n_eras: int, n_bins: int) -> tuple[Array, Array]:
    """Return (scores, shape): the scores of bins, and the shape that eras share, which
    is the mean residuals by bin, fitted to all eras. Scaled to equal noise, this shape
    and each era's residuals by bin are the rows of a matrix; its leading right singular
    vector gives the scores.
    """
    cells = rows.codes * n_bins + rows.bins
    n = np.bincount(cells, rows.weights, n_eras * n_bins).reshape(n_eras, n_bins, 1)
    residuals = rows.weights * _centered(rows.residuals, rows, n_eras).T
    of_cells = [np.bincount(cells, r, n.size) for r in residuals]
    sums = np.stack(of_cells, axis=-1).reshape(n_eras, n_bins, -1)
    least = np.finfo(float).tiny
    of_era = np.maximum(n.sum(axis=1, keepdims=True), least)
    of_bin = n.sum(axis=0)
    # The shape is by least squares, beside levels of eras.
    laplacian = np.diag(of_bin[:, 0]) - (n / of_era)[..., 0].T @ n[..., 0]
    shape = np.linalg.pinv(laplacian, hermitian=True) @ sums.sum(axis=0)
    shape -= (of_bin * shape).sum(axis=0) / of_bin.sum()
    share = np.sqrt(np.maximum(of_bin / of_bin.sum(), least))
    own = sums / (share * np.sqrt(of_era))
    shared = np.sqrt(of_bin.sum()) * share * shape
    stacked = np.concatenate([own, shared[np.newaxis]]).reshape(n_eras + 1, -1)
    leading = np.linalg.svd(stacked, full_matrices=False)[2][0].reshape(shape.shape)
    return np.where(of_bin > 0, leading / share, 0.0), shape


def _slopes(scores: Array, rows: Rows, n_eras: int) -> tuple[Array, Array]:
    """Return (sums, left). For each era, there are sums of residuals times scores, of
    squared scores and of noise; their ratios are slopes and variances. The residuals
    `left` are those that remain after the slopes.
    """

    def of_eras(values: Array) -> Array:
        return np.bincount(rows.codes, values, n_eras).astype(np.float64)

    x, r = (_centered(v, rows, n_eras) for v in (scores[rows.bins], rows.residuals))
    w = rows.weights
    square = of_eras(w * (x * x).sum(axis=1))
    varies = square > 1e-9 * of_eras(w)
    product = of_eras(w * (x * r).sum(axis=1))
    slopes = np.divide(product, square, out=np.zeros(n_eras), where=varies)
    left = r - slopes[rows.codes, np.newaxis] * x
    noise = of_eras((w * (x * left).sum(axis=1)) ** 2)
    return np.where(varies, [product, square, noise], 0.0), left


def qualitative(effects: Array, errors: Array) -> float:
    """Return the p-value of the hypothesis that all effects have one sign (Gail, Simon
    1985). Effects of this sign that exceed their error are left out (Zhao, Small, Su
    2019).
    """
    known = np.isfinite(effects) & (errors > 0)
    z = effects[known] / errors[known]
    p_values = []
    for side in (z, -z):
        near = side[side <= 1]
        h = np.arange(1, near.size + 1)
        # The chance that a nil effect, if it is one of these, is negative.
        share = 0.5 / norm.cdf(1)
        against = (near[near < 0] ** 2).sum()
        tail = binom.pmf(h, near.size, share) @ chi2.sf(against, h)
        p_values.append(tail if against > 0 else 1.0)
    return float(max(p_values))
