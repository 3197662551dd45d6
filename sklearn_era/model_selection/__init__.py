"""Search by eras, draw curves over eras, and split by time, by groups and within eras.

Folds of whole eras without regard to time are scikit-learn's own `GroupKFold` and
`LeaveOneGroupOut`, with ``groups=eras``.
"""

from typing import TYPE_CHECKING

from .._warnings import renamed
from ._era_k_fold import EraKFold
from ._holdout_curve import HoldoutCurveDisplay, holdout_curve
from ._search import EraSearchCV
from ._search_display import EraSearchDisplay
from ._times_and_groups import EraSplit
from ._walk_forward import EraWalkForwardSplit

if not TYPE_CHECKING:
    __getattr__ = renamed(
        __name__, {"best_worst_era": "EraSearchCV(..., rule='best', choose_by='worst')"}
    )

__all__ = [
    "EraKFold", "EraSearchCV", "EraSearchDisplay", "EraSplit", "EraWalkForwardSplit",
    "HoldoutCurveDisplay", "holdout_curve",
]  # fmt: skip
