"""Exported models: what is in the pickle, and what it predicts by Numerai's rules."""

import os
import pickle
import pickletools
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from helpers.grids import slow
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.interop import to_lightgbm_text
from sklearn_era.numerai.errors import PortableModelError
from sklearn_era.numerai.metrics.ranks import rank_normalize
from sklearn_era.numerai.model_upload import portable_runner
from sklearn_era.numerai.model_upload.pickle_calls import (
    Call,
    Global,
    Partial,
    dump_calls,
    method,
)
from sklearn_era.numerai.model_upload.portable import write_portable_model
from sklearn_era.numerai.model_upload.portable_check import check_portable_model

NAMES = [f"feature_{letter}" for letter in "cabdefgh"]

# All that the pickle may call, by the names under which it is public.
CALLED = {
    "builtins.getattr", "builtins.str", "functools.partial", "lightgbm.Booster",
    "operator.itemgetter", "operator.methodcaller", "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing.FunctionTransformer", "zlib.decompress",
}  # fmt: skip


def make_frame(n_rows=500, eras=("X",), seed=1):
    """Rows in Numerai's layout, the features in another order than the model's."""
    rng = np.random.default_rng(seed)
    index = pd.Index([f"n{i:015x}" for i in rng.permutation(n_rows)], name="id")
    frame = pd.DataFrame({"era": rng.choice(eras, n_rows), "data_type": "live"}, index)
    values = rng.integers(0, 5, (len(NAMES), n_rows), dtype=np.int8)
    features = dict(zip(sorted(NAMES), values, strict=True))
    return frame.assign(feature_unknown=np.int8(2), **features)


def fit(**parameters):
    train = make_frame(2000, seed=0)
    y = train["feature_c"] * 0.1 + train["feature_a"] * train["feature_b"] * 0.05
    y += np.random.default_rng(0).normal(size=len(train))
    parameters = {"max_iter": 30, "split_criterion": "directional"} | parameters
    model = Regressor(**parameters)
    return model.fit(train[NAMES], y, eras=np.arange(len(train)) % 4)


def expected_predictions(model, frame):
    ranks = rank_normalize(model.predict(frame[NAMES]), frame["era"])
    return pd.DataFrame({"prediction": ranks}, index=frame.index)


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "model.pkl"
    write_portable_model(model, path)
    return path


def assert_predicts(path, model, frame, known):
    """Known: the eras as the ranks of our own take them."""
    before = frame.copy()
    predictions = pd.read_pickle(path)(frame)
    pd.testing.assert_frame_equal(frame, before)
    expected = expected_predictions(model, frame.assign(era=known))
    pd.testing.assert_frame_equal(predictions, expected, check_exact=True)
    assert predictions.to_csv() == expected.to_csv()
    return predictions


@pytest.mark.parametrize("eras", [["X"], ["0003", "0001", "0002"], ["0001", None]])
def test_predictions_are_the_ranks_of_our_own_bit_for_bit(model, exported, eras):
    frame = make_frame(eras=eras)
    known = frame["era"].fillna("missing")
    assert_predicts(exported, model, frame, known)
    categories = pd.CategoricalDtype(["unused", *filter(None, eras)])
    assert_predicts(exported, model, frame.astype({"era": categories}), known)


def test_ties_share_their_rank(tmp_path):
    stump, path = fit(max_iter=1, max_leaf_nodes=2), tmp_path / "model.pkl"
    write_portable_model(stump, path)
    frame = make_frame(101, eras=["1", "2"])
    predictions = assert_predicts(path, stump, frame, frame["era"])
    assert predictions["prediction"].nunique() <= 4


@pytest.mark.parametrize("column", ["feature_d", "era"])
def test_a_missing_column_is_named(exported, column):
    with pytest.raises(KeyError, match=column):
        pd.read_pickle(exported)(make_frame().drop(columns=column))


def test_the_pickle_is_calls_of_public_functions_and_nothing_else(exported):
    opcodes = list(pickletools.genops(exported.read_bytes()))
    strings = [argument for _, argument, _ in opcodes if isinstance(argument, str)]
    called = set()
    for index, (opcode, _, _) in enumerate(opcodes):
        assert opcode.name not in {"GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"}
        assert opcode.proto <= 4
        if opcode.name == "STACK_GLOBAL":
            called.add(f"{opcodes[index - 2][1]}.{opcodes[index - 1][1]}")
    assert called == CALLED
    assert not [text for text in strings if "sklearn_era" in text or "lambda" in text]


@pytest.mark.slow
def test_it_is_written_without_lightgbm_or_pandas(tmp_path):
    program = """
        import sys
        for absent in ("lightgbm", "pandas", "pyarrow"):
            sys.modules[absent] = None
        import numpy as np
        from sklearn_era.ensemble import HistGradientBoostingRegressor
        from sklearn_era.numerai.model_upload.portable import write_portable_model
        X = np.arange(400).reshape(200, 2) % 5
        model = HistGradientBoostingRegressor(max_iter=2).fit(X, X[:, 0])
        write_portable_model(model, "model.pkl", feature_names=["a", "b"])
    """
    program = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    frame = pd.DataFrame({"a": [0, 1], "b": [1, 0], "era": "X"})
    predictions = pd.read_pickle(tmp_path / "model.pkl")(frame)
    assert predictions["prediction"].tolist() == [0.25, 0.75]


def test_sizes_are_told_and_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "model.pkl"
    path.write_text("old")
    written = write_portable_model(fit(max_iter=3), str(path))
    assert (written.path, written.n_features, written.n_trees) == (path, 8, 3)
    assert written.pickle_bytes == path.stat().st_size
    text = to_lightgbm_text(fit(max_iter=3), node_statistics=False)
    assert written.text_bytes == len(text)
    assert os.listdir(tmp_path) == ["model.pkl"]


def fit_two_rows(kind=Regressor, **parameters):
    return kind(max_iter=1, **parameters).fit([[1], [2]], [1, 2])


CATEGORICAL = {"categorical_features": ["feature_b"]}


@pytest.mark.parametrize(
    ("make", "names", "message"),
    [
        (Regressor, None, "is not fitted"),
        (lambda: make_pipeline(fit_two_rows()), None, "A Pipeline cannot be exported"),
        (lambda: fit_two_rows(Classifier), None, "predicts class"),
        (lambda: fit_two_rows(loss="poisson"), None, "loss='poisson' has a log link"),
        (lambda: fit(**CATEGORICAL), None, "Feature 'feature_b' is categorical"),
        (fit_two_rows, None, "pass feature_names="),
        (fit, NAMES[:3], "feature_names has 3 names, but the model was fitted to 8"),
        (fit, sorted(NAMES), r"names\[0\] is 'feature_a', but .* 'feature_c' there"),
        (fit, "feature_a", "is one name"),
    ],
)
def test_what_cannot_be_expressed_is_refused(make, names, message, tmp_path):
    with pytest.raises(PortableModelError, match=message):
        write_portable_model(make(), tmp_path / "model.pkl", feature_names=names)
    assert not os.listdir(tmp_path)


# Few, as the table of all characters takes a while to make.
TEXTS = st.text("a0 \0\n\r'\"\\%é\u2028\U0001f600")
SCALARS = [st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False)]


def collections(inner):
    return st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(TEXTS, inner)


CONSTANTS = st.recursive(
    st.one_of(*SCALARS, TEXTS, st.binary()), collections, max_leaves=8
)


@settings(max_examples=settings().max_examples // 2)
@given(CONSTANTS)
def test_values_survive_a_pickle_of_calls(value):
    loaded = pickle.loads(dump_calls(value))
    assert loaded == value
    assert repr(loaded) == repr(value)


def test_calls_are_made_when_the_pickle_is_read():
    power = Global("builtins", "pow")
    assert pickle.loads(dump_calls(power)) is pow
    assert pickle.loads(dump_calls(Call(power, (2, 5), {"mod": 7}))) == 4
    assert pickle.loads(dump_calls(Partial(power, {"exp": 3})))(2) == 8
    assert pickle.loads(dump_calls(method("a,b", "split")))(",") == ["a", "b"]
    with pytest.raises(TypeError, match=r"A builtins\.set cannot be written"):
        dump_calls({1})


def as_transformer(name, *arguments):
    """A function of `operator`, which has no signature, as one that has."""
    function = Call(Global("operator", name), arguments)
    transformer = Global("sklearn.preprocessing", "FunctionTransformer")
    return method(Call(transformer, (function,)), "transform")


TAKE_PREDICTION = as_transformer("itemgetter", ["prediction"])
LIVE = make_frame(20).assign(prediction=np.linspace(0, 1, 20))


def check_calls(function, tmp_path, frame=LIVE, **parameters):
    """Check a pickle that is these calls, on a frame with a column of predictions."""
    path = tmp_path / "model.pkl"
    path.write_bytes(dump_calls(function))
    return check_portable_model(path, frame, **parameters)


@pytest.mark.slow
@pytest.mark.parametrize("live", [None, "live.parquet"])
def test_the_check_runs_it_without_this_package(
    model, exported, tmp_path, monkeypatch, live
):
    monkeypatch.chdir(tmp_path)
    frame = make_frame()
    if live:  # a file, which has the ids in a column
        frame.reset_index().to_parquet(live)
    check = check_portable_model(
        os.path.relpath(exported), live or frame, python=sys.executable, output="p.csv"
    )
    assert check.rows == len(frame)
    assert check.warnings == ()
    assert 0 < check.seconds < 60
    assert 50e6 < check.peak_bytes < 1e9
    assert check.python == sys.version.split()[0]
    assert check.versions["pandas"] == pd.__version__
    expected = expected_predictions(model, frame).to_csv()
    assert (tmp_path / "p.csv").read_text() == expected


@pytest.mark.slow
def test_a_function_of_two_parameters_gets_the_benchmark_models(tmp_path):
    function = Global("pandas", "DataFrame.combine_first")
    others = LIVE[["prediction"]]
    output = tmp_path / "predictions.csv"
    options = {"benchmark_models": others, "output": output}
    check_calls(function, tmp_path, others.assign(prediction=np.nan), **options)
    found = pd.read_csv(output, index_col="id")["prediction"]
    np.testing.assert_allclose(found[others.index], others["prediction"])


NO_FRAME = r"a Series, and no pandas\.DataFrame was returned"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        # One that ends with a report, and one that ends without.
        (Global("sklearn_era.numerai.metrics.ranks", "rank_normalize"),
         r"cannot be read by .*No module named 'sklearn_era.*write_portable_model"),
        (Call(Global("os", "_exit"), (3,)), r"without a report \(exit status 3\)"),
        slow(Global("builtins", "no_such"), "cannot be read by .* It is no pickle, or"),
        # A segmentation fault.
        slow(Call(Global("ctypes", "string_at"), (0,)), "status 139 .* of Python or"),
        slow(3, "does not hold a function .*: TypeError: 3 is not a callable"),
        # Keys in the environment do not reach the model.
        slow(Call(Global("os", "getenv"), ("NUMERAI_SECRET_KEY", "nothing")),
             "'nothing' is not a callable"),
        slow(Global("builtins", "sorted"), "it takes 3 parameters"),
        slow(Global("operator", "add"), "2 parameters, and benchmark_models is None"),
        slow(as_transformer("itemgetter", ["feature_z"]),
             "failed to predict .*feature_z.* version of the data"),
        slow(as_transformer("itemgetter", "prediction"), NO_FRAME),
    ],
)  # fmt: skip
def test_a_pickle_that_breaks_a_rule_is_told_which(
    function, message, tmp_path, monkeypatch
):
    monkeypatch.setenv("NUMERAI_SECRET_KEY", "sesame")
    with pytest.raises(PortableModelError, match=message):
        check_calls(function, tmp_path)


FRAME = make_frame(3)[[]].assign(prediction=[0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (FRAME["prediction"], NO_FRAME),
        (FRAME.head(0), "the data frame is empty"),
        (FRAME.assign(era="X"), r"columns are \['prediction', 'era'\] .* named 'id'"),
        (FRAME.rename_axis("row"), "the index is named 'row'"),
        (FRAME.assign(prediction=[0.1, np.nan, 0.2]), "1 predictions are NaN"),
        (FRAME.assign(prediction=[0.1, 0.2, 1.5]), r"between 0\.1 and 1\.5, which"),
        (FRAME.assign(prediction=0.5), r"all predictions are 0\.5"),
        (FRAME.head(2), "not every id of the live data has exactly one"),
        (FRAME.iloc[[0, 1, 2, 2]], "not every id of the live data has exactly one"),
    ],
)
def test_predictions_that_break_a_rule_are_told_of(predictions, message):
    portable_runner._check(FRAME, FRAME.index)
    with pytest.raises(portable_runner._RefusedError, match=message):
        portable_runner._check(predictions, FRAME.index)


def test_time_and_memory_are_limited(tmp_path):
    sleep = Call(Global("time", "sleep"), (60,))
    with pytest.raises(PortableModelError, match="stopped after 1 seconds"):
        check_calls(sleep, tmp_path, time_limit=1)
    with pytest.raises(PortableModelError, match=r"more memory than the 0\.05 GiB"):
        check_calls(TAKE_PREDICTION, tmp_path, memory_limit=50 * 2**20)


@pytest.mark.slow
def test_close_to_a_limit_there_is_a_warning(tmp_path):
    peak = check_calls(TAKE_PREDICTION, tmp_path).peak_bytes
    check = check_calls(TAKE_PREDICTION, tmp_path, memory_limit=int(1.2 * peak))
    (warning,) = check.warnings
    assert "live data grow" in warning


@pytest.mark.slow
def test_live_data_that_cannot_be_read_are_refused(tmp_path, exported):
    (tmp_path / "text.pkl").write_text("no pickle")
    no_ids = make_frame(5).reset_index(drop=True)
    for live, message in (
        (tmp_path / "text.pkl", "live data cannot be read"),
        (no_ids, "neither an index nor a column 'id'"),
    ):
        with pytest.raises(PortableModelError, match=message):
            check_portable_model(exported, live)


def test_a_missing_model_or_python_is_named(tmp_path, exported):
    with pytest.raises(FileNotFoundError):
        check_portable_model(tmp_path / "absent.pkl", make_frame(5))
    with pytest.raises(PortableModelError, match=r"python=.* cannot be started"):
        check_portable_model(exported, make_frame(5), python=tmp_path / "python")
