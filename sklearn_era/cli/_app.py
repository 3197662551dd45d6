"""The program's commands. Another one, or a group of them, is added at the end.

This module and those of the commands import nothing heavy until a command runs, so
that ``--help`` answers at once.
"""

from typing import Annotated, Any

import typer
import typer.core

from sklearn_era import __version__
from sklearn_era._optional import MissingPackageError
from sklearn_era.cli._demo import demo
from sklearn_era.cli._errors import InputError, one_sentence
from sklearn_era.cli._fit import fit
from sklearn_era.cli._predict import predict
from sklearn_era.cli.numerai import numerai
from sklearn_era.numerai.errors import NumeraiError

# What typer raises for arguments that it cannot make sense of; it does not export it.
_UsageError: Any = typer.BadParameter.__base__


class _PlainErrors(typer.core.TyperGroup):
    """Tell what goes wrong in a command, or a group of them, in a plain sentence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            message, code = str(error), 2
        except MissingPackageError as error:
            message, code = str(error), 1
        except NumeraiError as error:
            message, code = one_sentence(error), error.exit_code
        except _UsageError as error:
            message, code = one_sentence(error.format_message()).rstrip("."), 2
            if error.ctx is None or "Usage:" in message:
                # A group without a command shows its help, and that is not an error.
                raise
            message += f"; see '{error.ctx.command_path} --help'."
        typer.echo(f"Error: {message}", err=True)
        raise typer.Exit(code)


app = typer.Typer(
    name="sklearn-era",
    cls=_PlainErrors,
    no_args_is_help=True,
    add_completion=False,
    # A traceback that is not an error of the input is a bug, to be reported whole.
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        sklearn_version = version("scikit-learn")
        typer.echo(f"sklearn-era {__version__} (scikit-learn {sklearn_version})")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Histogram gradient boosting with split criteria that compare eras."""


app.command()(demo)
app.command()(fit)
app.command()(predict)
app.add_typer(numerai)
