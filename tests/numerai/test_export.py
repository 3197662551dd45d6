"""Exported models: what is in the pickle, and what it predicts by Numerai's rules."""

import ctypes
import operator
import os
import pickle
import pickletools
import sys
import time
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from helpers.grids import slow
from helpers.numerai.live import NAMES, expected_ranks, fit, make_blend, make_frame
from helpers.numerai.server import MODEL_ID, refused
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.numerai import errors, export, export_check
from sklearn_era.numerai.errors import ApiError, DataError, ExportError, UploadError
from sklearn_era.numerai.export import _Call, _public, export_is_current, write_blend
from sklearn_era.numerai.export_check import check_portable_model
from sklearn_era.numerai.store import Blend, ModelRecord, WeightedFit

# All that a pickle calls: of Python itself, and by public names elsewhere.
CALLED = {
    "builtins.getattr", "builtins.str", "functools.partial", "operator.itemgetter",
    "operator.methodcaller", "pkgutil.resolve_name", "zlib.decompress",
}  # fmt: skip
RESOLVED = {
    "lightgbm:Booster", "scipy.special:ndtri", "sklearn.pipeline:Pipeline",
    "sklearn.preprocessing:FunctionTransformer",
}  # fmt: skip


# Signs and weights: in floats, the sum of their products is not 0.
OPPOSED = [(1, 0.1), (1, 0.3), (-1, 0.1), (-1, 0.3)]


@pytest.fixture(scope="module")
def blends():
    return {"single": Blend([WeightedFit(fit(), NAMES)]), "several": make_blend()}


@pytest.fixture(scope="module")
def exported(blends, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    paths = {kind: folder / f"{kind}.pkl" for kind in blends}
    with patch.dict(sys.modules, lightgbm=None):  # which need not be installed
        for kind, path in paths.items():
            write_blend(blends[kind], path)
    return paths


def assert_predicts(path, blend, frame, known):
    before = frame.copy()
    predictions = pd.read_pickle(path)(frame)
    pd.testing.assert_frame_equal(frame, before)
    expected = expected_ranks(blend, frame, known)
    pd.testing.assert_frame_equal(predictions, expected, check_exact=True)
    assert predictions.to_csv() == expected.to_csv()


@pytest.mark.parametrize("kind", ["single", "several"])
@pytest.mark.parametrize("eras", [["X"], ["0003", "0001", "0002"], ["0001", None]])
def test_predictions_are_our_own_bit_for_bit(blends, exported, kind, eras):
    frame = make_frame(eras=eras)
    known = frame["era"].fillna("missing")
    assert_predicts(exported[kind], blends[kind], frame, known)
    categories = pd.CategoricalDtype(["unused", *filter(None, eras)])
    turned = frame.astype({"era": categories})[frame.columns[::-1]]
    assert_predicts(exported[kind], blends[kind], turned, known)


def test_ties_share_their_rank(tmp_path):
    stumps = [
        WeightedFit(fit([name], max_iter=1, max_leaf_nodes=2), [name], weight)
        for name, weight in zip(NAMES[:3], (0.1, 0.2, 0.1), strict=True)
    ]
    # What opposes each other adds up to 0, but for rounding.
    signed = {s: fit(NAMES[:1], sign=s, max_iter=1) for s in (-1, 1)}
    opposed = [WeightedFit(signed[s], NAMES[:1], weight) for s, weight in OPPOSED]
    for number, blend in enumerate((Blend(stumps[:1]), Blend(stumps), Blend(opposed))):
        path = tmp_path / f"{number}.pkl"
        write_blend(blend, path)
        frame = make_frame(101)
        assert_predicts(path, blend, frame, frame["era"])
        assert pd.read_pickle(path)(frame)["prediction"].nunique() <= 8
    assert pd.read_pickle(path)(frame)["prediction"].eq(0.5).all()


@pytest.mark.parametrize("kind", ["single", "several"])
def test_a_missing_column_is_named(exported, kind):
    for column in ("feature_d", "era"):
        with pytest.raises(KeyError, match=column):
            pd.read_pickle(exported[kind])(make_frame().drop(columns=column))


def test_the_pickle_is_calls_of_public_functions_and_nothing_else(exported):
    opcodes = list(pickletools.genops(exported["several"].read_bytes()))
    refused = {"GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "PERSID"}
    assert {x.name for x, _, _ in opcodes}.isdisjoint(refused)
    assert max(opcode.proto for opcode, _, _ in opcodes) <= 4
    called, memo, stack = set(), [], []
    for opcode, argument, _ in opcodes:
        if opcode.name == "MEMOIZE":
            memo.append(stack[-1] if stack else None)
        elif opcode.name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif opcode.name == "STACK_GLOBAL":
            called.add(".".join(stack[-2:]))
            stack.append(None)
        else:
            stack.append(argument if isinstance(argument, str) else None)
    assert called == CALLED
    strings = {x for _, x, _ in opcodes if isinstance(x, str)}
    assert {x for x in strings if ":" in x} == RESOLVED
    assert not [x for x in strings if "sklearn_era" in x or "lambda" in x]


def fit_two_rows(kind=Regressor, **parameters):
    return kind(max_iter=1, **parameters).fit([[1], [2]], [1, 2])


@pytest.mark.parametrize(("make", "names", "message"), [
    (Regressor, None, "is not fitted"),
    (lambda: make_pipeline(fit_two_rows()), None, "pipeline, pass the last step"),
    (lambda: fit_two_rows(Classifier), None, "'log_loss' has a link .* loss='squ"),
    (fit_two_rows, None, "fitted without feature names; pass feature_names"),
    (fit, NAMES[:3], "feature_names has 3 names, but the model was fitted to 8"),
    (fit, sorted(NAMES), r"not the columns .* order \(feature_c, feature_a"),
    (fit, "feature_a", "is one name: pass a list"),
])  # fmt: skip
def test_what_cannot_be_expressed_is_refused(make, names, message, tmp_path):
    with pytest.raises(ExportError, match=message):
        export.write_portable_model(make(), tmp_path / "model.pkl", feature_names=names)
    assert not os.listdir(tmp_path)


def test_an_export_that_fails_its_check_is_not_kept(blends, tmp_path, monkeypatch):
    path, live = tmp_path / "model" / "portable.pkl", tmp_path / "live.parquet"
    make_frame(60).drop(columns="feature_d").to_parquet(live)
    usual: dict = {"features": [], "target": "x", "parameters": {}}
    records, weights = [ModelRecord(**usual, sha256=x) for x in "abc"], [1.0, 0.3, 0.1]

    def run(**options):
        return export.export_model(blends["several"], records, path, live, **options)

    with pytest.raises(ExportError, match=r"^portable\.pkl failed to .*feature_d"):
        run()
    assert not path.parent.exists()
    assert not export_is_current(path, records, weights)
    make_frame(60).to_parquet(live)
    assert run().rows == 60
    # It depends on fits and weights, not on the times of files.
    os.utime(path, (0, 0))
    assert export_is_current(path, records, weights)
    assert not export_is_current(path, records[::-1], weights)
    assert not export_is_current(path, records, [1.0, 0.3, 0.2])
    # A later one that fails leaves the first as it is.
    before = path.read_bytes()
    with pytest.raises(ExportError, match="cannot be started"):
        run(python=str(tmp_path / "none"))
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == ["portable.pkl", "portable.pkl.json"]
    path.write_bytes(before + b".")
    assert not export_is_current(path, records, weights)


def test_an_export_that_is_killed_leaves_nothing_in_the_folder(blends, tmp_path):
    """While the check runs, which takes the time, the draft is elsewhere."""

    def stop(draft, live, python):
        assert draft.is_file()
        assert not list(tmp_path.rglob("*"))
        raise KeyboardInterrupt

    stopped = patch.object(export, "check_portable_model", stop)
    given = blends["single"], [], tmp_path / "p.pkl", tmp_path
    with stopped, pytest.raises(KeyboardInterrupt):
        export.export_model(*given)


def as_transformer(name, *arguments):
    """A function of `operator`, which has no signature, as one that has."""
    made = _Call(getattr(operator, name), *arguments)
    transformer = _public("sklearn.preprocessing:FunctionTransformer")(made)
    return _Call(getattr, transformer, "transform")


TAKE_PREDICTION = as_transformer("itemgetter", ["prediction"])
LIVE = make_frame(20).assign(prediction=np.linspace(0, 1, 20))


def check_calls(function, tmp_path, **parameters):
    """Check a pickle that is these calls, on a frame with a column of predictions."""
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(function, protocol=4))
    return check_portable_model(path, LIVE, **parameters)


@pytest.mark.parametrize("live", [slow(None), "live.parquet"])
def test_the_check(blends, exported, tmp_path, monkeypatch, live):
    monkeypatch.chdir(tmp_path)
    frame = make_frame()
    if live:  # a file, which has the ids in a column
        frame.reset_index().to_parquet(live)
    path = os.path.relpath(exported["several"])
    given = frame if live is None else live
    check = check_portable_model(path, given, python=sys.executable, output="p.csv")
    assert (check.rows, check.warnings) == (len(frame), [])
    assert 0 < check.seconds < 60
    assert 50e6 < check.peak_bytes < 1e9
    assert check.python == sys.version.split()[0]
    assert check.versions["pandas"] == pd.__version__
    expected = expected_ranks(blends["several"], frame).to_csv()
    assert (tmp_path / "p.csv").read_text() == expected


@pytest.mark.parametrize(("function", "message"), [
    # One that ends with a report, and one that ends without.
    (_public("sklearn_era.numerai.metrics:rank_normalize"),
     r"cannot read .*'sklearn_era.*write_portable_model"),
    (_Call(os._exit, 3), r"crashed .* \(exit status 3: no output"),
    slow(_public("builtins:no_such"), "cannot read .* does not help, export"),
    slow(_Call(ctypes.string_at, 0), "SIGSEGV.*status 139, means .*: export"),
    slow(3, "the live data: TypeError: 3 is not a callable"),
    # Keys in the environment do not reach the model.
    slow(_Call(os.getenv, "NUMERAI_SECRET_KEY", "nothing"),
         "'nothing' is not a callable"),
    slow(operator.add, "one parameter, the live data: it has 2 \\(.*not supported"),
    slow(as_transformer("itemgetter", ["feature_z"]),
         "failed to predict .*feature_z.* of the version"),
])  # fmt: skip
def test_broken_rules(function, message, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMERAI_SECRET_KEY", "sesame")
    with pytest.raises(ExportError, match=message) as caught:
        check_calls(function, tmp_path)
    assert "model.pkl" in str(caught.value)


def test_live_data_of_another_kind_are_refused(tmp_path):
    (tmp_path / "model.pkl").touch()
    with pytest.raises(TypeError, match=r"pandas.DataFrame; got builtins\.dict"):
        check_portable_model(tmp_path / "model.pkl", {})
    with pytest.raises(FileNotFoundError):
        check_portable_model(tmp_path / "absent.pkl", LIVE)


FRAME = make_frame(3)[[]].assign(prediction=[0.1, 0.2, 0.3])


@pytest.mark.parametrize(("predictions", "message"), [
    (FRAME["prediction"], "it returned a Series"),
    (FRAME.head(0), "each live id must have exactly one"),
    (FRAME.assign(era="X"), r"columns are \['prediction', 'era'\], .* is 'id'"),
    (FRAME.rename_axis("row"), "the index is 'row'"),
    (FRAME.assign(prediction=[0.1, np.nan, 0.2]), "0.2, and 1 are NaN"),
    (FRAME.assign(prediction=[0.1, 0.2, 1.5]), r"range from 0\.1 to 1\.5"),
    (FRAME.assign(prediction=0.5), r"range from 0\.5 to 0\.5"),
    (FRAME.iloc[[0, 1, 2, 2]], "each live id must have exactly one"),
])  # fmt: skip
def test_predictions_that_break_a_rule_are_told_of(predictions, message):
    export_check.check_predictions(FRAME, FRAME.index)
    with pytest.raises(export_check.RefusedError, match=message):
        export_check.check_predictions(predictions, FRAME.index)


def test_time_and_memory_are_limited(tmp_path):
    with pytest.raises(ExportError, match="exceeded the time limit of 1 seconds"):
        check_calls(_Call(time.sleep, 60), tmp_path, time_limit=1)
    with pytest.raises(ExportError, match=r"memory limit of 0\.05 GiB"):
        check_calls(TAKE_PREDICTION, tmp_path, memory_limit=50 * 2**20)


@pytest.mark.slow
def test_beyond_the_limit_there_is_no_memory_and_close_to_it_a_warning(tmp_path):
    hog = _Call(bytes, 8 * 2**30)
    with pytest.raises(ExportError, match=r"memory limit of 0\.50 GiB"):
        check_calls(hog, tmp_path, memory_limit=2**29)
    peak = check_calls(TAKE_PREDICTION, tmp_path).peak_bytes
    check = check_calls(TAKE_PREDICTION, tmp_path, memory_limit=int(1.2 * peak))
    (warning,) = check.warnings
    assert "live data grow" in warning


@pytest.mark.slow
def test_live_data_that_cannot_be_read_are_refused(exported):
    no_ids = LIVE.reset_index(drop=True), "no index or column is named 'id'"
    for live, message in ((exported["single"], "cannot read the live data"), no_ids):
        with pytest.raises(ExportError, match=message):
            check_portable_model(exported["single"], live)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    time = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(export, "time", time)
    return now


@pytest.fixture
def upload(client, tmp_path):
    path = tmp_path / "portable.pkl"
    path.write_bytes(b"a pickle")

    def run(**options):
        return export.upload_pickle(client, "my_model", path, **options)

    run.path = path
    return run


def test_a_result_is_waited_for_and_told(server, upload):
    running, said = ("running", ""), []
    server.statuses = [("pending", ""), running, running, ("success", "passed")]
    server.fail("PUT", 503)
    assert upload(on_step=said.append) == "success"
    (own,) = server.pickles
    assert (own["content"], own["modelId"]) == (b"a pickle", MODEL_ID)
    assert (own["dockerImageId"], own["assigned"]) == ("image-12", None)
    assert said == [
        "Uploaded portable.pkl as pickle-1; it will run in Python 3.12.",
        "Numerai's validation: pending.",
        "Numerai's validation: running.",
        "Numerai has validated it.",
    ]


def test_image_and_version_are_chosen_by_name_or_id(server, upload, monkeypatch):
    upload(image="Python 3.11", data_version="data-53")
    # Without a default, Numerai decides.
    monkeypatch.setattr(server, "_computePickleDockerImages", list)
    upload(data_version="v5.2", assign=True)
    names = "dataVersionId", "dockerImageId", "assigned"
    made = [("data-53", "image-11", None), ("data-52", None, MODEL_ID)]
    assert [tuple(map(x.get, names)) for x in server.pickles] == made
    for options, said in (
        ({"image": "3.9"}, r"Numerai has no image '3\.9'; it offers none\."),
        ({"data_version": "v4"}, r"no data version 'v4'; it offers v5\.2, v5\.3\."),
    ):
        with pytest.raises(errors.ConfigError, match=said):
            upload(**options)
    assert len(server.pickles) == 2


@pytest.mark.parametrize("status", ["error", "failed"])
def test_a_model_that_does_not_run_there_is_an_error(server, upload, status):
    server.statuses = [("pending", ""), (status, "Segmentation fault!")]
    message = refused(server, UploadError, upload, assign=True)
    reason = f"({status}: Segmentation fault!)."
    assert message.endswith(f"validate upload pickle-1 of portable.pkl {reason}")
    assert server.pickles[0]["assigned"] is None


def test_without_a_result_the_status_is_that_of_the_moment(server, upload, clock):
    server.statuses = [("validating", None)]
    for wait in (0.0, 100.0):
        said, clock[0] = [], 0.0
        assert upload(wait=wait, on_step=said.append) == "validating"
        assert clock[0] == pytest.approx(wait)
        assert said[-1].startswith("Numerai has not validated it yet (validating): ")


@pytest.mark.parametrize(("operation", "fault", "error", "said"), [
    ("computePickleUploadAuth", "errors", ApiError, "the slot has a webhook"),
    ("PUT", 403, UploadError, "the storage answered HTTP 403"),
    ("createComputePickleUpload", 500, ApiError, "HTTP 500"),
    ("computePickles", "shape", ApiError, "does not list pickle-1"),
])  # fmt: skip
def test_refused_uploads(server, upload, operation, fault, error, said):
    server.fail(operation, fault, 9, message="the slot has a webhook", value=[])
    assert said in refused(server, error, upload)
    # An upload is not made twice.
    assert server.operations.count("createComputePickleUpload") <= 1
    upload.path.unlink()
    assert "No such file" in refused(server, DataError, upload)
