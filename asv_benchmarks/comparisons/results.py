"""The settings of a measurement, and its result."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from benchmarks.common import Task


@dataclass(frozen=True)
class Settings:
    """The settings of a measurement, for all rows."""

    n_threads: int
    repeats: int
    scale: float  # share of each task's rows
    n_trees: int | None  # instead of each task's own number

    def resize(self, task: Task) -> Task:
        return task.resized(self.scale, self.n_trees)


class Result(NamedTuple):
    value: str
    leaves: str  # ours, and the reference's if there is one
    seconds: str  # for the reader: no other machine has the same


class NotPossibleHere(Exception):
    """A row needs something that this machine lacks."""


class Row(Protocol):
    columns: ClassVar[str] = "case | result | leaves a tree"

    def case(self, settings: Settings) -> str:
        """Describe the measurement in words."""

    def measure(self, settings: Settings) -> Result:
        """Measure; raise NotPossibleHere with what the machine lacks."""
