"""Training on Numerai's files: which rows, what is refused; and why to train at all."""

import doctest
import json
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

import sklearn_era
from helpers.numerai.training import (
    FEATURES,
    PARAMETERS,
    TARGET,
    assert_same_model,
    copy_version_before,
    make_frame,
    make_settings,
    train_on,
    why,
    write_frame,
)
from sklearn_era.ensemble import BinnedDataset, HistGradientBoostingRegressor
from sklearn_era.numerai import training
from sklearn_era.numerai.config import load_config
from sklearn_era.numerai.data import read_features
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.store import load_fit
from sklearn_era.numerai.training import (
    fingerprint,
    gain_settings,
    make_estimator,
    why_train,
)

FRAME = make_frame()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_frame(FRAME, tmp_path_factory.mktemp("data") / "train_7.parquet")


@pytest.fixture(scope="module")
def trained(path, tmp_path_factory):
    """The folder of the usual fit."""
    folder = tmp_path_factory.mktemp("model")
    train_on(path, folder)
    return folder


def fit_in_memory(rows, labels=None, target=TARGET, seed=0, **parameters):
    """A fit of the rows in the order of the labels of their eras."""
    model = HistGradientBoostingRegressor(
        **{**PARAMETERS, **parameters}, early_stopping=False, random_state=seed
    )
    labels = np.asarray(rows["era"].astype(int) if labels is None else labels)
    rows = rows.iloc[np.argsort(labels, kind="stable")]
    return model.fit(rows[FEATURES], rows[target].to_numpy(), eras=np.sort(labels))


def test_the_example_runs():
    (example,) = doctest.DocTestFinder(recurse=False).find(training.train, "train")
    assert len(example.examples) > 10
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_the_model_is_that_of_the_rows_in_memory(tmp_path, path):
    drawn, told = {"colsample_bytree": 0.3, "max_features": 0.7}, []
    record = train_on(
        path, tmp_path, name="ender", random_state=3, parameters=drawn,
        on_progress=lambda *x: told.append(x),
    )  # fmt: skip
    model, read = load_fit(tmp_path, "ender")
    assert_same_model(model, fit_in_memory(FRAME, seed=3, **drawn))
    assert model.feature_names_in_.tolist() == FEATURES == record.features
    assert record == read
    assert (record.first_era, record.last_era, record.n_eras) == ("0001", "0030", 30)
    assert (record.n_rows, record.n_rows_without_target) == (1800, 0)
    assert (record.files, record.features_with_missing) == (["train_7.parquet"], [])
    assert record.n_trees == record.n_trees_with_splits == 23
    trees = [("ender", i, 23) for i in range(24)]
    assert told == [("reading", 0, 12), ("reading", 12, 12), *trees]
    names = sorted(item.name for item in tmp_path.iterdir())
    assert names == ["ender.json", "ender.skops"]


def test_bounds_nth_eras_and_missing_targets(tmp_path, path):
    target = "target_late_60"
    bounds = {"first_era": "0002", "last_era": "0030", "every_nth_era": 4}
    record = train_on(path, tmp_path, target=target, era_offset=1, **bounds)
    # Every fourth from 3 is 3, 7, ..., 27; the three newest eras have no target.
    rows = FRAME[FRAME["era"].astype(int).isin(range(3, 28, 4)) & FRAME[target].notna()]
    model = load_fit(tmp_path, "model")[0]
    assert_same_model(model, fit_in_memory(rows, target=target))
    assert (record.first_era, record.last_era, record.n_eras) == ("0003", "0027", 7)
    assert (record.n_rows, record.n_rows_without_target) == (420, 0)
    assert (record.every_nth_era, record.era_offset) == (4, 1)


def test_missing_targets_are_never_filled_and_missing_values_recorded(tmp_path):
    missing = np.random.default_rng(0).random(len(FRAME)) < 0.1
    labelled = ~missing & (FRAME["era"] <= "0027")
    holed = FRAME.assign(**{TARGET: FRAME[TARGET].where(labelled)})
    holed[FEATURES[2]] = holed[FEATURES[2]].where(np.arange(len(holed)) % 200 > 0)
    path = write_frame(holed, tmp_path / "train_1.parquet")
    record = train_on(path, tmp_path)
    assert record.features_with_missing == [FEATURES[2]]
    assert record.n_rows == labelled.sum()
    assert record.n_rows_without_target == (~labelled).sum()
    assert record.last_era == "0027"
    assert_same_model(load_fit(tmp_path, "model")[0], fit_in_memory(holed[labelled]))


def test_eras_are_grouped(tmp_path, path):
    record = train_on(path, tmp_path, era_groups=7, last_era="0024")
    rows = FRAME[FRAME["era"] <= "0024"]
    sizes = [60 * part.size for part in np.array_split(np.arange(24), 7)]
    expected = fit_in_memory(rows, np.repeat(np.arange(7), sizes))
    assert_same_model(load_fit(tmp_path, "model")[0], expected)
    assert (record.n_eras, record.era_groups) == (24, 7)


def test_several_files(tmp_path, path):
    later = make_frame(first=31, n_eras=5)
    files = [write_frame(later, tmp_path / "validation_7.parquet"), path]
    record = train_on(path, tmp_path, files=files)
    assert (record.first_era, record.last_era, record.n_rows) == ("0001", "0035", 2100)
    assert why(path, tmp_path, files=files[::-1]) is None


def test_the_plain_model_has_no_parameters_of_eras(tmp_path, path):
    parameters = {"min_era_coverage": 0.5, "era_weighting": "equal", "n_jobs": 1}
    settings = gain_settings(make_settings(parameters=parameters))
    plain = {"split_criterion": "gain", "n_jobs": 1}
    assert settings == make_settings(parameters=plain)
    train_on(path, tmp_path, name="gain", parameters=plain)
    assert_same_model(load_fit(tmp_path, "gain")[0], fit_in_memory(FRAME, **plain))
    with pytest.raises(ConfigError, match="compare_with_gain has nothing to compare"):
        gain_settings(settings)


SECTION = r"\[train.parameters\]"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iters": 5}, rf"{SECTION} max_iters is not .* did you mean 'max_iter'\?"),
        ({"zzz": 5}, "zzz is not .*; use .* loss, max_bins"),
        ({"early_stopping": True}, "early_stopping cannot be set: all max_iter trees"),
        ({"tol": 0.1}, "tol cannot be set"),
        ({"random_state": 1}, r"set random_state in \[train\]"),
        ({"warm_start": True}, "resumed anyway"),
        ({"categorical_features": [0]}, "the features are numbers"),
        ({"learning_rate": -1}, rf"{SECTION} The 'learning_rate' parameter .* -1"),
        ({"split_criterion": "eras"}, rf"{SECTION} .*'split_criterion'"),
        ({"split_criterion": {"era": -1}}, "weight of 'era' is -1"),
        (
            {
                "split_criterion": {"invariant": 1, "era": 1},
                "invariance_statistic": "ratio",
            },
            f"{SECTION} invariance_statistic='ratio' compares",
        ),
        ({"loss": "quantile"}, SECTION),
        ({"max_iter": 0}, "max_iter"),
        ({"monotonic_cst": {"x": 1}}, "monotonic_cst"),
        ({"interaction_cst": [[99]]}, "interaction_cst|Interaction"),
    ],
)
def test_parameters_are_checked_before_files_are_read(tmp_path, parameters, message):
    with pytest.raises(ConfigError, match=message) as caught:
        train_on(tmp_path / "no_such.parquet", tmp_path, parameters=parameters)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    names_features = "cst" in message
    settings = make_settings(parameters=parameters)
    if names_features:  # which are not known before the first download
        make_estimator(settings, None)
    else:
        with pytest.raises(ConfigError, match=message):
            make_estimator(settings, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "target"}, "is an alias"),
        ({"features": []}, "features must name each column"),
        ({"features": ["a", "a"]}, "features must name each column"),
        ({"features": [TARGET]}, "features must name each column"),
    ],
)
def test_arguments_are_checked_before_files_are_read(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        train_on(tmp_path / "no_such.parquet", tmp_path, **changes)
    with pytest.raises(ConfigError, match="files is empty"):
        training.train(make_settings(), files=[], features=["a"], folder=tmp_path)


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"first_era": "0031"}, ConfigError, "No era is left: train_7.parquet has era"),
        ({"target": "target_no_20"}, DataError, r"lacks 1 of 1 columns \(first: targ"),
        ({"features": ["feature_z"]}, DataError, "no column.* named 'feature_z'"),
        ({"features": ["data_type"]}, DataError, "'data_type' of .* is not numeric"),
        (
            {"parameters": {"min_samples_per_era": 500}},
            ConfigError,
            f"{SECTION} eras: .*_per_era=500",
        ),
        ({"parameters": {"loss": "gamma"}}, ConfigError, f"{SECTION} .*(gamma|Gamma)"),
    ],
)
def test_what_the_files_lack(tmp_path, path, changes, kind, message):
    with pytest.raises(kind, match=message):
        train_on(path, tmp_path, **changes)


def test_the_fit_that_is_configured_needs_no_training(path, trained, tmp_path):
    assert why(path, tmp_path) == "there is no model yet"
    assert why(path, trained) is None
    assert why(path, trained, name="gain") == "there is no model yet"
    # What trees do not depend on, and what is as it would be anyway.
    free = {"n_jobs": 2, "boltzmann_alpha": 0.0, "max_depth": None}
    assert why(path, trained, parameters=free, checkpoint_every=3) is None
    for file in (path.with_name("train_8.parquet"), "train.parquet", "train"):
        assert why(path, trained, files=[file]) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"parameters": {"max_iter": 7}}, "max_iter was 23 and is 7"),
        ({"parameters": {"max_depth": 3}}, "max_depth was None and is 3"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
        ({"target": "target_b"}, f"target was '{TARGET}' and is 'target_b'"),
        ({"first_era": "0002"}, "first_era was '' and is '0002'"),
        ({"last_era": "0020"}, "last_era was '' and is '0020'"),
        ({"every_nth_era": 4}, "every_nth_era was 1 and is 4"),
        (
            {"every_nth_era": 2, "era_offset": 1},
            "every_nth_era was 1 and is 2; era_offset was 0 and is 1",
        ),
        ({"era_groups": 4}, "era_groups was 0 and is 4"),
        ({"version": "v6.0"}, "version was 'v5.3' and is 'v6.0'"),
        (
            {"features": FEATURES[1:], "feature_set": "medium"},
            "feature_set was 'small' and is 'medium'",
        ),
        (
            {"features": FEATURES[1:]},
            "of the features, 1 are gone (first: feature_a)",
        ),
    ],
)
def test_the_reason_to_train_names_what_differs(path, trained, changes, said):
    assert why(path, trained, **changes) == said


def test_the_files_are_those_of_the_configuration(path, trained):
    said = "files was ['train'] and is ['train', 'validation']"
    assert why(path, trained, files=["train", "validation"]) == said


def test_a_record_that_cannot_be_read_is_no_reason_to_train(path, tmp_path):
    train_on(path, tmp_path)
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(DataError, match=r"damaged .* or remove it to train again"):
        why(path, tmp_path)


def test_a_checkpoint_of_other_settings_is_no_reason_to_train(path, tmp_path):
    """Such as where a change of the configuration was taken back."""
    train_on(path, tmp_path)

    def interrupt(stage, done, total):
        if (stage, done) == ("model", 7):
            raise KeyboardInterrupt

    changed = {"parameters": {"max_depth": 3}}
    with pytest.raises(KeyboardInterrupt):
        train_on(path, tmp_path, on_progress=interrupt, **changed)
    assert why(path, tmp_path) is None
    assert why(path, tmp_path, **changed) == "a training was interrupted"


@pytest.mark.parametrize("version", [sklearn_era.__version__, "0.2.0"])
def test_the_models_of_the_version_before_are_those_configured(
    tmp_path, monkeypatch, version
):
    monkeypatch.setattr(sklearn_era, "__version__", version)
    root = copy_version_before(tmp_path)
    config, workspace = load_config(root / "numerai.toml")
    settings = config.models[0].members[0].train
    folder = workspace.model_dir("someone")
    known = {
        "files": [workspace.newest("train")],
        "features": read_features(workspace.newest("features")).features("all"),
        "version": config.data.version,
    }
    assert why_train(settings, folder, "model", **known) is None
    assert why_train(gain_settings(settings), folder, "gain", **known) is None
    # The purge is nothing that a fit depends on.
    toml = root / "numerai.toml"
    toml.write_text(toml.read_text().replace("purge = 3", "purge = 8"))
    config, _ = load_config(toml)
    assert config.validation.purge == 8
    settings = config.models[0].members[0].train
    assert why_train(settings, folder, "model", **known) is None
    # A parameter that this version added has its default in both.
    record = json.loads((folder / "model.json").read_text())
    del record["parameters"]["min_era_coverage"]
    (folder / "model.json").write_text(json.dumps(record))
    default = HistGradientBoostingRegressor().min_era_coverage
    said = f"min_era_coverage was {default!r} and is 0.5"
    assert why_train(settings, folder, "model", **known) == said
    kept = {k: v for k, v in settings.parameters.items() if k != "min_era_coverage"}
    settings = settings.model_copy(update={"parameters": kept})
    assert why_train(settings, folder, "model", **known) is None


def test_the_fingerprint_tells_data_apart():
    def digest(rows):
        X, y, eras = rows[FEATURES], rows[TARGET], rows["era"].to_numpy()
        return fingerprint(BinnedDataset.from_arrays(X, y, eras=eras, max_bins=5))

    first = digest(FRAME)
    assert len(first) == 64
    assert first == digest(FRAME.copy())
    one = (np.arange(len(FRAME)) == 7).astype(np.int8)
    changes = (
        {FEATURES[1]: FRAME[FEATURES[1]] ^ one},
        {TARGET: FRAME[TARGET] + one},
        {FEATURES[0]: FRAME[FEATURES[0]] * 2},  # other thresholds
        {FEATURES[0]: np.int8(2)},  # no threshold
        {"era": FRAME["era"].replace("0001", "0002")},
    )
    others = [FRAME.iloc[:-1], *(FRAME.assign(**change) for change in changes)]
    assert len({first, *map(digest, others)}) == 7


@pytest.mark.slow
def test_memory(tmp_path):
    """No copy of the rows, the ids or other targets: in a process of its own."""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    n, rng = 300_000, np.random.default_rng(0)
    names = [f"feature_{i}" for i in range(300)]
    frame = pd.DataFrame(rng.integers(0, 5, (n, 300), dtype=np.int8), columns=names)
    targets = [f"target_{k}_20" for k in range(6)]
    frame[targets] = rng.integers(0, 5, (n, 6)).astype(np.float32)
    frame["era"] = np.repeat([f"{era:04}" for era in range(1, 101)], 3000)
    frame.index = pd.Index([f"n{i:015x}" for i in range(n)], name="id")
    write_frame(frame, tmp_path / "train.parquet", row_group_size=30_000)
    code = """
    import json, sys
    import pyarrow.parquet, skops.io
    from sklearn_era.numerai.config import TrainSection
    from sklearn_era.numerai.training import train
    def memory(key):
        with open("/proc/self/status") as file:
            return next(int(x.split()[1]) for x in file if x.startswith(key)) * 1024
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    settings = TrainSection(target="target_3_20", files=["train"], parameters={
        "split_criterion": "directional", "max_iter": 5, "max_depth": 5,
        "colsample_bytree": 0.1, "max_bins": 5,
    })
    before = memory("VmRSS")
    features = json.loads(sys.argv[1])
    record = train(settings, files=["train.parquet"], features=features, folder=".")
    print(json.dumps([record.n_rows, memory("VmHWM") - before]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), json.dumps(names)]
    # Not in the folder of the sources, which are not compiled.
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    n_rows, n_bytes = json.loads(finished.stdout)
    assert n_rows == n
    # 90 MB are binned; the readers' part is the same for a file of any length.
    assert n_bytes / (n * 300) < 2.7
