"""The files of the data: what is read of them, and which are refused."""

import json
from contextlib import suppress

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.numerai.server import FEATURES, live_ids, live_parquet, numerai_files
from sklearn_era.numerai.data.dataset import (
    check_parquet,
    era_number,
    read_column_names,
    read_columns,
    read_feature_metadata,
    read_ids,
)
from sklearn_era.numerai.data.feature_blocks import era_runs, open_columns
from sklearn_era.numerai.errors import DataError


@pytest.fixture
def train(tmp_path):
    (tmp_path / "train").write_bytes(numerai_files()["v5.3/train.parquet"])
    return tmp_path / "train"


@pytest.fixture
def live(tmp_path):
    (tmp_path / "live").write_bytes(live_parquet())
    return tmp_path / "live"


@pytest.fixture
def changed(train):
    """Write the train file with a change of its frame."""

    def write(change, **options):
        path = train.with_name("changed.parquet")
        change(pd.read_parquet(train)).to_parquet(path, **options)
        return path

    return write


def refusal(path, **options):
    with pytest.raises(DataError) as caught:
        check_parquet(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def test_a_whole_file_is_summarised_and_read_as_it_is_stored(train, live):
    summary = check_parquet(train, columns=FEATURES)
    assert (summary.n_rows, summary.id_column) == (30, "id")
    assert summary.eras == [f"{era:04d}" for era in range(1, 7)]
    assert set(summary.columns) >= {"id", "era", "data_type", "target_ender_20"}
    assert summary.columns == read_column_names(train)
    assert check_parquet(live, live=True).eras == ["X"]
    frame = read_columns(train, ["feature_a", "target_ender_60"])
    assert [str(dtype) for dtype in frame.dtypes] == ["int8", "float32"]
    columns = ["feature_a", "feature_x", "feature_y"]
    assert "lacks 2 of 3 columns (first: feature_x)" in refusal(train, columns=columns)
    with pytest.raises(DataError, match=r"lacks 2 of 3 columns \(first: feature_x\)"):
        read_columns(train, columns)


def test_ids_may_be_a_column_or_an_index_in_any_order(train, changed):
    frame = pd.read_parquet(train)
    names = ["feature_b", "era", "feature_a"]
    for change, options, rows in (
        (lambda frame: frame.reset_index(), {"index": False}, frame),
        (lambda frame: frame.rename_axis(None), {}, frame),
        (lambda frame: frame[::-1], {}, frame[::-1]),
    ):
        path = changed(change, **options)
        assert read_ids(path) == rows.index.tolist()
        assert check_parquet(path).n_rows == 30
        pd.testing.assert_frame_equal(read_columns(path, names), rows[names])
        assert sorted(read_columns(path, None)) == sorted(frame.columns)
    none = changed(lambda frame: frame.reset_index(drop=True))
    assert "has no ids: neither a column 'id' nor an index" in refusal(none)
    with pytest.raises(DataError, match="has no ids"):
        read_ids(none)


@pytest.mark.parametrize("size", [0, 3, 4, 8, 200, -1])
def test_a_file_that_is_cut_off_is_refused(train, size):
    train.write_bytes(train.read_bytes()[:size])
    message = refusal(train)
    assert "is cut off" in message or "is no parq" in message or "is dam" in message
    assert message.endswith("download it again.")
    with pytest.raises(DataError, match=r"^v5\.3/train\.parquet is "):
        check_parquet(train, shown_as="v5.3/train.parquet")


@given(position=st.integers(4, 2000), value=st.integers(0, 255))
def test_a_damaged_byte_is_never_an_error_of_another_kind(
    tmp_path_factory, position, value
):
    content = bytearray(live_parquet())
    content[position % len(content)] = value
    path = tmp_path_factory.mktemp("damaged") / "live.parquet"
    path.write_bytes(bytes(content))
    with suppress(DataError):
        check_parquet(path, live=True)
        assert len(read_ids(path)) == 30


def test_a_checksum_is_verified_where_there_is_one(live):
    table = pq.read_table(live)
    pq.write_table(table, live, write_page_checksum=True, compression="none")
    content = bytearray(live.read_bytes())
    content[content.index(live_ids()[0].encode()) + 3] ^= 1
    live.write_bytes(content)
    assert "is damaged" in refusal(live, live=True)


@pytest.mark.parametrize("n_groups", [1, 4])
def test_ids_twice_or_missing_are_refused(train, changed, n_groups):
    ids = read_ids(train)

    def ending(last):
        size = len(ids) // n_groups
        index = pd.Index([*ids[:-1], last], name="id")
        return changed(lambda frame: frame.set_index(index), row_group_size=size)

    message = refusal(ending(ids[0]))
    assert f"has 1 ids more than once (first: {ids[0]})" in message
    path = ending(None)
    assert "has 1 rows without an id" in refusal(path)
    with pytest.raises(DataError, match="has 1 rows without an id"):
        read_ids(path)


@pytest.mark.parametrize("era", ["575", "X", "00001", "", None, 1])
def test_an_era_is_four_digits(changed, era):
    others = [1 if era == 1 else "0001"] * 29
    path = changed(lambda frame: frame.assign(era=[*others, era]))
    assert f"has an era {era!r}; eras are texts of four digits" in refusal(path)


def test_eras_may_be_categories_or_missing_where_none_are_needed(train, changed):
    path = changed(lambda frame: frame.astype({"era": "category"}))
    assert check_parquet(path).eras == check_parquet(train).eras
    path = changed(lambda frame: frame[["feature_a"]])
    assert check_parquet(path, needs_era=False).eras == []
    assert "has no column 'era'" in refusal(path)
    assert "has no rows" in refusal(changed(lambda frame: frame[:0]))


def test_live_data_are_of_one_era(train, live, changed):
    assert "has 6 eras, and live data have one" in refusal(train, live=True)
    assert "has an era 'X'" in refusal(live)
    path = changed(lambda frame: frame.assign(era="1210"))
    assert check_parquet(path, live=True).eras == ["1210"]
    path = changed(lambda frame: frame.assign(era=None))
    assert "has an era None; eras are texts." in refusal(path, live=True)


def test_eras_that_are_damaged_are_an_error_of_the_file(train):
    content = train.read_bytes()
    middle = len(content) // 2
    train.write_bytes(content[:4] + bytes(middle - 4) + content[middle:])
    with pytest.raises(DataError) as caught:
        era_runs(open_columns(train), train)
    assert str(caught.value).startswith(f"{train} is damaged (")


def test_a_missing_file_is_named(tmp_path):
    for read in (check_parquet, read_ids, read_column_names, read_feature_metadata):
        with pytest.raises(DataError, match="none cannot be read: No such file"):
            read(tmp_path / "none")


def test_feature_sets_are_read_and_named(tmp_path):
    path = tmp_path / "features.json"
    sets = {"small": ["feature_a"], "medium": ["feature_a", "feature_b"]}
    path.write_text(json.dumps({"feature_sets": sets, "targets": ["target"], "x": 1}))
    metadata = read_feature_metadata(path)
    assert (metadata.feature_sets, metadata.targets) == (sets, ["target"])
    assert metadata.features("medium") == ["feature_a", "feature_b"]
    metadata.features("small").clear()
    assert metadata.features("small") == ["feature_a"]
    said = r"no feature set 'medum'; did you mean 'medium'\? .*: small \(1\), medium"
    with pytest.raises(DataError, match=said):
        metadata.features("medum")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged, it is no JSON"),
        ("[]", "has no feature_sets"),
        ('{"feature_sets": {}, "targets": []}', "has no feature_sets"),
        ('{"feature_sets": {"a": "b"}, "targets": []}', "has no feature_sets"),
        ('{"feature_sets": {"a": ["b"]}}', "has no targets"),
        ('{"feature_sets": {"a": ["b"]}, "targets": [1]}', "has no targets"),
        ('{"feature_sets": {"a": ["b", "b"]}, "targets": []}', "names 'b' twice"),
    ],
)
def test_another_features_file_is_refused(tmp_path, text, said):
    path = tmp_path / "features_1401.json"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"{path}.* {said}"):
        read_feature_metadata(path)


@given(number=st.integers(0, 9999))
def test_an_era_label_tells_its_number(number):
    assert era_number(f"{number:04d}") == number
    assert era_number(f"{number:05d}") is None
