"""The configuration file of a Numerai model, and what a target's name says."""

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.config import Config, load_config, write_config
from sklearn_era.numerai.config.toml_text import key_value
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.targets import check_target, horizon_of, purge_of
from sklearn_era.numerai.workspace import Workspace


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "numerai.toml"
    write_config(path, name="my_model", target="target_ender_60")
    return path


def change(path, section, **values):
    """Replace values of a section's keys, in TOML."""
    before, heading, text = path.read_text().partition(f"[{section}]\n")
    for key, value in values.items():
        text, n_found = re.subn(f"(?m)^{key} = .*$", f"{key} = {value}", text, count=1)
        assert n_found == 1
    path.write_text(before + heading + text)


def refusal(path):
    """What is said of a file, in one line that begins with its name."""
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"'{path}'")
    return message


def test_a_written_file_holds_every_key_and_its_default(path):
    document = tomllib.loads(path.read_text())
    fields = {field.alias or x: field for x, field in Config.model_fields.items()}
    assert document.keys() == fields.keys()
    for name, field in fields.items():
        assert document[name].keys() == field.annotation.model_fields.keys(), name
    needed = {"model": {"name": "my_model"}, "train": {"target": "target_ender_60"}}
    config, _ = load_config(path)
    assert config == Config.model_validate(needed)
    HistGradientBoostingRegressor(**config.train.parameters)._validate_params()


def test_changes_are_written_and_read_back(tmp_path):
    path, parameters = tmp_path / "other.toml", {"split_criterion": {"era": 0.5}}
    train = {"era_groups": 4, "parameters": parameters}
    submit = {"require_open": True}
    write_config(path, name="m", target="target_x_20", train=train, submit=submit)
    config, workspace = load_config(path)
    assert (config.train.era_groups, config.train.parameters) == (4, parameters)
    assert config.submit.require_open
    assert workspace == Workspace(tmp_path, "v5.3", "m")


@pytest.mark.parametrize(
    ("section", "key", "value", "demand"),
    [
        ("train", "every_nth_era", "0", "must be 1 or more."),
        ("train", "purge", "-1", "must be 'auto' or a whole"),
        ("train", "purge", "'none'", "must be 'auto' or a whole"),
        ("train", "purge", "true", "must be 'auto' or a whole"),
        ("train", "files", "[]", "must not be empty."),
        ("train", "first_era", "'12'", "must be the four digits"),
        ("train", "last_era", "12", "must be a text"),
        ("data", "version", "5", "must be a text"),
        ("data", "version", "'5.3'", "must be a v and two numbers"),
        ("model", "name", "'../x'", "must be the model's name"),
        ("predict", "neutralize_proportion", "2", "must be 1 or"),
        ("predict", "neutralize_proportion", "true", "must be"),
        ("submit", "timeout", "inf", "must be a finite"),
        ("submit", "timeout", "'60'", "must be a number"),
        ("submit", "retries", "1000", "must be 100 or less"),
        ("export", "weekly", "1", "must be true or false."),
    ],
)
def test_a_bad_value_is_refused_with_its_key(path, section, key, value, demand):
    change(path, section, **{key: value})
    assert f"[{section}] {key} = {value} {demand}" in refusal(path)


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("train", {"files": "['training']"}, "files = 'training' must be 'train' or"),
        ("train", {"files": "['train', 'train']"}, "names 'train' twice"),
        ("data", {"refresh": "['training']"}, "refresh names 'training'"),
        ("predict", {"neutralize_proportion": "0.5"}, "weekly = false"),
        ("train", {"target": "'target'"}, "is an alias"),
        ("train", {"target": "'target_ender'"}, "does not end in its horizon"),
        ("train", {"first_era": "'0300'", "last_era": "'0299'"},
         "[train] first_era = '0300' is after last_era = '0299'."),
    ],
)  # fmt: skip
def test_values_that_do_not_go_together_are_refused(path, section, values, said):
    change(path, section, **values)
    assert said in refusal(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('purge = "auto"', "purgee = 1", "did you mean 'purge'?"),
        ('name = "my_model"', "", "[model] name is missing"),
        ("[submit]", "[subm]", "[subm] is not a key"),
        ("[train]\n", "[[train]]\n", "[train] must be a table."),
        ("[submit]", "[submit", "is not a TOML file"),
    ],
)
def test_a_file_of_another_form_is_refused(path, old, new, said):
    path.write_text(path.read_text().replace(old, new))
    assert said in refusal(path)


def test_values_of_other_forms_are_taken(path):
    change(path, "submit", timeout=30)
    change(path, "predict", neutralize_proportion=0)
    config, _ = load_config(path)
    assert (config.submit.timeout, config.predict.neutralize_proportion) == (30, 0)
    # Neutralised predictions need a week without export.
    change(path, "predict", neutralize_proportion=0.5)
    change(path, "export", weekly="false")
    assert load_config(path).config.predict.neutralize_proportion == 0.5
    # A table of parameters replaces that of the defaults.
    text = path.read_text()
    start = text.index('split_criterion = "directional"')
    end = text.index("# How the model is judged")
    path.write_text(f"{text[:start]}max_iter = 7\n\n{text[end:]}")
    assert load_config(path).config.train.parameters == {"max_iter": 7}


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_KEYS = st.text("aB- é\"'\x7f😀")
_VALUES = st.recursive(
    _TEXTS | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner),
    max_leaves=6,
)


@given(_KEYS, _VALUES)
def test_what_is_written_is_read_back(key, value):
    # In this form numbers of another type differ, and NaN is NaN.
    assert repr(tomllib.loads(key_value(key, value))) == repr({key: value})


def test_what_toml_cannot_hold_is_refused_and_no_file_is_left(tmp_path):
    path = tmp_path / "numerai.toml"
    train = {"parameters": {"max_depth": None}}
    with pytest.raises(ConfigError, match="cannot hold None"):
        write_config(path, name="m", target="target_x_20", train=train)
    assert not path.exists()


def test_an_existing_file_is_not_overwritten_and_a_missing_one_is_told(path):
    before = path.read_text()
    with pytest.raises(ConfigError, match="exists already"):
        write_config(path, name="other", target="target_x_20")
    assert path.read_text() == before
    path.unlink()
    with pytest.raises(ConfigError, match="sklearn-era numerai init"):
        load_config(path)


def test_the_purge_follows_the_horizon_unless_it_is_set(path):
    assert load_config(path).config.purge == 16
    change(path, "train", purge=3)
    assert load_config(path).config.purge == 3
    assert purge_of("target_cyrusd_20") == 8
    assert purge_of("target_ender_60") == 16
    assert purge_of("target_ender_60", 0) == 0


def test_a_target_is_named_in_full():
    with pytest.raises(ConfigError, match="45 business days"):
        purge_of("target_ender_45")
    known = ["target", "target_a_20", "target_b_60"]
    assert check_target("target_a_20", known) == "target_a_20"
    assert horizon_of("target_teager2b_20") == 20
    for target, message in (
        ("target", r"alias.*target_a_20, target_b_60"),
        ("target_c_20", r"no target 'target_c_20'.*target_a_20"),
        ("", "is not set"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_target(target, known)


def test_the_newest_file_is_that_of_the_highest_round(tmp_path):
    workspace = Workspace(tmp_path, "v5.3", "m")
    assert workspace.rounds_of("live") == []
    workspace.data_dir.mkdir(parents=True)
    others = ("live_benchmark_models_11.parquet", "live_12.parquet.partial")
    for name in ("live_9.parquet", "live_10.parquet", *others):
        (workspace.data_dir / name).touch()
    assert workspace.rounds_of("live") == [9, 10]
    assert workspace.newest("live").name == "live_10.parquet"
    with pytest.raises(DataError, match="no train_<round> file"):
        workspace.newest("train")
