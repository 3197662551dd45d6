"""Turn exceptions of commands into a printed sentence and the program's exit code."""

from typing import Any

import typer
import typer.core

from sklearn_era._optional import MissingPackageError
from sklearn_era.cli import _ui
from sklearn_era.numerai.errors import NumeraiError

# The exception of typer for invalid arguments, which it does not export.
_UsageError: Any = typer.BadParameter.__base__


class PlainErrors(typer.core.TyperGroup):
    """A group of commands whose errors are printed as one sentence."""

    def invoke(self, ctx: Any) -> Any:
        def phrase(message: Any) -> str:
            command = self.commands.get(ctx.invoked_subcommand, self)
            return _ui.name_options(_ui.one_sentence(message), command)

        try:
            with _ui.warnings_printed(phrase):
                return super().invoke(ctx)
        except (MissingPackageError, NumeraiError) as error:
            message, code = phrase(error), getattr(error, "exit_code", 1)
        except _UsageError as error:
            message, code = _ui.one_sentence(error.format_message()).rstrip("."), 2
            if error.ctx is None or "Usage:" in message:
                # A group without a command shows its help, which is not an error.
                raise
            message += f"; see '{error.ctx.command_path} --help'."
        except MemoryError:
            message, code = "Out of memory: use fewer features or eras.", 1
        except KeyboardInterrupt:
            if ctx.invoked_subcommand != "numerai":
                raise
            text = "Interrupted. Run the command again to resume"
            typer.echo(f"{text}, without --restart or --retrain.", err=True)
            raise typer.Exit(130) from None
        _ui.echo(f"Error: {message}", err=True)
        raise typer.Exit(code)
