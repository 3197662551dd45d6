"""The configuration file of a Numerai model, and what a target's name says."""

import math
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic")

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.config import Config, load_config, write_config
from sklearn_era.numerai.config.toml_text import comment_lines, key_value
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.targets import check_target, horizon_of, purge_of
from sklearn_era.numerai.workspace import Workspace


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "numerai.toml"
    write_config(path, name="my_model", target="target_ender_60")
    return path


def refusal(path, old, new):
    """What is said of a file in which a text was replaced."""
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_written_file_holds_every_key_and_its_default(path):
    document = tomllib.loads(path.read_text())
    assert document.keys() == {
        field.alias or name for name, field in Config.model_fields.items()
    }
    for name, field in Config.model_fields.items():
        section = document[field.alias or name]
        fields = field.annotation.model_fields
        assert section.keys() == fields.keys(), name
        for item in fields.values():
            # Each key is explained on the lines before.
            assert "\n".join(comment_lines(item.description)) in path.read_text()
    assert max(map(len, path.read_text().splitlines())) <= 79
    config, _ = load_config(path)
    assert config == Config.model_validate(
        {"model": {"name": "my_model"}, "train": {"target": "target_ender_60"}}
    )


def test_the_default_parameters_are_those_of_the_estimator(path):
    config, _ = load_config(path)
    known = HistGradientBoostingRegressor().get_params()
    assert config.train.parameters.keys() <= known.keys()
    HistGradientBoostingRegressor(**config.train.parameters)._validate_params()


def test_changes_are_written_and_read_back(tmp_path):
    path = tmp_path / "other.toml"
    write_config(
        path,
        name="m",
        target="target_x_20",
        train={"era_groups": 4, "parameters": {"split_criterion": {"era": 0.5}}},
        submit={"require_open": True},
    )
    config, workspace = load_config(path)
    assert config.train.era_groups == 4
    assert config.train.parameters == {"split_criterion": {"era": 0.5}}
    assert config.submit.require_open
    assert workspace == Workspace(tmp_path, "v5.3", "m")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "every_nth_era = 1",
            "every_nth_era = 0",
            "[train] every_nth_era = 0 must be 1 or more.",
        ),
        (
            'purge = "auto"',
            "purge = -1",
            "[train] purge = -1 must be 'auto' or a whole",
        ),
        ('purge = "auto"', 'purge = "none"', "purge = 'none' must be 'auto' or"),
        ('purge = "auto"', "purge = true", "purge = true must be 'auto' or"),
        ('purge = "auto"', "purgee = 1", "did you mean 'purge'?"),
        ("[submit]", "[subm]", "[subm] is not a key"),
        ('version = "v5.3"', "version = 5", "[data] version = 5 must be a text"),
        ('version = "v5.3"', 'version = "5.3"', "'5.3' must be a v and two numbers"),
        ('name = "my_model"', 'name = "../x"', "'../x' must be the model's name"),
        ('name = "my_model"', "", "[model] name is missing"),
        (
            'files = ["train"]',
            'files = ["training"]',
            "[train] files = 'training' must be 'train' or 'validation'.",
        ),
        ('files = ["train"]', "files = []", "[train] files = [] must not be empty."),
        ('files = ["train"]', 'files = ["train", "train"]', "names 'train' twice"),
        ('first_era = ""', 'first_era = "12"', "'12' must be the four digits"),
        ('last_era = ""', "last_era = 12", "[train] last_era = 12 must be a text"),
        ("refresh = []", 'refresh = ["training"]', "refresh names 'training'"),
        ("neutralize_proportion = 0.0", "neutralize_proportion = 2", "2 must be 1 or"),
        ("neutralize_proportion = 0.0", "neutralize_proportion = true", "true must be"),
        (
            "neutralize_proportion = 0.0",
            "neutralize_proportion = 0.5",
            "weekly = false",
        ),
        ("timeout = 60.0", "timeout = inf", "[submit] timeout = inf must be a finite"),
        (
            "timeout = 60.0",
            'timeout = "60"',
            "[submit] timeout = '60' must be a number",
        ),
        ("retries = 3", "retries = 1000", "retries = 1000 must be 100 or less"),
        ("weekly = true", "weekly = 1", "[export] weekly = 1 must be true or false."),
        ("[train]\n", "[[train]]\n", "[train] must be a table."),
        ("target_ender_60", "target", "is an alias"),
        ("target_ender_60", "target_ender", "does not end in its horizon"),
        ("[submit]", "[submit", "is not a TOML file"),
    ],
)
def test_a_bad_file_is_refused_by_key_and_value(path, old, new, said):
    old = f'"{old}"' if old.startswith("target") else old
    new = f'"{new}"' if new.startswith("target") else new
    message = refusal(path, old, new)
    assert said in message
    assert message.startswith(f"'{path}'")


def test_the_first_era_is_not_after_the_last(path):
    path.write_text(path.read_text().replace('first_era = ""', 'first_era = "0300"'))
    said = refusal(path, 'last_era = ""', 'last_era = "0299"')
    assert "[train] first_era = '0300' is after last_era = '0299'." in said


def test_whole_numbers_are_numbers_too(path):
    text = path.read_text().replace("timeout = 60.0", "timeout = 30")
    path.write_text(text.replace("neutralize_proportion = 0.0", "#"))
    config, _ = load_config(path)
    assert config.submit.timeout == 30
    assert config.predict.neutralize_proportion == 0


def test_neutralised_predictions_need_a_week_without_export(tmp_path):
    path = tmp_path / "numerai.toml"
    write_config(
        path,
        name="m",
        target="target_x_20",
        predict={"neutralize_proportion": 0.5},
        export={"weekly": False},
    )
    config, _ = load_config(path)
    assert config.predict.neutralize_proportion == 0.5


def test_a_table_of_parameters_replaces_that_of_the_defaults(path):
    text = path.read_text()
    start = text.index('split_criterion = "directional"')
    end = text.index("# How the model is judged")
    path.write_text(f"{text[:start]}max_iter = 7\n\n{text[end:]}")
    config, _ = load_config(path)
    assert config.train.parameters == {"max_iter": 7}


_SCALARS = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats()
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("aB- é\"'\x7f😀"), inner)
    ),
    max_leaves=6,
)


def same(first, second):
    """Equal, of the same type, and NaN where the other is."""
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            same(first[key], second[key]) for key in first
        )
    if isinstance(first, float) and math.isnan(first):
        return math.isnan(second)
    return first == second and type(first) is type(second)


@settings(deadline=None, database=None)
@given(st.text("aB- é\"'\x7f😀"), _VALUES)
def test_what_is_written_is_read_back(key, value):
    assert same(tomllib.loads(key_value(key, value)), {key: value})


def test_what_toml_cannot_hold_is_refused_and_no_file_is_left(tmp_path):
    path = tmp_path / "numerai.toml"
    with pytest.raises(ConfigError, match="cannot hold None"):
        write_config(
            path,
            name="m",
            target="target_x_20",
            train={"parameters": {"max_depth": None}},
        )
    assert not path.exists()


def test_a_missing_file_tells_how_to_write_one(tmp_path):
    with pytest.raises(ConfigError, match="sklearn-era numerai init"):
        load_config(tmp_path / "none.toml")


def test_an_existing_file_is_not_overwritten(path):
    before = path.read_text()
    with pytest.raises(ConfigError, match="exists already"):
        write_config(path, name="other", target="target_x_20")
    assert path.read_text() == before


def test_the_purge_follows_the_horizon_unless_it_is_set(path):
    config, _ = load_config(path)
    assert config.purge == 16
    path.write_text(path.read_text().replace('purge = "auto"', "purge = 3"))
    assert load_config(path).config.purge == 3
    assert purge_of("target_cyrusd_20") == 8
    assert purge_of("target_ender_60") == 16
    assert purge_of("target_ender_60", 0) == 0
    with pytest.raises(ConfigError, match="45 business days"):
        purge_of("target_ender_45")


def test_a_target_is_named_in_full():
    known = ["target", "target_a_20", "target_b_60"]
    assert check_target("target_a_20", known) == "target_a_20"
    assert horizon_of("target_teager2b_20") == 20
    with pytest.raises(ConfigError, match=r"alias.*target_a_20, target_b_60"):
        check_target("target", known)
    with pytest.raises(ConfigError, match=r"no target 'target_c_20'.*target_a_20"):
        check_target("target_c_20", known)
    with pytest.raises(ConfigError, match="is not set"):
        check_target("")


def test_the_newest_file_is_that_of_the_highest_round(tmp_path):
    workspace = Workspace(tmp_path, "v5.3", "m")
    assert workspace.rounds_of("live") == []
    workspace.data_dir.mkdir(parents=True)
    for name in (
        "live_9.parquet",
        "live_10.parquet",
        "live_benchmark_models_11.parquet",
    ):
        (workspace.data_dir / name).touch()
    (workspace.data_dir / "live_12.parquet.partial").touch()
    assert workspace.rounds_of("live") == [9, 10]
    assert workspace.newest("live").name == "live_10.parquet"
    with pytest.raises(DataError, match="no train_<round> file"):
        workspace.newest("train")
