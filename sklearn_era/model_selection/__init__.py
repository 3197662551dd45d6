"""Splitters along eras in time, and a refit rule for the worst era.

Folds of whole eras without regard to time are scikit-learn's own `GroupKFold` and
`LeaveOneGroupOut`, with ``groups=eras``.
"""

from sklearn_era.model_selection._refit import best_worst_era
from sklearn_era.model_selection._walk_forward import EraWalkForwardSplit

__all__ = ["EraWalkForwardSplit", "best_worst_era"]
