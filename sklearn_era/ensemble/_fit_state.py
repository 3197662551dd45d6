"""What an estimator has in the course of a fit only."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from ._criteria.parameters import CriterionPlan

if TYPE_CHECKING:
    from ._boosters.scoring import ScoringEras

# Ours, and what scikit-learn leaves of a fit that failed: with `_in_fit` it would take
# rows to predict for bins, and with `_raw_predict` ignore them.
RUNNING_FIT = ("_fit_state", "_in_fit", "_raw_predict")


@dataclass
class FitState:
    """What the steps of a fit know of each other: the estimator's `_fit_state`.

    Attributes
    ----------
    keeps_integers : bool
        Whether rows that come are to stay small integers until they are binned.
    plan : CriterionPlan
        What ranks the splits; there once the parameters are checked.
    training_rows : ndarray of shape (n_train,), dtype=intp, or None
        The rows to train on, where the eras tell which early stopping holds out.
    scoring_eras : ScoringEras or None
        What a scorer is told of eras.
    compares_eras : bool
        Whether splits are found by what eras say of them.
    trees : list of list of TreePredictor
        Those that a forest has grown, an iteration after the other.
    """

    keeps_integers: bool = False
    plan: CriterionPlan = field(init=False)
    training_rows: NDArray[np.intp] | None = None
    scoring_eras: "ScoringEras | None" = None
    compares_eras: bool = False
    trees: list[list[TreePredictor]] = field(default_factory=list)


def end_fit(estimator: Any) -> None:
    """Drop what an estimator has in the course of a fit only."""
    for name in RUNNING_FIT:
        estimator.__dict__.pop(name, None)
