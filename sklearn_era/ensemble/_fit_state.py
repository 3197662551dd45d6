"""What an estimator has in the course of a fit only."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils._metadata_requests import _routing_enabled

from .._eras import EncodedEras
from .._fit_attributes import Snapshot
from ._criterion_plan import CriterionPlan
from ._warm_start import PreviousFit

# Training rows that a scorer sees, or a few more to fill an era up: as in scikit-learn.
N_ROWS_SCORED = 10_000


class ScoringEras:
    """Eras of the two sets of rows which a scorer sees in the course of a fit."""

    def __init__(self, eras: EncodedEras | None, eras_val: NDArray[Any] | None):
        self._eras = eras
        self._eras_val = eras_val
        self._X_train: Any = None
        self._rows: NDArray[np.intp] | None = None
        self._scorer: Any = None
        self._is_asked_for = False

    def draw_training_rows(self, seed: int) -> NDArray[np.intp] | None:
        """Return rows of random whole eras, enough to score by, or None for all: rows
        drawn one by one would leave an era a handful, and its score would be noise.
        """
        if self._eras is None or self._eras.codes.size <= N_ROWS_SCORED:
            return None
        order = np.random.default_rng(seed).permutation(self._eras.labels.size)
        n_rows = np.cumsum(self._eras.counts[order])
        drawn = order[: np.searchsorted(n_rows, N_ROWS_SCORED) + 1]
        return np.flatnonzero(np.isin(self._eras.codes, drawn))

    def keep_training_rows(self, X: Any, rows: NDArray[np.intp] | None) -> None:
        """Remember which training rows a scorer gets, None for all, and as what X."""
        self._X_train = X
        self._rows = rows

    def are_asked_for_by(self, scorer: Any) -> bool:
        """As `asks_for_eras`, but looked up once for a scorer."""
        if scorer is not self._scorer:
            self._scorer = scorer
            self._is_asked_for = asks_for_eras(scorer)
        return self._is_asked_for

    def of(self, X: Any) -> NDArray[Any]:
        """Era labels of `X`, which is one of the two sets; ValueError if not given."""
        if X is self._X_train:
            if self._eras is None:
                raise _missing("eras")
            codes = self._eras.codes
            return self._eras.labels[codes if self._rows is None else codes[self._rows]]
        if self._eras_val is None:
            raise _missing("eras_val")
        return self._eras_val


def _missing(name: str) -> ValueError:
    return ValueError(
        f"scoring asks for eras, but {name} was not provided: pass it to fit, or use a "
        "scoring without eras."
    )


def asks_for_eras(scorer: Any) -> bool:
    """Whether `scorer` takes eras: by its metadata request, else by its signature."""
    if _routing_enabled() and hasattr(scorer, "get_metadata_routing"):
        request = scorer.get_metadata_routing().score.requests.get("eras")
        return request is True or isinstance(request, str)
    try:
        return "eras" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):  # no callable, or one without a signature
        return False


@dataclass
class HeldOut:
    """The rows of the last eras, which early stopping holds out."""

    eras: EncodedEras
    y: NDArray[np.float64]
    sample_weight: NDArray[np.float64] | None
    X: NDArray[np.uint8] | None = None  # bins


@dataclass
class FitState:
    """The state that the steps of a fit share: the estimator's `_fit_state`."""

    previous: PreviousFit | None = None  # that a warm start goes on from
    keeps_iterations: bool = False  # the whole ones, where a fit is interrupted
    last_whole: Snapshot | None = None  # the estimator after the last of these
    keeps_integers: bool = False  # rows stay small integers until they are binned
    # In how many rows each encoded category is, where X has each of them once.
    rows_of_values: NDArray[np.intp] | None = None
    plan: CriterionPlan = field(init=False)  # a booster's, once parameters are checked
    penalties: NDArray[np.float64] | None = None  # (n_features,), of a booster
    validation_eras: str | None = None  # "last" or "random" in place of "auto"
    training_rows: NDArray[np.intp] | None = None  # where whole eras are held out
    scoring_eras: ScoringEras | None = None
    era_splitter: Any = None  # an `EraSplitter`; None for scikit-learn's splitter
    compares_eras: bool = False  # the splitter ranks by more than the gain
    training_eras: EncodedEras | None = None  # of a booster
    era_intercepts: Any = None  # the `EraIntercepts`, if any are fitted
    # Columns that are constant within eras, and their bins there, for `Intercepts`.
    era_patterns: tuple[NDArray[np.intp], NDArray[np.uint8]] | None = None
    held_out: HeldOut | None = None  # where levels of these are carried forward
    finish: Callable[[], None] = lambda: None  # what is left to do after the last tree
    # All labels, and the factors of their rows' weights in all iterations.
    era_factors: tuple[NDArray[Any], NDArray[np.float64]] | None = None
    group_dro: Any = None  # a `MovingEraWeights`, if iterations weigh eras anew
    has_unit_weights: bool = False  # made, all of them 1, for `group_dro`
    trees: list[list[TreePredictor]] = field(default_factory=list)  # a forest's


def begin_fit(booster: Any) -> FitState:
    """The state of a booster's fit, before anything is changed."""
    goes_on = booster.warm_start and booster._is_fitted()
    previous = PreviousFit.of(booster) if goes_on else None
    return FitState(previous=previous, keeps_iterations=True)
