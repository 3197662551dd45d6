"""The command line program, ``sklearn-era``.

- ``_app``: the commands; ``_fit``, ``_predict`` and ``_demo``, one each, the last with
  ``_demo_figure``; ``numerai``, a group of them;
- ``_criterion_options``: the options that say how eras are compared;
- ``_tables``: files; ``_columns``: which columns an option means; ``_frames``: what an
  estimator gets of them;
- ``_errors``: what is wrong with the input, in a sentence.
"""

from sklearn_era._optional import MissingPackageError, import_optional

__all__ = ["main"]


def main() -> None:
    """Run the program with the arguments of this process, and exit.

    Raises
    ------
    SystemExit
        Always: with 0 on success, 2 on bad input, 1 where a package is missing.
    """
    try:
        for package in ("typer", "rich"):
            import_optional(package, extra="cli")
    except MissingPackageError as error:
        raise SystemExit(f"Error: {error}") from None
    from sklearn_era.cli._app import app

    app(prog_name="sklearn-era")
