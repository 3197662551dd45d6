"""What members predict of eras that they have not seen: fits in folds of whole eras."""

import time
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.model_selection._search import BaseSearchCV

from .._warnings import warn_user
from ..model_selection._search import EraSearchCV
from ..model_selection._search_scores import ScorerByEra
from ._losses import Loss
from ._members import PLAIN, Member, cost_of, stages_of
from ._weights import Rows, best_stage, equal_eras


class Responses(float):
    """The score of a fold by all stages, and what the member predicted after each."""

    predicted: NDArray[np.float64]  # of shape (n_stages, n_rows)
    rows: NDArray[np.intp]

    def __new__(cls, score: float, predicted: Any, rows: Any) -> "Responses":
        self = super().__new__(cls, score)
        self.predicted, self.rows = predicted, rows
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Responses, (float(self), self.predicted, self.rows)


class _Scorer(ScorerByEra):
    """Scores a fold, and keeps what was predicted of it."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(get_scorer("neg_mean_squared_error"))  # what takes weights
        self.loss = loss

    def __call__(
        self, estimator: Any, X: Any, *y: Any, era_codes: Any, **params: Any
    ) -> Responses:
        predicted = estimator.respond(X, y[0])
        weights = params.get("sample_weight")
        losses = self.loss(np.asarray(y[0]), predicted[-1])
        of_rows = equal_eras(np.unique(era_codes, return_inverse=True)[1], weights)
        return Responses(-float(of_rows @ losses), predicted, params["rows"])


class MemberSearch(EraSearchCV):
    """Fits members in folds, as many at once as `n_jobs` allows, while there is time.

    After a fit `names` are those of the members, `seconds` what their folds took.
    """

    _name = "AutoEra"
    verbose: int

    def __init__(
        self, plain: Any, make_members: Any, loss: Loss, time_budget: Any, **params: Any
    ) -> None:
        super().__init__(Member(plain), {}, refit=False, **params)
        self.plain, self.make_members, self.loss = plain, make_members, loss
        self.time_budget = time_budget

    def _get_scorers(self, by_era: bool = True) -> tuple[Any, str]:
        return _Scorer(self.loss), "score"

    def _get_routed_params_for_fit(self, params: dict[str, Any]) -> Any:
        self.routed = super()._get_routed_params_for_fit(params)
        self.routed.scorer.score["rows"] = np.arange(self._codes.size)
        return self.routed

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> dict[str, Any]:
        scores = [fit["test_scores"] for fit in out]
        self.found = [scores[i : i + n_splits] for i in range(0, len(out), n_splits)]
        rows = [fold.rows for fold in self.found[0] if isinstance(fold, Responses)]
        self._test_codes = np.unique(
            self._codes[np.concatenate([[], *rows]).astype(int)]
        )
        return BaseSearchCV._format_results(
            self, candidate_params, n_splits, out, more_results
        )

    def _select_best_index(self, refit: Any, metric: str, results: Any) -> int:
        return 0

    def _run_search(self, evaluate_candidates: Any, **_: Any) -> None:
        n_eras = np.unique(self._codes).size
        self.members = self.make_members(n_eras, self.era_order_ == "ordered")
        self.names: list[str] = []
        self.seconds: dict[str, float] = {}
        to_come, start = list(self.members), time.perf_counter()
        n_at_once = -(-effective_n_jobs(self.n_jobs) // self.n_splits_)
        verbose, self.verbose = self.verbose, max(0, self.verbose - 1)
        while to_come:
            n = n_at_once if self.names else 1
            batch, to_come = to_come[:n], to_come[n:]
            before = time.perf_counter()
            models = [{"model": self.members[name]} for name in batch]
            try:
                found = evaluate_candidates(models)
            except ValueError as error:
                if not self.names or "fits failed" not in str(error):
                    raise
                last = str(error).strip().splitlines()[-1]
                warn_user(
                    f"members: {', '.join(batch)} cannot be fitted, and is left out: "
                    f"{last}"
                )
                continue
            now = time.perf_counter()
            for name in batch:
                self.names.append(name)
                self.seconds[name] = (now - before) / len(batch)
                if verbose:
                    loss = -found["mean_test_score"][len(self.names) - 1]
                    print(
                        f"AutoEra {len(self.names)}/{len(self.members)}: {name}, loss "
                        f"{loss:.5g} in eras left out, {self.seconds[name]:.1f} s"
                    )
            to_come = self._affordable(to_come, now - start)
        self.verbose = verbose

    def _affordable(self, to_come: list[str], spent: float) -> list[str]:
        """Return the members to come that there is time for, with fits to all rows,
        each of which takes half as long as those in folds together.
        """
        if self.time_budget is None:
            return to_come
        per_cost = sum(self.seconds.values()) / sum(map(cost_of, self.names))
        due, kept = spent + 0.5 * sum(self.seconds.values()), []
        for name in to_come:
            due += 1.5 * per_cost * cost_of(name)
            if due <= self.time_budget:
                kept.append(name)
        return kept


class OutOfEra(NamedTuple):
    """Rows of the eras left out, one fold after another, and what members predicted of
    them after their best stages; the plain model, which comes first, after all.
    """

    names: list[str]
    stages: list[int]  # of each member
    predicted: NDArray[np.float64]  # of shape (n_members, n_rows)
    rows: Rows
    codes: NDArray[np.integer]  # of eras
    folds: NDArray[np.intp]

    def by_era(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return means by era, of values of rows, the last axis, by their weights."""
        tested, codes = np.unique(self.codes, return_inverse=True)
        weights = self.rows.weights * tested.size
        means = [np.bincount(codes, weights * x, tested.size) for x in values]
        return np.array(means)


def gather(
    search: MemberSearch, y: NDArray[Any], codes: NDArray[Any], sample_weight: Any
) -> OutOfEra:
    """Put together what a search has found, without members that failed in a fold."""
    found = [
        (name, folds)
        for name, folds in zip(search.names, search.found, strict=True)
        if all(isinstance(fold, Responses) for fold in folds)
    ]
    if not found or found[0][0] != PLAIN:
        raise ValueError(
            "The plain model, with which members are compared, cannot be fitted or "
            "scored in some fold."
        )
    parts = [fold.rows for fold in found[0][1]]
    rows = np.concatenate(parts)
    tested, codes = np.unique(codes[rows], return_inverse=True)
    weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
    known = Rows(y[rows], equal_eras(codes, weights))
    names, stages, predicted = [], [], []
    for name, folds in found:
        by_stage = np.concatenate([fold.predicted for fold in folds], axis=1)
        best = -1 if name == PLAIN else best_stage(by_stage, known, search.loss)
        names.append(name)
        stages.append(stages_of(search.members[name])[best])
        predicted.append(by_stage[best])
    return OutOfEra(
        names,
        stages,
        np.array(predicted),
        known,
        tested[codes],
        np.repeat(np.arange(len(parts)), [part.size for part in parts]),
    )


__all__ = ["MemberSearch", "OutOfEra", "gather"]
