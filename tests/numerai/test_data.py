"""The files of the data: what is read of them, and which are refused."""

import json
import re
from contextlib import suppress
from functools import partial

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers.numerai.training import make_frame
from sklearn_era.numerai.data import (
    check_parquet,
    read_column_names,
    read_columns,
    read_features,
    read_ids,
)
from sklearn_era.numerai.errors import ConfigError, DataError

FRAME = make_frame(n_eras=6, rows_per_era=5)
LIVE = FRAME[:30].assign(era="X")


@pytest.fixture
def write(tmp_path):
    """Write a frame, with a change; return its path."""

    def write(frame=FRAME, change=lambda frame: frame, **options):
        path = tmp_path / "file.parquet"
        change(frame).to_parquet(path, **options)
        return path

    return write


def refusal(path, **options):
    with pytest.raises(DataError) as caught:
        check_parquet(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def test_a_whole_file_is_summarized_and_read_as_it_is_stored(write):
    path = write()
    assert check_parquet(path) == read_column_names(path) == [*FRAME.columns, "id"]
    frame = read_columns(path, ["target_demo_20", "feature_a"])
    assert [str(dtype) for dtype in frame.dtypes] == ["float32", "int8"]
    with pytest.raises(DataError, match=r"lacks 2 of 3 columns \(first: feature_x\)"):
        read_columns(path, ["feature_a", "feature_x", "feature_y"])
    assert check_parquet(write(LIVE), live=True) == [*FRAME.columns, "id"]


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda frame: frame.reset_index(), {"index": False}),
        (lambda frame: frame.rename_axis(None), {}),
        (lambda frame: frame[::-1], {}),
        (lambda frame: frame.astype({"era": "category"}), {"row_group_size": 7}),
    ],
)
def test_ids_may_be_a_column_or_an_index_in_any_order(write, change, options):
    path = write(change=change, **options)
    rows = change(FRAME)
    rows = rows.set_index("id") if "id" in rows else rows.rename_axis("id")
    assert read_ids(path) == rows.index.tolist()
    assert "era" in check_parquet(path)
    names = ["feature_b", "feature_a"]
    pd.testing.assert_frame_equal(read_columns(path, names), rows[names])
    assert sorted(read_columns(path, None)) == sorted(FRAME.columns)


def test_a_file_without_ids_rows_or_eras_is_refused(write):
    none = write(change=lambda frame: frame.reset_index(drop=True))
    assert "has no ids: add a column 'id' or an index" in refusal(none)
    with pytest.raises(DataError, match="has no ids"):
        read_ids(none)
    assert "has no rows" in refusal(write(FRAME[:0]))
    path = write(FRAME[["feature_a"]])
    assert "has no column 'era'" in refusal(path)
    assert check_parquet(path, needs_era=False) == ["feature_a", "id"]


@pytest.mark.parametrize("n_groups", [1, 4])
@pytest.mark.parametrize(
    ("last", "said"),
    [(FRAME.index[0], "has 1 duplicate ids (first: "), (None, "has 1 rows with")],
)
def test_ids_twice_or_missing_are_refused(write, n_groups, last, said):
    index = pd.Index([*FRAME.index[:-1], last], name="id")
    path = write(FRAME.set_index(index), row_group_size=len(index) // n_groups)
    assert said in refusal(path)
    if last is None:
        with pytest.raises(DataError, match="has 1 rows without an id"):
            read_ids(path)


@pytest.mark.parametrize("size", [0, 3, 4, 8, 200, -1])
def test_a_file_that_is_cut_off_is_refused(write, size):
    path = write()
    path.write_bytes(path.read_bytes()[:size])
    assert refusal(path).endswith("). Delete it and download it again.")


@example(position=2369, value=128)  # a name that is not UTF-8
@given(position=st.integers(4, 20_000), value=st.integers(0, 255))
def test_a_damaged_byte_is_never_an_error_of_another_kind(
    tmp_path_factory, position, value
):
    path = tmp_path_factory.mktemp("damaged") / "live.parquet"
    LIVE.to_parquet(path)
    content = bytearray(path.read_bytes())
    content[position % len(content)] = value
    path.write_bytes(bytes(content))
    for read in (
        partial(check_parquet, live=True),
        read_ids,
        partial(read_columns, columns=None),
    ):
        with suppress(DataError):
            read(path)


def test_a_checksum_is_verified_where_there_is_one(write):
    path = write(LIVE)
    pq.write_table(
        pq.read_table(path), path, write_page_checksum=True, compression=None
    )
    content = bytearray(path.read_bytes())
    content[content.index(LIVE.index[0].encode()) + 3] ^= 1
    path.write_bytes(content)
    assert "is damaged" in refusal(path, live=True)


@pytest.mark.parametrize("era", ["575", "X", "00001", None, 1])
def test_an_era_is_four_digits(write, era):
    others = [1 if era == 1 else "0001"] * 29
    message = refusal(write(FRAME.assign(era=[*others, era])))
    assert f"has the era {era!r}; eras must be text of four digits" in message


def test_live_data_are_of_one_era(write):
    assert "has 6 eras, but a live file has one." in refusal(write(), live=True)
    assert "era" in check_parquet(write(LIVE.assign(era="1210")), live=True)
    path = write(LIVE.assign(era=None))
    assert "has the era None; eras must be text." in refusal(path, live=True)


@pytest.mark.parametrize("read", [check_parquet, read_ids, read_column_names])
def test_a_missing_file_is_named(tmp_path, read):
    with pytest.raises(DataError, match="none cannot be read: No such file"):
        read(tmp_path / "none")
    with pytest.raises(DataError, match="none does not exist: download it"):
        read_features(tmp_path / "none")


def test_feature_sets_are_read_and_named(tmp_path):
    path = tmp_path / "features.json"
    sets = {"small": ["feature_a"], "medium": ["feature_a", "feature_b"]}
    path.write_text(json.dumps({"feature_sets": sets, "targets": ["target"], "x": 1}))
    metadata = read_features(path)
    assert (metadata.feature_sets, metadata.targets) == (sets, ["target"])
    assert metadata.features("medium") == ["feature_a", "feature_b"]
    metadata.features("small").clear()
    assert metadata.features("small") == ["feature_a"]
    said = "features.json has no feature set 'medum'; did you mean 'medium'?"
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        metadata.features("medum")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 5000, r"is damaged \(Invalid JSON: recursion limit"),
        ('{"targets": [], "x": ' + "[" * 5000 + "]" * 5000 + "}", "recursion limit"),
        ('{"feature_sets": {}, "targets": []}', r"\(feature_sets: Dictionary should"),
        ('{"feature_sets": {"a": "b"}, "targets": []}', r"\(feature_sets.a: "),
        ('{"feature_sets": {"a": ["b"]}, "targets": [1]}', r"\(targets.0: "),
    ],
)
def test_another_features_file_is_refused(tmp_path, text, said):
    path = tmp_path / "features_1401.json"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"^{path} .*{said}.*\. Delete it and downl"):
        read_features(path)
