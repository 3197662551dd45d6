"""Options of commands, and what goes wrong with their input, in one sentence."""

import re
import tempfile
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer


def argument(name: str, help: str) -> Any:
    """An argument of a command that is an existing file."""
    return typer.Argument(metavar=name, help=help, exists=True, dir_okay=False)


def option(metavar: str, help: str, *names: str, **settings: Any) -> Any:
    """An option of a command; paths are of files."""
    return typer.Option(*names, metavar=metavar, help=help, dir_okay=False, **settings)


_SEED = option("INT", "Random seed.", min=0, max=2**32 - 1)
SeedOption = Annotated[int | None, _SEED]
DataArgument = Annotated[Path, argument("DATA", "CSV, TSV, Parquet or Feather file.")]
SepOption = Annotated[str | None, option("CHAR", "DATA's separator, if not a comma.")]
EncodingOption = Annotated[str | None, option("NAME", "DATA's encoding, if not UTF-8.")]


class InputError(Exception):
    """Bad input. The message is a sentence that names the argument or column."""

    exit_code = 2


def one_sentence(message: BaseException | str) -> str:
    """Bring another library's message, often of many lines, onto one line."""
    return " ".join(str(message).split()) or type(message).__name__


def count(number: int, noun: str) -> str:
    """Spell a number of things: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def check_known(name: str, known: Collection[str], subject: str) -> None:
    """Check that a name is known, or raise InputError with those that are alike."""
    if name in known:
        return
    from sklearn_era._tables.columns import list_columns

    # Compared in lower case: the wrong case is the commonest slip of all.
    lower = {candidate.lower(): candidate for candidate in known}
    close = [repr(lower[match]) for match in get_close_matches(name.lower(), lower)]
    hint = f"did you mean {' or '.join(close)}?" if close else ""
    if len(known) == 1 and re.search("[,;|\t]", only := next(iter(known))):
        hint = f"the only one is {only!r}: pass its separator with --sep."
    raise InputError(f"{subject} '{name}'; {hint or f'use {list_columns([*known])}.'}")


@contextmanager
def warnings_printed() -> Iterator[None]:
    """Print warnings as lines of their own, each once, and at once."""
    printed = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if (text := one_sentence(str(message))) not in printed:
            printed.add(text)
            typer.echo(f"Warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def check_suffix(path: Path, suffixes: Collection[str], argument: str) -> str:
    """Return which of some suffixes a file's name has, or raise InputError."""
    for suffix in suffixes:
        if path.name.lower().endswith(suffix):
            return suffix
    raise InputError(f"{argument}: '{path}' must end in {', '.join(suffixes)}.")


def check_output(path: Path, suffixes: Collection[str], *inputs: Path) -> None:
    """Check that --out can be written and replaces no input, or raise InputError."""
    check_suffix(path, suffixes, "--out")
    if path.exists() and any(path.samefile(file) for file in inputs):
        raise InputError(f"--out: '{path}' is an input and would be overwritten.")
    with writable(path), tempfile.TemporaryFile(dir=path.parent):
        pass


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Raise InputError if --out cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or one_sentence(error)
        raise InputError(f"--out: cannot write '{path}': {reason}.") from error
