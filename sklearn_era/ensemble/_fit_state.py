"""Define the state of an estimator during a fit."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils._metadata_requests import _routing_enabled

from .._eras import Array, EncodedEras
from .._fit_attributes import NAME_BEFORE, Snapshot
from .._typing import Table
from ._criterion_plan import CriterionPlan
from ._warm_start import PreviousFit

# Number of training rows for a scorer, as in scikit-learn; more to complete an era.
N_ROWS_SCORED = 10_000


class ScoringEras:
    """The eras of training and validation rows, for a scorer that a fit calls."""

    def __init__(self, eras: EncodedEras | None, eras_val: NDArray[Any] | None):
        self._eras, self._eras_val = eras, eras_val
        # The training rows that a scorer gets, None for all, and their X.
        self.rows: NDArray[np.intp] | None = None
        self.X_train: Any = None

    def draw_training_rows(self, seed: int) -> NDArray[np.intp] | None:
        """Draw whole eras at random until the drawn eras have `N_ROWS_SCORED` rows;
        return the indices of these rows. Return None, which stands for all rows, if
        there are `N_ROWS_SCORED` rows or fewer, or no eras. Rows drawn one by one would
        be too few in each era for a score.
        """
        if self._eras is None or self._eras.codes.size <= N_ROWS_SCORED:
            return None
        order = np.random.default_rng(seed).permutation(self._eras.labels.size)
        n_rows = np.cumsum(self._eras.counts[order])
        drawn = order[: np.searchsorted(n_rows, N_ROWS_SCORED) + 1]
        return np.flatnonzero(np.isin(self._eras.codes, drawn))

    def of(self, X: Table) -> NDArray[Any]:
        """Return the eras of `X`, which are training or validation rows; raise
        ValueError if ``fit`` got no eras for them.
        """
        name, labels, rows = "eras_val", self._eras_val, None
        if X is self.X_train:
            labels = None if self._eras is None else self._eras.decode()
            name, rows = "eras", self.rows
        if labels is None:
            raise ValueError(
                f"scoring asks for eras, but {name} was not provided: pass it to fit, "
                "or use a scoring without eras."
            )
        return labels if rows is None else labels[rows]


def asks_for_eras(scorer: Callable[..., Any]) -> bool:
    """Return whether `scorer` takes eras, by its metadata request or signature."""
    if _routing_enabled() and hasattr(scorer, "get_metadata_routing"):
        request = scorer.get_metadata_routing().score.requests.get("eras")
        return request is True or isinstance(request, str)
    try:
        return "eras" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):  # not callable, or without a signature
        return False


@dataclass
class HeldOut:
    """Rows that update intercepts after the trees are grown: rows of the last eras,
    held out by early stopping, or rows that arrive after the fit.
    """

    eras: EncodedEras
    y: Array
    sample_weight: Array | None
    X: NDArray[np.uint8] | None = None  # bins


@dataclass
class FitState:
    """The state that the steps of a fit share, as the estimator's `_fit_state`."""

    previous: PreviousFit | None = None  # which a warm start continues
    keeps_iterations: bool = False  # whole iterations survive an interruption
    last_whole: Snapshot | None = None  # the estimator after the last whole iteration
    keeps_integers: bool = False  # rows stay small integers until binned
    # Number of rows of each encoded category, if X has each of them once.
    rows_of_values: NDArray[np.intp] | None = None
    # The target, weights and eras of training rows, by which categories are grouped.
    target: tuple[Array, Array | None, EncodedEras | None] | None = None
    threads: Any = None  # the `IterationThreads` of a booster
    plan: CriterionPlan = field(init=False)  # a booster's, after parameter checks
    penalties: Array | None = None  # (n_features,), of a booster
    validation_eras: str | None = None  # "last" or "random" instead of "auto"
    mean_weight: float = 1.0  # of the rows that a booster is fitted to
    training_rows: NDArray[np.intp] | None = None  # if whole eras are held out
    scoring_eras: ScoringEras | None = None
    era_splitter: Any = None  # an `EraSplitter`; None for scikit-learn's splitter
    compares_eras: bool = False  # the splitter ranks by more than the gain
    training_eras: Any = None  # the `EncodedEras` of a booster's rows, if any
    era_intercepts: Any = None  # the `EraIntercepts`, if any are fitted
    # Columns that are constant within eras, and their bins, for `Intercepts`.
    era_patterns: tuple[NDArray[np.intp], NDArray[np.uint8]] | None = None
    held_out: HeldOut | None = None  # if their levels are carried forward
    held_out_groups: EncodedEras | None = None  # of validation rows, beside their times
    finish: Callable[[], None] = lambda: None  # runs after the last tree
    # All labels, and the factors of their rows' weights in all iterations.
    era_factors: tuple[NDArray[Any], Array] | None = None
    base_weights: Array | None = None  # of training rows, without these factors
    group_dro: Any = None  # the `MovingEraWeights` of Group DRO, if any
    has_unit_weights: bool = False  # weights of 1 were made for `group_dro`
    trees: list[list[TreePredictor]] = field(default_factory=list)  # a forest's


def begin_fit(booster: BaseEstimator) -> FitState:
    """Return the state with which a booster's fit begins; delete the attributes of an
    earlier fit that this fit may not overwrite.
    """
    goes_on = booster.warm_start and booster._is_fitted()
    vars(booster).pop(NAME_BEFORE, None)
    if not goes_on:
        vars(booster).pop("_fitted_with_sw", None)
    return FitState(PreviousFit.of(booster) if goes_on else None, keeps_iterations=True)
