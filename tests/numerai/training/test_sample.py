"""The sample of the training: of the eras that were trained on, wherever they lie."""

import numpy as np
import pytest

from helpers.numerai.training import (
    FEATURES,
    TARGET,
    make_frame,
    train_on,
    write_frame,
)
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.validation import read_training_sample

LATE = "target_late_60"


@pytest.fixture(scope="module")
def frame():
    """Eras 0001 to 0020 of one file, and 0021 to 0030 of another."""
    return make_frame()


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
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
        {"target": LATE, "every_nth_era": 2, "first_era": "0002"},
    ],
    ids=str,
)
def test_it_is_of_the_eras_that_were_trained_on(frame, files, tmp_path, selection):
    trees = {"max_iter": 1}
    record = train_on(files[0], tmp_path, files=files, parameters=trees, **selection)
    record = record["model"]
    numbers = range(int(record.first_era), int(record.last_era) + 1)
    labels = [f"{number:04}" for number in numbers][:: record.every_nth_era]
    assert len(labels) == record.n_eras
    for ordered in (files, files[::-1]):
        sample = read_training_sample(
            ordered,
            record.features,
            record.target,
            first_era=record.first_era,
            last_era=record.last_era,
            every_nth_era=record.every_nth_era,
            n_eras=99,
        )
        assert_rows(sample, frame, labels, record.target)


def test_of_many_eras_it_takes_some_at_even_distances(frame, files):
    sample = read_training_sample(
        files, FEATURES, TARGET, first_era="0001", last_era="0030", n_eras=4
    )
    assert_rows(sample, frame, ["0001", "0011", "0020", "0030"])


def test_one_file_may_be_given_by_itself(frame, files):
    bounds = {"first_era": "0019", "last_era": "0021"}
    sample = read_training_sample(files[0], FEATURES, TARGET, **bounds)
    assert_rows(sample, frame, ["0019", "0020"])


def test_without_such_rows_it_says_so(files):
    bounds = {"first_era": "0021", "last_era": "0030"}
    with pytest.raises(DataError, match=r"train_7\..* has no era from '0021' to"):
        read_training_sample(files[0], FEATURES, TARGET, **bounds)
    bounds["first_era"] = "0029"
    with pytest.raises(DataError, match="has no target_late_60 in eras 0029 to 0030"):
        read_training_sample(files, FEATURES, LATE, **bounds)
