"""Fit members in folds, and predict the rows that each fold leaves out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.ensemble._base import _BaseHeterogeneousEnsemble
from sklearn.utils import _safe_indexing
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from .._era_routing import ask, eras_for_prediction, takes_eras
from .._eras import EncodedEras
from .._label_columns import EraColumns
from .._progress import Progress
from .._typing import Eras, Table
from .._warnings import warn_user
from ..ensemble._boosters.known_eras import in_eras
from ..model_selection._out_of_era import (
    fit_arguments,
    fit_rows,
    names_of,
    rows_of_params,
)
from ._candidates import BOOSTERS, PLAIN
from ._categories import Columns, beside, encode
from ._linear import LinearClassifier, LinearRegressor
from ._other_packages import Peer
from ._row_losses import Loss
from ._weights import Array, LeftOut, equal_eras, promising

# Shares of all iterations, of which the best one is chosen.
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
# Models that have stages, and a parameter `max_iter` to end after a stage.
_STAGED = (*BOOSTERS, Peer)
_ENSEMBLES = BaggingRegressor, BaggingClassifier, _BaseHeterogeneousEnsemble
# In folds, boosters stop after this share of all without gain.
_PATIENCE = 0.2
# Members in a first fold of eras, a second one and all others, beside the plain and the
# linear one.
_KEPT = (None, 3, 3)
_MOST = 4  # members kept that take time: the plain one and three others


class PlainModelError(ValueError):
    """Raised if the plain model, which members have to beat, fails in a fold."""


class Rows(NamedTuple):
    """The rows of a fit. Eras are held twice: as they were passed, and encoded."""

    X: Any
    y: NDArray[Any]
    eras: Any
    sample_weight: Any  # or None
    encoded: EncodedEras

    def take(self, rows: NDArray[np.intp]) -> "Rows":
        """Return the given rows; do not copy if these are all rows."""
        if rows.size == self.y.size:
            return self
        X, y, eras, weights, encoded = self
        X, y, eras = (_safe_indexing(x, rows) for x in (X, y, eras))
        weights = None if weights is None else weights[rows]
        return Rows(X, y, eras, weights, encoded.take(rows))

    def of_times(self) -> "Rows":
        """Return the rows with times alone as eras: the groups are removed."""
        alone = replace(self.encoded, groups=None, pair=None)
        return self._replace(eras=alone.decode(), encoded=alone)


def fit_members(
    models: dict[str, Any], X_of: Callable[[str], Any], y: Any, eras: Any, weights: Any,
    n_jobs: int | None,
) -> dict[str, Any]:  # fmt: skip
    """Return a dict of copies of the models by name, each fitted to all rows. `X_of`
    takes a model's name, and returns X in the form that the model takes.
    """
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(_fit_quietly)(model, X_of(name), y, fit_arguments(model, eras, weights))
        for name, model in models.items()
    )
    return dict(zip(models, fitted, strict=True))


@np.errstate(all="ignore")  # losses in rows left out tell whether a member diverges
def _fit_quietly(*args: Any) -> Any:
    return fit_rows(*args)


@dataclass
class Search:
    """Fits members in folds until a deadline. With folds of eras, all members are
    fitted in the last fold, which has the most training rows; then the best members in
    the fold before it; then the best of these in all other folds. If folds leave groups
    out, all members are fitted in the last two folds, and the best in all other folds.
    """

    members: dict[str, Any]
    rows: Rows
    columns: Columns
    folds: Sequence[Any]
    loss: Loss
    by_eras: bool
    deadline: float | None
    n_jobs: int | None
    progress: Progress

    def run(self) -> "Search":
        """Fit the members; set `found`, their predictions in folds, and `seconds`, the
        time that each of them took; return self.
        """
        self.found: dict[str, dict[int, Array]] = {}
        self.seconds: dict[str, float] = {}
        self.done: list[int] = []
        self.names, numbers = list(self.members), [*range(len(self.folds))]
        self.start = time.perf_counter()
        rounds = [numbers]
        if self.by_eras:
            parts = [numbers[-1:], numbers[-2:-1], numbers[:-2]]
            if self.leaves_groups_out():  # of which one fold has too few to choose by
                parts = [numbers[-2:], numbers[:-2]]
            rounds = [x for x in parts if x]
        for part, n_kept in zip(rounds, _KEPT, strict=False):
            if self.done:
                self.names = promising(self.left_out(), self.loss, n_kept)
            self._fit(part)
        return self

    def leaves_groups_out(self) -> bool:
        """Return whether the last fold tests only groups that it does not train on."""
        if (groups := self.rows.encoded.groups) is None:
            return False
        train, test = self.folds[-1]
        return not np.isin(groups.codes[test], groups.codes[train]).any()

    def _fit(self, numbers: list[int]) -> None:
        """Fit the members in the folds with these numbers. Drop members that fail, and,
        with a warning, members for which no time is left.
        """
        self.done, to_come, self.names = sorted([*self.done, *numbers]), self.names, []
        n_later = len(self.folds) - len(self.done) + 1 + self.by_eras
        n_fits = len(to_come) * len(numbers) + min(len(to_come), _MOST) * n_later
        self.progress.expect(n_fits)
        rows, columns = self.rows, self.columns
        folds = [self.folds[k] for k in numbers]
        folds = [(*fold, encode(columns, rows, *fold)) for fold in folds]
        while to_come:
            n = len(to_come)
            if self.deadline is not None:
                n = effective_n_jobs(self.n_jobs) if self.seconds else 1
            batch, to_come, start = to_come[:n], to_come[n:], time.perf_counter()
            lines = max(0, self.progress.verbose - 1)
            fitted = Parallel(self.n_jobs, verbose=lines, return_as="generator")(
                delayed(_fit_fold)(
                    model, rows._replace(X=X), train, test,
                    encoded if columns.is_encoded(name) else None, self.loss,
                    # The plain model, of all comparisons, keeps all of its trees.
                    np.inf if self.by_eras and name == PLAIN else _PATIENCE,
                )
                for name in batch
                for model, X in [columns.in_folds(name, self.members[name])]
                for train, test, encoded in folds
            )  # fmt: skip
            for name in batch:
                of_folds = dict(zip(numbers, fitted, strict=False))
                now = time.perf_counter()
                self.seconds[name] = self.seconds.get(name, 0.0) + now - start
                start = now
                self._take(name, of_folds)
            if self.deadline is not None and self.done == numbers and to_come:
                spent = sum(self.seconds.values()) * (1 + 1 / len(self.found))
                is_late = spent * (1 + n_later) > self.deadline - self.start
                if is_late and len(self.found) > 1:  # without another, no average
                    warn_user(
                        f"time_budget: no time is left for {len(to_come)} of "
                        f"{len(self.members)} members ({', '.join(to_come)}); the "
                        "average is of the others."
                    )
                    to_come = []

    def _take(self, name: str, of_folds: dict[int, Any]) -> None:
        """Store a member's predictions in folds. If its fit failed in a fold, drop the
        member with a warning, or raise PlainModelError if it is the plain model.
        """
        for k, x in of_folds.items():
            if not isinstance(x, str) and not np.isfinite(x).all():
                of_folds[k] = "predictions that are not finite numbers"
        if failed := [k for k, x in of_folds.items() if isinstance(x, str)]:
            where = names_of(self.folds, self.rows.encoded)[failed[0]]
            error = f"{of_folds[failed[0]]} (in {where})"
            if name == PLAIN:
                raise PlainModelError(
                    "The plain model, with which members are compared, cannot be "
                    "fitted or scored in some fold; fewer folds have more eras to "
                    f"train on. It fails by {error}"
                )
            ensemble = isinstance(self.members[name], _ENSEMBLES)
            if ensemble and "eras" in of_folds[failed[0]]:
                error += (
                    ". AutoEra does without metadata routing, by which alone the "
                    f"{type(self.members[name]).__name__} hands eras on: pass the "
                    "models inside it as members."
                )
            warn_user(f"members: {name} cannot be fitted, and is left out: {error}")
            self.found.pop(name, None)
            return
        self.names.append(name)
        self.found[name] = self.found.get(name, {}) | of_folds
        loss = self.left_out([name]).losses(name, self.loss)[-1]
        kind = "eras" if self.by_eras else "rows"
        self.progress.step(len(of_folds), f"{name}, loss {loss:.5g} in {kind} left out")

    def left_out(self, names: Sequence[str] | None = None) -> LeftOut:
        """Return the predictions of the members `names` (by default, all members that
        were not dropped) for the test rows of all folds so far. The predictions of a
        member are NaN in folds in which the member was not fitted.
        """
        names, rows, done = self.names if names is None else names, self.rows, self.done
        of_folds = [self.folds[k][1] for k in done]
        tests = np.concatenate(of_folds)
        codes = np.unique(rows.encoded.codes[tests], return_inverse=True)[1]
        of_rows = rows.sample_weight
        weights = np.ones(tests.size) if of_rows is None else of_rows[tests]
        if self.by_eras:  # all of which count the same
            weights = equal_eras(codes, weights)
        # The loss of a class asks for its probability alone.
        is_class = is_classifier(self.members[PLAIN])
        y = np.zeros(tests.size) if is_class else rows.y[tests]
        predicted, stages = {}, {}
        for name in names:
            stages[name] = self._stages(name)
            parts = [
                self.found[name].get(k, np.full((len(stages[name]), test.size), np.nan))
                for k, test in zip(done, of_folds, strict=True)
            ]
            predicted[name] = np.concatenate(parts, axis=1)
        groups = rows.encoded.groups
        of_groups = groups.codes[tests] if groups is not None else None
        weights /= weights.sum()
        return LeftOut(predicted, stages, y, weights, codes, of_groups)

    def _stages(self, name: str) -> list[int]:
        """Return the stages at which a member's fit to all rows may end. A number of
        trees in folds is multiplied by two ratios: of all rows to training rows, and of
        the member's trees to its trees in folds.
        """
        model, _ = self.columns.in_folds(name, self.members[name])
        stages, n_trees = stages_of(model), getattr(self.members[name], "max_iter", 0)
        if stages == [0] or not isinstance(model, _STAGED):
            return stages
        n_rows = np.mean([train.size for train, _ in self.folds])
        scale = n_trees / model.max_iter * self.rows.y.size / n_rows
        return [min(round(scale * n), n_trees) for n in stages]


class _Stages:
    """Follows a booster's fit in a fold. After each stage, which is a number of trees,
    it predicts the rows that the fold leaves out. It stops the fit once a share of all
    trees (`patience`) brings no smaller loss.
    """

    def __init__(
        self, stages: list[int], X: Table, y: ArrayLike, loss: Any, patience: float,
        eras: Eras,
    ) -> None:  # fmt: skip
        self.stages, self.X, self.y, self.loss, self.eras = stages, X, y, loss, eras
        self.patience, self.predicted = patience * stages[-1], list[Array]()

    def begin_iteration(self, estimator: BaseEstimator) -> None:
        """Do nothing; a fit calls this before each iteration."""

    def end_iteration(
        self, estimator: BaseEstimator, fitted: Callable[[], Any]
    ) -> bool:
        """Keep predictions if a stage ends here; return whether the fit may stop."""
        n_trees, n_before = len(estimator._predictors), len(self.predicted)
        if n_trees not in self.stages:
            return False
        model = object.__new__(type(estimator))
        vars(model).update(fitted())
        if not n_before:  # once, as each stage adds its trees
            self.numbers = model._preprocess_X(self.X, reset=False)
            shape = len(self.numbers), model.n_trees_per_iteration_
            self.raw = np.zeros(shape, order="F")
        trees = model._predictors[[0, *self.stages][n_before] :]
        n_threads = _openmp_effective_n_threads()
        model._predict_iterations(self.numbers, trees, self.raw, False, n_threads)
        raw = self.raw + model._baseline_prediction
        model._raw_predict = lambda _: raw
        known = in_eras(model, self.X, self.eras)
        self.predicted.append(respond(known, self.X, self.y, [0])[0])
        best = int(np.argmin([self.loss(p) for p in self.predicted]))
        return n_trees - self.stages[best] >= self.patience


@np.errstate(all="ignore")
def _fit_fold(
    model: BaseEstimator, rows: Rows, train: NDArray[np.intp], test: NDArray[np.intp],
    parts: Any, loss: Loss, patience: float,
) -> Array | str:  # fmt: skip
    """Fit a member to the rows `train`; return its predictions of the rows `test` after
    each stage or, if the fit fails, the error as text.
    """
    X, y, eras, weights, _ = rows
    try:
        given = fit_arguments(model, eras, weights)
        X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
        if parts is not None:
            encoder, *values = parts
            pairs = zip((X_train, X_test), values, strict=True)
            X_train, X_test = (beside(x, encoder, more) for x, more in pairs)
        given = rows_of_params(X, given, indices=train)
        y_train, y_test, stages = _safe_indexing(y, train), y[test], stages_of(model)
        if isinstance(model, BOOSTERS) and stages != [0]:
            at = np.zeros(test.size) if is_classifier(model) else y_test
            w = None if weights is None or not weights[test].any() else weights[test]
            known = eras_for_prediction(model, eras[test])
            one = _Stages(
                stages, X_test, y_test, lambda p: np.average(loss(at, p), weights=w),
                patience, known,
            )  # fmt: skip
            fit_rows(model, X_train, y_train, given, follower=one)
            last = [one.predicted[-1]] * (len(stages) - len(one.predicted))
            return np.array(one.predicted + last)
        fitted = fit_rows(model, X_train, y_train, given)
        return respond(fitted, X_test, y_test, stages, eras[test])
    except Exception as error:  # any, of a model that was passed
        return f"{type(error).__name__}: {error}"


def respond(
    model: BaseEstimator, X: Table, y: ArrayLike, stages: list[int],
    eras: Eras | None = None,
) -> Array:  # fmt: skip
    """Return predictions after each of `stages`, of shape (n_stages, n_rows). A
    classifier's predictions are the probabilities of the rows' own classes, `y`. A
    model that predicts by eras gets `eras`.
    """
    method = "predict_proba" if is_classifier(model) else "predict"
    if stages == [0]:
        found = [ask(model, method, X, eras_for_prediction(model, eras))]
    elif isinstance(model, Peer):
        found = model.predict_after(method, X, stages)
    else:
        staged = enumerate(getattr(model, f"staged_{method}")(X), 1)
        found = [values for n, values in staged if n in stages]
    if not is_classifier(model):
        return np.array(found, dtype=np.float64)
    classes = model.classes_
    place = np.searchsorted(classes, y).clip(max=classes.size - 1)
    rows = np.arange(_num_samples(X))
    return np.array([np.where(classes[place] == y, p[rows, place], 0.0) for p in found])


def answer(model: BaseEstimator, method: str, X: Table, eras: Eras | None) -> Any:
    """Return a fitted member's predictions. Times and groups are passed as in folds;
    labels of one column, which may be of known eras, to a member that takes them.
    """
    if isinstance(eras, EraColumns):
        known = eras_for_prediction(model, eras)
    else:
        known = eras if takes_eras(model, method) else None
    return ask(model, method, X, known)


def stages_of(model: BaseEstimator) -> list[int]:
    """Return the stages after which a model may end: numbers of trees or, for a linear
    model, of penalties. Return [0] if the model cannot end before all of it is fitted.
    """
    if isinstance(model, LinearRegressor | LinearClassifier):
        return list(range(1, len(model.penalties) + 1))
    if isinstance(model, _STAGED) and model.early_stopping is False:
        return sorted({max(1, round(share * model.max_iter)) for share in _SHARES})
    return [0]


def at_stage(model: BaseEstimator, stage: int) -> Any:
    """Return an unfitted copy of a model, whose fit ends after `stage`, if not 0."""
    copied = clone(model)
    if stage and isinstance(model, _STAGED):
        copied.set_params(max_iter=stage)
    elif stage:
        copied.set_params(penalties=model.penalties[:stage])
    return copied
