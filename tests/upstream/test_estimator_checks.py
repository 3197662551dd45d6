"""scikit-learn's conformance checks on all public estimators."""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.calibration import (
    EraCalibratedClassifier,
    EraConformalClassifier,
    EraConformalRegressor,
)
from sklearn_era.effects import GroupDRO
from sklearn_era.ensemble import (
    EraForestClassifier,
    EraForestRegressor,
    InvariantForestClassifier,
    InvariantForestRegressor,
    JustTrainTwice,
    TimeRobustForestClassifier,
    TimeRobustForestRegressor,
)
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.metrics import EraScoreForecast
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.preprocessing import (
    EraNeutralizer,
    EraRankTransformer,
    EraStandardScaler,
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


class ClassifierWithEras(WithEras, Classifier):
    pass


class RegressorWithEras(WithEras, Regressor):
    pass


class ForestClassifierWithEras(WithEras, EraForestClassifier):
    pass


class ForestRegressorWithEras(WithEras, EraForestRegressor):
    pass


class WithThreeEras(WithEras):
    n_eras = 3  # the fewest that are ordered


class AutoClassifierWithEras(WithThreeEras, AutoEraClassifier):
    pass


class AutoRegressorWithEras(WithThreeEras, AutoEraRegressor):
    pass


class SearchWithEras(WithThreeEras, EraSearchCV):
    pass


class IntervalsWithEras(WithThreeEras, EraConformalRegressor):
    pass


class SetsWithEras(WithThreeEras, EraConformalClassifier):
    pass


class CalibratedWithEras(WithThreeEras, EraCalibratedClassifier):
    pass


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


class RanksByEra(TransformsByEra, EraRankTransformer):
    pass


class ScalerByEra(TransformsByEra, EraStandardScaler):
    pass


class TargetsByEra(TransformsByEra, EraTargetTransformer):
    pass


class NeutralizerByEra(TransformsByEra, EraNeutralizer):
    pass


class TargetRegressorWithEras(WithEras, EraTargetRegressor):
    pass


BOOSTERS = (Classifier, Regressor)
BOOSTERS_WITH_ERAS = (ClassifierWithEras, RegressorWithEras)
FORESTS = (EraForestClassifier, EraForestRegressor)
FORESTS_WITH_ERAS = (ForestClassifierWithEras, ForestRegressorWithEras)
INVARIANT = (InvariantForestClassifier, InvariantForestRegressor)
TIME_ROBUST = (TimeRobustForestClassifier, TimeRobustForestRegressor)
PRESETS = INVARIANT + TIME_ROBUST


def each(classes: tuple[type, ...], **params) -> list:
    return [estimator(**params) for estimator in classes]


def presets(*classes, **params) -> list:
    """Presets that are fitted with eras, of classes that pickle finds here."""
    found = []
    for cls in classes:
        name = f"{cls.__name__}WithEras"
        globals()[name] = type(name, (WithEras, cls), {"__module__": __name__})
        found.append(globals()[name](**SMALL, **params))
    return found


# With the default of 20 rows a leaf, most data of the checks is left in a single leaf.
SPLITTING = {"max_iter": 5, "min_samples_leaf": 5}
SMALL = {"n_estimators": 5}
FULL = SMALL | {"min_samples_leaf": 1}
LEARNING = {"max_iter": 10, "min_samples_leaf": 5, "learning_rate": 0.4}
ESTIMATORS = [
    *each(BOOSTERS_WITH_ERAS, **SPLITTING, split_criterion="directional"),
    *each(
        FORESTS_WITH_ERAS,
        **FULL,
        bootstrap="within_eras",
        split_criterion="directional",
    ),
    RuleEnsembleClassifier(**SMALL),
    JustTrainTwice(LogisticRegression(C=0.1)),
    SearchWithEras(
        Regressor(**LEARNING),
        {"max_leaf_nodes": [4]},
        cv=2,
        scoring="r2",
        error_score="raise",
    ),
    IntervalsWithEras(Ridge(), era_order="unordered"),
    SetsWithEras(LogisticRegression(C=1.0), era_order="unordered"),
    CalibratedWithEras(LogisticRegression(C=1.0), era_order="unordered"),
    RanksByEra(),
    ScalerByEra(unseen="train", robust=True),
    TargetsByEra(),
    NeutralizerByEra([0]),
    EraTargetRegressor(Ridge()),
]
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
    *presets(*INVARIANT),
    # Few data of the checks have the 100 rows an era of the preset.
    *presets(*TIME_ROBUST, min_samples_per_era=1),
    RuleEnsembleClassifier(
        **SMALL, disjunctions=True, quality="laplace", binning="uniform"
    ),
    JustTrainTwice(Classifier(**SPLITTING)),
    SearchWithEras(
        Classifier(**SPLITTING), {"max_leaf_nodes": [4]}, cv=2, error_score="raise"
    ),
    *each((EraRankTransformer, EraStandardScaler, EraTargetTransformer)),
    RanksByEra(unseen="train", output_distribution="normal"),
    ScalerByEra(),
    *(x([0], unseen="train") for x in (EraNeutralizer, NeutralizerByEra)),
    TargetRegressorWithEras(Ridge()),
    AutoRegressorWithEras(Regressor(**LEARNING), era_order="unordered", cv=2),
    AutoClassifierWithEras(Classifier(**SPLITTING), era_order="unordered", cv=2),
]

EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
SUBSET = "check_methods_subset_invariance"
EQUIVALENCE_OF_SPARSE = EQUIVALENCE.replace("dense", "sparse")
ONE_ROW = "check_fit2d_1sample"
CLASS_WEIGHT = "check_class_weight_classifiers"
DEFAULTS = "check_parameters_default_constructible"
# Which estimators fail which check, and why: docs/differences.md has this table.
EXPECTED_FAILURES = {
    ("boosters, rules", EQUIVALENCE): (
        "The thresholds of bins are quantiles of rows, whatever they weigh, as in "
        "scikit-learn's boosters, of which it is expected too."
    ),
    ("boosters with `time_robust`", ONE_ROW): (
        "A single row is too small an era, which the message names."
    ),
    ("forests that draw rows", EQUIVALENCE): (
        "A row of weight 2 is drawn as often as one of weight 1, not as two rows, as "
        "in scikit-learn's forests, of which it is expected too."
    ),
    ("forests with `min_samples_leaf=1`", CLASS_WEIGHT): (
        "Leaves of full trees are of one class, whatever it weighs; the check gives "
        "scikit-learn's forests larger leaves."
    ),
    ("the papers' forests", DEFAULTS): (
        "Their default criterion is an object with the paper's parameters, which "
        "nothing changes."
    ),
    ("`EraSearchCV`, `AutoEra*`", EQUIVALENCE): (
        "The boosters inside fail it, and the eras, which are dealt out in turn, are "
        "others where rows are repeated."
    ),
    **dict.fromkeys(
        [
            (name, x)
            for name in ("`EraCalibratedClassifier`", "`EraTargetRegressor`")
            for x in (EQUIVALENCE, EQUIVALENCE_OF_SPARSE)
        ],
        "The eras, which are dealt out in turn, are others where rows are repeated.",
    ),
    ('`EraRankTransformer`, `EraStandardScaler` with `unseen="batch"`', SUBSET): (
        "The statistics are those of the rows that are passed, by which half of them "
        'is transformed in another way than all; with `unseen="train"` it passes.'
    ),
}


def groups_of(estimator) -> list[str]:
    """The groups of `EXPECTED_FAILURES` that an estimator is in."""
    if isinstance(estimator, JustTrainTwice):
        return groups_of(estimator.estimator)
    if isinstance(estimator, (EraSearchCV, AutoEraClassifier, AutoEraRegressor)):
        return ["`EraSearchCV`, `AutoEra*`"]
    if isinstance(estimator, EraCalibratedClassifier):
        return ["`EraCalibratedClassifier`"]
    if isinstance(estimator, TargetRegressorWithEras):
        return ["`EraTargetRegressor`"]
    by_batch = (EraRankTransformer, EraStandardScaler)
    if isinstance(estimator, by_batch) and estimator.unseen == "batch":
        return ['`EraRankTransformer`, `EraStandardScaler` with `unseen="batch"`']
    if isinstance(estimator, RuleEnsembleClassifier):
        return ["boosters, rules"]
    groups = []
    if isinstance(estimator, BOOSTERS):
        if estimator.min_samples_leaf < 20:
            groups.append("boosters, rules")
        # The other criteria are the gain where all rows are of one era.
        if estimator.split_criterion == "time_robust":
            groups.append("boosters with `time_robust`")
    elif isinstance(estimator, FORESTS):
        if isinstance(estimator, PRESETS):
            groups.append("the papers' forests")
        if estimator.bootstrap is not False:
            groups.append("forests that draw rows")
        if (
            isinstance(estimator, EraForestClassifier)
            and estimator.min_samples_leaf == 1
            # Trees of the preset end early, as splits need rows of all eras.
            and getattr(estimator.split_criterion, "statistic", None) != "ratio"
        ):
            groups.append("forests with `min_samples_leaf=1`")
    return groups


def expected_failures(estimator) -> dict[str, str]:
    groups = groups_of(estimator)
    return {
        check: reason
        for (group, check), reason in EXPECTED_FAILURES.items()
        if group in groups
    }


pytestmark = [
    # One label of a target leaves nothing to split, and so does a single row.
    pytest.mark.filterwarnings("ignore:No split was admissible:UserWarning"),
    pytest.mark.filterwarnings("ignore:eras holds the single era:UserWarning"),
    pytest.mark.filterwarnings("ignore:The first classifier is right on all rows"),
    pytest.mark.filterwarnings("ignore:.*takes all rows for one era:UserWarning"),
    # Where some folds fail, before the error of the plain model's fit to all rows.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning"),
    pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning"),
    pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning"),
]


@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=expected_failures, xfail_strict=True
)
def test_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    OTHER_ESTIMATORS, expected_failed_checks=expected_failures, xfail_strict=True
)
def test_check_with_other_parameters(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", BOOSTERS)
def test_expected_failures_are_those_of_stock(estimator):
    (stock,) = PER_ESTIMATOR_XFAIL_CHECKS.keys() & set(estimator.__mro__)
    assert EQUIVALENCE in PER_ESTIMATOR_XFAIL_CHECKS[stock]


def test_the_docs_list_the_expected_failures():
    rows = re.findall(r"^\| (.+) \| `(check_\w+)` \| (.+) \|$", DOCS.read_text(), re.M)
    assert {(group, check): reason for group, check, reason in rows} == (
        EXPECTED_FAILURES
    )


def test_every_public_estimator_is_checked():
    names = ("calibration", "causal", "ensemble", "environments", "inspection",
             "metrics", "model_selection", "preprocessing", "rules")  # fmt: skip
    modules = [importlib.import_module(f"sklearn_era.{name}") for name in names]
    things = [getattr(module, name) for module in modules for name in module.__all__]
    public = {x for x in things if inspect.isclass(x) and hasattr(x, "fit")}
    public -= {EraScoreForecast}  # to scores, and not to rows
    assert public
    checked = {
        ancestor
        for estimator in [*ESTIMATORS, *OTHER_ESTIMATORS]
        for ancestor in type(estimator).__mro__
    }
    assert public <= checked
