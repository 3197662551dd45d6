"""Which experiments there are: the modules of this folder."""

import difflib
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from experiments.common import ExperimentError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Modules whose name begins with an underscore are helpers too.
_HELPERS = ("common",)


class Experiment(Protocol):
    """A module that reprints a table, with the paper's number of runs."""

    TITLE: str
    DATA_FILES: tuple[str, ...]
    N_RUNS: int

    def run(self, data_dir: Path | None, n_runs: int, quick: bool) -> "pd.DataFrame":
        """Measure the table: a row for each cell, with the mean and the paper's number.

        `quick` takes seconds, and its numbers mean little.
        """
        ...

    def draw(self, frame: "pd.DataFrame", figure: "Figure") -> None:
        """Draw the table that `run` gave onto an empty figure."""
        ...


def experiment_names() -> list[str]:
    """The names of all experiments, sorted."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if not module.name.startswith("_") and module.name not in _HELPERS
    )


def load_experiment(name: str) -> Experiment:
    """Import an experiment.

    Raises
    ------
    ExperimentError
        If there is none of that name.
    """
    known = experiment_names()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "see `list`."
        raise ExperimentError(f"There is no experiment {name!r}; {hint}")
    return cast(Experiment, import_module(f"experiments.{name}"))
