"""Pytest plugin: scikit-learn's own tests of `GridSearchCV` test `EraSearchCV`.

The name is bound to its limit case, in which all rows are of one era: the best mean is
chosen, scores are the estimator's own, and a number of folds is one of rows.
"""

from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.utils.validation import _num_samples

from sklearn_era.model_selection import EraSearchCV


class GridSearchCV(EraSearchCV):
    """`EraSearchCV` with the signature and the defaults of scikit-learn's class."""

    def __init__(
        self, estimator: Any, param_grid: Any, *, scoring: Any = None,
        n_jobs: Any = None, refit: Any = True, cv: Any = None, verbose: Any = 0,
        pre_dispatch: Any = "2*n_jobs", error_score: Any = np.nan,
        return_train_score: Any = False,
    ):  # fmt: skip
        super().__init__(
            estimator, param_grid, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv,
            verbose=verbose, pre_dispatch=pre_dispatch, error_score=error_score,
            return_train_score=return_train_score, rule="best")  # fmt: skip

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        return super().fit(X, y, eras=np.zeros(_num_samples(X)), **params)

    def _splits_eras(self) -> bool:
        return False

    def _default_scorer(self) -> Any:
        return None


def pytest_report_header() -> str:
    return "tested search: sklearn_era's"


def pytest_load_initial_conftests() -> None:
    model_selection.GridSearchCV = GridSearchCV
