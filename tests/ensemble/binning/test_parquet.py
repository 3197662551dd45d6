"""A `BinnedDataset` of Parquet files is that of the rows in memory."""

import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from helpers.grids import from_1_9, slow
from helpers.trees import assert_same_bins
from sklearn_era._tables import parquet as parquet_columns
from sklearn_era.ensemble import BinnedDataset, HistGradientBoostingRegressor
from sklearn_era.ensemble._binning import parquet as parquet_binning

FEATURES = ["small", "wide", "flag", "real", "gaps", "holes", "off"]


def make_frame(n_samples=400, seed=0):
    """Columns of all kinds, the eras of rows in no order."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "era": np.array(["w2", "w0", "w1"])[rng.integers(0, 3, n_samples)],
        "small": rng.integers(-2, 3, n_samples).astype("int8"),
        "wide": rng.integers(-3000, 3000, n_samples).astype("int16"),
        "flag": rng.random(n_samples) < 0.3,
        "real": rng.normal(size=n_samples).astype("float32"),
        "gaps": rng.normal(size=n_samples).round(1),
        "holes": pd.array(rng.integers(0, 9, n_samples), "Int8"),
        "off": pd.array(rng.random(n_samples) < 0.5, "boolean"),
        "weight": rng.choice([0.0, 1.0, 2.5], n_samples),
        "target": rng.normal(size=n_samples),
    })  # fmt: skip
    frame.loc[rng.random(n_samples) < 0.2, "gaps"] = np.nan
    frame.loc[rng.random(n_samples) < 0.01, "holes"] = pd.NA
    frame.loc[rng.random(n_samples) < 0.2, "off"] = pd.NA
    return frame


def write(frame, path, **options):
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, **options)
    return path


def read(path, **arguments):
    columns = {"target": "target", "era": "era", "features": FEATURES}
    return BinnedDataset.from_parquet(path, **columns | arguments)


def assert_same_dataset(one, other):
    assert_array_equal(one.X_binned, other.X_binned)
    assert one.X_binned.flags.f_contiguous
    assert_array_equal(one.y, other.y)
    assert one.y.dtype == other.y.dtype
    assert_array_equal(one.sample_weight, other.sample_weight)
    assert_array_equal(one.feature_names, other.feature_names)
    assert_array_equal(one.order, other.order)
    for name in ("labels", "codes"):
        assert_array_equal(*(getattr(each.eras, name, None) for each in (one, other)))
    assert_same_bins(one.bin_mapper, other.bin_mapper)
    assert repr(one) == repr(other)


def in_memory(frame, era="era", weight=None, **options):
    return BinnedDataset.from_arrays(
        frame[FEATURES], frame["target"].to_numpy(),
        eras=None if era is None else frame[era].to_numpy(),
        sample_weight=None if weight is None else frame[weight], **options)  # fmt: skip


LAYOUTS = st.fixed_dictionaries({
    "n_files": st.integers(1, 3), "row_group_size": st.integers(5, 80),
    "batch_rows": st.integers(5, 70), "n_columns": st.integers(1, 8)})  # fmt: skip


def read_in_layout(
    folder, frame, *, n_files, row_group_size, batch_rows, n_columns, **arguments
):
    """Write a frame in files and groups of rows, and read it in batches."""
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        write(frame.iloc[rows], folder / f"{i}.parquet", row_group_size=row_group_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_columns, "_BATCH_VALUES", 1)
        patch.setattr(parquet_columns, "_BATCH_ROWS", batch_rows)
        patch.setattr(parquet_binning, "_GROUP", n_columns)
        return read(folder, **arguments)


@settings(max_examples=settings().max_examples // 2)
@given(
    seed=st.integers(0, 2**32 - 1), n_samples=st.integers(40, 180), layout=LAYOUTS,
    max_bins=st.integers(2, 255), weight=st.sampled_from([None, "weight"]),
    is_sorted=st.booleans(), share_without_target=st.sampled_from([0.0, 0.3]),
    kept=st.none() | st.sets(st.integers(0, 11), min_size=2), grouped=st.booleans(),
)  # fmt: skip
def test_files_groups_and_batches_do_not_matter(
    tmp_path_factory, seed, n_samples, layout, max_bins, weight, is_sorted,
    share_without_target, kept, grouped):  # fmt: skip
    rng = np.random.default_rng(seed)
    frame = make_frame(n_samples, seed).assign(number=rng.permutation(n_samples) % 12)
    frame["era"] = frame["number"].map("w{:02}".format)
    if is_sorted:  # so that row groups are of few eras, and some are skipped
        frame = frame.sort_values("era", kind="stable", ignore_index=True)
    frame["weight"] += 0.5
    is_kept = frame["number"].isin(range(12) if kept is None else kept)
    without = rng.random(n_samples) < share_without_target
    without[is_kept.argmax()] = False
    frame.loc[without, "target"] = np.nan
    # Rows of other eras may lack all that those to keep have to have.
    frame.loc[~is_kept, ["target", "weight"]] = [np.nan, -1.0]
    frame.loc[~is_kept & (frame["number"] % 2 == 0), "era"] = None
    rows, arguments = frame[is_kept & ~without], {}
    if kept is not None:
        # Groups in another order than their eras.
        groups = {f"w{number:02}": 7 - number // 3 for number in kept}
        arguments["keep_eras"] = groups if grouped else list(groups)
        if grouped:
            rows = rows.assign(era=rows["era"].map(groups).astype("int64"))
    dataset = read_in_layout(
        tmp_path_factory.mktemp("files"), frame.drop(columns="number"), **layout,
        sample_weight=weight, max_bins=max_bins,
        drop_missing_target=share_without_target > 0, **arguments)  # fmt: skip
    assert_same_dataset(dataset, in_memory(rows, weight=weight, max_bins=max_bins))


@pytest.mark.parametrize(
    ("weight", "kept"), [slow(None, None), slow("weight", None), (None, ["w2", "w0"])],
)  # fmt: skip
def test_many_rows_are_drawn_as_in_memory(tmp_path, weight, kept):
    frame = make_frame(200_700 if kept is None else 303_000)
    path = write(frame, tmp_path / "rows.parquet", row_group_size=70_000)
    params = {"max_bins": 40, "random_state": 5}
    dataset = read(path, sample_weight=weight, keep_eras=kept, **params)
    rows = frame if kept is None else frame[frame["era"].isin(kept)]
    assert_same_dataset(dataset, in_memory(rows, weight=weight, **params))


def test_features_are_all_other_columns_or_have_any_names(tmp_path):
    frame = make_frame().drop(columns="weight")
    indexed = frame.set_index(pd.Index(np.arange(len(frame)) * 2, name="id"))
    path = tmp_path / "rows.parquet"
    indexed.to_parquet(path)
    dataset = read(path, features=None)
    assert dataset.feature_names.tolist() == FEATURES
    assert_same_dataset(dataset, in_memory(frame))
    # Levels without names are generated ones, also where the metadata are lost.
    levels = [frame.index + 1.5, frame.index[::-1] * 2]
    frame.set_index([*levels, indexed.index]).to_parquet(path)
    assert_same_dataset(read(path, features=None), in_memory(frame))
    frame.set_index(levels).to_parquet(path)
    write(frame, other := tmp_path / "without_index.parquet")
    twice = in_memory(pd.concat([frame, frame]))
    assert_same_dataset(read([path, other], features=None), twice)
    pq.write_table(pq.read_table(path).replace_schema_metadata(), path)
    assert_same_dataset(read([other, path], features=None), twice)
    assert_same_dataset(read([path, other], features=None), twice)
    # Names with dots.
    frame = make_frame().rename(columns={"small": "a", "wide": "a.b", "flag": "a.b.c"})
    write(frame, path)
    names = ["a.b", "a", "a.b.c"]
    dataset = read(path, era=None, features=names)
    expected = BinnedDataset.from_arrays(frame[names], frame["target"])
    assert_same_dataset(dataset, expected)


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "datetime64[s]"])
def test_categories_are_refused_as_in_memory(tmp_path, dtype):
    frame = make_frame()
    frame["kind"] = frame["flag"].astype("int64").astype(dtype).astype("category")
    path = write(frame, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="X has categorical columns"):
        BinnedDataset.from_arrays(frame[["real", "kind"]], frame["target"])
    for chosen in (["real", "kind"], None):
        with pytest.raises(ValueError, match=r"^features: column 'kind' of .* not num"):
            read(path, features=chosen)
    plain = pq.read_table(path).replace_schema_metadata()
    if dtype != "datetime64[s]":
        pq.write_table(plain, path)
        chosen = frame[["real", "kind"]].astype({"kind": dtype})
        expected = BinnedDataset.from_arrays(chosen, frame["target"])
        assert_same_dataset(read(path, features=["real", "kind"], era=None), expected)


def test_where_files_are(tmp_path):
    frame = make_frame()
    first = write(frame[:150], tmp_path / "b.parquet")
    second = write(frame[150:], tmp_path / "c.parquet")
    (tmp_path / "notes.txt").touch()
    for path in ([first, second], tmp_path, str(tmp_path)):
        assert_same_dataset(read(path), in_memory(frame))


def test_types_of_files_may_differ_and_eras_and_targets_be_categories(tmp_path):
    frame = make_frame()
    other = frame.astype({"small": "int32", "wide": "float64", "flag": "uint8"})
    write(frame[:200], tmp_path / "a.parquet")
    path = write(other[200:], tmp_path / "b.parquet")
    assert_same_dataset(read(tmp_path), in_memory(frame))
    categories = pd.CategoricalDtype(["w9", "w2", "w1", "w0"])
    write(frame.astype({"era": categories}), path, row_group_size=100)
    assert_same_dataset(read(path), in_memory(frame))
    frame["target"] = np.where(frame["flag"], "a", "b")
    assert_array_equal(read(write(frame, path), era=None).y, frame["target"])


@pytest.mark.parametrize("values", [
    [True, None, False, True], [2**60, None, 2**60 + 1, 2**60], [0.5, None, 1.5, 2.0],
    ["a", None, "b", "b"],
])  # fmt: skip
def test_targets_beside_missing_ones_keep_their_type(tmp_path, values):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": values}), path)
    dataset = BinnedDataset.from_parquet(path, target="y", drop_missing_target=True)
    expected = np.array([x for x in values if x is not None])
    assert dataset.y.tolist() == expected.tolist()
    assert dataset.y.dtype.kind == {"U": "O"}.get(
        expected.dtype.kind, expected.dtype.kind
    )
    assert_array_equal(dataset.X_binned[:, 0], [0, 1, 2])


def test_periods_are_eras(tmp_path):
    frame = make_frame().assign(era=pd.period_range("2020-01", periods=400, freq="D"))
    path = write(frame, tmp_path / "a")
    assert_same_dataset(read(path), in_memory(frame))
    # pandas has not used Arrow in a fresh process.
    program = f"""
from sklearn_era.ensemble import BinnedDataset
dataset = BinnedDataset.from_parquet({str(path)!r}, target="target", era="era")
print(type(dataset.eras.labels[0]).__name__)
"""
    told = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert told.strip() == "Period"


@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (38, 30), (10, 0), (76, 9)])
def test_decimals_are_the_numbers_of_a_fit(tmp_path, precision, scale):
    rng, most = np.random.default_rng(0), 10 ** min(precision - 1, 18)
    units = [
        int(x) * 10 ** max(precision - 20, 0) for x in rng.integers(-most, most, 400)
    ]
    decimals = [Decimal(x).scaleb(-scale) for x in units]
    with_gaps = [None if i % 7 == 0 else x for i, x in enumerate(decimals)]
    frame, path = make_frame().drop(columns=["real", "gaps", "target"]), tmp_path / "d"
    table = pa.Table.from_pandas(frame, preserve_index=False)
    type_of = (pa.decimal128 if precision < 39 else pa.decimal256)(precision, scale)
    columns = {"real": decimals, "gaps": with_gaps, "target": decimals}
    for name, values in columns.items():
        frame[name] = pd.Series(values, dtype=object)
        table = table.append_column(name, pa.array(values, type_of))
    pq.write_table(table, path, row_group_size=130)
    assert_same_dataset(read(path), in_memory(frame))
    numbers = parquet_columns.ParquetColumns(path).read_numbers("real", "weights")
    assert_array_equal(numbers, [float(x) for x in decimals])


@pytest.mark.parametrize(("arguments", "message"), [
    ({"target": "y"}, r"target: .*rows.parquet has no column\(s\) named 'y'; its"),
    ({"era": "week"}, r"era: .* has no column\(s\) named 'week'"),
    ({"sample_weight": "w"}, r"sample_weight: .* no column\(s\) named 'w'"),
    ({"features": ["small", "b"]}, r"features: .* no column\(s\) named 'b'"),
    ({"features": "small"}, "must be a list of names, not a text"),
    ({"features": [0]}, "features: 0 is not the name of a column"),
    ({"features": []}, "must name one column at least"),
    ({"features": ["small", "small"]}, "none of them twice"),
    ({"features": ["small", "target"]}, "and neither the target 'target'"),
    ({"features": ["wide"], "sample_weight": "wide"}, "nor sample_weight='wide'"),
    ({"era": "target"}, "^target and era both name the column 'target'"),
    ({"sample_weight": "era"}, "^era and sample_weight both name the column 'era'"),
    ({"features": ["era"]}, "column 'era' of .* is not numeric: it holds"),
    ({"features": None}, "column 'kind' of .* is not numeric: it holds dictionary"),
    ({"sample_weight": "kind"}, "^sample_weight: column 'kind' of .* is not numeric"),
    ({"sample_weight": "real", "features": ["wide"]}, "Negative values in data passe"),
    ({"sample_weight": "list"}, "^sample_weight: column 'list' of .* holds list<"),
    ({"era": "list"}, "^era: column 'list' of .*parquet holds list<.* name a col"),
    ({"target": "list"}, "^target: column 'list' of .* holds list<"),
    ({"features": ["list"]}, "^features: column 'list' of .* holds list<"),
    ({"sample_weight": "gaps", "features": ["wide"]}, "sample_weight contains NaN"),
    ({"era": "gaps"}, r"era 'gaps' has \d+ missing label\(s\) in 400 rows"),
    ({"era": "null"}, r"era 'null' has 400 missing label\(s\) in 400 rows"),
    ({"target": "null"}, "target 'null' has no value in 400 of 400 rows"),
    ({"max_bins": 1}, "max_bins=1 must be an integer from 2 to 255"),
    ({"keep_eras": ["w0"], "era": None}, "keep_eras needs era="),
    ({"keep_eras": "w0"}, "keep_eras='w0' must be a list of labels"),
    ({"keep_eras": []}, "keep_eras is empty"),
    ({"keep_eras": ["w0", "w7", "w8"]}, "no era 'w7', 'w8'; it has 3 eras, w0 to w2"),
    ({"keep_eras": {0: "a"}}, "has no era 0; it has 3 eras"),
    ({"keep_eras": range(9)}, "has no era 0, 1, 2, 3, 4 and 4 more;"),
    ({"keep_eras": {"w0": 1, "w1": None}}, "new labels of keep_eras has 1 missing"),
    ({"keep_eras": {"w0": 1, "w1": "a"}}, "new labels of keep_eras has labels that"),
    ({"keep_eras": ["w0", None]}, "keep_eras has 1 missing"),
    ({"keep_eras": ["w1"], "target": "spoiled"}, "no value in 5 .* Pass drop_missi"),
    ({"target": "null", "drop_missing_target": True}, "has no value in any of 400"),
])  # fmt: skip
def test_arguments_are_checked(tmp_path, arguments, message):
    frame = make_frame().assign(kind=pd.Categorical(["a", "b"] * 200))
    frame["null"] = None
    frame["list"] = [[1.0]] * len(frame)
    frame["spoiled"] = 1.0
    frame.loc[frame.index[frame["era"] == "w1"][:5], "spoiled"] = np.nan
    path = write(frame, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=message):
        read(path, **arguments)


def test_paths_are_checked(tmp_path):
    for path, message in (
        (tmp_path, "has no .*parquet files"),
        (tmp_path / "no", "there is no file or folder"),
        ([], "path is an empty list"),
    ):
        with pytest.raises(ValueError, match=message):
            BinnedDataset.from_parquet(path, target="y")
    (tmp_path / "text.parquet").write_text("a,b")
    with pytest.raises(ValueError, match=r"^path: .*text.parquet is no Parquet file: "):
        read(tmp_path / "text.parquet")
    (tmp_path / "text.parquet").unlink()
    write(make_frame(3)[:0], tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="has no rows"):
        BinnedDataset.from_parquet(tmp_path, target="target")


def test_columns_of_files_are_compared(tmp_path):
    frame = make_frame().drop(columns="weight")
    write(frame, tmp_path / "a.parquet")
    write(frame.drop(columns="wide"), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"only .*a.parquet has the column 'wide'"):
        read(tmp_path, features=None)
    with pytest.raises(ValueError, match=r"features: .*b.parquet has no column"):
        read(tmp_path, features=["small", "wide"])
    assert read(tmp_path, features=["small"]).shape == (800, 1)
    write(frame.assign(era=1.5), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="differ in the type of column 'era'"):
        read(tmp_path)


@pytest.mark.parametrize("dtype", ["int64", "float32", "datetime64[s]", "date"])
def test_eras_of_any_type(tmp_path, dtype):
    frame = make_frame()
    days = frame["era"].str[1:].astype("int64").to_numpy() * 86_400
    if dtype == "date":
        frame["era"] = days.astype("datetime64[s]").astype("datetime64[D]").tolist()
    else:
        frame["era"] = days.astype(dtype)
    path = write(frame, tmp_path / "rows.parquet", row_group_size=100)
    kept = [frame["era"][days == 86_400].iloc[0], frame["era"][days == 0].iloc[0]]
    if dtype == "date":
        frame["era"] = pd.to_datetime(frame["era"]).astype("datetime64[s]")
    assert_same_dataset(read(path), in_memory(frame))
    assert_same_dataset(read(path, keep_eras=kept), in_memory(frame[days < 2 * 86_400]))
    with pytest.raises(ValueError, match="keep_eras: column 'era' "):
        read(path, keep_eras=["w1"])


def test_row_groups_without_kept_eras_are_not_read(tmp_path):
    frame = make_frame().sort_values("era", kind="stable")
    path = tmp_path / "rows.parquet"
    schema = pa.Schema.from_pandas(frame, preserve_index=False)
    with pq.ParquetWriter(path, schema) as writer:
        for _, rows in frame.groupby("era"):
            writer.write_table(pa.Table.from_pandas(rows, schema, preserve_index=False))
    columns = parquet_columns.ParquetColumns(path)
    wanted = (frame["era"] != "w1").to_numpy()
    batches = columns.iter_batches(["small"], wanted)
    read = [range(first, first + batch.num_rows) for first, batch in batches]
    assert [row for rows in read for row in rows] == np.flatnonzero(wanted).tolist()
    assert not list(columns.iter_batches(["small"], np.zeros(400, dtype=bool)))


@pytest.mark.parametrize("method", ["read", "iter_batches"])
def test_columns_that_lack_rows_are_refused(tmp_path, monkeypatch, method):
    path = write(make_frame(), tmp_path / "rows.parquet")
    whole = getattr(pq.ParquetFile, method)

    def lacking(*arguments, **options):
        read = whole(*arguments, **options)
        return read[:-1] if method == "read" else [x[:-1] for x in read]

    monkeypatch.setattr(pq.ParquetFile, method, lacking)
    with pytest.raises(ValueError, match=rf"^path: {path} is damaged: a column lacks"):
        read(path)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = write(make_frame(), tmp_path / "rows.parquet")
    values, reads = parquet_columns.ParquetColumns.values, parquet_binning._read_bins

    def widen(columns, batch, name):
        found = values(columns, batch, name)
        return found.astype("int16") if name == "small" else found

    def read_bins(*args):
        monkeypatch.setattr(parquet_columns.ParquetColumns, "values", widen)
        return reads(*args)

    monkeypatch.setattr(parquet_binning, "_read_bins", read_bins)
    with pytest.raises(ValueError, match=r"^Column 'small' has become int16: its file"):
        read(path)


def test_progress_is_reported_by_groups_of_columns(tmp_path, monkeypatch):
    path = write(make_frame(), tmp_path / "rows.parquet")
    monkeypatch.setattr(parquet_binning, "_GROUP", 3)
    seen = []
    read(path, on_progress=lambda *arguments: seen.append(arguments))
    assert seen == [(3, 7), (6, 7), (7, 7)]


@pytest.mark.slow
def test_memory(tmp_path):
    """Neither the files nor the rows as numbers are held: in a process of its own."""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    rng, path = np.random.default_rng(0), tmp_path / "rows.parquet"
    columns = {f"f{i}": rng.integers(0, 5, 60_000, dtype=np.int8) for i in range(400)}
    table = pa.table({**columns, "y": np.ones(60_000, np.float32)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(8):
            writer.write_table(table)
    code = f"""
import sys
from sklearn_era.ensemble import BinnedDataset
from sklearn_era.ensemble._binning import parquet as binning
from sklearn_era._tables import parquet as columns
import pyarrow.parquet
def memory(key):
    with open("/proc/self/status") as file:
        return next(int(x.split()[1]) for x in file if x.startswith(key)) * 1024
columns._BATCH_VALUES, binning._GROUP = 2**19, 16
before = memory("VmRSS")
dataset = BinnedDataset.from_parquet({str(path)!r}, target="y")
print((memory("VmHWM") - before) / dataset.X_binned.nbytes)
"""
    command = [sys.executable, "-c", code]
    # Elsewhere than the sources, which are not compiled.
    ratio = subprocess.check_output(command, cwd=tmp_path, text=True)
    assert float(ratio) < 1.9  # the file's int8 alone would be another 1.0


def test_pyarrow_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-era\[parquet\]'"):
        BinnedDataset.from_parquet("rows.parquet", target="y")


@from_1_9
def test_columns_without_a_value(tmp_path):
    """Any type, null too; in all files, or in all batches but the last."""
    n = 300
    table = pa.table({
        "real": np.arange(n) * 0.5, "null": pa.nulls(n),
        "small": pa.nulls(n, pa.int8()), "flag": pa.nulls(n, pa.bool_()),
        "nan": np.full(n, np.nan),
        "late": pa.array([None] * 290 + [1, 2] * 5, pa.int8()),
        "target": np.arange(n) % 7.0, "era": np.arange(n) // 50,
    })  # fmt: skip
    files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    late = table.column_names.index("late")
    first = table.set_column(late, "late", pa.nulls(n))[:200]
    pq.write_table(first, files[0], row_group_size=50)
    pq.write_table(table[200:], files[1], row_group_size=50)
    X = table.drop_columns(["target", "era"])
    message = r"^X: column\(s\) 'null', 'small', 'flag', 'nan' have no value"
    with pytest.warns(UserWarning, match=message) as caught:
        dataset = read(files, features=None)
    assert len(caught) == 1
    eras = table["era"].to_numpy()
    with pytest.warns(UserWarning, match=message):
        other = BinnedDataset.from_arrays(X, table["target"], eras=eras)
    assert_same_dataset(dataset, other)
    assert dataset.bin_mapper.n_bins_non_missing_.tolist() == [255, 1, 1, 1, 1, 2]
    predicted = HistGradientBoostingRegressor(max_iter=2).fit(dataset).predict(X)
    assert np.isfinite(predicted).all()
