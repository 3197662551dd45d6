"""What an estimator has in the course of a fit only."""

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils._metadata_requests import _routing_enabled

from .._eras import EncodedEras
from .._fit_attributes import Snapshot
from ._criteria.parameters import CriterionPlan
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
        """Rows of random whole eras, enough to score by; None for all rows.

        Of rows drawn one by one, an era of many would have a handful left, and its
        score would be noise.
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
class FitState:
    """What the steps of a fit know of each other: the estimator's `_fit_state`.

    Attributes
    ----------
    previous : PreviousFit or None
        The fit that a warm start goes on from, if it is one.
    keeps_iterations : bool
        Whether a fit that is interrupted keeps the iterations that were whole by then.
    last_whole : Snapshot or None
        The estimator after the last of them, if there is one.
    keeps_integers : bool
        Whether rows that come are to stay small integers until they are binned.
    plan : CriterionPlan
        What ranks a booster's splits; there once the parameters are checked.
    penalties : ndarray of shape (n_features,), dtype=float64, or None
        As `feature_penalties` returns them; of a booster.
    training_rows : ndarray of shape (n_train,), dtype=intp, or None
        The rows to train on, where the eras tell which early stopping holds out.
    scoring_eras : ScoringEras or None
        What a scorer is told of eras.
    era_splitter : EraSplitter or None
        What finds a booster's splits; None for scikit-learn's splitter.
    compares_eras : bool
        Whether it ranks them by more than the gain.
    training_eras : EncodedEras or None
        The eras of a booster's training rows.
    era_intercepts : object or None
        The `EraIntercepts` that are fitted along with the trees, if any are.
    era_factors : tuple of ndarray or None
        All labels, and what multiplies the weights of their rows in all iterations.
    group_dro : object or None
        The `GroupDRO` that weighs eras anew before each iteration, if one does.
    has_unit_weights : bool
        Whether weights were made for it to move, all of them 1.
    trees : list of list of TreePredictor
        Those that a forest has grown, an iteration after the other.
    """

    previous: PreviousFit | None = None
    keeps_iterations: bool = False
    last_whole: Snapshot | None = None
    keeps_integers: bool = False
    plan: CriterionPlan = field(init=False)
    penalties: NDArray[np.float64] | None = None
    training_rows: NDArray[np.intp] | None = None
    scoring_eras: ScoringEras | None = None
    era_splitter: Any = None
    compares_eras: bool = False
    training_eras: EncodedEras | None = None
    era_intercepts: Any = None
    era_factors: tuple[NDArray[Any], NDArray[np.float64]] | None = None
    group_dro: Any = None
    has_unit_weights: bool = False
    trees: list[list[TreePredictor]] = field(default_factory=list)


def begin_fit(booster: Any) -> FitState:
    """The state of a booster's fit, before anything is changed."""
    goes_on = booster.warm_start and booster._is_fitted()
    previous = PreviousFit.of(booster) if goes_on else None
    return FitState(previous=previous, keeps_iterations=True)
