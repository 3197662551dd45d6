"""scikit-learn's conformance checks on the boosters and the forests."""

import numpy as np
import pytest
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor


class TwoEras:
    """Fit with eras, which the checks know nothing of."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight, eras=np.arange(_num_samples(X)) % 2)


class TwoErasClassifier(TwoEras, Classifier):
    pass


class TwoErasRegressor(TwoEras, Regressor):
    pass


class TwoErasForestClassifier(TwoEras, EraForestClassifier):
    pass


class TwoErasForestRegressor(TwoEras, EraForestRegressor):
    pass


BOOSTERS = (Classifier, Regressor)
BOOSTERS_WITH_ERAS = (TwoErasClassifier, TwoErasRegressor)
FORESTS_WITH_ERAS = (TwoErasForestClassifier, TwoErasForestRegressor)


def each(classes: tuple[type, ...], **params) -> list:
    return [estimator(**params) for estimator in classes]


# With the default of 20 rows a leaf, most data of the checks is left in a single leaf.
SPLITTING = {"max_iter": 5, "min_samples_leaf": 5}
SMALL = {"n_estimators": 5}
ESTIMATORS = [
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, split_criterion="directional"),
    *each(FORESTS_WITH_ERAS, **SMALL, bootstrap="era", split_criterion="directional"),
]
OTHER_ESTIMATORS = [
    *each(BOOSTERS),
    *each(BOOSTERS, **SPLITTING),
    *each(BOOSTERS, **SPLITTING, warm_start=True),
    *each(BOOSTERS, **SPLITTING, early_stopping=True, validation_fraction=None),
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, split_criterion="time_robust"),
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, split_criterion="invariant"),
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, era_weighting="group_dro"),
    TwoErasClassifier(**SPLITTING, split_criterion="vrex"),
    TwoErasRegressor(**SPLITTING, split_criterion={"era": 1.0, "gain": 0.5}),
    EraForestClassifier(**SMALL),
    EraForestClassifier(**SMALL, min_samples_leaf=10),
    EraForestRegressor(**SMALL),
    EraForestRegressor(**SMALL, bootstrap=False),
    *each(FORESTS_WITH_ERAS, **SMALL, bootstrap=False, split_criterion="invariant"),
]

EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
# scikit-learn looks its own estimators up by type, and so does not know that ours share
# this: the thresholds of bins are quantiles of the rows, whatever the rows weigh.
OF_BOOSTERS = {
    EQUIVALENCE: "sample_weight is not equivalent to removing/repeating samples."
}


def expected_failures(estimator) -> dict[str, str]:
    if isinstance(estimator, BOOSTERS):
        failures = {} if estimator.min_samples_leaf == 20 else dict(OF_BOOSTERS)
        if estimator.split_criterion == "time_robust":
            # The other criteria are the gain where all rows are of one era.
            failures["check_fit2d_1sample"] = "A single row is too small an era."
        return failures
    failures = {}
    if estimator.bootstrap is not False:
        # As of scikit-learn's own forests, of which it is expected too.
        failures[EQUIVALENCE] = (
            "A row of weight 2 is drawn as often as one of weight 1, not as two rows."
        )
    elif estimator.split_criterion != "gain":
        failures[EQUIVALENCE] = (
            "An era has to have rows on both sides of a split, whatever they weigh."
        )
    if isinstance(estimator, EraForestClassifier) and estimator.min_samples_leaf == 1:
        # The check gives scikit-learn's forests a min_weight_fraction_leaf for that.
        failures["check_class_weight_classifiers"] = (
            "The leaves of a full tree are of one class, whatever it weighs."
        )
    return failures


pytestmark = [
    # One label of a target leaves nothing to split, and so does a single row.
    pytest.mark.filterwarnings("ignore:No split was admissible:UserWarning"),
    pytest.mark.filterwarnings("ignore:eras holds the single era:UserWarning"),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHER_ESTIMATORS, expected_failed_checks=expected_failures)
def test_check_with_other_parameters(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", BOOSTERS)
def test_expected_failures_are_those_of_stock(estimator):
    (stock,) = PER_ESTIMATOR_XFAIL_CHECKS.keys() & set(estimator.__mro__)
    assert PER_ESTIMATOR_XFAIL_CHECKS[stock].items() >= OF_BOOSTERS.items()
