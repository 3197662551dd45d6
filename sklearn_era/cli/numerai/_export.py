"""``sklearn-era numerai export``: the model as a file for Numerai's model upload."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sklearn_era.cli._errors import InputError
from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    load,
    warnings_shown,
)

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Config
    from sklearn_era.numerai.workspace import Workspace


def export(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PICKLE",
            help="The file to write; by default portable.pkl in the model's folder.",
        ),
    ] = None,
    python: Annotated[
        Path | None,
        typer.Option(
            metavar="PROGRAM",
            help="The Python to check the file with, of an environment like that of "
            "Numerai's image; by default this one.",
        ),
    ] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write the model as a pickle that Numerai can run without this package.

    It is then run on the newest live file as Numerai runs it, by a process of
    its own, and time and memory are compared with Numerai's limits.
    """
    if out is not None and out.is_dir():
        raise InputError(f"--out: '{out}' is a folder: name a file in it.")
    if out is not None and not out.parent.is_dir():
        raise InputError(f"--out: there is no folder '{out.parent}': make it first.")
    settings, workspace = load(config)
    export_shown(settings, workspace, out=out, python=python)


def export_shown(
    config: "Config",
    workspace: "Workspace",
    *,
    out: Path | None = None,
    python: Path | None = None,
) -> None:
    """Export and check, and say what came of it."""
    from sklearn_era.numerai.steps import export_model

    with warnings_shown():
        path, check = export_model(config, workspace, path=out, python=python)
    typer.echo(
        f"Portable model: {path} ({path.stat().st_size / 1e6:,.1f} MB); checked on "
        f"{check.rows:,} rows, in {check.seconds:.1f} s and "
        f"{check.peak_bytes / 1e9:.2f} GB of memory."
    )
