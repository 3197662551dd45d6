"""``numerai.toml``: all that a model is made and submitted by."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from sklearn_era.numerai.config.messages import BAD_TABLE, first_error
from sklearn_era.numerai.config.sections import (
    DataSection,
    ExportSection,
    ModelSection,
    PredictSection,
    Section,
    SubmitSection,
    TrainSection,
    ValidateSection,
)
from sklearn_era.numerai.config.toml_text import comment_lines, key_value
from sklearn_era.numerai.errors import ConfigError
from sklearn_era.numerai.targets import check_target, purge_of
from sklearn_era.numerai.workspace import Workspace


class Config(Section):
    """A configuration file, checked.

    Parameters
    ----------
    data, model, train, validate, predict, submit, export : sections
        The tables of the file.
    """

    # pydantic reserves `validate`, a deprecated method of its own.
    model: ModelSection
    data: DataSection = DataSection()
    train: TrainSection
    validation: Annotated[ValidateSection, Field(alias="validate")] = ValidateSection()
    predict: PredictSection = PredictSection()
    submit: SubmitSection = SubmitSection()
    export: ExportSection = ExportSection()

    @model_validator(mode="after")
    def _check_export(self) -> "Config":
        # Else a week would end in an error, after its submission.
        proportion = self.predict.neutralize_proportion
        if proportion and self.export.weekly:
            raise PydanticCustomError(
                BAD_TABLE,
                "[export] weekly = true does not go with [predict] "
                "neutralize_proportion = {proportion}, since a portable model cannot "
                "neutralise: set weekly = false",
                {"proportion": f"{proportion:g}"},
            )
        return self

    @property
    def purge(self) -> int:
        """Eras left out between training and validation."""
        purge = self.train.purge
        return purge_of(self.train.target, None if purge == "auto" else purge)

    def workspace(self, root: Path) -> Workspace:
        """The folders that belong to a configuration file in `root`."""
        return Workspace(root, self.data.version, self.model.name)


class Loaded(NamedTuple):
    """A configuration and its folders."""

    config: Config
    workspace: Workspace


def load_config(path: Path) -> Loaded:
    """Read a configuration file.

    Parameters
    ----------
    path : Path
        The file. The folders of data, models and reports are beside it.

    Returns
    -------
    config : Config
        What it holds, and defaults for the rest.
    workspace : Workspace
        Its folders.

    Raises
    ------
    ConfigError
        If there is no such file, it is no TOML, or a key is unknown, missing or has a
        bad value.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"There is no configuration file '{path}': write one with 'sklearn-era "
            "numerai init', or name another with --config."
        ) from None
    except OSError as error:
        raise ConfigError(f"Cannot read '{path}': {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"'{path}' is not a TOML file: {error}.") from error
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"'{path}': {first_error(error, Config)}") from None
    try:
        check_target(config.train.target)
        _ = config.purge  # raises where the target does not tell it
    except ConfigError as error:
        raise ConfigError(f"'{path}': {error}") from None
    return Loaded(config, config.workspace(path.resolve().parent))


def write_config(
    path: Path, *, name: str, target: str, **changes: dict[str, Any]
) -> None:
    """Write a configuration file with every default spelled out and explained.

    Parameters
    ----------
    path : Path
        The file to write.
    name : str
        The model's name.
    target : str
        The target's name.
    **changes : dict
        Values other than the defaults, a dict for each section.

    Raises
    ------
    ConfigError
        If the file exists, or a value is not allowed.
    """
    document = {key: dict(section) for key, section in changes.items()}
    document.setdefault("model", {})["name"] = name
    document.setdefault("train", {})["target"] = check_target(target)
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        raise ConfigError(first_error(error, Config)) from None
    _ = config.purge
    text = as_toml(config)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(
            f"'{path}' exists already: change it, or write another with --config."
        ) from None
    except OSError as error:
        raise ConfigError(f"Cannot write '{path}': {error.strerror}.") from error


def as_toml(config: Config) -> str:
    """Spell a configuration as a TOML document with comments."""
    lines = [
        "# A model for Numerai's Classic tournament, made and submitted by",
        "# 'sklearn-era numerai'. Keys that are left out have the values that 'init'",
        "# writes, those of [train.parameters] excepted.",
    ]
    for name, field in Config.model_fields.items():
        section = getattr(config, name)
        lines += ["", *comment_lines(type(section).__doc__), f"[{field.alias or name}]"]
        tables = {}
        for key, item in type(section).model_fields.items():
            value = getattr(section, key)
            if isinstance(value, dict):
                tables[key] = (item.description, value)
            else:
                lines += [*comment_lines(item.description), key_value(key, value)]
        for key, (description, table) in tables.items():
            lines += ["", *comment_lines(description), f"[{field.alias or name}.{key}]"]
            lines += [key_value(k, v) for k, v in table.items()]
    return "\n".join(lines) + "\n"


__all__ = ["Config", "Loaded", "as_toml", "load_config", "write_config"]
