"""Backward selection by what features do in eras left out: it did not show.

`features_that_turn` has its table, for which it is not in the package. Features that
turn come last, by `era_stability`, and others in the order of their mean importance in
eras left out. The last 1, 2, 4, 8 and so on are dropped, and the number is chosen by
scores in folds of whole eras, in each of which features are ranked anew by the eras
trained on.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer

from sklearn_era._eras import EncodedEras, encode_eras
from sklearn_era._progress import Progress
from sklearn_era._tables.columns import read_columns
from sklearn_era.inspection._turning import find_turning, measure_features
from sklearn_era.model_selection._out_of_era import folds_of_eras
from sklearn_era.model_selection._search_errors import mean_and_safe_error
from sklearn_era.model_selection._search_scores import ScorerByEra, tabulate

N_FOLDS = 3
ALPHA = 0.1

Rows = NDArray[np.intp]


class Selection(NamedTuple):
    """Features kept by each number of features dropped, and scores less that of all."""

    kept: list[Rows]
    differences: NDArray[np.float64]
    errors: NDArray[np.float64]
    turning: Rows

    def choose(self, n_errors: float) -> Rows:
        """The features of the best score that is better by so many standard errors."""
        is_better = self.differences > n_errors * self.errors
        gains = np.where(is_better, self.differences, 0.0)
        return self.kept[int(np.argmax(gains))]


def select(
    model: Any, X: NDArray, y: NDArray, eras: NDArray, are_ordered: bool, seed: int
) -> Selection:
    """Rank features, and score a model without the last ones, in eras left out."""
    encoded, rng = encode_eras(eras), np.random.RandomState(seed)
    n_features = X.shape[1]
    doubled = 2 ** np.arange(int(np.ceil(np.log2(n_features))))
    n_dropped = [0, *doubled[doubled < n_features].tolist()]
    folds = folds_of_eras(N_FOLDS, encoded, are_ordered, tests_half=True)
    loss = "neg_log_loss" if is_classifier(model) else "neg_mean_squared_error"
    scorer = ScorerByEra(get_scorer(loss), encoded)
    scores: list[list] = []
    for train, test in folds.split(encoded.codes, groups=encoded.codes):
        order, _ = _rank(
            model, X[train], y[train], encoded.take(train), are_ordered, rng
        )
        scores.append([])
        for n in n_dropped:
            kept = np.sort(order[: n_features - n])
            fitted = clone(model).fit(X[train][:, kept], y[train])
            scores[-1].append(
                scorer(fitted, X[test][:, kept], y[test], era_codes=encoded.codes[test])
            )
    by_number = [fold[i] for i in range(len(n_dropped)) for fold in scores]
    table = tabulate(by_number, len(scores))[0]
    order, turns = _rank(model, X, y, encoded, are_ordered, rng)
    return Selection(
        [np.sort(order[: n_features - n]) for n in n_dropped],
        *mean_and_safe_error(table - table[0], are_ordered),
        np.flatnonzero(turns),
    )


def _rank(
    model: Any, X: NDArray, y: NDArray, eras: EncodedEras, are_ordered: bool, rng: Any
) -> tuple[Rows, NDArray[np.bool_]]:
    """The order of features from the best on, and which of them turn."""
    folds = folds_of_eras(N_FOLDS, eras, are_ordered, tests_half=True)
    with Progress("", 0) as silent:
        measured = measure_features(
            model, X, y, eras, None, folds, 1, None, rng, silent
        )
    found = find_turning(read_columns(X), eras, measured, are_ordered, rng)
    turns = false_discovery_control(found["p_value"]) <= ALPHA
    mean = mean_and_safe_error(measured.importances, are_ordered)[0]
    return np.lexsort((-np.nan_to_num(mean), turns)), turns
