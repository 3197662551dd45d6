"""Show the progress of many fits, by lines and, on a terminal, by a bar of rich."""

import sys
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any


class Progress:
    """Prints a line for each fit and, on a terminal, a bar in the ``with`` block."""

    def __init__(self, name: str, verbose: int, unit: str = "fits"):
        self.name, self.verbose, self.unit = name, verbose, unit
        self._n_done, self._n_all, self._start = 0, 0, time.perf_counter()
        self._bar: Any = None
        if verbose and sys.stdout.isatty() and find_spec("rich") is not None:
            from rich import progress as rich

            count, left = rich.MofNCompleteColumn(), rich.TimeRemainingColumn()
            text = "{task.description}"
            self._bar = rich.Progress(text, rich.BarColumn(), count, unit, left)
            self._bar.add_task(name, total=None)

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, n: int) -> None:
        """Set how many further units (fits, by default) are to come."""
        self._n_all = self._n_done + n

    def step(self, n: int, text: str) -> None:
        """Count `n` more units as done; print `text` and the time left in a line."""
        self._n_done += n
        self._n_all = max(self._n_all, self._n_done)
        if self._bar is not None:
            self._bar.update(0, completed=self._n_done, total=self._n_all)
        elif self._n_done < self._n_all:
            seconds = (time.perf_counter() - self._start) / self._n_done
            text += f"; about {seconds * (self._n_all - self._n_done):.0f} s left"
        self.print(f"{self._n_done}/{self._n_all} {self.unit}: {text}")

    def of(self, fits: Iterable[Any], texts: Iterable[str]) -> Iterator[Any]:
        """Yield each fit in turn; before it, print a line with its text."""
        for fit, text in zip(fits, texts, strict=True):
            self.step(1, text)
            yield fit

    def print(self, text: str) -> None:
        """Print a line: above the bar if there is one; else only if `verbose`."""
        if self._bar is not None:
            self._bar.console.out(f"{self.name} {text}", highlight=False)
        elif self.verbose:
            print(f"{self.name} {text}")


QUIET = Progress("", 0)
