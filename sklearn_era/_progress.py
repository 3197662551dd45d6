"""Lines of a search with the time left, under a bar of rich on a terminal."""

import sys
import time
from importlib.util import find_spec
from typing import Any


class Progress:
    """What a fit of many fits prints, if `verbose`; a context that ends the bar."""

    def __init__(self, name: str, verbose: int = 0):
        self.name, self.verbose = name, verbose
        self._n_done, self._n_all, self._start = 0, 0, time.perf_counter()
        self._bar: Any = None
        if verbose and sys.stdout.isatty() and find_spec("rich") is not None:
            from rich import progress

            self._bar = progress.Progress(
                "{task.description}", progress.BarColumn(),
                progress.MofNCompleteColumn(), "fits", progress.TimeRemainingColumn(),
            )  # fmt: skip
            self._task = self._bar.add_task(name, total=None)

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, n_fits: int) -> None:
        """Set the number of fits to come."""
        self._n_all = self._n_done + n_fits

    def step(self, n_fits: int, text: str) -> None:
        """Print a line after some fits, with the time left if these are typical."""
        self._n_done += n_fits
        self._n_all = max(self._n_all, self._n_done)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._n_done, total=self._n_all)
        elif self._n_done < self._n_all:
            per_fit = (time.perf_counter() - self._start) / self._n_done
            text += f"; {per_fit * (self._n_all - self._n_done):.0f} s left"
        self.print(f"{self._n_done}/{self._n_all} fits: {text}")

    def print(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        if self.verbose:
            show = print if self._bar is None else self._bar.console.print
            show(f"{self.name} {text}")
