"""The group of commands, in the order of their use.

Like those of the program itself, the modules import nothing heavy until a command runs.
"""

from typing import Any

import typer
import typer.core

from sklearn_era.cli._errors import one_sentence
from sklearn_era.cli.numerai._download import download
from sklearn_era.cli.numerai._export import export
from sklearn_era.cli.numerai._init import init
from sklearn_era.cli.numerai._predict import predict
from sklearn_era.cli.numerai._submit import submit
from sklearn_era.cli.numerai._train import train
from sklearn_era.cli.numerai._validate import validate
from sklearn_era.cli.numerai._weekly import weekly
from sklearn_era.numerai.errors import DataError, NumeraiError

_EXIT_CODES = """Exit codes: 0 done, 1 a package is missing, 2 the configuration or an \
argument, 3 a file, 4 Numerai's API, 5 the submission breaks a rule, 6 the upload, \
7 the portable model."""

# What shells say of a program that Ctrl-C ended.
_INTERRUPTED = 130


class _PlainErrors(typer.core.TyperGroup):
    """Tell what the system refuses in a plain sentence, like all that goes wrong."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("Interrupted: the same command can be run again.", err=True)
            raise typer.Exit(_INTERRUPTED) from None
        except BrokenPipeError:
            raise  # nobody reads on, as with `| head`, and typer ends in silence
        except OSError as error:
            path = error.filename2 or error.filename
            what = "A file" if path is None else f"'{path}'"
            reason = one_sentence(error.strerror or error).rstrip(".")
            message = f"{what} cannot be read or written: {reason}."
            raise DataError(message) from error
        except MemoryError as error:
            raise NumeraiError(
                "There is too little memory: take a smaller feature_set, or set "
                "every_nth_era, in [train]."
            ) from error


numerai = typer.Typer(
    name="numerai",
    cls=_PlainErrors,
    help="Train for Numerai's tournament, and submit each week.",
    no_args_is_help=True,
    epilog=_EXIT_CODES,
)
numerai.command()(weekly)
numerai.command()(init)
numerai.command()(download)
numerai.command()(train)
numerai.command()(validate)
numerai.command()(predict)
numerai.command()(submit)
numerai.command()(export)
