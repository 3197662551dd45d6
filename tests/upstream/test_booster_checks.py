"""scikit-learn's conformance checks on both estimators."""

import numpy as np
import pytest
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)


class _TwoErasMixin:
    """Fit with eras, which the checks know nothing of."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight, eras=np.arange(_num_samples(X)) % 2)


class TwoErasClassifier(_TwoErasMixin, HistGradientBoostingClassifier):
    pass


class TwoErasRegressor(_TwoErasMixin, HistGradientBoostingRegressor):
    pass


CLASSES = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
# With the default of 20 rows a leaf, most data of the checks is left in a single leaf.
SPLITTING = {"max_iter": 5, "min_samples_leaf": 5}
ESTIMATORS = [
    *(estimator() for estimator in CLASSES),
    *(
        estimator(**SPLITTING, split_criterion="directional")
        for estimator in (TwoErasClassifier, TwoErasRegressor)
    ),
]
OTHER_ESTIMATORS = [
    *(estimator(**SPLITTING) for estimator in CLASSES),
    *(estimator(**SPLITTING, warm_start=True) for estimator in CLASSES),
    *(
        estimator(**SPLITTING, early_stopping=True, validation_fraction=None)
        for estimator in CLASSES
    ),
    *(
        estimator(**SPLITTING, split_criterion=split_criterion)
        for split_criterion in ("time_robust", "invariant")
        for estimator in (TwoErasClassifier, TwoErasRegressor)
    ),
    TwoErasClassifier(**SPLITTING, split_criterion="vrex"),
    TwoErasRegressor(**SPLITTING, split_criterion={"era": 1.0, "gain": 0.5}),
]

# scikit-learn looks its own estimators up by type, and so does not know that ours share
# this: the thresholds of bins are quantiles of the rows, whatever the rows weigh.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "sample_weight is not equivalent to removing/repeating samples."
    )
}


def expected_failures(estimator) -> dict[str, str]:
    if estimator.split_criterion == "time_robust":
        # The other criteria are the gain where all rows are of one era.
        return EXPECTED_FAILURES | {
            "check_fit2d_1sample": "A single row is refused as too small an era."
        }
    return {} if estimator.min_samples_leaf == 20 else EXPECTED_FAILURES


# One label of a target leaves nothing to split, which is what the warning says.
pytestmark = pytest.mark.filterwarnings("ignore:No split was admissible:UserWarning")


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHER_ESTIMATORS, expected_failed_checks=expected_failures)
def test_check_with_other_parameters(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", CLASSES)
def test_expected_failures_are_those_of_stock(estimator):
    (stock,) = PER_ESTIMATOR_XFAIL_CHECKS.keys() & set(estimator.__mro__)
    assert PER_ESTIMATOR_XFAIL_CHECKS[stock].items() >= EXPECTED_FAILURES.items()
