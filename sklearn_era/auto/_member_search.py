"""Fits of members in folds, and their predictions of the rows that are left out."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from .._era_routing import ask, prepares_by_era
from .._eras import EncodedEras
from .._warnings import warn_user
from ..model_selection._out_of_era import (
    fit_arguments,
    fit_rows,
    names_of,
    rows_of_params,
)
from ._candidates import BOOSTERS, PLAIN
from ._categories import Columns, beside, encode
from ._linear import LinearClassifier, LinearRegressor
from ._losses import Loss
from ._weights import LeftOut, equal_eras

# Shares of all iterations, of which the best one is chosen.
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)


class PlainModelError(ValueError):
    """The plain model fails in a fold."""


class Rows(NamedTuple):
    """The rows of a fit, with their eras as they were passed, and encoded."""

    X: Any
    y: NDArray[Any]
    eras: Any
    sample_weight: NDArray[np.float64] | None
    encoded: EncodedEras


def fit_members(
    models: dict[str, Any], X_of: Callable[[str], Any], y: Any, eras: Any, weights: Any,
    n_jobs: int | None,
) -> dict[str, Any]:  # fmt: skip
    """Return copies of models, each fitted to all rows of its own columns."""
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(fit_rows)(model, X_of(name), y, fit_arguments(model, eras, weights))
        for name, model in models.items()
    )
    return dict(zip(models, fitted, strict=True))


def search_members(
    members: dict[str, Any], rows: Rows, columns: Columns, folds: Sequence[Any],
    loss: Loss, deadline: float | None, *, by_eras: bool, n_jobs: int | None,
    verbose: int,
) -> tuple[LeftOut, dict[str, float]]:  # fmt: skip
    """Fit members in folds, as many at once as `n_jobs` allows, until `deadline`.
    Return predictions of those that fail in none, and the seconds that these took.
    """
    tests = np.concatenate([test for _, test in folds])
    codes = np.unique(rows.encoded.codes[tests], return_inverse=True)[1]
    of_rows = rows.sample_weight
    weights = np.ones(tests.size) if of_rows is None else of_rows[tests]
    if by_eras:  # all of which count the same
        weights = equal_eras(codes, weights)
    # The loss of a class asks for its probability alone.
    y = np.zeros(tests.size) if is_classifier(members[PLAIN]) else rows.y[tests]
    left_out = LeftOut({}, {}, y, weights / weights.sum(), codes)
    encoded = [encode(columns, rows, *fold) for fold in folds]
    to_come, seconds = list(members), dict[str, float]()
    while to_come:
        n = -(-effective_n_jobs(n_jobs) // len(folds)) if seconds else 1
        batch, to_come = to_come[:n], to_come[n:]
        start = time.perf_counter()
        found = Parallel(n_jobs=n_jobs, verbose=max(0, verbose - 1))(
            delayed(_fit_fold)(
                members[name],
                rows._replace(X=columns.of(name)),
                *fold,
                parts if columns.is_encoded(name) else None,
            )
            for name in batch
            for fold, parts in zip(folds, encoded, strict=True)
        )
        now = time.perf_counter()
        for i, name in enumerate(batch):
            of_folds = found[i * len(folds) : (i + 1) * len(folds)]
            if failed := [k for k, x in enumerate(of_folds) if isinstance(x, str)]:
                where = names_of(folds, rows.encoded)[failed[0]]
                error = f"{of_folds[failed[0]]} (in {where})"
                if name == PLAIN:
                    raise PlainModelError(
                        "The plain model, with which members are compared, cannot be "
                        "fitted or scored in some fold; fewer folds have more eras to "
                        f"train on. It fails by {error}"
                    )
                warn_user(f"members: {name} cannot be fitted, and is left out: {error}")
                continue
            seconds[name] = (now - start) / len(batch)
            left_out.predicted[name] = np.concatenate(of_folds, axis=1)
            left_out.stages[name] = stages_of(members[name])
            if verbose:
                print(
                    f"AutoEra {len(seconds)}/{len(members)}: {name}, loss "
                    f"{left_out.losses(name, loss)[-1]:.5g} in "
                    f"{'eras' if by_eras else 'rows'} left out, {seconds[name]:.1f} s"
                )
        if deadline is not None:
            to_come = _affordable(to_come, seconds, deadline - now, by_eras)
    return left_out, seconds


def _fit_fold(
    model: Any, rows: Rows, train: NDArray[np.intp], test: NDArray[np.intp],
    parts: Any,
) -> NDArray[np.float64] | str:  # fmt: skip
    """Return what a member predicts of a fold after each stage, or its error."""
    X, y, eras, weights, encoded = rows
    try:
        given = fit_arguments(model, eras, weights)
        X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
        if parts is not None:
            encoder, *values = parts
            pairs = zip((X_train, X_test), values, strict=True)
            X_train, X_test = (beside(x, encoder, more) for x, more in pairs)
        given = rows_of_params(X, given, indices=train)
        fitted = fit_rows(model, X_train, _safe_indexing(y, train), given)
        known = encoded.labels[encoded.codes[test]]
        return respond(fitted, X_test, y[test], stages_of(fitted), known)
    except Exception as error:  # any, of a model that was passed
        return f"{type(error).__name__}: {error}"


def _affordable(
    to_come: list[str], seconds: dict[str, float], seconds_left: float, by_eras: bool
) -> list[str]:
    """Return the members to come that there is time for: folds of rows and fits to all
    rows together take about as long as folds of eras.
    """
    per_cost = sum(seconds.values()) / sum(map(_cost_of, seconds))
    kept = []
    if by_eras:
        seconds_left -= sum(seconds.values())
    for name in to_come:
        seconds_left -= (1 + by_eras) * per_cost * _cost_of(name)
        if seconds_left >= 0:
            kept.append(name)
    return kept


def _cost_of(name: str) -> float:
    """Return the time that fits take, over the plain model's, on public data."""
    return 0.1 if name == "linear" else 1.0


def respond(
    model: Any, X: Any, y: Any, stages: list[int], eras: Any = None
) -> NDArray[np.float64]:
    """Return predictions of shape (n_stages, n_rows): of a regressor; or of a
    classifier the probability of the row's own class. Eras are for transformers.
    """
    method = "predict_proba" if is_classifier(model) else "predict"
    if stages == [0]:
        found = [ask(model, method, X, eras if prepares_by_era(model) else None)]
    else:
        staged = enumerate(getattr(model, f"staged_{method}")(X), 1)
        found = [values for n, values in staged if n in stages]
    if not is_classifier(model):
        return np.array(found, dtype=np.float64)
    classes = model.classes_
    place = np.searchsorted(classes, y).clip(max=classes.size - 1)
    rows = np.arange(_num_samples(X))
    return np.array([np.where(classes[place] == y, p[rows, place], 0.0) for p in found])


def stages_of(model: Any) -> list[int]:
    """Return the stages after which a model may end; 0 for all, without a choice."""
    if isinstance(model, LinearRegressor | LinearClassifier):
        return list(range(1, len(model.penalties) + 1))
    if isinstance(model, BOOSTERS) and model.early_stopping is False:
        return sorted({max(1, round(share * model.max_iter)) for share in _SHARES})
    return [0]


def at_stage(model: Any, stage: int) -> Any:
    """Return an unfitted copy that ends after a stage of those of `stages_of`."""
    copied = clone(model)
    if stage and isinstance(model, BOOSTERS):
        copied.set_params(max_iter=stage)
    elif stage:
        copied.set_params(penalties=model.penalties[:stage])
    return copied
