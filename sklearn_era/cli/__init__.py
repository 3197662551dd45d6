"""Provide the command line program ``sklearn-era``.

- ``_commands``: the program and its commands; ``_demo``: its demonstration;
  ``_numerai``, ``_numerai_demo``: the command group ``numerai``;
- ``_info``: the description of a model file;
- ``_table_files``: tables for ``fit`` and ``predict``; ``_categories``: their
  categories; ``_fit_input``: the estimator and the rows of ``fit``;
- ``_scores``: lines on an average's weights and on scores;
- ``_exit_codes``: exceptions as one sentence and an exit code;
- ``_ui``: options, errors, progress and tables on the terminal.
"""

from sklearn_era._optional import MissingPackageError, import_optional

__all__ = ["main"]


def main() -> None:
    """Run the program with the arguments of this process, and exit with a code."""
    try:
        for package in ("typer", "rich"):
            import_optional(package, extra="cli")
    except MissingPackageError as error:
        raise SystemExit(f"Error: {error}") from None
    from sklearn_era.cli._commands import app

    app(prog_name="sklearn-era")
