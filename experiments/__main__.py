"""Print the papers' tables beside what is measured here.

python -m experiments list
python -m experiments NAME... [--data DIR] [--out DIR] [--runs N] [--quick]
python -m experiments natural_eras --data DIR [--cache DIR] [--jobs N]
python -m experiments all --data DIR
"""

import argparse
import difflib
import inspect
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.common import ExperimentError, format_table, write_results
from sklearn_era._optional import MissingPackageError, import_optional


def experiment_names() -> list[str]:
    """The names of all experiments: the modules of this folder, but for helpers."""
    here = str(Path(__file__).parent)
    names = (module.name for module in pkgutil.iter_modules([here]))
    return sorted(x for x in names if not x.startswith("_") and x != "common")


def load_experiment(name: str) -> Any:
    """Import an experiment, or raise ExperimentError for an unknown name.
    experiments/README.md describes what the module has.
    """
    known = experiment_names()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "see `list`."
        raise ExperimentError(f"There is no experiment {name!r}; {hint}")
    return import_module(f"experiments.{name}")


def data_files(experiment: Any) -> tuple[str, ...]:
    """The names of the files that an experiment reads."""
    return getattr(experiment, "DATA_FILES", ())


def positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is no folder")
    return path


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Print the papers' tables beside what is measured here.",
    )
    add = parser.add_argument
    add("names", nargs="+", metavar="NAME", help="of experiments, or list, or all")
    add("--data", type=folder, metavar="DIR", help="folder of the data files")
    add(
        "--out",
        type=Path,
        metavar="DIR",
        default=Path("experiments-results"),
        help="folder for NAME.csv and NAME.png (experiments-results)",
    )
    add("--runs", type=positive_int, metavar="N", help="as many (as the paper has)")
    add(
        "--quick",
        action="store_true",
        help="a reduced form, in seconds, to see that it runs (NAME-quick.csv)",
    )
    add("--cache", type=Path, metavar="DIR", help="to stop a run, and to go on")
    add("--jobs", type=positive_int, metavar="N", dest="n_jobs", help="processes")
    options = parser.parse_args(arguments)
    if len(options.names) > 1 and {"list", "all"} & set(options.names):
        parser.error("list and all stand alone, without other names")
    return options


def list_experiments() -> None:
    """Print each experiment's name, title, runs and data files."""
    for name in experiment_names():
        experiment = load_experiment(name)
        print(f"{name}\n    {experiment.TITLE}\n    runs: {experiment.N_RUNS}")
        for file in data_files(experiment):
            print(f"    data: {file}")


def measure(name: str, options: argparse.Namespace) -> None:
    """Run an experiment, print its table, and write it."""
    experiment = load_experiment(name)
    given = {key: getattr(options, key) for key in ("cache", "n_jobs")}
    given = {key: value for key, value in given.items() if value is not None}
    if not given.keys() <= inspect.signature(experiment.run).parameters.keys():
        raise ExperimentError("It takes neither --cache nor --jobs.")
    n_runs = options.runs or (1 if options.quick else experiment.N_RUNS)
    with warnings.catch_warnings():
        # The table shows trees that end early and eras without an effect.
        warnings.simplefilter("ignore", UserWarning)
        frame = experiment.run(
            data_dir=options.data, n_runs=n_runs, quick=options.quick, **given
        )
    print(experiment.TITLE)
    if n_runs != experiment.N_RUNS:
        print(f"With {n_runs} of {experiment.N_RUNS} runs.")
    if options.quick:
        print("Reduced, to see that it runs: these are not the table's numbers.")
    show = getattr(experiment, "show", format_table)
    print(f"\n{show(frame)}\n")
    figures = import_optional("matplotlib.figure", extra="plot")
    figure = figures.Figure(layout="constrained")
    experiment.draw(frame, figure)
    file_name = f"{name}-quick" if options.quick else name
    csv, png = write_results(frame, figure, options.out, file_name)
    print(f"Written: {csv}, {png}\n", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 is for one that could not be run, 2 for an unknown name."""
    options = parse(arguments)
    try:
        import_optional("pandas", extra="cli")
        if options.names == ["list"]:
            list_experiments()
            return 0
        names = experiment_names() if options.names == ["all"] else options.names
        for name in names:
            load_experiment(name)
    except (ExperimentError, MissingPackageError) as error:
        print(error, file=sys.stderr)
        return 2
    status = 0
    # One that lacks its data does not keep the others from being run.
    for name in dict.fromkeys(names):
        try:
            measure(name, options)
        except (ExperimentError, MissingPackageError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
