"""Criteria and effects as objects: alone, in estimators, in searches and in files."""

import copy
import inspect
import pickle
from textwrap import dedent

import pytest
from sklearn.base import clone

from helpers.estimators import ours
from sklearn_era import criteria
from sklearn_era.criteria import Blend, Directional, Era, Gain, Invariant, VREx
from sklearn_era.effects import GroupDRO, Intercepts, Recency
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble import TimeRobustForestRegressor as TimeRobustForest
from sklearn_era.ensemble._parameter_table import CONSTRAINTS, MOVED, PARAMETERS

BOOSTERS = [Regressor, Classifier]
FORESTS = [EraForestRegressor, EraForestClassifier]
# Objects, how Python would write them, and another value of a parameter.
OBJECTS = [
    (Gain(), "Gain()", {"splitter": "era"}),
    (Era(-1.0), "Era(boltzmann_alpha=-1.0)", {"normalize": True}),
    (criteria.TimeRobust("mean"), "TimeRobust(aggregation='mean')",
     {"impurity": "standard_deviation"}),
    (Invariant(2.0), "Invariant(penalty=2.0)", {"statistic": "changing_rate"}),
    (VREx(normalize=True), "VREx(normalize=True)", {"penalty": 0.5}),
    (Directional(), "Directional()", {"min_agreement": 0.3}),
    (Blend({"era": 1, VREx(2.0): 0.5}),
     "Blend(weights={VREx(penalty=2.0): 0.5, 'era': 1})", {"normalize": False}),
    (Recency(8), "Recency(half_life=8)", {"half_life": 4}),
    (GroupDRO(), "GroupDRO()", {"step_size": 0.5}),
    (Intercepts(n_eras=1), "Intercepts(n_eras=1)", {"forecast": "mean"}),
]  # fmt: skip
EACH_OBJECT = pytest.mark.parametrize(("thing", "text", "change"), OBJECTS, ids=str)


def parameter_of(thing) -> str:
    """The parameter of the estimators that takes an object."""
    if isinstance(thing, Intercepts):
        return "era_effects"
    is_weighting = isinstance(thing, Recency | GroupDRO)
    return "era_weighting" if is_weighting else "split_criterion"


@EACH_OBJECT
def test_an_object_is_its_parameters(thing, text, change):
    assert repr(thing) == text
    assert eval(text, vars(criteria) | globals()) == thing
    params = thing.get_params(deep=False)
    for same in (
        type(thing)(**params), clone(thing), copy.deepcopy(thing),
        pickle.loads(pickle.dumps(thing))):  # fmt: skip
        assert same == thing
        assert (hash(same), same.get_params(deep=False)) == (hash(thing), params)
    other = clone(thing).set_params(**change)
    assert other.get_params(deep=False) == params | change
    assert other != thing
    assert len({thing, clone(thing), other}) == 2
    for unlike, *_ in OBJECTS:
        assert (unlike == thing) == (unlike is thing)
    with pytest.raises(ValueError, match="Invalid parameter 'no_such'"):
        thing.set_params(no_such=1)


@EACH_OBJECT
def test_nested_names_change_one_estimator(thing, text, change):
    owner = parameter_of(thing)
    nested = {f"{owner}__{name}": value for name, value in change.items()}
    first, second = (ours(**{owner: thing}) for _ in range(2))
    assert nested.keys() <= first.get_params().keys()
    first.set_params(**nested)
    assert getattr(first, owner) == clone(thing).set_params(**change) != thing
    assert getattr(second, owner) is thing
    assert repr(thing) == text
    assert first.get_params() == clone(first).get_params()


def test_nested_names_on_shortcuts():
    for value, change, expected in [
        ("directional", {"min_agreement": 0.2}, Directional(0.2)),
        ({"era": 1}, {"normalize": False}, Blend({"era": 1}, normalize=False)),
        ("era", {"boltzmann_alpha": -1, "normalize": True}, Era(-1, normalize=True)),
    ]:
        nested = {f"split_criterion__{name}": x for name, x in change.items()}
        model = ours(split_criterion="gain")
        assert model.set_params(**nested, split_criterion=value) is model
        assert model.split_criterion == expected
    model = ours().set_params(era_effects="intercept", era_effects__n_eras=2)
    assert model.era_effects == Intercepts(n_eras=2)
    for name in ("era_weighting__half_life", "era_effects__n_eras"):
        owner = name.partition("__")[0]
        with pytest.raises(ValueError, match=rf"^{owner}=.* has no parameter .*object"):
            ours().set_params(**{name: 1})
    # Defaults that are objects are not shared.
    TimeRobustForest().split_criterion.set_params(aggregation="max")
    assert TimeRobustForest().split_criterion.aggregation == "mean"


def test_old_values_and_unknown_arguments_are_refused_with_a_guess():
    for kind, name, old, new in [
        (BOOSTERS[0], "era_weighting", "recency", r"Recency\(half_life="),
        (BOOSTERS[0], "min_era_coverage", "auto", "0.1, with min_gain_share=0.5"),
        (FORESTS[0], "bootstrap", "eras", "'whole_eras'"),
    ]:
        with pytest.raises(ValueError, match=f"It is {new}"):
            kind(**{name: old}).fit([[0.0]] * 40, [0, 1] * 20)
    message = "^HistGradientBoostingRegressor: .*'era_orde'.* Did you mean 'era_order'"
    with pytest.raises(TypeError, match=message):
        BOOSTERS[0](era_orde="ordered")
    with pytest.raises(TypeError, match=r"'num_leaves'. It is max_leaf_nodes here"):
        FORESTS[0](num_leaves=8)


@pytest.mark.parametrize("kind", [*BOOSTERS, *FORESTS])
@pytest.mark.parametrize("name", MOVED)
def test_moved_names_are_refused_with_the_new_ones(kind, name):
    assert name not in inspect.signature(kind).parameters
    text = rf"^{name} is no parameter .* use \w+=\w+\(\w+=.*, of sklearn_era\.\w+\.$"
    for refuse in (lambda: kind(**{name: 1}), lambda: kind().set_params(**{name: 1})):
        with pytest.raises(TypeError, match=text) as caught:
            refuse()
        assert MOVED[name] in str(caught.value)


@pytest.mark.parametrize("kind", [*BOOSTERS, *FORESTS])
def test_the_table_is_what_estimators_have(kind):
    known, is_forest = inspect.signature(kind).parameters, kind in FORESTS
    assert len(known) <= (25 if is_forest else 34)
    for name, row in PARAMETERS.items():
        if is_forest and not row.is_of_forests:
            assert name not in known
            continue
        assert known[name].default == row.default
        constraints = kind._parameter_constraints[name]
        if not (is_forest and name == "era_weighting"):  # but for GroupDRO
            assert constraints is CONSTRAINTS[name]
        described = dedent(kind.__doc__).replace("\n    ", "\n")
        assert f"{name} : {row.kind}, default={row.default!r}" in described or is_forest
        first_words = " ".join(row.text.split()[:6])
        assert first_words in " ".join(kind.__doc__.split()) or is_forest
