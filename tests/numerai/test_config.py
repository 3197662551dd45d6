"""The configuration file: what it may hold, and what is said of a wrong one."""

import re
import tomllib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai import config as module
from sklearn_era.numerai.config import (
    TEMPLATE,
    Workspace,
    check_target,
    default_parameters,
    load_config,
    resolve,
    write_config,
)
from sklearn_era.numerai.errors import ConfigError

TRAIN = {"target": "target_ender_60"}
DOCUMENT = {"format": 2, "model": [{"name": "my_model"}], "train": TRAIN}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "numerai.toml"
    write_config(path, name="my_model", target="target_ender_60", version="v5.3")
    return path


def resolved(**tables):
    return resolve({**DOCUMENT, **tables})


def refusal(**tables):
    """The one sentence with which a document is refused."""
    with pytest.raises(ConfigError) as caught:
        resolved(**tables)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_template_spells_out_every_key_with_its_default(path):
    document = tomllib.loads(TEMPLATE.read_text())
    for name, section in (
        ("data", module.DataSection),
        ("train", module.TrainSection),
        ("validate", module.ValidateSection),
        ("predict", module.PredictSection),
        ("submit", module.SubmitSection),
        ("export", module.ExportSection),
    ):
        assert document[name].keys() == section.model_fields.keys(), name
    config, workspace = load_config(path)
    assert config == resolved()
    assert workspace.root == path.parent
    (member,) = config.models[0].members
    assert (member.name, member.train) == ("model", config.models[0].train)
    HistGradientBoostingRegressor(**member.train.parameters)._validate_params()


def test_a_key_that_is_left_out_has_the_templates_value():
    config = resolved(train={**TRAIN, "parameters": {"max_iter": 7}})
    parameters = config.models[0].train.parameters
    assert parameters == default_parameters() | {"max_iter": 7}


def test_models_and_members_have_their_own_settings_over_the_shared_ones():
    config = resolved(
        model=[
            {"name": "a", "feature_set": "small", "parameters": {"max_depth": 2}},
            {
                "name": "b",
                "predict": {"neutralize_proportion": 0.5},
                "member": [
                    {"name": "x", "random_state": 1},
                    {"name": "y", "target": "target_b_20", "weight": 2.0},
                ],
            },
        ],
        train={**TRAIN, "every_nth_era": 4, "parameters": {"max_iter": 7}},
    )
    a, b = config.models
    assert (a.train.feature_set, b.train.feature_set) == ("small", "medium")
    assert a.members[0].train.parameters["max_depth"] == 2
    assert (a.predict, b.predict.neutralize_proportion) == (
        module.PredictSection(),
        0.5,
    )
    x, y = b.members
    assert (x.train.random_state, y.train.random_state) == (1, 0)
    assert (x.train.target, y.train.target) == ("target_ender_60", "target_b_20")
    assert b.train.target == "target_ender_60"
    assert (x.weight, y.weight) == (1.0, 2.0)
    assert {one.train.parameters["max_iter"] for one in (*a.members, x, y)} == {7}
    assert config.model("b") is b
    for name in (None, "c"):
        with pytest.raises(ConfigError, match="has the models a, b: "):
            config.model(name)


@pytest.mark.parametrize(
    ("table", "key", "value", "said"),
    [
        ("train", "every_nth_era", 0, "= 0 must be greater than or equal to 1"),
        ("train", "files", [], "= [] is refused: List must have at least 1 item"),
        ("train", "files", ["training"], "must be 'train' or 'validation'"),
        ("train", "files", ["train", "train"], "must not name 'train' twice"),
        ("train", "first_era", "12", "= '12' must be four digits"),
        ("train", "last_era", 12, "= 12 must be a valid string"),
        ("train", "era_offset", 1, "= 1 must be less than every_nth_era = 1"),
        ("train", "parameters", 3, "[train.parameters] must be a table"),
        ("validate", "purge", -1, "= -1 must be 'auto' or a whole"),
        ("validate", "purge", True, "= True must be 'auto' or a whole"),
        ("validate", "folds", 0, "must be greater than or equal to 1"),
        ("data", "version", "5.3", "= '5.3' must be such as 'v5.3'"),
        ("data", "refresh", ["training"], "names 'training', which files does not"),
        ("predict", "neutralize_proportion", 2.0, "must be less than or equal to 1"),
        ("predict", "neutralize_proportion", True, "must be a valid number"),
        ("submit", "timeout", float("inf"), "must be"),
        ("submit", "retries", 1000, "must be less than or equal to 100"),
        ("export", "automatic", 1, "must be a valid boolean"),
        ("export", "automatik", True, "did you mean 'automatic'?"),
    ],
)
def test_a_bad_value_is_refused_with_its_key(table, key, value, said):
    base = TRAIN if table == "train" else {}
    message = refusal(**{table: {**base, key: value}})
    assert f"[{table}" in message
    assert key in message
    assert said in message


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"train": {}}, "[train] target is missing"),
        ({"train": {"target": "target"}}, "is an alias"),
        ({"train": {"target": ""}}, "Target is not set."),
        ({"train": {"target": "target_ender"}}, "'target_ender' is neither"),
        ({"train": {**TRAIN, "first_era": "0300", "last_era": "0299"}},
         "[train] first_era = '0300' is after last_era = '0299'."),
        ({"train": [TRAIN]}, "[train] must be a table."),
        ({"trainn": TRAIN}, "[trainn] is not a key of the configuration; did you mea"),
        ({"format": 3}, "format = 3 is not known to this"),
        ({"model": []}, "[[model]] is missing"),
        ({"model": ["a"]}, "[[model]] must be a table."),
        ({"model": [{}]}, "[[model]] name is missing"),
        ({"model": [{"name": "../x"}]}, "name = '../x' must be a name of letters"),
        ({"model": [{"name": "a"}, {"name": "a"}]}, "the name 'a' is there twice"),
        ({"model": [{"name": "a", "feature_set": 3}]}, "[[model]] 'a' feature_set = 3"),
        ({"model": [{"name": "a", "member": 3}]}, "'a' member must be tables"),
        ({"model": [{"name": "a", "member": [{}]}]}, "member]] '' name is missing"),
        ({"model": [{"name": "a", "member": [{"name": "gain"}]}]}, "no member can be"),
        ({"model": [{"name": "a", "member": [{"name": "x"}, {"name": "x"}]}]},
         "[[model]] 'a' member: the name 'x' is there twice"),
        ({"model": [{"name": "a", "member": [{"name": "x", "weight": -1.0}]}]},
         "[[model]] 'a', [[model.member]] 'x' weight = -1.0 must be greater than 0"),
    ],
)  # fmt: skip
def test_tables_that_do_not_go_together_are_refused(tables, said):
    assert said in refusal(**tables)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[submit]", "[submit", "is not a TOML file"),
        (
            "[submit]\n",
            f"x = {'[' * 3000}{']' * 3000}\n[submit]\n",
            "nested too deeply",
        ),
        ("random_state = 0", f"random_state = {'9' * 5000}", "is not a TOML file"),
        ("every_nth_era = 1\n", "every_nth = 1\n", "did you mean 'every_nth_era'?"),
    ],
)
def test_a_damaged_file_is_one_sentence_with_its_name(path, old, new, said):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"'{path}'")
    assert said in str(caught.value)


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "member", "target", "x"]), inner)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["format", "data", "train", "model", "validate", "predict"]),
        _ANYTHING,
    )
)
def test_whatever_a_file_holds_is_read_or_refused(tables):
    with suppress(ConfigError):
        resolve({**DOCUMENT, **tables})


def test_a_file_of_the_first_format_keeps_its_defaults():
    first = {"model": {"name": "m"}, "train": TRAIN}
    config = resolve(first)
    settings = config.models[0].train
    assert settings.files == ["train"]
    assert settings.parameters["min_direction_agreement"] == 0.0
    assert "max_bins" not in settings.parameters
    assert config.export.automatic
    assert config.validation.purge_of("target_ender_60") == 16
    # A table replaced that of the defaults, and left the rest to the estimator.
    train = {
        **TRAIN,
        "purge": 3,
        "compare_with_gain": True,
        "parameters": {"max_iter": 7},
    }
    config = resolve({**first, "train": train, "export": {"weekly": False}})
    assert config.models[0].train.parameters == {"max_iter": 7}
    assert (config.validation.purge, config.validation.compare_with_gain) == (3, True)
    assert not config.export.automatic


def test_an_existing_file_is_not_overwritten_and_a_missing_one_is_told(path):
    before = path.read_text()
    with pytest.raises(ConfigError, match="exists already"):
        write_config(path, name="other", target="target_x_20", version="v5.3")
    assert path.read_text() == before
    path.unlink()
    with pytest.raises(ConfigError, match="sklearn-era numerai init"):
        load_config(path)
    with pytest.raises(ConfigError, match="may hold only letters"):
        write_config(path, name="a b", target="target_x_20", version="v5.3")
    assert not path.exists()


def test_a_link_to_a_file_has_the_folders_beside_it(path, tmp_path):
    link = tmp_path / "here" / "numerai.toml"
    link.parent.mkdir()
    link.symlink_to(path)
    assert load_config(link)[1].root == link.parent


def test_a_target_is_named_in_full_and_its_horizon_tells_the_purge():
    known = ["target", "target_a_20", "target_b_60"]
    assert check_target("target_a_20", known) == "target_a_20"
    for target, message in (
        ("target", r"alias.*target_a_20, target_b_60"),
        ("target_c_20", r"no target 'target_c_20'.*target_a_20"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_target(target, known)
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
