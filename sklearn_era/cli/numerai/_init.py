"""``sklearn-era numerai init``: write a configuration file."""

from typing import Annotated

import typer

from sklearn_era.cli.numerai._common import CONFIG, ConfigOption


def init(
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The name of your model at Numerai.")
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="COL",
            help="The target to learn, by its full name: 'target_ender_60' for one.",
        ),
    ],
    config: ConfigOption = CONFIG,
) -> None:
    """Write a configuration file with every default spelled out and explained."""
    from sklearn_era._optional import import_optional

    import_optional("pydantic", extra="numerai")
    from sklearn_era.numerai.config import write_config

    write_config(config, name=name, target=target)
    typer.echo(
        f"Wrote {config}. Change it as you like; then 'sklearn-era numerai weekly' "
        "does the rest."
    )
