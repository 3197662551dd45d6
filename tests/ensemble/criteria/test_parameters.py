"""From the parameters of an estimator to its criterion, and what is refused."""

import math
import re
from types import MappingProxyType

import numpy as np
import pytest
from sklearn.base import clone

from helpers.criteria import BLEND, COVER_ALL, COVERING, NAMES, RATIO
from helpers.data import make_data
from helpers.estimators import ours
from helpers.trees import assert_same_trees
from oracle.formulas import eras_to_cover
from sklearn_era import criteria
from sklearn_era._eras import number_of_share
from sklearn_era.criteria import Blend, Directional, Era, Invariant, TimeRobust, VREx
from sklearn_era.criteria._blend import as_criterion
from sklearn_era.criteria._criteria import CRITERIA
from sklearn_era.effects import GroupDRO
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._criteria.objects import NUMBERS, InvarianceStatistic

STATISTICS = ["effect", "changing_rate", "ratio"]


def test_criteria_are_named_as_the_parameter():
    assert (list(CRITERIA), list(NUMBERS)) == (NAMES, [*NAMES, "custom", "blend"])
    assert [statistic.name.lower() for statistic in InvarianceStatistic] == STATISTICS
    # A blend keeps its positive weights, in units of the largest.
    criterion = as_criterion({"era": 1, "gain": 0.0, VREx(2.0): 0.5})
    assert criterion.name == "blend"
    assert criterion._parts == {Era(): 1.0, VREx(2.0): 0.5}
    assert Blend({"era": 8, "vrex": 2})._parts == {Era(): 1.0, VREx(): 0.25}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "time_robust"])
def test_blend_of_one_positive_weight_is_that_criterion(name):
    (part,) = Blend({name: 0.2})._parts
    assert as_criterion({name: 0.2}) == as_criterion(name) == part
    assert as_criterion(dict.fromkeys(("era", "gain", "vrex"), 0) | {name: 3}) == part
    assert as_criterion(VREx(3.0)) == as_criterion({VREx(3.0): 2}) == VREx(3.0)


@pytest.mark.parametrize(("blend", "message"), [
    ({"era": 1, "gini": 1}, "'gini' cannot be part of a blend: it is no "),
    ({"era": 1, 3: 1}, "3 cannot be part of a blend: it is no criterion"),
    ({"era": 1, "Gain": 0}, "'Gain' cannot be part"),
    ({"era": 1, "time_robust": 1}, "'time_robust' cannot .*: its key is an impurity"),
    ({"era": 0, "gain": 0.0}, r"\{'era': 0, 'gain': 0.0\} has no positive"),
    ({"era": 1, Era(2.0): 2}, r"Era\(boltzmann_alpha=2.0\) .* the second one"),
    ({Blend({"era": 1}): 1}, "Blend.* cannot be part of a blend: it is no"),
    ({Directional(boltzmann_alpha=1.0): 1, "era": 1}, "boltzmann_alpha decides ties"),
    ({VREx(-1.0): 1}, "'penalty' parameter of VREx must be"),
    ({Invariant(statistic="ratio"): 1, "era": 1}, "='ratio' compares counts"),
    (Blend({"gain": 1, Era(normalize=True): 1}, normalize=False),
     "its normalize is True, and the blend's, which holds, is False"),
    (Blend([("era", 1)]), "'weights' parameter of Blend must be"),
    ({}, r"split_criterion=\{\} has no positive weight"),
    *(({"era": weight, "gain": 1}, f"the weight of 'era' is {weight!r}")
      for weight in (-0.5, math.nan, math.inf, "1", None, 1j)),
])  # fmt: skip
def test_bad_blends_are_refused(blend, message):
    X, y, _, eras = make_data(n_samples=60)
    for given in (eras, None):
        with pytest.raises(ValueError, match=message):
            ours(split_criterion=blend).fit(X, y, eras=given)


def bad(*names_and_values):
    return [(name, value) for name, *values in names_and_values for value in values]


@pytest.mark.parametrize(("name", "value"), [
    *bad(
        ("split_criterion", "Era", "gini", "blend", None, ["era"], 1, Era),
        ("min_samples_per_era", 0, -1, -0.1, 0.51, 1.0, 1.5, 2.0, math.inf, None, "1"),
        ("min_era_coverage", 0, -0.5, 1.5, 2, math.nan, math.inf, None, "auto"),
        ("min_gain_share", -0.1, 1.1, math.nan, math.inf, "auto", None),
        ("min_impurity_decrease", -1e-9, math.nan, math.inf, None),
        ("validation_eras", "first", "none", 3, True),
        ("n_jobs", 0, 1.0, 2.5, math.nan, "a", [2]),
        ("feature_penalty", "a", 0.5, True),
        ("colsample_bytree", 0, 0.0, -0.5, 1.5, 2, math.nan, "a", None, math.inf),
    ),
    ("split_criterion", MappingProxyType({"era": 1})),
])  # fmt: skip
def test_bad_values_are_refused_by_name(name, value):
    jobs = r"an int in the range \(-inf, -1\], an int in the range \[1, inf\) or None"
    told = {"n_jobs": jobs, "colsample_bytree": "a float in the range"}.get(name, "")
    message = f"The '{name}' parameter of Hist.* must be {told}"
    for target, split_criterion in (("real", "gain"), ("binary", "directional")):
        X, y, _, eras = make_data(target, n_samples=60)
        model = ours(target, split_criterion=split_criterion)
        with pytest.raises(ValueError, match=message):
            model.set_params(**{name: value}).fit(X, y, eras=eras)


BAD_PARAMETERS = {
    criteria.Gain: bad(("splitter", "fast", None)),
    Era: bad(("boltzmann_alpha", math.nan, "0", None)),
    Directional: bad(("min_agreement", -0.01, 1.01, math.nan, None),
                     ("boltzmann_alpha", math.nan)),
    TimeRobust: bad(("aggregation", "min", "Max", None, -1, math.nan),
                    ("min_impurity_decrease", -1e-9, math.nan, math.inf, None),
                    ("impurity", "std", "gini", None)),
    Invariant: bad(("penalty", -1e-9, math.nan, math.inf, None, "1"),
                   ("statistic", "rate", "Effect", None)),
    VREx: bad(("penalty", -1e-9, math.inf), ("normalize", "yes", 1, 0.0, None)),
}  # fmt: skip


@pytest.mark.parametrize(("make", "target", "is_weighted", "params", "found"), [
    (ours, "count", False, {"loss": "poisson"}, "those of loss='poisson' vary"),
    (Classifier, "binary", False, {}, "those of loss='log_loss' vary"),
    (ours, "real", True, {}, "sample_weight or .* weighs them"),
    (ours, "real", False, {"era_weighting": GroupDRO()}, ".* weighs them"),
    (EraForestRegressor, "real", True, {}, "sample_weight or .* weighs them"),
])  # fmt: skip
def test_deviations_need_hessians_of_1(make, target, is_weighted, params, found):
    X, y, weights, eras = make_data(target, n_samples=60)
    model = make(split_criterion=TimeRobust(impurity="standard_deviation"), **params)
    message = rf"^TimeRobust.* needs rows whose hessians are 1, and {found}: use impuri"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, weights if is_weighted else None, eras=eras)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, *case) for kind, cases in BAD_PARAMETERS.items() for case in cases],
)
def test_bad_values_of_a_criterion_are_refused_by_name(kind, name, value):
    for make in (ours, EraForestRegressor):
        model = make(split_criterion=kind().set_params(**{name: value}))
        message = f"The '{name}' parameter of {kind.__name__} must be"
        with pytest.raises(ValueError, match=message):
            model.fit([[0]], [0], eras=[0])


@pytest.mark.parametrize("kind", [Regressor, EraForestRegressor])
def test_a_name_that_was_meant_is_suggested(kind):
    message = rf"'split_criterion' .* {kind.__name__} .*Did you mean 'directional'\?$"
    with pytest.raises(ValueError, match=message):
        kind(split_criterion="Directionl").fit([[0]], [0])
    message = f"^{kind.__name__} has no parameter 'min_coverage'. Did you mean 'min_era"
    with pytest.raises(ValueError, match=message):
        kind().set_params(min_coverage=1)
    with pytest.raises(ValueError, match="Invalid parameter 'xyz' for estimator"):
        kind().set_params(xyz=1)
    message = "^'held_out' is no longer a criterion; use 'era' or a CustomCriterion.$"
    for criterion in ("held_out", {"era": 1.0, "held_out": 0.5}):
        with pytest.raises(ValueError, match=message):
            kind(split_criterion=criterion).fit([[0]], [0], eras=[0])


@pytest.mark.parametrize("split_criterion", [*NAMES[1:], BLEND], ids=str)
def test_missing_eras_are_asked_for(split_criterion):
    X, y, _, _ = make_data(n_samples=60)
    with pytest.raises(ValueError, match=r"split_criterion=.* needs eras: pass fit\(X"):
        ours(split_criterion=split_criterion).fit(X, y)


@pytest.mark.filterwarnings("ignore:The third argument of fit is:UserWarning")
@pytest.mark.parametrize("kind", [Regressor, EraForestRegressor])
def test_labels_among_the_weights_are_guessed(kind):
    X, y, weights, eras = make_data(n_samples=60)
    est, texts = kind(split_criterion="era"), [f"week{era}" for era in eras]
    for labels in (eras, eras * 1.0, eras.astype("M8[D]"), texts):
        with pytest.raises(ValueError, match=r"era.* pass (it as eras=|them by name)"):
            est.fit(X, y, labels)
    with pytest.raises(ValueError, match=r"needs eras: ((?!sample_weight).)*$"):
        est.fit(X, y, weights)
    with pytest.raises(ValueError, match=r"^sample_weight is not numeric: .* 'week\d'"):
        kind().fit(X, y, texts)


@pytest.mark.parametrize(("share", "n_all", "expected"), [
    (1.0, 7, 7), (1, 7, 7), (0.5, 7, 4), (0.1, 30, 3), (0.07, 100, 7), (0.1, 7, 1),
    (1e-12, 7, 1), (0.1, 1, 1), (0.999, 7, 7), (0.9, 10, 9), (1 / 3, 2000, 667),
    (0.3, 10, 3), (0.7, 10, 7), (0.55, 100, 55), (0.29, 100, 29), (0.99, 1000, 990),
    (1 / 3, 3, 1), (0.5, 5, 3), (0.1001, 30, 4),
])  # fmt: skip
def test_share_is_rounded_up_but_not_for_the_last_digits(share, n_all, expected):
    assert number_of_share(share, n_all) == expected
    assert eras_to_cover(share, n_all) == expected  # of the oracle, by itself


def small_eras():
    """40 rows of each of three eras and 9 rows of the fourth, "d"."""
    X, y, _, _ = make_data(n_samples=129)
    return X, y, np.array([*40 * "abc", *9 * "d"])


def test_era_with_too_few_rows_is_refused_by_name_or_by_a_share():
    X, y, eras = small_eras()
    message = "min_samples_per_era=5 rows of every era .* but 1 of 4 eras have fewer "
    message += r"than 10 rows; the smallest, era d, has 9\."
    for criterion in COVERING.values():
        model = ours(**criterion, min_samples_per_era=5)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, eras=eras)
    model.set_params(split_criterion="gain").fit(X, y, eras=eras)
    message = r"=0\.5 of the rows of every .* 1 of 4 eras have fewer than 10 rows; "
    message += r".* 9\."
    with pytest.raises(ValueError, match=message):
        ours(**COVERING["era"], min_samples_per_era=0.5).fit(X, y, eras=eras)


@pytest.mark.filterwarnings("ignore:No split was admissible:UserWarning")
def test_small_eras_matter_only_where_they_have_to_be_covered():
    X, y, eras = small_eras()
    model = ours(split_criterion="era", min_samples_per_era=5, min_gain_share=0.0)
    model.set_params(min_era_coverage=0.75).fit(X, y, eras=eras)
    assert len(model._predictors[0][0].nodes) > 1
    model.set_params(min_era_coverage=0.76)  # of 4 eras, rounded up
    with pytest.raises(ValueError, match=r"every era on both sides .*=0\.76"):
        model.fit(X, y, eras=eras)
    model.set_params(min_era_coverage=0.5, min_samples_per_era=21)
    message = r"=21 rows of at least 2 of 4 eras on .*=0\.5\), but 4 of 4 eras have few"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, eras=eras)
    model.set_params(min_samples_per_era=20).fit(X, y, eras=eras)
    # One that is held out is no matter.
    model = ours(split_criterion="era", early_stopping=True, era_order="ordered")
    model.fit(X, y, eras=np.append(eras[:-1], "e"))
    assert model.validation_eras_.tolist() == ["e"]


def test_trees_that_coverage_ends_are_warned_of():
    X, y, _, _ = make_data(n_samples=300)
    model = ours(split_criterion="era", max_leaf_nodes=16, **COVER_ALL)
    message = r"^Trees end early, with ([\d.]+) leaves of max_leaf_nodes=16 in the "
    message += r"median: at (\d+)% of .* min_samples_per_era=1 rows .* "
    message += r"\(min_era_coverage=1\.0\) on"
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, y, eras=np.arange(300) % 20)
    assert [warning.filename for warning in caught] == [__file__]
    leaves, share = re.search(message, str(caught[0].message)).groups()
    counts = [tree.get_n_leaf_nodes() for (tree,) in model._predictors]
    assert float(leaves) == np.median(counts) <= 8
    # A tree of k leaves has 2 k - 1 nodes.
    assert 25 < int(share) <= 100 * sum(counts) / (2 * sum(counts) - len(counts)) + 1


def test_agreement_that_leaves_nearly_all_trees_without_a_split_is_warned_of():
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(40), 50)
    X = rng.normal(size=(2000, 5))
    y = 0.05 * X.sum(axis=1) + rng.normal(size=2000)
    model = ours(split_criterion=Directional(min_agreement=0.4), min_era_coverage=0.5,
                 min_gain_share=0.0, learning_rate=0.5, max_iter=100)  # fmt: skip
    message = r"^(\d+) of 100 trees have no split: .* Directional\(min_agreement=0\.4\)"
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, y, eras=eras)
    n_unsplit = int(re.search(message, str(caught[0].message))[1])
    counts = [tree.get_n_leaf_nodes() for (tree,) in model._predictors]
    assert 90 < n_unsplit == counts.count(1) < 100
    model.set_params(split_criterion__min_agreement=0.1).fit(X, y, eras=eras)


def test_criterion_without_a_say_is_warned_of():
    """No split has two eras on both sides."""
    rng, eras = np.random.default_rng(0), np.arange(200) % 20
    X = eras[:, np.newaxis] + rng.uniform(0, 0.5, size=(200, 1))
    y = eras + rng.normal(size=200)
    message = r"^split_criterion='era' decides few splits: at 100% .*_coverage=0\.1\)"
    with pytest.warns(UserWarning, match=message) as caught:
        ours(split_criterion="era").fit(X, y, eras=eras)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("make", [ours, EraForestRegressor], ids=["booster", "forest"])
@pytest.mark.parametrize("name", [*NAMES[1:], "blend", "of one part"])
def test_the_papers_rule_is_one_word(name, make):
    X, y, _, eras = make_data()
    blends = {"blend": BLEND, "of one part": {"invariant": 2.0}}
    criterion = blends.get(name, name)
    given = Blend(criterion) if name in blends else CRITERIA[criterion]()
    own = {"random_state": 0, "min_samples_per_era": 3}
    plain = make(split_criterion=criterion, **own, **COVER_ALL).fit(X, y, eras=eras)
    others = {"min_era_coverage": 0.2, "min_gain_share": 0.9}
    model = make(split_criterion=given, **own, **others)
    if name not in blends:  # by its name, in a grid
        model.set_params(split_criterion=criterion)
    model = clone(model).set_params(split_criterion__rule="every_era")
    assert "rule='every_era'" in repr(model)
    assert_same_trees(model.fit(X, y, eras=eras), plain)
    by_default = model.set_params(split_criterion__rule=None).fit(X, y, eras=eras)
    assert not np.array_equal(by_default.predict(X), plain.predict(X))


def test_what_a_rule_cannot_be():
    X, y, _, eras = make_data()
    part = Era(rule="every_era")
    for criterion, message in {
        Era(rule="papers"): r"'rule' parameter of Era must be a str among",
        Blend({part: 1.0, "vrex": 1.0}): r"rule of its own: pass rule='every_era' to ",
    }.items():
        with pytest.raises(ValueError, match=message):
            ours(split_criterion=criterion).fit(X, y, eras=eras)
    with pytest.raises(ValueError, match="Invalid parameter 'rule' for estimator Gain"):
        ours().set_params(split_criterion__rule="every_era")
    one = ours(split_criterion={part: 1.0, "vrex": 0.0}).fit(X, y, eras=eras)
    assert_same_trees(one, ours(split_criterion=part).fit(X, y, eras=eras))
    eras[:3] = 99
    message = (
        r"rows of every era on both sides \(rule='every_era'\).* leave the rule out"
    )
    with pytest.raises(ValueError, match=message):
        ours(split_criterion=part, min_samples_per_era=2).fit(X, y, eras=eras)


def test_a_default_rule_that_changes_nothing_is_warned_of():
    """Of the gain's splits, or of a shortcut that leaves nothing to the other trees."""
    X, eras = np.nan_to_num(make_data()[0]), np.arange(400) % 4
    y = 1.0 * (X[:, 1] > 0)
    model = ours(split_criterion="era", max_iter=40, learning_rate=1.0)
    with pytest.warns(UserWarning, match=r"of 40 trees .* needs rule='every_era', whi"):
        model.fit(X, y, eras=eras)
    model.set_params(min_gain_share=0.999, learning_rate=0.3, max_leaf_nodes=3)
    message = r"decides few splits: \d+% of the nodes .* set .* rule='every_era', by"
    with pytest.warns(UserWarning, match=message):
        model.fit(X, X[:, 1] + X[:, 2] ** 2, eras=eras)


@pytest.mark.parametrize("too_many", [np.int8(100), 2**31, 2**32, 2**70])
def test_numbers_that_no_machine_integer_holds_are_numbers(too_many):
    X, y, _, eras = make_data()
    model = ours(split_criterion="era", min_samples_per_era=too_many)
    with pytest.raises(ValueError, match=f"fewer than {2 * int(too_many)} rows"):
        model.fit(X, y, eras=eras)
    model.set_params(split_criterion={"era": 1, "vrex": 10**400}, min_samples_per_era=1)
    with pytest.raises(ValueError, match=r"weight of 'vrex' is 10{400};"):
        model.fit(X, y, eras=eras)


@pytest.mark.parametrize(("y", "message"), [
    (np.linspace(0, 1, 90), "y holds 0.01"),
    (np.arange(90) % 3, "y holds 2;"),
    (np.where(np.arange(90) % 2, 1.0, -1.0), "y holds -1;")])  # fmt: skip
def test_ratio_needs_a_target_of_0_and_1(y, message):
    X, _, _, eras = make_data(n_samples=90)
    message = rf"='ratio'\) needs a target of 0 and 1, .*but {message}"
    for labels in (eras, np.zeros(90)):  # a single era too
        with pytest.raises(ValueError, match=message):
            ours(**RATIO).fit(X, y, eras=labels)
    X, y, weights, eras = make_data("multiclass")
    with pytest.raises(ValueError, match=r"^Only binary .*='ratio'\), but y has 3 cl"):
        ours("multiclass", **RATIO).fit(X, y, eras=eras)
    X, y, weights, eras = make_data("binary")
    model = ours(**RATIO).fit(X, (y == "up") * 1.0, weights, eras=eras)
    assert len(model._predictors[0][0].nodes) > 1
