"""scikit-learn's conformance checks on all public estimators."""

import importlib
import inspect
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from helpers import grids
from sklearn_era import calibration, ensemble
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.calibration import EraCalibratedClassifier, EraConformalClassifier
from sklearn_era.effects import GroupDRO
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor, JustTrainTwice
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.metrics import EraScoreForecast
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.preprocessing import (
    EraNeutralizer,
    EraRankTransformer,
    EraStandardScaler,
    EraTargetEncoder,
    EraTargetRegressor,
    EraTargetTransformer,
)
from sklearn_era.rules import RuleEnsembleClassifier

pytest.importorskip("sklearn.callback", reason="checks are those of scikit-learn 1.9")

DOCS = Path(__file__).parents[2] / "docs" / "differences.md"


class WithEras:
    """Fit with eras, which the checks know nothing of."""

    n_eras = 2

    def fit(self, X, y=None, sample_weight=None):
        eras = np.arange(_num_samples(X)) % self.n_eras
        return super().fit(X, y, sample_weight=sample_weight, eras=eras)


class WithThreeEras(WithEras):
    n_eras = 3  # the fewest that are ordered


class TransformsByEra:
    """Transform with eras that are the signs of the first column."""

    def eras_of(self, X):
        try:
            return np.asarray(X, float)[:, 0] > 0
        except (TypeError, ValueError, IndexError, RuntimeWarning):
            return None  # what is to be refused

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y, sample_weight=sample_weight, eras=self.eras_of(X))

    def transform(self, X):
        return super().transform(X, eras=self.eras_of(X))

    def fit_transform(self, X, y=None, sample_weight=None):
        return self.fit(X, y, sample_weight).transform(X)


def with_eras(*classes: type, mixin: type = WithEras) -> tuple[type, ...]:
    """Subclasses that are fitted with eras, which pickle finds here."""
    names = [f"{cls.__name__}WithEras" for cls in classes]
    for name, cls in zip(names, classes, strict=True):
        globals()[name] = type(name, (mixin, cls), {"__module__": __name__})
    return tuple(globals()[name] for name in names)


def each(classes: tuple[type, ...], **params) -> list:
    return [estimator(**params) for estimator in classes]


BOOSTERS = (Classifier, Regressor)
SEARCHES = (EraSearchCV, AutoEraClassifier, AutoEraRegressor)
FORESTS = (EraForestClassifier, EraForestRegressor)
INVARIANT = (ensemble.InvariantForestClassifier, ensemble.InvariantForestRegressor)
TIME_ROBUST = (ensemble.TimeRobustForestClassifier, ensemble.TimeRobustForestRegressor)
PRESETS = INVARIANT + TIME_ROBUST
BOOSTERS_WITH_ERAS = ClassifierWithEras, RegressorWithEras = with_eras(*BOOSTERS)
FORESTS_WITH_ERAS = with_eras(*FORESTS)
TargetsWithEras = with_eras(EraTargetRegressor)[0]
Search, AutoClassifier, AutoRegressor, Intervals, Sets, Calibrated = with_eras(
    EraSearchCV, AutoEraClassifier, AutoEraRegressor, calibration.EraConformalRegressor,
    EraConformalClassifier, EraCalibratedClassifier, mixin=WithThreeEras)  # fmt: skip
Ranks, Scaler, Targets, Neutralizer, Encoder = with_eras(
    EraRankTransformer, EraStandardScaler, EraTargetTransformer, EraNeutralizer,
    EraTargetEncoder, mixin=TransformsByEra)  # fmt: skip


# With the default of 20 rows a leaf, most data of the checks is left in a single leaf.
SPLITTING, SMALL = {"max_iter": 5, "min_samples_leaf": 5}, {"n_estimators": 5}
FULL = SMALL | {"min_samples_leaf": 1}
DRAWN = {"bootstrap": "within_eras", "split_criterion": "directional"}
LEAVES, EVERY = {"max_leaf_nodes": [4]}, {"variation": True, "count": True}
LEARNING = {"max_iter": 10, "min_samples_leaf": 5, "learning_rate": 0.4}
ESTIMATORS = [
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, split_criterion="directional"),
    *each(FORESTS_WITH_ERAS, **FULL, **DRAWN), RuleEnsembleClassifier(**SMALL),
    JustTrainTwice(LogisticRegression(C=0.1)),
    Search(Regressor(**LEARNING), LEAVES, cv=2, scoring="r2", error_score="raise"),
    Intervals(Ridge(), era_order="unordered"),
    Sets(LogisticRegression(C=1.0), era_order="unordered"),
    Calibrated(LogisticRegression(C=1.0), era_order="unordered"), Ranks(),
    Scaler(unseen="train", robust=True), Targets(), Neutralizer([0]),
    EraTargetRegressor(Ridge()), Encoder(),
]  # fmt: skip
OTHER_ESTIMATORS = [
    *each(BOOSTERS),
    *each(BOOSTERS, **SPLITTING),
    *each(BOOSTERS, **SPLITTING, warm_start=True),
    *each(BOOSTERS, **SPLITTING, early_stopping=True, validation_fraction=None),
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, split_criterion="time_robust"),
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, split_criterion="invariant"),
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, era_weighting=GroupDRO()),
    ClassifierWithEras(**SPLITTING, split_criterion="vrex"),
    RegressorWithEras(**SPLITTING, split_criterion={"era": 1.0, "gain": 0.5}),
    *each(FORESTS, **SMALL),
    *each(FORESTS, **FULL),
    EraForestClassifier(**SMALL, min_samples_leaf=10),
    EraForestRegressor(**FULL, bootstrap=False),
    *each(FORESTS_WITH_ERAS, **FULL, bootstrap=False, split_criterion="invariant"),
    *each(with_eras(*INVARIANT), **SMALL),
    # Few data of the checks have the 100 rows an era of the preset.
    *each(with_eras(*TIME_ROBUST), **SMALL, min_samples_per_era=1),
    RuleEnsembleClassifier(
        **SMALL, disjunctions=True, quality="laplace", binning="uniform"
    ),
    JustTrainTwice(Classifier(**SPLITTING)),
    Search(Classifier(**SPLITTING), LEAVES, cv=2, error_score="raise"),
    *each((EraRankTransformer, EraStandardScaler, EraTargetTransformer)),
    Ranks(unseen="train", output_distribution="normal"),
    Scaler(),
    *(x([0], unseen="train") for x in (EraNeutralizer, Neutralizer)),
    TargetsWithEras(Ridge()),
    Encoder(era_order="unordered", **EVERY),
    AutoRegressor(Regressor(**LEARNING), era_order="unordered", cv=2),
    AutoClassifier(Classifier(**SPLITTING), era_order="unordered", cv=2),
]

EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
# Which estimators fail which check, and why: the table of the docs.
FAILURES = r"^\| (.+) \| `(check_\w+)` \| (.+) \|$"
EXPECTED_FAILURES = {
    (group, check): reason
    for group, check, reason in re.findall(FAILURES, DOCS.read_text(), re.M)
}


def groups_of(estimator) -> list[str]:
    if isinstance(estimator, JustTrainTwice):
        return groups_of(estimator.estimator)
    for kinds, group in (
        (SEARCHES, "`EraSearchCV`, `AutoEra*`"),
        (EraCalibratedClassifier, "`EraCalibratedClassifier`"),
        (TargetsWithEras, "`EraTargetRegressor`"),
        (RuleEnsembleClassifier, "boosters, rules"),
    ):
        if isinstance(estimator, kinds):
            return [group]
    by_batch = (EraRankTransformer, EraStandardScaler)
    if isinstance(estimator, by_batch) and estimator.unseen == "batch":
        return ['`EraRankTransformer`, `EraStandardScaler` with `unseen="batch"`']
    in_group = {}
    if isinstance(estimator, BOOSTERS):
        in_group["boosters, rules"] = estimator.min_samples_leaf < 20
        # The other criteria are the gain where all rows are of one era.
        is_robust = estimator.split_criterion == "time_robust"
        in_group["boosters with `time_robust`"] = is_robust
    elif isinstance(estimator, FORESTS):
        in_group["the papers' forests"] = isinstance(estimator, PRESETS)
        in_group["forests that draw rows"] = estimator.bootstrap is not False
        in_group["forests with `min_samples_leaf=1`"] = (
            isinstance(estimator, EraForestClassifier)
            and estimator.min_samples_leaf == 1
            # Trees of the preset end early, as splits need rows of all eras.
            and getattr(estimator.split_criterion, "statistic", None) != "ratio"
        )
    return [group for group, is_in in in_group.items() if is_in]


def expected_failures(estimator) -> dict[str, str]:
    reasons, groups = EXPECTED_FAILURES.items(), groups_of(estimator)
    return {check: reason for (group, check), reason in reasons if group in groups}


pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{ignored}")
    for ignored in (
        # One label of a target leaves nothing to split, and so does a single row.
        "No split was admissible:UserWarning",
        # After a thousand iterations on a few rows.
        ".*trees have no split:UserWarning",
        "eras holds the single era:UserWarning",
        "The first classifier is right on all rows",
        ".*takes all rows for one era:UserWarning",
        # Where some folds fail, before the error of the plain model's fit to all rows.
        ":sklearn.exceptions.FitFailedWarning",
        "Scoring failed:UserWarning",
        "One or more of the test scores:UserWarning",
    )
]
expected = {"expected_failed_checks": expected_failures, "xfail_strict": True}
with_checks = partial(parametrize_with_checks, **expected)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """Steps of an algorithm that is slow for so few eras."""
    monkeypatch.setattr(calibration._recalibration, "_N_STEPS", 15)


@with_checks(ESTIMATORS)
def test_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@with_checks(OTHER_ESTIMATORS if grids.with_slow else [])
def test_check_with_other_parameters(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", BOOSTERS)
def test_expected_failures_are_those_of_stock(estimator):
    (stock,) = PER_ESTIMATOR_XFAIL_CHECKS.keys() & set(estimator.__mro__)
    assert EQUIVALENCE in PER_ESTIMATOR_XFAIL_CHECKS[stock]


def test_every_public_estimator_is_checked():
    names = ("calibration", "causal", "ensemble", "environments", "inspection",
             "metrics", "model_selection", "preprocessing", "rules")  # fmt: skip
    modules = [importlib.import_module(f"sklearn_era.{name}") for name in names]
    things = [getattr(module, name) for module in modules for name in module.__all__]
    public = {x for x in things if inspect.isclass(x) and hasattr(x, "fit")}
    public -= {EraScoreForecast}  # to scores, and not to rows
    checked = [type(estimator).__mro__ for estimator in ESTIMATORS + OTHER_ESTIMATORS]
    assert set() < public <= set().union(*checked)
