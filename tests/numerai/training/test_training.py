"""Training on Numerai's files: which rows, which eras, what is refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.numerai.training import (
    FEATURES,
    PARAMETERS,
    TARGET,
    assert_same_model,
    make_frame,
    train_on,
    write_frame,
)
from sklearn_era.ensemble import BinnedDataset, HistGradientBoostingRegressor
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.training.era_selection import select_eras
from sklearn_era.numerai.training.fit_identity import fingerprint
from sklearn_era.numerai.training.model_store import load_trained


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    return write_frame(frame, tmp_path_factory.mktemp("data") / "train_7.parquet")


def fit_in_memory(rows, labels=None, target=TARGET, seed=0, **parameters):
    """A fit of the rows in the order of the labels of their eras."""
    model = HistGradientBoostingRegressor(
        **{**PARAMETERS, **parameters}, early_stopping=False, random_state=seed
    )
    labels = np.asarray(rows["era"].astype(int) if labels is None else labels)
    rows = rows.iloc[np.argsort(labels, kind="stable")]
    return model.fit(rows[FEATURES], rows[target].to_numpy(), eras=np.sort(labels))


def test_the_model_is_that_of_the_rows_in_memory(tmp_path, path, frame):
    drawn = {"colsample_bytree": 0.3, "max_features": 0.7}
    records = train_on(path, tmp_path, random_state=3, parameters=drawn)
    model, record = load_trained(tmp_path)
    assert_same_model(model, fit_in_memory(frame, seed=3, **drawn))
    assert records == {"model": record}
    assert model.feature_names_in_.tolist() == FEATURES == record.features
    assert (record.first_era, record.last_era, record.n_eras) == ("0001", "0030", 30)
    assert (record.n_rows, record.n_rows_without_target) == (1800, 0)
    assert (record.horizon, record.purge) == (20, 8)
    assert record.files == ["train_7.parquet"]
    assert record.features_with_missing == []
    assert {item.name for item in tmp_path.iterdir()} == {"model.json", "model.skops"}


def test_bounds_nth_eras_and_missing_targets(tmp_path, path, frame):
    target = "target_late_60"
    bounds = {"first_era": "0003", "last_era": "0030", "every_nth_era": 4}
    record = train_on(path, tmp_path, target=target, **bounds)["model"]
    # Every fourth from 3 is 3, 7, ..., 27; the three newest eras have no target.
    rows = frame[frame["era"].astype(int).isin(range(3, 28, 4)) & frame[target].notna()]
    assert_same_model(load_trained(tmp_path)[0], fit_in_memory(rows, target=target))
    assert (record.first_era, record.last_era, record.n_eras) == ("0003", "0027", 7)
    assert (record.n_rows, record.n_rows_without_target) == (420, 0)
    assert (record.horizon, record.purge, record.every_nth_era) == (60, 16, 4)


def test_rows_without_target_are_counted_and_never_filled(tmp_path, frame):
    missing = np.random.default_rng(0).random(len(frame)) < 0.1
    labelled = ~missing & (frame["era"] <= "0027")
    holed = frame.assign(**{TARGET: frame[TARGET].where(labelled)})
    path = write_frame(holed, tmp_path / "train_1.parquet")
    record = train_on(path, tmp_path)["model"]
    assert record.n_rows == labelled.sum()
    assert record.n_rows_without_target == (~labelled).sum()
    assert record.last_era == "0027"
    assert_same_model(load_trained(tmp_path)[0], fit_in_memory(holed[labelled]))


def test_eras_are_grouped(tmp_path, path, frame):
    record = train_on(path, tmp_path, era_groups=7, last_era="0024")["model"]
    rows = frame[frame["era"] <= "0024"]
    sizes = [60 * part.size for part in np.array_split(np.arange(24), 7)]
    expected = fit_in_memory(rows, np.repeat(np.arange(7), sizes))
    assert_same_model(load_trained(tmp_path)[0], expected)
    assert (record.n_eras, record.era_groups) == (24, 7)


def test_several_files(tmp_path, path, frame):
    later = make_frame(first=31, n_eras=5)
    files = [write_frame(later, tmp_path / "validation_7.parquet"), path]
    record = train_on(path, tmp_path, files=files)["model"]
    assert (record.first_era, record.last_era, record.n_rows) == ("0001", "0035", 2100)
    again = write_frame(frame, tmp_path / "again.parquet")
    with pytest.raises(DataError, match=r"era '0001' is in another of .* twice"):
        train_on(path, tmp_path, files=[path, again])


def test_the_plain_model_beside_it(tmp_path, path, frame):
    parameters = {"min_era_coverage": 0.5, "colsample_bytree": 0.5, "n_jobs": 1}
    records = train_on(path, tmp_path, compare_with_gain=True, parameters=parameters)
    assert list(records) == ["model", "gain"]
    gain, record = load_trained(tmp_path, "gain")
    assert record == records["gain"]
    assert record.data_fingerprint == records["model"].data_fingerprint
    plain = {"split_criterion": "gain", "colsample_bytree": 0.5, "n_jobs": 1}
    assert record.parameters == {**PARAMETERS, **plain}
    assert_same_model(gain, fit_in_memory(frame, **plain))
    # It goes with the model that it was compared with.
    train_on(path, tmp_path)
    assert not (tmp_path / "gain.skops").exists()
    with pytest.raises(DataError, match="no trained model 'gain'"):
        load_trained(tmp_path, "gain")


def test_missing_values_are_recorded(tmp_path, frame):
    holed = frame.astype({FEATURES[2]: "float32"})
    holed.iloc[5:9, holed.columns.get_loc(FEATURES[2])] = np.nan
    path = write_frame(holed, tmp_path / "train_1.parquet")
    assert train_on(path, tmp_path)["model"].features_with_missing == [FEATURES[2]]


def test_progress(tmp_path, path):
    seen = []
    arguments = {"compare_with_gain": True, "parameters": {"max_iter": 3}}
    train_on(path, tmp_path, on_progress=lambda *x: seen.append(x), **arguments)
    assert seen == [
        ("reading", 0, 12),
        ("reading", 12, 12),
        *(("model", i, 3) for i in range(4)),
        *(("gain", i, 3) for i in range(4)),
    ]


@given(
    n_eras=st.integers(1, 30),
    first=st.integers(1, 30),
    every=st.integers(1, 7),
    groups=st.integers(0, 6),
)
def test_chosen_eras_are_in_order_and_groups_nearly_equal(
    path, n_eras, first, every, groups
):
    last = min(30, first + n_eras - 1)
    numbers = list(range(first, last + 1, every))
    bounds = {"first_era": f"{first:04}", "last_era": f"{last:04}"}
    arguments = {"target": TARGET, "every_nth_era": every, "era_groups": groups}
    if groups > len(numbers):
        with pytest.raises(ConfigError, match="era_groups = "):
            select_eras([path], **bounds, **arguments)
        return
    selection = select_eras([path], **bounds, **arguments)
    assert list(selection.labels) == [f"{number:04}" for number in numbers]
    assert (int(selection.first), int(selection.last)) == (numbers[0], numbers[-1])
    new = list(selection.labels.values())
    if not groups:
        assert new == numbers
        return
    assert new == sorted(new)
    assert set(new) == set(range(groups))
    assert np.ptp(np.bincount(new)) <= 1


def assert_refused_before_reading(folder, message, **changes):
    with pytest.raises(ConfigError, match=message) as caught:
        train_on(folder / "no_such.parquet", folder, **changes)
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "target"}, "is an alias"),
        ({"target": "target_demo"}, "does not end in its horizon"),
        ({"target": "target_demo_30"}, "looks 30 business days ahead"),
        ({"features": []}, "features is empty"),
        ({"features": ["a", "a"]}, "features names 'a' twice"),
        ({"features": "small"}, "features = 'small' must be a list"),
        ({"features": [TARGET]}, "has the target 'target_demo_20' among them"),
        ({"files": []}, "files is empty"),
        ({"files": "train.parquet"}, "files = 'train.parquet' must be a list"),
        ({"every_nth_era": 0}, "every_nth_era = 0 must be a whole number of 1 or"),
        ({"era_groups": -1}, "era_groups = -1 must be a whole number of 0"),
        ({"checkpoint_every": 0}, "checkpoint_every = 0 must"),
        ({"checkpoint_every": True}, "checkpoint_every = True must"),
        ({"purge": -1}, "purge = -1 must"),
        ({"random_state": None}, "random_state = None must"),
        (
            {"parameters": {"split_criterion": "gain"}, "compare_with_gain": True},
            "compare_with_gain has nothing to compare",
        ),
    ],
)
def test_arguments_are_checked_before_files_are_read(tmp_path, changes, message):
    assert_refused_before_reading(tmp_path, message, **changes)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"max_iters": 5},
            r"\[train.parameters\] max_iters is no param.* did you mean 'max_iter'\?",
        ),
        ({"zzz": 5}, "zzz is no .*; known: loss, quantile"),
        ({"early_stopping": True}, "early_stopping is not to be set: it belongs to ea"),
        ({"tol": 0.1}, "tol is not to be set"),
        ({"random_state": 1}, r"set random_state in \[train\]"),
        ({"warm_start": True}, "resumed with --resume"),
        ({"categorical_features": [0]}, "the features are numbers"),
        (
            {"learning_rate": -1},
            r"\[train.parameters\] learning_rate must be a float in the range .* -1\.",
        ),
        ({"split_criterion": "eras"}, "split_criterion must be a str"),
        ({"split_criterion": {"era": -1}}, "weight of 'era' is -1"),
        (
            {
                "split_criterion": {"invariant": 1, "era": 1},
                "invariance_statistic": "ratio",
            },
            r"\[train.parameters\] invariance_statistic='ratio' compares",
        ),
        ({"loss": "quantile"}, r"\[train.parameters\]"),
        ({"max_iter": 0}, "max_iter"),
        ({"monotonic_cst": {"x": 1}}, "monotonic_cst"),
        ({"interaction_cst": [[99]]}, "interaction_cst|Interaction"),
    ],
)
def test_parameters_are_checked_before_files_are_read(tmp_path, parameters, message):
    assert_refused_before_reading(tmp_path, message, parameters=parameters)


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"first_era": "0031"}, ConfigError, "No era is left: train_7.parquet has era"),
        ({"last_era": "X"}, ConfigError, "last_era = 'X' is no era: write its four"),
        (
            {"first_era": "0009", "last_era": "0003"},
            ConfigError,
            "comes after last_era",
        ),
        ({"era_groups": 31}, ConfigError, "more than the 30 eras"),
        ({"target": "target_no_20"}, DataError, "no column.* named 'target_no_20'"),
        ({"features": ["feature_z"]}, DataError, "no column.* named 'feature_z'"),
        ({"features": ["data_type"]}, DataError, "'data_type' of .* is not numeric"),
        (
            {"first_era": "0028", "target": "target_late_60"},
            DataError,
            "'target_late_60' has no value in the 3 eras from 0028 to 0030",
        ),
        (
            {"parameters": {"min_samples_per_era": 500}},
            ConfigError,
            r"\[train.parameters\]: eras: .* min_samples_per_era=500",
        ),
        ({"parameters": {"loss": "gamma"}}, ConfigError, "gamma|Gamma"),
    ],
)
def test_what_the_files_lack(tmp_path, path, changes, kind, message):
    with pytest.raises(kind, match=message):
        train_on(path, tmp_path, **changes)


def test_files_that_cannot_be_trained_on(tmp_path, frame):
    path = tmp_path / "train_1.parquet"
    with pytest.raises(DataError, match=r"no file or folder .*train_1.parquet"):
        train_on(path, tmp_path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"Cannot train on train_1.parquet: .*"):
        train_on(path, tmp_path)
    for column, values, message in (
        ("era", "X", "the era 'X' is no number"),
        ("era", 5, "column 'era' holds int64"),
        ("era", None, "row"),
        (TARGET, "high", "column 'target_demo_20' holds no numbers"),
    ):
        write_frame(frame.assign(**{column: values}), path)
        with pytest.raises(DataError, match=message):
            train_on(path, tmp_path)
    missing = frame["era"].where(frame["era"] > "0003")
    write_frame(frame.assign(era=missing), path)
    with pytest.raises(DataError, match=r"180 row\(s\) have no era"):
        train_on(path, tmp_path)


def test_the_fingerprint_tells_data_apart(frame):
    def digest(rows):
        X, y, eras = rows[FEATURES], rows[TARGET], rows["era"].to_numpy()
        return fingerprint(BinnedDataset.from_arrays(X, y, eras=eras, max_bins=5))

    first = digest(frame)
    assert len(first) == 64
    assert first == digest(frame.copy())
    values = frame.copy()
    values.iloc[7, values.columns.get_loc(FEATURES[1])] ^= 1
    target = frame.copy()
    target.iloc[9, target.columns.get_loc(TARGET)] += 1
    other_bins = frame.assign(**{FEATURES[0]: frame[FEATURES[0]] * 2})
    eras = frame.assign(era=np.where(frame["era"] == "0001", "0002", frame["era"]))
    constant = frame.assign(**{FEATURES[0]: np.int8(2)})  # of which no threshold is
    changed = [digest(rows) for rows in (values, target, other_bins, eras, constant)]
    changed.append(digest(frame.iloc[:-1]))
    assert len({first, *changed}) == 7


@pytest.mark.slow
def test_memory(tmp_path):
    """No copy of the rows, the ids or other targets: in a process of its own."""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    code = """
import json, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, skops.io
from sklearn_era.numerai.training.fitting import train
folder = sys.argv[1]
rng = np.random.default_rng(0)
names = [f"feature_{i}" for i in range(300)]
writer = None
for first in range(1, 101, 10):
    columns = {name: rng.integers(0, 5, 30_000, dtype=np.int8) for name in names}
    columns["era"] = np.repeat([f"{era:04}" for era in range(first, first + 10)], 3000)
    for k in range(6):
        columns[f"target_{k}_20"] = rng.integers(0, 5, 30_000).astype(np.float32)
    columns["id"] = [f"n{first:05x}{i:010x}" for i in range(30_000)]
    table = pa.table(columns)
    writer = writer or pq.ParquetWriter(f"{folder}/train.parquet", table.schema)
    writer.write_table(table)
writer.close()
del columns, table, writer
pa.default_memory_pool().release_unused()
def memory(key):
    with open("/proc/self/status") as file:
        return next(int(x.split()[1]) for x in file if x.startswith(key)) * 1024
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = memory("VmRSS")
record = train(
    model_dir=folder, model_name="m", version="v5.3", feature_set="all",
    files=[f"{folder}/train.parquet"], features=names, target="target_3_20",
    parameters={
        "split_criterion": "directional", "max_iter": 5, "max_depth": 5,
        "colsample_bytree": 0.1, "max_bins": 5,
    },
)["model"]
print(json.dumps([record.n_rows, (memory("VmHWM") - before) / (300_000 * 300)]))
"""
    code = [sys.executable, "-c", code, str(tmp_path)]
    # Not in the folder of the sources, which are not compiled.
    finished = subprocess.run(code, cwd=tmp_path, capture_output=True, check=True)
    n_rows, bytes_a_cell = json.loads(finished.stdout)
    assert n_rows == 300_000
    # 90 MB are binned; the readers' part is the same for a file of any length.
    assert bytes_a_cell < 2.3
