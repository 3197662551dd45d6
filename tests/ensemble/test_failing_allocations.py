"""No memory, at any moment: an error, a model that is as it was, and no crash."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.grids import slow

TESTS = Path(__file__).parents[1]

# In a process of its own: arms the allocator, predicts, and compares. The memory of a
# fit is that of Python's objects.
CHILD = """
import ctypes, json, sys, warnings
import numpy as np
from helpers.data import make_data
from sklearn_era.ensemble import EraForestRegressor, HistGradientBoostingClassifier
from sklearn_era.ensemble import HistGradientBoostingRegressor

warnings.simplefilter("ignore")
kind, n_rows, n_samples = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
shim = ctypes.CDLL(None)
shim.fail_after.argtypes, shim.calls_seen.restype = [ctypes.c_long], ctypes.c_long
X, y, weights, eras = make_data("multiclass" if kind == "classes" else "real")
X[:, 0] = np.nan_to_num(X[:, 0])
common = {"split_criterion": "era", "random_state": 0, "categorical_features": [0]}
model = {
    "booster": lambda: HistGradientBoostingRegressor(max_iter=2, **common),
    "classes": lambda: HistGradientBoostingClassifier(max_iter=4, **common),
    "forest": lambda: EraForestRegressor(n_estimators=2, n_jobs=1, **common),
}[kind]()
model.fit(X, y, weights, eras=eras)
predicted = model.predict(X)


def attempt(n):
    shim.fail_after(n)
    try:
        result = model.predict(X[:n_rows] if n_rows else X)
    except MemoryError:
        result = None
    finally:
        n_seen = shim.calls_seen()
        shim.fail_after(-1)
    assert result is None or np.array_equal(result, predicted[: len(result)])
    assert np.array_equal(model.predict(X), predicted)
    return result is None, n_seen


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
    if "LD_PRELOAD" in os.environ:
        pytest.skip("another allocator is preloaded, such as a sanitizer's")
    path = tmp_path_factory.mktemp("shim") / "failing_malloc.so"
    source = TESTS / "helpers" / "failing_malloc.c"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", path, source, "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no C compiler")
    return path


@pytest.mark.parametrize(("kind", "n_rows"), [  # 0: all
    ("booster", 0), slow("classes", 0), slow("forest", 0), slow("forest", 2),
])  # fmt: skip
def test_memory_that_is_not_there(kind, n_rows, shim, request):
    n_samples = 10_000 if request.config.option.slow else 8
    command = [sys.executable, "-c", CHILD, kind, str(n_rows), str(n_samples)]
    env = {"LD_PRELOAD": str(shim), "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "2"}
    options = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    done = subprocess.run(command, env=os.environ | env, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["n_failed"] == told["n_tried"]
    assert told["n_tried"] > 0 or n_rows == 2  # which packs nothing
