"""Eras of files: which ones a fit takes, and their rows a block at a time."""

from contextlib import suppress

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.numerai.training import FEATURES, TARGET, make_frame, write_frame
from sklearn_era.numerai.config import TrainSection
from sklearn_era.numerai.data import (
    EraRun,
    era_runs,
    open_columns,
    read_blocks,
    select_eras,
)
from sklearn_era.numerai.errors import ConfigError, DataError

FRAME = make_frame(rows_per_era=10)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_frame(FRAME, tmp_path_factory.mktemp("data") / "train_7.parquet", 40)


def settings(**changes):
    return TrainSection(**{"target": TARGET, "files": ["train"], **changes})


@given(
    first=st.integers(1, 30),
    n_eras=st.integers(1, 30),
    every=st.integers(1, 7),
    offset=st.integers(0, 6),
    groups=st.integers(0, 6),
)
def test_chosen_eras_are_in_order_and_groups_nearly_equal(
    path, first, n_eras, every, offset, groups
):
    last, offset = min(30, first + n_eras - 1), offset % every
    numbers = list(range(first, last + 1))[offset::every]
    chosen = settings(
        first_era=f"{first:04}", last_era=f"{last:04}", every_nth_era=every,
        era_offset=offset, era_groups=groups,
    )  # fmt: skip
    if groups > len(numbers) or not numbers:
        with pytest.raises(ConfigError, match=r"era_groups = |No era is left"):
            select_eras([path], chosen)
        return
    labels, _ = select_eras([path], chosen)
    assert list(labels) == [f"{number:04}" for number in numbers]
    new = list(labels.values())
    if groups:
        assert new == sorted(new)
        assert set(new) == set(range(groups))
        assert np.ptp(np.bincount(new)) <= 1
    else:
        assert new == numbers


def test_eras_without_a_target_are_left_out(path):
    labels, n_unlabelled = select_eras([path], settings(target="target_late_60"))
    assert [*labels] == [f"{era:04}" for era in range(1, 28)]
    assert n_unlabelled == 30


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"first_era": "0031"}, ConfigError, r"No era is left: .* 0030, but \[tra"),
        ({"first_era": "0030", "every_nth_era": 2, "era_offset": 1}, ConfigError,
         "era_offset = 1"),
        ({"era_groups": 31}, ConfigError, r"\[train\] era_groups = 31 exceeds t"),
        ({"target": "target_late_60", "first_era": "0029"}, DataError,
         "no values in the 2 eras 0029 to 0030"),
        ({"target": "target_no_20"}, DataError, r"1 of 1 columns .first: target_no_20"),
    ],
)  # fmt: skip
def test_what_leaves_no_era_is_refused(path, changes, error, message):
    with pytest.raises(error, match=message):
        select_eras([path], settings(**changes))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.assign(era="X"), "has the era 'X'; eras must be text of four digits"),
        (FRAME.assign(era=1200), "has the era 1200; eras must be text"),
        (FRAME.assign(era=None), "has the era None; eras must be text"),
        (FRAME.assign(era=FRAME["era"].where(FRAME["era"] > "0003")), "the era None;"),
        (FRAME.assign(**{TARGET: "high"}), "'target_demo_20' of .* is not numeric"),
        (FRAME.assign(**{TARGET: FRAME[[TARGET]].to_numpy().tolist()}), "holds list"),
        (FRAME.drop(columns="era"), "has no column 'era'"),
        (FRAME, r"era '0001' is also in another file.* twice"),
    ],
)
def test_files_that_cannot_be_trained_on(tmp_path, path, frame, message):
    other = write_frame(frame, tmp_path / "train_1.parquet")
    with pytest.raises(DataError, match=message):
        select_eras([path, other], settings())


def test_files_that_are_not_there_or_not_whole(tmp_path):
    path = tmp_path / "train_1.parquet"
    with pytest.raises(DataError, match=f"^{path} cannot be read: No such file"):
        select_eras([path], settings())
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=f"^{path} is damaged"):
        select_eras([path], settings())


@given(
    eras=st.sets(st.integers(0, 29), min_size=1),
    features=st.permutations(FEATURES).map(lambda names: names[:5]),
    holes=st.booleans(),
)
def test_blocks_are_the_rows_of_eras_in_the_order_of_features(
    path, tmp_path_factory, eras, features, holes
):
    frame = FRAME
    if holes:
        is_hole = np.arange(len(frame)) % 70 == 69
        frame = frame.assign(feature_a=frame["feature_a"].mask(is_hole))
        path = write_frame(frame, tmp_path_factory.mktemp("data") / "holes.parquet", 40)
    columns = open_columns(path)
    runs = era_runs(columns, path)
    assert runs == [EraRun(f"{i + 1:04}", 10 * i, 10 * i + 10) for i in range(30)]
    wanted = [runs[i] for i in sorted(eras)]
    blocks = list(read_blocks(columns, path, features, wanted))
    assert len(blocks) == len(wanted)
    for run, block in zip(wanted, blocks, strict=True):
        rows = frame[features].iloc[run.start : run.stop]
        np.testing.assert_array_equal(block, rows)
        assert block.flags.f_contiguous
        assert block.dtype == (
            np.float64 if "feature_a" in features and holes else "i1"
        )


def test_blocks_that_cannot_be_read_are_refused(tmp_path, path):
    columns = open_columns(path)
    runs = era_runs(columns, path)
    for features, message in (
        (["feature_a", "feature_x"], r"lacks 1 of 2 columns \(first: feature_x\)"),
        (["data_type"], "column 'data_type' of .* is not numeric"),
    ):
        with pytest.raises(DataError, match=message):
            next(read_blocks(columns, path, features, runs))
    apart = write_frame(FRAME.iloc[[*range(5, 20), *range(5)]], tmp_path / "apart")
    with pytest.raises(DataError, match="rows of era '0001' are not contiguous"):
        era_runs(open_columns(apart), apart)
    with pytest.raises(DataError, match="has no rows"):
        open_columns(write_frame(FRAME[:0], tmp_path / "none"))


@given(position=st.integers(4, 60_000), value=st.integers(0, 255))
def test_a_damaged_byte_is_never_an_error_of_another_kind(
    path, tmp_path_factory, position, value
):
    content = bytearray(path.read_bytes())
    content[position % len(content)] = value
    damaged = tmp_path_factory.mktemp("damaged") / "train_7.parquet"
    damaged.write_bytes(bytes(content))
    with suppress(DataError):
        select_eras([damaged], settings())
    with suppress(DataError):
        columns = open_columns(damaged)
        list(read_blocks(columns, damaged, FEATURES, era_runs(columns, damaged)))


def test_a_column_of_fewer_rows_than_the_file_is_damaged(path, monkeypatch):
    columns = open_columns(path)
    runs = era_runs(columns, path)
    for name in ("read", "iter_batches"):
        read = getattr(pq.ParquetFile, name)

        def read_less(*arguments, read=read, name=name, **options):
            found = read(*arguments, **options)
            return found[:-1] if name == "read" else [*found][:-1]

        monkeypatch.setattr(pq.ParquetFile, name, read_less)
    for reading in (
        lambda: list(read_blocks(columns, path, FEATURES, runs)),
        lambda: era_runs(columns, path),
        lambda: select_eras([path], settings()),
    ):
        with pytest.raises(DataError, match="a column lacks rows"):
            reading()
