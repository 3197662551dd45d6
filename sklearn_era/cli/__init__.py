"""The command line program, ``sklearn-era``.

- ``_app``: the program and its commands; ``_numerai``, with ``_numerai_demo``: the
  group of them ``numerai``;
- ``_tables``: what ``fit`` and ``predict`` read, what becomes of it, and how it does;
- ``_ui``: options, errors in a sentence, and what is shown of the work.
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
    from sklearn_era.cli._app import app

    app(prog_name="sklearn-era")
