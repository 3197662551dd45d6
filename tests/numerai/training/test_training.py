"""Training on Numerai's files: which rows and eras, what is refused; and its sample."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
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
from sklearn_era.numerai.validation import read_training_sample


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


def test_missing_targets_are_never_filled_and_missing_values_recorded(tmp_path, frame):
    missing = np.random.default_rng(0).random(len(frame)) < 0.1
    labelled = ~missing & (frame["era"] <= "0027")
    holed = frame.assign(**{TARGET: frame[TARGET].where(labelled)})
    holed[FEATURES[2]] = holed[FEATURES[2]].where(np.arange(len(holed)) % 200 > 0)
    path = write_frame(holed, tmp_path / "train_1.parquet")
    record = train_on(path, tmp_path)["model"]
    assert record.features_with_missing == [FEATURES[2]]
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
    told, options = [], {"compare_with_gain": True, "parameters": parameters}
    records = train_on(path, tmp_path, on_progress=lambda *x: told.append(x), **options)
    assert list(records) == ["model", "gain"]
    trees = [(name, i, 23) for name in records for i in range(24)]
    assert told == [("reading", 0, 12), ("reading", 12, 12), *trees]
    gain, record = load_trained(tmp_path, "gain")
    assert record == records["gain"]
    assert record.data_fingerprint == records["model"].data_fingerprint
    plain = {"split_criterion": "gain", "colsample_bytree": 0.5, "n_jobs": 1}
    assert record.parameters == {**PARAMETERS, **plain}
    assert_same_model(gain, fit_in_memory(frame, **plain))
    # It goes with the model that it was compared with.
    train_on(path, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["model.json", "model.skops"]
    with pytest.raises(DataError, match="no trained model 'gain'"):
        load_trained(tmp_path, "gain")


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
    if groups:
        assert new == sorted(new)
        assert set(new) == set(range(groups))
        assert np.ptp(np.bincount(new)) <= 1
    else:
        assert new == numbers


SECTION = r"\[train.parameters\]"


def of(**parameters):
    return {"parameters": parameters}


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
            {"compare_with_gain": True, **of(split_criterion="gain")},
            "compare_with_gain has nothing to compare",
        ),
        (of(max_iters=5), rf"{SECTION} max_iters is no .* did you mean 'max_iter'\?"),
        (of(zzz=5), "zzz is no .*; known: loss, quantile"),
        (of(early_stopping=True), "early_stopping is not to be set: it belongs to ea"),
        (of(tol=0.1), "tol is not to be set"),
        (of(random_state=1), r"set random_state in \[train\]"),
        (of(warm_start=True), "resumed with --resume"),
        (of(categorical_features=[0]), "the features are numbers"),
        (of(learning_rate=-1), rf"{SECTION} learning_rate must be a float in .* -1\."),
        (of(split_criterion="eras"), "split_criterion must be a str"),
        (of(split_criterion={"era": -1}), "weight of 'era' is -1"),
        (
            of(
                split_criterion={"invariant": 1, "era": 1}, invariance_statistic="ratio"
            ),
            f"{SECTION} invariance_statistic='ratio' compares",
        ),
        (of(loss="quantile"), SECTION),
        (of(max_iter=0), "max_iter"),
        (of(monotonic_cst={"x": 1}), "monotonic_cst"),
        (of(interaction_cst=[[99]]), "interaction_cst|Interaction"),
    ],
)
def test_arguments_are_checked_before_files_are_read(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message) as caught:
        train_on(tmp_path / "no_such.parquet", tmp_path, **changes)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"first_era": "0031"}, ConfigError, "No era is left: train_7.parquet has era"),
        ({"last_era": "X"}, ConfigError, "last_era = 'X' is no era: write its four"),
        ({"first_era": "0009", "last_era": "0003"}, ConfigError, "after last_era"),
        ({"era_groups": 31}, ConfigError, "more than the 30 eras"),
        ({"target": "target_no_20"}, DataError, "no column.* named 'target_no_20'"),
        ({"features": ["feature_z"]}, DataError, "no column.* named 'feature_z'"),
        ({"features": ["data_type"]}, DataError, "'data_type' of .* is not numeric"),
        (
            {"first_era": "0028", "target": "target_late_60"},
            DataError,
            "'target_late_60' has no value in the 3 eras from 0028 to 0030",
        ),
        (of(min_samples_per_era=500), ConfigError, f"{SECTION}: eras: .*_per_era=500"),
        (of(loss="gamma"), ConfigError, "gamma|Gamma"),
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
        ("era", frame["era"].where(frame["era"] > "0003"), r"180 row\(s\) have no era"),
        (TARGET, "high", "column 'target_demo_20' holds no numbers"),
    ):
        write_frame(frame.assign(**{column: values}), path)
        with pytest.raises(DataError, match=message):
            train_on(path, tmp_path)


def test_the_fingerprint_tells_data_apart(frame):
    def digest(rows):
        X, y, eras = rows[FEATURES], rows[TARGET], rows["era"].to_numpy()
        return fingerprint(BinnedDataset.from_arrays(X, y, eras=eras, max_bins=5))

    first = digest(frame)
    assert len(first) == 64
    assert first == digest(frame.copy())
    one = (np.arange(len(frame)) == 7).astype(np.int8)
    changes = (
        {FEATURES[1]: frame[FEATURES[1]] ^ one},
        {TARGET: frame[TARGET] + one},
        {FEATURES[0]: frame[FEATURES[0]] * 2},  # other thresholds
        {FEATURES[0]: np.int8(2)},  # no threshold
        {"era": frame["era"].replace("0001", "0002")},
    )
    others = [frame.iloc[:-1], *(frame.assign(**change) for change in changes)]
    assert len({first, *map(digest, others)}) == 7


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
    """Eras 0001 to 0020 in one file, and 0021 to 0030 in another."""
    folder = tmp_path_factory.mktemp("data")
    is_first = frame["era"] <= "0020"
    return [
        write_frame(frame[is_first], folder / "train_7.parquet"),
        write_frame(frame[~is_first], folder / "validation_7.parquet"),
    ]


def assert_rows(sample, frame, labels, target=TARGET):
    rows = frame[frame["era"].isin(labels) & frame[target].notna()]
    np.testing.assert_array_equal(sample.X, rows[FEATURES])
    np.testing.assert_array_equal(sample.eras, rows["era"].to_numpy(dtype=str))
    np.testing.assert_array_equal(sample.y, rows[target])
    assert sample.X.dtype == np.int8


@pytest.mark.parametrize(
    "selection",
    [
        {},
        {"first_era": "0021"},  # of which the first file has none
        {"every_nth_era": 4},
        {"every_nth_era": 3, "first_era": "0008", "last_era": "0025"},
        {"target": "target_late_60", "every_nth_era": 2, "first_era": "0002"},
    ],
    ids=str,
)
def test_it_is_of_the_eras_that_were_trained_on(frame, files, tmp_path, selection):
    trees = {"max_iter": 1}
    records = train_on(files[0], tmp_path, files=files, parameters=trees, **selection)
    record = records["model"]
    bounds = {x: getattr(record, x) for x in ("first_era", "last_era", "every_nth_era")}
    numbers = range(int(record.first_era), int(record.last_era) + 1)
    labels = [f"{number:04}" for number in numbers][:: record.every_nth_era]
    assert len(labels) == record.n_eras
    for ordered in (files, files[::-1]):
        read = record.features, record.target
        sample = read_training_sample(ordered, *read, n_eras=99, **bounds)
        assert_rows(sample, frame, labels, record.target)


def read(files, first_era, last_era="0030", target=TARGET, **options):
    bounds = {"first_era": first_era, "last_era": last_era}
    return read_training_sample(files, FEATURES, target, **bounds, **options)


def test_of_many_eras_it_takes_some_at_even_distances(frame, files):
    assert_rows(read(files, "0001", n_eras=4), frame, ["0001", "0011", "0020", "0030"])


def test_one_file_may_be_given_by_itself(frame, files):
    assert_rows(read(files[0], "0019", "0021"), frame, ["0019", "0020"])
    with pytest.raises(DataError, match=r"train_7\..* has no era from '0021' to"):
        read(files[0], "0021")
    with pytest.raises(DataError, match="has no target_late_60 in eras 0029 to 0030"):
        read(files, "0029", target="target_late_60")


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
    from sklearn_era.numerai.training.fitting import train
    def memory(key):
        with open("/proc/self/status") as file:
            return next(int(x.split()[1]) for x in file if x.startswith(key)) * 1024
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = memory("VmRSS")
    record = train(
        model_dir=".", model_name="m", version="v5.3", feature_set="all",
        files=["train.parquet"], features=json.loads(sys.argv[1]),
        target="target_3_20", parameters={
            "split_criterion": "directional", "max_iter": 5, "max_depth": 5,
            "colsample_bytree": 0.1, "max_bins": 5,
        },
    )["model"]
    print(json.dumps([record.n_rows, memory("VmHWM") - before]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), json.dumps(names)]
    # Not in the folder of the sources, which are not compiled.
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    n_rows, n_bytes = json.loads(finished.stdout)
    assert n_rows == n
    # 90 MB are binned; the readers' part is the same for a file of any length.
    assert n_bytes / (n * 300) < 2.7
