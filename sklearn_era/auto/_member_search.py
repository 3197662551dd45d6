"""Fits of members in folds, and what they predict of the rows that are left out."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold
from sklearn.model_selection._search import BaseSearchCV

from .._warnings import warn_user
from ..model_selection._search import EraSearchCV
from ..model_selection._search_scores import ScorerByEra
from ._losses import Loss
from ._members import PLAIN, Member, cost_of, respond, stages_of
from ._weights import LeftOut, equal_eras


class Responses(float):
    """The score of a fold, and the predictions of the member after each stage."""

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

    def __init__(self, loss: Loss, labels: Any) -> None:
        super().__init__(get_scorer("neg_mean_squared_error"), labels)  # takes weights
        self.loss = loss

    def __call__(
        self, estimator: Any, X: Any, *y: Any, era_codes: Any, **params: Any
    ) -> Responses:
        model = estimator.model_
        eras = self.labels[era_codes]
        predicted = respond(model, X, y[0], stages_of(model), eras)
        losses = self.loss(np.asarray(y[0]), predicted[-1])
        weights = params.get("sample_weight")
        if weights is not None and not np.any(weights):
            weights = None
        score = -np.average(losses, weights=weights)
        return Responses(score, predicted, params["rows"])


class MemberSearch(EraSearchCV):
    """Fits members in folds, as many at once as `n_jobs` allows, until `deadline`.

    `make_members` takes the number of eras and whether they are ordered. After a fit
    `names` are those of the members fitted, `seconds` what their folds took.
    """

    _name = "AutoEra"
    verbose: int

    def __init__(
        self,
        plain: Any,
        make_members: Callable[[int, bool], dict[str, Any]],
        loss: Loss,
        deadline: float | None,
        **params: Any,
    ) -> None:
        super().__init__(Member(plain), {}, refit=False, **params)
        self.plain, self.make_members, self.loss = plain, make_members, loss
        self.deadline = deadline
        self.seconds: dict[str, float] = {}

    def _get_scorers(self, by_era: bool = True) -> tuple[Any, str]:
        return _Scorer(self.loss, self._labels), "score"

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
        to_come = list(self.members)
        verbose, self.verbose = self.verbose, max(0, self.verbose - 1)
        while to_come:
            n = 1
            if self.names:
                n = -(-effective_n_jobs(self.n_jobs) // len(self.found[0]))
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
                    what = "eras" if self.has_folds_of_eras else "rows"
                    print(
                        f"AutoEra {len(self.names)}/{len(self.members)}: {name}, loss "
                        f"{loss:.5g} in {what} left out, {self.seconds[name]:.1f} s"
                    )
            if self.deadline is not None:
                to_come = self._affordable(to_come, self.deadline - now)
        self.verbose = verbose

    @property
    def has_folds_of_eras(self) -> bool:
        return not isinstance(self.cv, KFold)

    def _affordable(self, to_come: list[str], seconds_left: float) -> list[str]:
        """Return the members to come that there is time for: folds of rows and fits to
        all rows together take about as long as folds of eras.
        """
        per_cost = sum(self.seconds.values()) / sum(map(cost_of, self.names))
        kept = []
        if self.has_folds_of_eras:
            seconds_left -= sum(self.seconds.values())
        for name in to_come:
            seconds_left -= (1 + self.has_folds_of_eras) * per_cost * cost_of(name)
            if seconds_left >= 0:
                kept.append(name)
        return kept


def gather(search: MemberSearch, y: Any, codes: Any, sample_weight: Any) -> LeftOut:
    """Put together what a search has found, without members that failed in a fold."""
    found = {
        name: folds
        for name, folds in zip(search.names, search.found, strict=True)
        if all(isinstance(fold, Responses) for fold in folds)
    }
    if PLAIN not in found:
        raise ValueError(
            "The plain model, with which members are compared, cannot be fitted or "
            "scored in some fold, as the warnings say; fewer folds have more eras to "
            "train on."
        )
    rows = np.concatenate([fold.rows for fold in found[PLAIN]])
    codes = np.unique(codes[rows], return_inverse=True)[1]
    weights = np.ones(rows.size) if sample_weight is None else sample_weight[rows]
    if search.has_folds_of_eras:  # all of which count the same
        weights = equal_eras(codes, weights)
    return LeftOut(
        {
            name: np.concatenate([fold.predicted for fold in folds], axis=1)
            for name, folds in found.items()
        },
        {name: stages_of(search.members[name]) for name in found},
        # The loss of a class asks for its probability alone.
        np.zeros(rows.size) if is_classifier(search.plain) else np.asarray(y)[rows],
        weights / weights.sum(),
        codes,
    )
