"""The rows about memory: the peak of a fit, in a process of its own."""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.common import Task

from .results import NotPossibleHere, Result, Row, Settings

FOLDER = Path(__file__).resolve().parents[1]
CRITERION = "directional"


def probe(task: Task, n_threads: int, source: str, parameters: dict) -> dict:
    """Run the probe: its docstring says what it returns."""
    if not sys.platform.startswith("linux"):
        raise NotPossibleHere("the peak is read from Linux's /proc")
    question = {
        "task": asdict(task),
        "n_threads": n_threads,
        "source": source,
        "split_criterion": CRITERION,
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
class MemoryPerCell:
    """Bytes that a fit takes beyond its input, over rows times features."""

    task: Task
    source: str  # "array" or "BinnedDataset"

    def case(self, settings: Settings) -> str:
        task = settings.resize(self.task)
        return f"`{CRITERION}`, peak memory beyond the {self.source}: {task}"

    def measure(self, settings: Settings) -> Result:
        task = settings.resize(self.task)
        found = probe(task, settings.n_threads, self.source, {})
        taken = found["peak_bytes"] - found["bytes_before"]
        return Result(
            f"{taken / (task.n_rows * task.n_features):.2f} bytes a cell",
            f"{found['leaves']:.1f}",
            f"{found['seconds']:.2f} s",
        )


@dataclass(frozen=True)
class WholeProcess:
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
            "array",
            {"colsample_bytree": self.colsample_bytree},
        )
        return Result(
            f"{found['peak_bytes'] / 2**30:.2f} GiB, {found['seconds']:.0f} s",
            f"{found['leaves']:.1f}",
            f"{found['seconds']:.2f} s",
        )


MEMORY_ROWS: tuple[Row, ...] = (
    MemoryPerCell(Task(dtype="uint8"), "array"),
    MemoryPerCell(Task(dtype="uint8"), "BinnedDataset"),
)
LARGE_ROWS: tuple[Row, ...] = (
    WholeProcess(
        Task(2_700_000, n_eras=574, n_features=2_376, n_trees=40), colsample_bytree=0.1
    ),
)
