"""No memory, at any moment: an error, a model that is as it was, and no crash."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# In a process of its own: arms the allocator, fits or predicts, and compares.
CHILD = """
import ctypes, json, sys, tempfile, warnings
import joblib
import numpy as np
from sklearn.base import clone
from helpers.data import make_data
from sklearn_era.ensemble import EraForestRegressor, HistGradientBoostingClassifier
from sklearn_era.ensemble import HistGradientBoostingRegressor

warnings.simplefilter("ignore")
kind, action, n_samples = sys.argv[1], sys.argv[2], int(sys.argv[3])
shim = ctypes.CDLL(None)
shim.fail_after.argtypes, shim.calls_seen.restype = [ctypes.c_long], ctypes.c_long
X, y, weights, eras = make_data("multiclass" if kind == "classes" else "real")
X[:, 0] = np.nan_to_num(X[:, 0])
common = {"split_criterion": "era", "random_state": 0, "categorical_features": [0]}
model = {
    "booster": lambda: HistGradientBoostingRegressor(max_iter=2, **common),
    "classes": lambda: HistGradientBoostingClassifier(
        max_iter=2, warm_start=True, max_features=0.5, **common
    ),
    "forest": lambda: EraForestRegressor(n_estimators=2, n_jobs=1, **common),
}[kind]()
model.fit(X, y, weights, eras=eras)
right = clone(model)
if kind == "classes":
    right.set_params(max_iter=4)
right.fit(X, y, weights, eras=eras)
before, predicted = joblib.hash(vars(model)), model.predict(X)
more = right.get_params(False)


def act(model):
    if action == "predict":
        return model.predict(X)
    if action == "predict_few":
        return model.predict(X[:2])
    return model.set_params(**more).fit(X, y, weights, eras=eras)


def attempt(n):
    # A copy, whose trees are the model's.
    copy = joblib.load(stored) if action == "fit" else model
    params = copy.get_params(False)
    shim.fail_after(n)
    try:
        result, error = act(copy), None
    except MemoryError as e:
        error = e
    finally:
        n_seen = shim.calls_seen()
        shim.fail_after(-1)
    if action != "fit":
        if error is None:
            assert np.array_equal(result, predicted[: len(result)])
        assert np.array_equal(model.predict(X), predicted)
    elif error is None:
        assert np.array_equal(copy.predict(X), right.predict(X))
    else:
        assert joblib.hash(vars(copy.set_params(**params))) == before
        assert np.array_equal(copy.predict(X), predicted)
        assert np.array_equal(act(copy).predict(X), right.predict(X))
    return error is not None, n_seen


with tempfile.TemporaryDirectory() as folder:
    stored = folder + "/model"
    joblib.dump(model, stored)
    before = joblib.hash(vars(joblib.load(stored)))
    failed, n_calls = attempt(2**40)
    assert not failed
    chosen = np.unique(np.linspace(0, n_calls - 1, min(n_samples, n_calls)).astype(int))
    n_failed = 0
    for n in chosen.tolist():
        print(n, file=sys.stderr, flush=True)
        n_failed += attempt(n)[0]
    print(json.dumps({"n_tried": len(chosen), "n_failed": n_failed}))
"""


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the allocator that fails is glibc's")
    path = tmp_path_factory.mktemp("shim") / "failing_malloc.so"
    source = TESTS / "helpers" / "failing_malloc.c"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", path, source, "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no C compiler")
    return path


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("classes", "fit"),
        ("forest", "fit"),
        ("booster", "predict"),
        pytest.param("booster", "fit", marks=pytest.mark.slow),
        pytest.param("classes", "predict", marks=pytest.mark.slow),
        pytest.param("forest", "predict", marks=pytest.mark.slow),
        pytest.param("forest", "predict_few", marks=pytest.mark.slow),
    ],
)
def test_memory_that_is_not_there(kind, action, shim, request):
    n_samples = 10_000 if request.config.option.slow else 8
    done = subprocess.run(
        [sys.executable, "-c", CHILD, kind, action, str(n_samples)],
        env={
            **os.environ,
            "LD_PRELOAD": str(shim),
            "PYTHONPATH": str(TESTS),
            "OMP_NUM_THREADS": "2",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["n_failed"] == told["n_tried"]
    assert told["n_tried"] > 0 or action == "predict_few"  # which packs nothing
