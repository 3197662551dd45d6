"""Fit once, and print the memory that it took.

``python -m comparisons.memory_probe QUESTION``, in the folder ``asv_benchmarks``.

A process of its own, because freed memory is not always given back: a second fit would
seem to take less. Prints, as JSON, the process's resident bytes before the fit, their
peak in the fit, the seconds that it took, and the mean number of leaves.
"""

import ctypes
import json
import re
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

from benchmarks.common import (
    Task,
    era_booster,
    limit_threads,
    make_data,
    mean_leaves,
)
from sklearn_era.ensemble import BinnedDataset


def resident_bytes(field: str) -> int:
    """`VmRSS`, the resident memory now, or `VmHWM`, its peak."""
    status = Path("/proc/self/status").read_text()
    (kibibytes,) = re.findall(rf"{field}:\s+(\d+) kB", status)
    return int(kibibytes) * 1024


def reset_peak() -> None:
    """Forget the peak of what came before, and give back what that has freed."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def make_fit(question: dict, task: Task):
    """The fit of a task, with its input made already and nothing else alive."""
    data = make_data(task)
    make_data.cache_clear()
    model = era_booster(
        data, question["split_criterion"], task.n_trees, **question["parameters"]
    )
    if question["source"] == "array":
        return partial(model.fit, data.X, data.y, eras=data.eras)
    return partial(model.fit, BinnedDataset.from_arrays(data.X, data.y, eras=data.eras))


def main(question: dict) -> dict:
    task = Task(**question["task"])
    with limit_threads(question["n_threads"]):
        # What the first fit of a process imports and starts is not the fit's.
        make_fit(question, Task(n_rows=2_000, n_eras=5, n_features=5, n_trees=1))()
        fit = make_fit(question, task)
        reset_peak()
        before = resident_bytes("VmRSS")
        start = perf_counter()
        model = fit()
        seconds = perf_counter() - start
        peak = resident_bytes("VmHWM")
    return {
        "bytes_before": before,
        "peak_bytes": peak,
        "seconds": seconds,
        "leaves": mean_leaves(model),
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
