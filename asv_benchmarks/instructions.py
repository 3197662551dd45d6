"""Count the instructions of small fits, and compare the counts with the record.

    python asv_benchmarks/instructions.py [--update]

Counts vary by a per mille, on a busy machine as well. `--update` rewrites
`instructions.json`. It needs valgrind with its headers, and a C compiler.
"""

import ctypes
import gc
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common import Task, era_learner, forest_learner, make_data
from comparisons.speed import BY_DEFAULT
from sklearn_era.ensemble._splitting.lanes import kernels

RECORD = Path(__file__).with_suffix(".json")
ALLOWED_GROWTH = 0.05
FLOATS = Task(5_000, n_eras=25, n_bins=None, n_features=20, n_trees=10)
WEIGHTS = replace(FLOATS, kind="weights")
BINS = Task(5_000, n_eras=25, n_features=20, n_trees=10)
FOREST = Task(2_000, n_eras=10, n_bins=None, n_features=10, n_trees=5)
FITS = {
    **{f"{name}: {FLOATS}": (fit, FLOATS) for name, fit in BY_DEFAULT.items()},
    f"`era`: {WEIGHTS}": (era_learner("era"), WEIGHTS),
    f"`era`, medians: {WEIGHTS}": (era_learner("era", loss="absolute_error"), WEIGHTS),
    f"`directional`: {BINS}": (era_learner("directional"), BINS),
    f"forest: {FOREST}": (forest_learner("era", "full, default coverage"), FOREST),
}
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",  # it determines the order of sets
    "SKLEARN_ERA_X86_LEVEL": "v3",  # the highest that valgrind supports
    # One instruction sets or copies a large array, but would count once per byte.
    "GLIBC_TUNABLES": "glibc.cpu.x86_rep_stosb_threshold=1073741824:"
    "glibc.cpu.x86_rep_movsb_threshold=1073741824",
}
REQUESTS = """
#include <valgrind/callgrind.h>
void instrument(void) { CALLGRIND_START_INSTRUMENTATION; }
void reset(void) { CALLGRIND_ZERO_STATS; }
void dump(void) { CALLGRIND_DUMP_STATS; }
"""


def tools() -> str:
    """Return the basis of counts: the compiler of kernels, Python and processor."""
    compiler = re.search(rb"GCC: \(.*?\) (\d+)", Path(kernels.__file__).read_bytes())
    gcc = f"GCC {compiler[1].decode()}" if compiler else "another compiler than GCC"
    return f"{gcc}, Python 3.{sys.version_info.minor}, {platform.machine()}"


def run_fits(library: str) -> None:
    """Fit within valgrind, and dump the count of each fit."""
    requests = ctypes.CDLL(library)
    requests.instrument()  # not before: imports then take much less time
    gc.disable()
    for learner, task in FITS.values():
        data = make_data(task)
        learner.fit(data, 1)  # one-off work of a process
        gc.collect()
        requests.reset()
        learner.fit(data, task.n_trees)
        requests.dump()


def count() -> dict[str, int]:
    """Return the number of instructions of each fit."""
    with TemporaryDirectory() as folder:
        library, dumps = f"{folder}/requests.so", f"{folder}/dumps"
        compiler = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library]
        subprocess.run(compiler, input=REQUESTS, text=True, check=True)
        valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no"]
        valgrind.append(f"--callgrind-out-file={dumps}")
        subprocess.run(
            [*valgrind, sys.executable, __file__, library],
            env={**os.environ, **ENVIRONMENT},
            check=True,
        )
        texts = [Path(f"{dumps}.{i + 1}").read_text() for i in range(len(FITS))]
    totals = [int(re.search(r"^totals: (\d+)", text, re.M)[1]) for text in texts]
    return dict(zip(FITS, totals, strict=True))


def main(arguments: list[str]) -> int:
    if arguments == ["--update"]:
        record = {"tools": tools(), "instructions": count()}
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
        return 0
    record = json.loads(RECORD.read_text())
    if record["tools"] != tools():
        print(f"Not counted: the record is by {record['tools']}; here is {tools()}.")
        return 0
    status = 0
    for fit, n in count().items():
        growth = n / record["instructions"][fit] - 1
        print(f"{n:>13,}  {growth:+6.1%}  {fit}")
        if growth > ALLOWED_GROWTH:
            status = 1
            print(
                f"{fit} takes {growth:.1%} more instructions than on record, of which "
                f"{ALLOWED_GROWTH:.0%} are allowed."
            )
    return status


if __name__ == "__main__":
    if sys.argv[1:] in ([], ["--update"]):
        sys.exit(main(sys.argv[1:]))
    run_fits(*sys.argv[1:])
