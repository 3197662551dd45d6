"""Pass workers' reports on a fit to the client's estimator and its callbacks."""

import pickle
import time
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from ..ensemble._callbacks import Tasks
from ._cluster import Cluster
from ._training import KEPT, answer


def is_resumed(estimator: BaseEstimator) -> bool:
    """Return whether a fit continues with the trees of an earlier fit (warm start)."""
    return estimator.warm_start and estimator._is_fitted()


@dataclass
class Progress:
    """Updates the client's estimator and runs its callbacks when a worker reports."""

    _estimator: Any
    _cluster: Cluster
    _fit_id: str
    _first: str  # the worker that reports
    _local: Any  # with attributes of an earlier fit, which this one may remove

    def handle(self, message: dict[str, Any]) -> None:
        getattr(self, f"_{message['what']}")(message)

    def _begin(self, message: dict[str, Any]) -> None:
        estimator = self._estimator
        if not is_resumed(estimator):
            estimator._predictors = []
        fitted = self._update(message)
        parameters = estimator.get_params(deep=False)
        kept = {*parameters, *fitted, *KEPT, "validation_eras_"}
        for name in vars(self._local).keys() - kept:
            vars(estimator).pop(name, None)
        self._began = self._iteration_began = time.time()
        if estimator.verbose:
            print("Fitting gradient boosted rounds:")
        n_tasks = estimator.max_iter - len(estimator._predictors)
        rows: Any = _RowsOfWorkers()
        self._tasks = Tasks(estimator, rows, n_tasks)

    def _begin_iteration(self, message: dict[str, Any]) -> None:
        self._tasks.begin_iteration()

    def _end_iteration(self, message: dict[str, Any]) -> None:
        estimator = self._estimator
        self._update(message)
        for name, (n, last) in pickle.loads(message["more"]).items():
            if len(getattr(estimator, name)) < n:
                getattr(estimator, name).extend(last)
        if estimator.verbose >= 2:
            n_iter = len(estimator._predictors)
            print(f"[{n_iter}/{estimator.max_iter}] ", end="")
            estimator._print_iteration_stats(self._iteration_began)
            self._iteration_began = time.time()
        stop = bool(self._tasks.end_iteration())
        if hasattr(estimator, "_skl_callbacks"):
            self._cluster.run_on(self._first, answer, self._fit_id, stop)

    def end(self) -> None:
        estimator = self._estimator
        if estimator.verbose:
            trees = [tree for trees in estimator._predictors for tree in trees]
            n_leaves = sum(tree.get_n_leaf_nodes() for tree in trees)
            print(
                f"Fit {len(trees)} trees in {time.time() - self._began:.3f} s, "
                f"({n_leaves} total leaves)"
            )
        self._tasks.end()

    def _update(self, message: dict[str, Any]) -> dict[str, Any]:
        attributes = pickle.loads(message["attributes"])
        vars(self._estimator).update(attributes)
        return attributes


class _RowsOfWorkers:
    """Stands for the rows, which callbacks cannot have: any access raises an error."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(
            f"A callback asks for {name} of the rows to train on, which lie on the "
            "workers: take the callback off (set_callbacks), or fit a local estimator."
        )
