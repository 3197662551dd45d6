"""The configuration file: valid contents, and errors for wrong ones."""

import re
import tomllib
from contextlib import suppress
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.numerai import refusal
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai import config as module
from sklearn_era.numerai.config import Workspace, load_config, write_config
from sklearn_era.numerai.errors import ConfigError
from sklearn_era.numerai.steps import Steps

TRAIN = {"target": "target_ender_60"}
DOCUMENT = {"format": 2, "model": [{"name": "my_model"}], "train": TRAIN}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "numerai.toml"
    write_config(path, name="my_model", target="target_ender_60", version="v5.3")
    return path


def resolved(**tables):
    return module.resolve({**DOCUMENT, **tables})


def test_the_template_spells_out_every_key_with_its_default(path):
    document = tomllib.loads(module.TEMPLATE.read_text())
    for name in ("data", "train", "validate", "predict", "submit", "export"):
        section = getattr(module, f"{name.capitalize()}Section")
        assert document[name].keys() == section.model_fields.keys(), name
    config, workspace = load_config(path)
    # Only a new user's file has it.
    compared = resolved(validate={"compare_with_gain": True})
    assert config.model_dump() == compared.model_dump() != resolved().model_dump()
    assert workspace.root == path.parent
    (member,) = config.models[0].members
    assert (member.name, member.train) == ("model", config.models[0].train)
    defaults = member.train.parameters
    HistGradientBoostingRegressor().set_params(**defaults)._validate_params()
    # A parameter that is set leaves the others as they are.
    config = resolved(**train(parameters={"max_iter": 7}))
    assert config.models[0].train.parameters == defaults | {"max_iter": 7}
    # Another criterion has not those of the one before.
    config = resolved(**train(parameters={"split_criterion": "gain"}))
    kept = {k: v for k, v in defaults.items() if k != "split_criterion__min_agreement"}
    assert config.models[0].train.parameters == kept | {"split_criterion": "gain"}


def test_models_and_members_have_their_own_settings_over_the_shared_ones():
    x = {"name": "x", "random_state": 1}
    y = {"name": "y", "target": "target_b_20", "weight": 2.0}
    b = {"name": "b", "predict": {"neutralize_proportion": 0.5}, "member": [x, y]}
    a = {"name": "a", "feature_set": "small", "parameters": {"max_depth": 2}}
    shared = train(every_nth_era=4, parameters={"max_iter": 7})
    a, b = (config := resolved(model=[a, b], **shared)).models
    assert (a.train.feature_set, b.train.feature_set) == ("small", "medium")
    assert a.members[0].train.parameters["max_depth"] == 2
    assert a.predict == module.PredictSection()
    assert b.predict.neutralize_proportion == 0.5
    x, y = b.members
    assert (x.train.random_state, y.train.random_state) == (1, 0)
    assert (x.train.target, y.train.target) == ("target_ender_60", "target_b_20")
    assert b.train.target == "target_ender_60"
    assert (x.weight, y.weight) == (1.0, 2.0)
    assert {one.train.parameters["max_iter"] for one in (*a.members, x, y)} == {7}
    assert (x.train.every_nth_era, config.model("b")) == (4, b)
    for name in (None, "c"):
        with pytest.raises(ConfigError, match="has the models a, b: "):
            config.model(name)


def train(**changes):
    return {"train": {**TRAIN, **changes}}


def model(**changes):
    return {"model": [{"name": "a", **changes}]}


def member(*entries):
    return model(member=list(entries))


@pytest.mark.parametrize(("tables", "said"), [
    (train(every_nth_era=0), "[train] every_nth_era = 0 must be greater than or"),
    (train(files=[]), "[train] files = [] must list 'train', 'validation' or"),
    (train(files=["train"] * 2), "[train] files = ['train', 'train'] must list ea"),
    (train(first_era="0012\n"), "must be four digits"),
    (train(last_era=12), "[train] last_era = 12 must be four digits"),
    (train(era_offset=1), "era_offset = 1 must be less than every_nth_era = 1."),
    (train(first_era="0300", last_era="0299"),
     "[train] first_era = '0300' is after last_era = '0299'."),
    (train(parameters=3), "[train.parameters] must be a table."),
    (train(estimator="forest"), "estimator = 'forest' must be 'boosting' or 'aut"),
    (train(time_budget=9.0), "[train] time_budget is of no use with estimator ="),
    (train(estimator="auto", checkpoint_every=100),
     "[train] checkpoint_every is of no use with estimator = 'auto': remove it."),
    (train(estimator="auto") | model(checkpoint_every=5),
     "[[model]] 'a' checkpoint_every is of no use with estimator = 'auto'"),
    (model(estimator="auto") | member({"name": "x", "time_budget": 9.0}),
     "[[model.member]] 'x' time_budget is of no use with estimator = 'boosting'"),
    ({"validate": {"purge": -1}}, "purge = -1 must be 'auto' or a whole number"),
    ({"data": {"version": "5.3"}}, "version = '5.3' must be a version like 'v5.3'"),
    ({"data": {"files": []}}, "[data] files = [] must list at least one file"),
    ({"data": {"refresh": ["x"]}}, "[data] refresh names 'x', which is not in"),
    ({"predict": {"neutralize_proportion": 2.0}}, "must be less than or equal to"),
    ({"submit": {"timeout": float("inf")}}, "[submit] timeout = inf must be "),
    ({"export": {"automatic": 1}}, "[export] automatic = 1 must be a valid bool"),
    ({"export": {"automatik": 1}}, "[export] automatik is not a valid key; did you"
     " mean 'automatic'?"),
    ({"train": {}}, "[train] target is missing"),
    (train(target="target"), "is an alias"),
    (train(target="target_ender"), "not 'target_ender': set purge"),
    ({"train": [TRAIN]}, "[train] must be a table."),
    ({"trainn": TRAIN}, "[trainn] is not a valid key; did you mea"),
    ({"format": 3}, "format = 3 is not supported: upgrade"),
    ({"model": []}, "[[model]] is missing"),
    ({"model": [{"name": "../x"}]}, "name = '../x' must be made of letters, dig"),
    ({"model": [{"name": "Alice"}, {"name": "alice"}]},
     "[[model]] 'alice' is defined twice, as folders may not tell it from "
     "[[model]] 'Alice': choose another name."),
    (model(feature_set=3), "[[model]] 'a' feature_set = 3 must be a name."),
    (model(predikt={}), "[[model]] 'a' predikt is not a valid key;"
     " did you mean 'predict'?"),
    (model(predict=3), "[[model]] 'a' predict must be a table."),
    (model(member=3), "[[model]] 'a', [[model.member]] must be a table."),
    (model(member=[]), "[[model]] 'a', [[model.member]] is missing"),
    (member({}), "[[model]] 'a', [[model.member]] name is missing"),
    (member({"name": "x.y"}), "letters, digits, '_' and '-', and not 'gain' or"),
    (member({"name": "x"}, {"name": "x"}), "[[model.member]] 'x' is defined twic"),
    (member({"name": "x", "weight": -1.0}),
     "[[model]] 'a', [[model.member]] 'x' weight = -1.0 must be greater than 0."),
    (member({"name": "x", "random_stat": 1}),
     "[[model.member]] 'x' random_stat is not a valid"),
])  # fmt: skip
def test_what_is_wrong_is_told_with_its_table(tables, said):
    assert said in refusal(ConfigError, resolved, **tables)


def test_an_average_among_other_fits():
    tables = train(estimator="auto", time_budget=9.0)
    tables |= member({"name": "x"}, {"name": "y", "estimator": "boosting"})
    x, y = (one.train for one in resolved(**tables).models[0].members)
    assert (x.estimator, x.time_budget, y.estimator) == ("auto", 9.0, "boosting")
    shared = train(checkpoint_every=5, time_budget=9.0)
    fits = [{"name": "x", "estimator": "auto"}, {"name": "y"}]
    models = resolved(**shared, model=fits).models
    given = resolved(**shared, **member(*fits)).models[0].members
    for x, y in (models, given):
        assert (x.train.estimator, x.train.time_budget) == ("auto", 9.0)
        assert (y.train.estimator, y.train.checkpoint_every) == ("boosting", 5)
    assert resolved(**model(time_budget=9.0, member=fits)).models


@pytest.mark.parametrize(("old", "new", "said"), [
    ("[submit]", "[submit", "is not valid TOML"),
    ("[submit]\n", f"x = {'[' * 3000}{']' * 3000}\n", "is not valid TOML"),
    ("random_state = 0", f"random_state = {'9' * 5000}", "is not valid TOML"),
    ("every_nth_era = 1\n", "every_nth = 1\n", "did you mean 'every_nth_era'?"),
])  # fmt: skip
def test_a_damaged_file_is_one_sentence_with_its_name(path, old, new, said):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ConfigError, match=rf"^'{path}'.*{re.escape(said)}"):
        load_config(path)


@pytest.mark.parametrize(("after", "parameters", "said"), [
    ("[train.parameters]", "max_itr = 3", "[train.parameters] max_itr is not"),
    ("[[model]]", "parameters.max_itr = 3", "[[model]] 'm' parameters max_itr is"),
    ("[[model.member]]", "parameters.max_depth = -3",
     "[[model]] 'm', [[model.member]] 'x' parameters The 'max_depth' parameter"),
    ("[[model]]", "parameters.verbose = 1", "[[model]] 'm' parameters verbose can"),
    ("[[model.member]]", "random_state = 3\nparameters.split_criterion = 'gain'",
     "nothing to compare: [[model]] 'm', [[model.member]] 'x' parameters split_"),
    ("[[model]]", "feature_set = 'tiny'", "has no feature set 'tiny'; use small."),
    ("[[model]]", "target = 'target_c_20'", "Unknown target 'target_c_20'."),
])  # fmt: skip
def test_wrong_parameters(tmp_path, after, parameters, said):
    text = (
        "format = 2\n[[model]]\nname = 'm'\n[[model.member]]\nname = 'x'\n[train]\n"
        "target = 'target_b_20'\nfeature_set = 'small'\n[train.parameters]\n"
        "max_bins = 5\n[validate]\ncompare_with_gain = true\n"
    )
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(f"{after}\n", f"{after}\n{parameters}\n"))
    config, workspace = load_config(path)
    features = workspace.data_file("features", 1)
    features.parent.mkdir(parents=True)
    known = '{"feature_sets": {"small": ["a"]}, "targets": ["target_b_20"]}'
    features.write_text(known)
    steps = Steps(config, workspace, Mock())
    message = refusal(ConfigError, steps.check_parameters)
    assert message.startswith(f"'{path}': ")
    assert said in message


_TABLES = ["format", "data", "train", "model", "validate", "predict"]
_KEYS = ["name", "member", "target", "parameters", "split_criterion", "x"]
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), x),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(_TABLES), _ANYTHING))
def test_whatever_a_file_holds_is_read_or_refused(tables):
    with suppress(ConfigError):
        module.resolve({**DOCUMENT, **tables})


def test_a_file_of_the_first_format_keeps_its_defaults():
    first = {"model": {"name": "m"}, "train": TRAIN}
    config = module.resolve(first)
    settings = config.models[0].train
    assert settings.files == ["train"]
    assert settings.parameters["split_criterion__min_agreement"] == 0.0
    assert "max_bins" not in settings.parameters
    assert config.export.automatic
    assert config.validation.purge_of("target_ender_60") == 16
    # A table replaced that of the defaults, and left the rest to the estimator.
    old = train(purge=3, compare_with_gain=True, parameters={"max_iter": 7})
    config = module.resolve({**first, **old, "export": {"weekly": False}})
    assert config.models[0].train.parameters == {"max_iter": 7}
    assert (config.validation.purge, config.validation.compare_with_gain) == (3, True)
    assert not config.export.automatic


@pytest.mark.parametrize("before", ["", "data/", "data/\n", "# .env\n", "x\n.env\n"])
def test_git_ignores_the_file_that_the_keys_are_in(tmp_path, before):
    ignored = tmp_path / ".gitignore"
    if before:
        ignored.write_text(before)
    for name in ("a.toml", "b.toml"):
        write_config(tmp_path / name, name="m", target="target_x_20", version="v5.3")
    lines = ignored.read_text().splitlines()
    assert lines[: len(before.splitlines())] == before.splitlines()
    assert lines.count(".env") == 1


def test_an_existing_file_is_not_overwritten_and_a_missing_one_is_told(path):
    before = path.read_text()
    with pytest.raises(ConfigError, match="already exists"):
        write_config(path, name="other", target="target_x_20", version="v5.3")
    assert path.read_text() == before
    path.unlink()
    with pytest.raises(ConfigError, match="sklearn-era numerai init"):
        load_config(path)
    with pytest.raises(ConfigError, match="may only contain letters"):
        write_config(path, name="a b", target="target_x_20", version="v5.3")
    assert not path.exists()
    (ignored := path.with_name(".gitignore")).unlink()
    ignored.mkdir()
    with pytest.raises(ConfigError, match=r"\.gitignore' cannot be written: Is a dir"):
        write_config(path, name="a", target="target_x_20", version="v5.3")


def test_a_link_to_a_file_has_the_folders_beside_it(path, tmp_path):
    link = tmp_path / "here" / "numerai.toml"
    link.parent.mkdir()
    link.symlink_to(path)
    assert load_config(link)[1].root == link.parent


def test_a_target_is_named_in_full_and_its_horizon_tells_the_purge():
    known = ["target", "target_a_20", "target_b_60"]
    assert module.check_target("target_a_20", known) == "target_a_20"
    for target, said in (("target", "is an alias"), ("target_c_20", "Unknown target")):
        message = refusal(ConfigError, module.check_target, target, known)
        assert said in message
        assert message.endswith("Available targets: target_a_20, target_b_60.")
    section = module.ValidateSection()
    assert section.purge_of("target_teager2b_20") == 8
    assert section.purge_of("target_ender_60") == 16
    assert module.ValidateSection(purge=0).purge_of("target_ender_45") == 0


def test_the_newest_file_is_that_of_the_highest_round(tmp_path):
    workspace = Workspace(tmp_path, "v5.3")
    assert workspace.newest("live") is None
    workspace.data_dir.mkdir(parents=True)
    others = ("live_benchmark_models_11.parquet", "live_12.parquet.partial")
    for name in ("live_9.parquet", "live_10.parquet", *others):
        (workspace.data_dir / name).touch()
    assert workspace.rounds_of("live") == [9, 10]
    assert workspace.newest("live").name == "live_10.parquet"
    assert re.fullmatch(r"features_3\.json", workspace.data_file("features", 3).name)
