"""Define options of commands, and print errors, progress and tables."""

import ast
import json
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TaskID
from rich.table import Table

from sklearn_era._files import printable
from sklearn_era._optional import MissingPackageError
from sklearn_era.numerai.errors import ConfigError, alternatives

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Model

_LOG_EVERY = 60.0  # seconds between lines about a stage without a terminal
_MEGABYTE = 10**6

# What messages call options in Python, --era in a call, and --param of a part. A score
# and folds of the program's are no `scoring` or `cv` of an estimator, set by --param.
_PARAMETERS = {
    "era": "eras", "categorical": "categorical_features", "scoring": "", "cv": "",
}  # fmt: skip
_FLAGS = {"group='known'": "--known-groups", "group='new'": "no --known-groups"}
_ROWS = {"y": ("target", "--target"), "X": ("data", "DATA")}
_ROW = re.compile(
    r"(?<![,(] )(?<!eras )(?<!era )(?<![\w'.-])(?:Input )?([Xy])(?![\w'(,)=\[])"
)
_CALL = re.compile(r"fit\(X, y, eras=\.\.\.\) with one label a row( \(in [^)]*\))?")
_PART = re.compile(r"\b(\w+)=\w+\((\w+=[^(),]*)\)")


def argument(name: str, help: str) -> Any:
    """Return a positional argument that is an existing file."""
    return typer.Argument(metavar=name, help=help, exists=True, dir_okay=False)


def option(metavar: str, help: str, *names: str, **settings: Any) -> Any:
    """Return an option of a command; a path that it takes must not be a folder."""
    return typer.Option(*names, metavar=metavar, help=help, dir_okay=False, **settings)


SEED = option("INT", "Random seed.", min=0, max=2**32 - 1)


class InputError(ConfigError):
    """Raised for bad input, with a sentence that names the argument or column."""


@contextmanager
def refused(what: str = "") -> Iterator[None]:
    """Turn TypeError and ValueError in the block into InputError; prepend `what`."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}{one_sentence(error)}") from error


def check_packages(extra: str, *packages: str) -> None:
    """Raise MissingPackageError if a package is missing, without importing any."""
    for package in packages:
        if find_spec(package.replace("-", "_")) is None:
            raise MissingPackageError(package, extra)


def one_sentence(message: BaseException | str) -> str:
    """Return the message of an error or a warning on one line."""
    return printable(" ".join(str(message).split())) or type(message).__name__


def name_options(text: str, command: Any) -> str:
    """Return a message in which a command's options replace Python's parameters."""
    text = _PART.sub(r"--param \1__\2", _CALL.sub("--era", text))
    own = {parameter.name: parameter for parameter in command.params}
    for flag, shown in _FLAGS.items():
        text = text.replace(flag, shown)
    for key, parameter in own.items():
        name, option = _PARAMETERS.get(key, key), max(parameter.opts, key=len)
        if name and option.startswith("--"):
            text = re.sub(rf"(?<![\w-]){name}=(?:'(\w+)')?", rf"{option} \1", text)
            text = re.sub(rf"(\A|: |The '){name}(:|' par)", rf"\1{option}\2", text)

    def of_rows(match: re.Match[str]) -> str:
        key, shown = _ROWS[match[1]]
        return shown if key in own else match[0]

    return _ROW.sub(of_rows, text)


def echo(text: str, err: bool = False) -> None:
    """Print a line without control characters: names may come from files or servers."""
    typer.echo(printable(text), err=err)


def echo_scores(lines: Iterable[str]) -> None:
    """Print lines on scores as they come; if scoring fails, warn with the reason."""
    try:
        for line in lines:
            echo(line)
    except ValueError as error:
        warnings.warn(f"cannot score: {error}", stacklevel=1)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def parse_value(text: str) -> Any:
    """Return the value of a text that is JSON or a Python literal, else the text."""
    if text.lower() in ("true", "false", "none"):
        text = text.capitalize()
    for parse in (json.loads, ast.literal_eval, float):
        with suppress(ValueError, TypeError, SyntaxError):
            return parse(text)
    return text


def describe_fit(model: Any) -> str:
    """Return text on a fit: its number of iterations or, for an average, of models."""
    if not hasattr(model, "_predictors"):
        n_tried = count(len(model.weights_), "model")
        return f"an average of {len(model.members_)} of {n_tried}"
    trees = [tree for trees in model._predictors for tree in trees]
    n_split = sum(tree.get_n_leaf_nodes() > 1 for tree in trees)
    text = count(model.n_iter_, "iteration")
    if n_split < len(trees):
        text += f" ({n_split:,} of {len(trees):,} trees have splits)"
    return text


def check_known(name: str, known: Collection[str], subject: str) -> str:
    """Return a name if it is known; raise InputError with similar names if not."""
    if name in known:
        return name
    from sklearn_era._tables.columns import list_columns

    hint = alternatives(name, known, list_columns)
    if len(known) == 1 and re.search("[,;|\t]", only := next(iter(known))):
        hint = f"the only one is {only!r}: pass its separator with --sep."
    raise InputError(f"{subject} '{name}'; {hint}")


@contextmanager
def warnings_printed(told: Callable[[Any], str]) -> Iterator[None]:
    """Print each warning of the block once, as the text ``told(message)``."""
    printed = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if (text := told(str(message))) not in printed:
            printed.add(text)
            echo(f"Warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def check_suffix(path: Path, suffixes: Collection[str], argument: str) -> str:
    """Return a file name's suffix; raise InputError unless it is one of `suffixes`."""
    for suffix in suffixes:
        if path.name.lower().endswith(suffix):
            return suffix
    raise InputError(f"{argument}: '{path}' must end in {', '.join(suffixes)}.")


def check_output(path: Path, suffixes: Collection[str], *inputs: Path) -> None:
    """Raise InputError if --out cannot be written, or would replace an input."""
    check_suffix(path, suffixes, "--out")
    if path.exists() and any(path.samefile(file) for file in inputs):
        raise InputError(f"--out: '{path}' is an input and would be overwritten.")
    with writable(path):
        tempfile.TemporaryFile(dir=path.parent).close()


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Raise InputError, in place of OSError, if the block cannot write --out."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or one_sentence(error)
        raise InputError(f"--out: cannot write '{path}': {reason}.") from error


class Terminal:
    """Reports on work: messages on standard output, progress on standard error."""

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        columns = *Progress.get_default_columns(), MofNCompleteColumn()
        hidden = not console.file.isatty()
        self.bars = Progress(*columns, console=console, disable=hidden, transient=True)
        self._tasks: dict[str, TaskID] = {}
        self._logged: dict[str, float] = {}

    step = staticmethod(echo)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Show how much of a stage is done, in trees, eras, columns or bytes."""
        if self.bars.disable:
            now = time.monotonic()
            if now - self._logged.setdefault(stage, now) >= _LOG_EVERY and done < total:
                self._logged[stage] = now
                echo(f"{stage}: {done:,} of {total:,}", err=True)
            return
        if total >= _MEGABYTE:  # bytes, not trees
            stage, done, total = f"{stage} (MB)", done // _MEGABYTE, total // _MEGABYTE
        if stage not in self._tasks:
            self._tasks[stage] = self.bars.add_task(stage, total=total or None)
        self.bars.update(self._tasks[stage], completed=done, total=total or None)
        if total and done >= total:
            self.bars.remove_task(self._tasks.pop(stage))

    def validated(self, model: "Model", results: Any, files: list[Path]) -> None:
        """Print the scores of a validation, its notes, and the names of its files."""
        from sklearn_era.numerai.score_table import name_of_row

        own = name_of_row(model.name, results)
        statistics = ("mean", "std", "sharpe", "max_drawdown", "n_eras")
        rows, notes = [], list[str]()
        for name, result in results.items():
            shown, of = (own, "") if name == "model" else (name, f"{name}: ")
            for metric, summary in result.summary.items():
                cells = (number(summary[statistic]) for statistic in statistics)
                rows.append([shown, metric.replace("max_feature_", "max "), *cells])
                shown = ""  # a long name would be folded in each line
            if name == "model":
                left = result.skipped.items()
                notes += (f"{metric} was left out: {why}" for metric, why in left)
            notes += (f"{of}{note}" for note in result.notes)
        title = f"Validation of {model.name}, on {model.train.target}"
        headings = ("Model", "Metric", "mean", "std", "sharpe", "drawdown", "eras")
        print_table(title, headings, rows)
        for note in dict.fromkeys(notes):
            echo(note)
        echo("Report: " + ", ".join(map(str, files)))


def print_table(title: str, headings: Sequence[str], rows: list[list[str]]) -> None:
    """Print a table, no wider than the terminal if there is one."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in headings:
        left = heading in ("Model", "Metric")
        table.add_column(heading, justify="left" if left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    width = None if sys.stdout.isatty() else 200
    Console(highlight=False, width=width).print(table)


def number(value: float | int | None) -> str:
    """Return a table's cell: a score, a whole number, or "-" for None."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
