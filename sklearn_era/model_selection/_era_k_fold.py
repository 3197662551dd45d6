"""Split the rows of each era into folds."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.model_selection import StratifiedKFold

from .._eras import EncodedEras
from ._walk_forward import SplitsRowsOfEras


class EraKFold(SplitsRowsOfEras, StratifiedKFold):
    """Cross-validator that splits the rows of each era into K folds (Env K-folds).

    Split k tests on the k-th part of every era, and trains on the other parts, as does
    :class:`~sklearn.model_selection.StratifiedKFold` if its classes are eras. As
    :class:`EraSearchCV` scores each era of a test by itself, K splits give the folds of
    [1]_, section 5.3.4, whose tests have rows of one era each. Let ``s_ke`` be the
    score of era e in fold k, and M the number of eras. With ``rule="best"``, the search
    chooses the highest ::

        choose_by="mean"     1/M Σ_e 1/K Σ_k s_ke    Env K-folds
        choose_by="worst"    min_e 1/K Σ_k s_ke      Env K-folds Min-Max

    Models are trained on other rows of the eras that test them. If future rows are of
    new eras, leave whole eras out instead, as by :class:`EraWalkForwardSplit`. A search
    scores boosters with intercepts by those of known eras after
    ``booster.set_score_request(eras=True)``, else by the forecast for a new era.

    Parameters
    ----------
    n_splits : int, default=5
        K, at least 2. Eras of fewer than K rows are tested in some splits only.
    shuffle : bool, default=False
        Whether to shuffle the rows of each era; else parts are consecutive rows.
    random_state : int, RandomState instance or None, default=None
        Determines the shuffling. Pass an int for reproducible output across calls.

    References
    ----------
    .. [1] L. Moneda (2021), Domain Generalization, Invariance and the Time Robust
           Forest, master thesis, University of São Paulo.

    Examples
    --------
    >>> from sklearn_era.model_selection import EraKFold
    >>> eras = [2020, 2020, 2020, 2021, 2021, 2021]
    >>> for train, test in EraKFold(3).split(eras, groups=eras):
    ...     print(train, test)
    [1 2 4 5] [0 3]
    [0 2 3 5] [1 4]
    [0 1 3 4] [2 5]
    """

    def _splits(self, eras: EncodedEras) -> list[tuple[Any, Any]]:
        if (most := eras.counts.max(initial=0)) < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} is more than the {most} rows of the largest "
                "era; lower n_splits, or merge eras."
            )
        with warnings.catch_warnings(action="ignore"):  # of smaller eras
            return list(StratifiedKFold.split(self, eras.codes, eras.codes))
