"""The rows about memory: the peak of a call, in a process of its own."""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.common import Task

from .results import NotPossibleHere, Result, Row, Settings

FOLDER = Path(__file__).resolve().parents[1]
CRITERION = "directional"


def probe(
    task: Task, n_threads: int, call: str, criterion: str, parameters: dict
) -> dict:
    """Run `memory_probe` and return its result."""
    if not sys.platform.startswith("linux"):
        raise NotPossibleHere("the peak is read from Linux's /proc")
    question = {
        "task": asdict(task),
        "n_threads": n_threads,
        "call": call,
        "split_criterion": criterion,
        "parameters": parameters,
    }
    done = subprocess.run(
        [sys.executable, "-m", "comparisons.memory_probe", json.dumps(question)],
        cwd=FOLDER,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


@dataclass(frozen=True)
class MemoryPerCell(Row):
    """Bytes that a call needs beyond its input, divided by rows times features."""

    task: Task
    call: str  # a call of `memory_probe.make_call`
    criterion: str | None = None

    def case(self, settings: Settings) -> str:
        task = settings.resize(self.task)
        by = f"`{self.criterion}`, " if self.criterion else ""
        return f"{by}{self.call}, peak memory beyond its input: {task}"

    def measure(self, settings: Settings) -> Result:
        task = settings.resize(self.task)
        criterion = self.criterion or "gain"
        found = probe(task, settings.n_threads, self.call, criterion, {})
        taken = found["peak_bytes"] - found["bytes_before"]
        return Result(
            f"{taken / (task.n_rows * task.n_features):.2f} bytes a cell",
            "" if found["leaves"] is None else f"{found['leaves']:.1f}",
            f"{found['seconds']:.2f} s",
        )


@dataclass(frozen=True)
class WholeProcess(Row):
    """Peak memory of a process that trains on a whole data set, and its time."""

    task: Task
    colsample_bytree: float

    def case(self, settings: Settings) -> str:
        feature_share = f"`colsample_bytree={self.colsample_bytree}`"
        task = settings.resize(self.task)
        return f"`{CRITERION}`, {feature_share}, whole process: {task}"

    def measure(self, settings: Settings) -> Result:
        found = probe(
            settings.resize(self.task),
            settings.n_threads,
            "fit",
            CRITERION,
            {"colsample_bytree": self.colsample_bytree},
        )
        return Result(
            f"{found['peak_bytes'] / 2**30:.2f} GiB, {found['seconds']:.0f} s",
            f"{found['leaves']:.1f}",
            f"{found['seconds']:.2f} s",
        )


BYTES, BYTES_AND_GAIN = Task(dtype="uint8"), Task(n_eras=1, dtype="uint8")
MEMORY_ROWS: tuple[Row, ...] = (
    MemoryPerCell(BYTES, "fit", CRITERION),
    MemoryPerCell(BYTES, "fit to a BinnedDataset", CRITERION),
    MemoryPerCell(BYTES_AND_GAIN, "fit", "gain"),
    MemoryPerCell(BYTES_AND_GAIN, "scikit-learn's fit"),
    MemoryPerCell(BYTES, "BinnedDataset.from_arrays"),
    MemoryPerCell(BYTES, "predict", CRITERION),
    MemoryPerCell(BYTES, "scikit-learn's predict"),
)
LARGE_ROWS: tuple[Row, ...] = (
    WholeProcess(
        Task(2_700_000, n_eras=574, n_features=2_376, n_trees=40), colsample_bytree=0.1
    ),
)
