"""The command line program, ``sklearn-era``.

- ``_app``: the commands; ``_fit``, ``_predict``, ``_demo`` and the group ``numerai``;
- ``_estimator``: what ``fit`` fits, and how well that does; ``_tables``: what it reads;
- ``_errors``: options, and what goes wrong with them.
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
