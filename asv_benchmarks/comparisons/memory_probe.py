"""Fit or predict once, and print the memory used.

``python -m comparisons.memory_probe QUESTION``, in the folder ``asv_benchmarks``.

It runs in its own process, because freed memory is not always returned: a second fit
would seem to use less. It prints, as JSON, the process's resident bytes before the
call, their peak during it, its seconds, and a fit's mean number of leaves.
"""

import ctypes
import json
import re
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

from benchmarks.common import (
    SKLEARN,
    Task,
    era_booster,
    limit_threads,
    make_data,
    mean_leaves,
)
from sklearn_era.ensemble import BinnedDataset


def resident_bytes(field: str) -> int:
    """Return `VmRSS`, the resident memory now, or `VmHWM`, its peak."""
    status = Path("/proc/self/status").read_text()
    (kibibytes,) = re.findall(rf"{field}:\s+(\d+) kB", status)
    return int(kibibytes) * 1024


def reset_peak() -> None:
    """Reset the peak, and return freed memory to the system."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def make_call(question: dict, task: Task):
    """Return the call to be measured, with its input made and nothing else alive."""
    data = make_data(task)
    make_data.cache_clear()
    call, criterion = question["call"], question["split_criterion"]
    if call == "scikit-learn's fit":
        return partial(SKLEARN.fit, data, task.n_trees)
    if call == "scikit-learn's predict":
        return partial(SKLEARN.fit(data, task.n_trees).predict, data.X)
    bin_rows = partial(BinnedDataset.from_arrays, data.X, data.y, eras=data.eras)
    if call == "BinnedDataset.from_arrays":
        return bin_rows
    model = era_booster(data, criterion, task.n_trees, **question["parameters"])
    if call == "fit to a BinnedDataset":
        return partial(model.fit, bin_rows())
    eras = None if criterion == "gain" else data.eras
    fit = partial(model.fit, data.X, data.y, eras=eras)
    return partial(fit().predict, data.X) if call == "predict" else fit


def main(question: dict) -> dict:
    task = Task(**question["task"])
    with limit_threads(question["n_threads"]):
        # The imports and starts of a process's first call do not count.
        make_call(question, Task(n_rows=2_000, n_eras=5, n_features=5, n_trees=1))()
        call = make_call(question, task)
        reset_peak()
        before = resident_bytes("VmRSS")
        start = perf_counter()
        result = call()
        seconds = perf_counter() - start
        peak = resident_bytes("VmHWM")
    return {
        "bytes_before": before,
        "peak_bytes": peak,
        "seconds": seconds,
        "leaves": mean_leaves(result) if hasattr(result, "predict") else None,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
