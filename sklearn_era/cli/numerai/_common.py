"""Options, and what every command begins with."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from sklearn_era._optional import MissingPackageError
from sklearn_era.cli._errors import option
from sklearn_era.cli.numerai._terminal import terminal

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Config, Model, Workspace
    from sklearn_era.numerai.steps import Steps

_PACKAGES = [
    "filelock", "lightgbm", "numerai-tools", "pandas", "pyarrow", "pydantic", "requests"
]  # fmt: skip
_CONFIG = option("TOML", "Configuration; files go next to it.", "--config", "-c")
_MODEL = option("NAME", "Only this model.", "--model", "-m")
_ROUND = option("INT", "Round; by default the newest downloaded.", "--round", min=0)
ConfigOption: TypeAlias = Annotated[Path, _CONFIG]
ModelOption: TypeAlias = Annotated[str | None, _MODEL]
RoundOption: TypeAlias = Annotated[int | None, _ROUND]
CONFIG = Path("numerai.toml")


def check_packages() -> None:
    """Check that the extra is installed, without importing it."""
    for package in _PACKAGES:
        if find_spec(package.replace("-", "_")) is None:
            raise MissingPackageError(
                f"{package} is not installed, and this needs it: pip install "
                "'sklearn-era[numerai]'"
            )


def load(path: Path) -> "tuple[Config, Workspace]":
    """Read the configuration, once all packages are known to be there."""
    check_packages()
    from sklearn_era.numerai.config import load_config

    return load_config(path)


def _without_configuration(path: Path) -> "tuple[Config, Workspace]":
    """What a file is submitted with where there is no configuration."""
    check_packages()
    from sklearn_era.numerai.api import Numerai
    from sklearn_era.numerai.config import Config, SubmitSection, Workspace
    from sklearn_era.numerai.download import latest_version

    root = path.absolute().parent
    version = latest_version(Numerai.from_environment(root).datasets())
    config = Config.model_construct(models=(), submit=SubmitSection())
    return config, Workspace(root, version or "")


@contextmanager
def opened(path: Path, *, needed: bool = True) -> "Iterator[Steps]":
    """The steps for a configuration's models, which are told of on the terminal."""
    there = needed or path.exists()
    config, workspace = load(path) if there else _without_configuration(path)
    from sklearn_era.numerai.steps import Steps

    with terminal() as told:
        yield Steps(config, workspace, told)


def chosen(steps: "Steps", name: str | None) -> "Sequence[Model]":
    """The models to work on: the one named, or all."""
    return steps.config.models if name is None else [steps.config.model(name)]
