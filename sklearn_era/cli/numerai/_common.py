"""Options, and what every command begins with."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sklearn_era._optional import MissingPackageError

if TYPE_CHECKING:
    from sklearn_era.numerai.api import Numerai
    from sklearn_era.numerai.config import Config, Model, Workspace

# By the module that is imported, the package that has it.
_PACKAGES = {
    "filelock": "filelock",
    "lightgbm": "lightgbm",
    "numerai_tools": "numerai-tools",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "requests": "requests",
}

ConfigOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--config", "-c", metavar="TOML", help="Configuration; files lie beside it."
    ),
]
ModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help="Only this model."),
]
RoundOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--round", min=0, help="Round; by default the newest downloaded."),
]
CONFIG = Path("numerai.toml")


def check_packages() -> None:
    """Check that the extra is installed, without importing it."""
    for module, package in _PACKAGES.items():
        if find_spec(module) is None:
            raise MissingPackageError(
                f"{package} is not installed, and this needs it: pip install "
                "'sklearn-era[numerai]'"
            )


def load(path: Path) -> "tuple[Config, Workspace]":
    """Read the configuration, once all packages are known to be there."""
    check_packages()
    from sklearn_era.numerai.config import load_config

    return load_config(path)


def make_client(folder: Path, config: "Config | None" = None) -> "Numerai":
    """The client of Numerai's API, with keys from the environment or folder/.env."""
    from sklearn_era.numerai.api import Numerai
    from sklearn_era.numerai.config import SubmitSection

    section = SubmitSection() if config is None else config.submit
    return Numerai.from_environment(
        folder, timeout=section.timeout, retries=section.retries
    )


def chosen(config: "Config", name: str | None) -> "Sequence[Model]":
    """The models to work on: the one named, or all."""
    return config.models if name is None else [config.model(name)]
