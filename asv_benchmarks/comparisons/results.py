"""How rows are to be measured, and what comes of it."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from benchmarks.common import Task


@dataclass(frozen=True)
class Settings:
    """How to measure, whatever the row."""

    n_threads: int
    repeats: int
    scale: float  # share of each task's rows
    n_trees: int | None  # instead of each task's own number

    def resize(self, task: Task) -> Task:
        return task.resized(self.scale, self.n_trees)


class Result(NamedTuple):
    value: str
    leaves: str  # ours, and the reference's where there is one
    seconds: str  # for the eye of who measures: no other machine has them


class NotPossibleHere(Exception):
    """A row needs what this machine lacks."""


class Row(Protocol):
    columns: ClassVar[str] = "case | result | leaves a tree"

    def case(self, settings: Settings) -> str:
        """What is measured, in words."""

    def measure(self, settings: Settings) -> Result:
        """Measure it. NotPossibleHere says what the machine lacks."""


__all__ = ["NotPossibleHere", "Result", "Row", "Settings"]
