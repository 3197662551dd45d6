"""The program's commands. They import nothing heavy before they run, for ``--help``."""

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
_VERSION = typer.Option("--version", help="Print the version and exit.")


class _PlainErrors(typer.core.TyperGroup):
    """Tell what goes wrong in a command, or a group of them, in a plain sentence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (InputError, MissingPackageError, NumeraiError) as error:
            message, code = one_sentence(error), getattr(error, "exit_code", 1)
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
    # Plain help, which cuts nothing off in a narrow terminal.
    rich_markup_mode=None,
    add_completion=False,
    # A traceback that is not an error of the input is a bug, to be reported whole.
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 success, 1 a package is missing, 2 bad input, 130 Ctrl-C.",
)


@app.callback(invoke_without_command=True)
def _program(version: Annotated[bool, _VERSION] = False) -> None:
    """Histogram gradient boosting with split criteria that compare eras."""
    if version:
        import sklearn

        typer.echo(f"sklearn-era {__version__} (scikit-learn {sklearn.__version__})")
        raise typer.Exit


for _command in (demo, fit, predict):
    app.command()(_command)
app.add_typer(numerai)
