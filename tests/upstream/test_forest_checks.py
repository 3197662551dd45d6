"""scikit-learn's conformance checks on both forests."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor


class _TwoErasMixin:
    """Fit with eras, which the checks know nothing of."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight, eras=np.arange(_num_samples(X)) % 2)


class TwoErasForestClassifier(_TwoErasMixin, EraForestClassifier):
    pass


class TwoErasForestRegressor(_TwoErasMixin, EraForestRegressor):
    pass


SMALL = {"n_estimators": 5}
ESTIMATORS = [
    EraForestClassifier(**SMALL),
    EraForestRegressor(**SMALL, bootstrap=False),
    *(
        estimator(**SMALL, bootstrap="era", split_criterion="directional")
        for estimator in (TwoErasForestClassifier, TwoErasForestRegressor)
    ),
]
OTHER_ESTIMATORS = [
    EraForestRegressor(**SMALL),
    EraForestClassifier(**SMALL, min_samples_leaf=10),
    *(
        estimator(**SMALL, bootstrap=False, split_criterion="invariant")
        for estimator in (TwoErasForestClassifier, TwoErasForestRegressor)
    ),
]


def expected_failures(estimator) -> dict[str, str]:
    failures = {}
    if estimator.bootstrap is not False:
        # As of scikit-learn's own forests, of which it is expected too.
        failures["check_sample_weight_equivalence_on_dense_data"] = (
            "A row of weight 2 is drawn as often as one of weight 1, not as two rows."
        )
    elif estimator.split_criterion != "gain":
        failures["check_sample_weight_equivalence_on_dense_data"] = (
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
