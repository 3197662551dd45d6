"""``numerai.toml``: what is downloaded, and how models are made, judged and submitted.

The tables of the file are the classes below, and ``numerai.toml`` beside this module is
the file that ``init`` writes: every key with its default. A file without ``format`` was
written for the first version of the program, whose defaults it keeps.
"""

import re
import string
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from sklearn_era._criterion_table import ERA_PARAMETER_NAMES, parameters_read
from sklearn_era.numerai.errors import ConfigError
from sklearn_era.numerai.layers import (
    Layer,
    Section,
    check_keys,
    entries,
    form,
    merge,
    parse,
)
from sklearn_era.numerai.workspace import Workspace as Workspace

TEMPLATE = Path(__file__).with_name("numerai.toml")
FORMAT = 2

# Weekly eras left out between training and validation, by the target's horizon in
# business days: targets of 20 days span 4 weeks and those of 60 days 12; the rest is
# for what else neighbouring eras share. Numerai's documentation gives both (models.md).
_PURGE = {20: 8, 60: 16}
# Keys of a model and of a member beside the settings of a fit.
_OF_MODEL, _OF_MEMBER = ("name", "predict", "member"), ("name", "weight")
# What messages call the table of parameters that no model or member sets itself.
_PARAMETERS = "[train.parameters]"


@cache
def _template() -> dict[str, Any]:
    return tomllib.loads(TEMPLATE.read_text("utf-8"))


_Set = Annotated[str, form(".+", "a name")]
_Era = Annotated[str, form(r"(\d{4})?", "four digits, or ''")]
# Of folders and files, too. No dot in a member's: files beside a fit have one after it.
_Name = Annotated[str, form(r"\w[\w.-]*", "made of letters, digits, '_', '-' and '.'")]
_MemberName = Annotated[
    str,
    form(
        r"(?!(gain|folds)\Z)[\w-]+",
        "made of letters, digits, '_' and '-', and not 'gain' or 'folds'",
    ),
]


class DataSection(Section):
    """Which of Numerai's files to use."""

    version: Annotated[str, form(r"v\d+\.\d+", "a version like 'v5.3'")] = "v5.3"
    files: list[str] = Field(
        default_factory=lambda: [*_template()["data"]["files"]],
        min_length=1,
        description="must list at least one file name",
    )
    refresh: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.refresh:
            if name not in self.files:
                raise ValueError(f"refresh names {name!r}, which is not in files")
        return self


class TrainSection(Section):
    """What a model, or a member of a blend, learns from."""

    target: _Set
    feature_set: _Set = "medium"
    files: list[Literal["train", "validation"]] = Field(
        default_factory=lambda: [*_template()["train"]["files"]],
        min_length=1,
        description="must list 'train', 'validation' or both",
    )
    first_era: _Era = ""
    last_era: _Era = ""
    every_nth_era: int = Field(default=1, ge=1)
    era_offset: int = Field(default=0, ge=0)
    era_groups: int = Field(default=0, ge=0)
    random_state: int = Field(default=0, ge=0, lt=2**32)
    checkpoint_every: int = Field(default=100, ge=1)
    parameters: dict[str, Any] = Field(default_factory=dict)
    _tables: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_target(self.target)
        if len({*self.files}) < len(self.files):
            raise ValueError(f"files = {self.files} must list each file once")
        if (first := self.first_era) > (last := self.last_era or "9999"):
            raise ValueError(f"first_era = {first!r} is after last_era = {last!r}")
        if (offset := self.era_offset) >= (every := self.every_nth_era):
            told = f"must be less than every_nth_era = {every}"
            raise ValueError(f"era_offset = {offset} {told}")
        return self

    def table_of(self, told: object) -> str:
        """What the table is called whose parameter a message names first."""
        named = [x for x in re.findall(r"\w+", str(told)) if x in self._tables]
        return self._tables[named[0]] if named else _PARAMETERS


class PredictSection(Section):
    """What becomes of predictions, of live data and in validation."""

    neutralize_proportion: float = Field(default=0.0, ge=0, le=1)
    neutralize_feature_set: str = ""

    def neutralizers(
        self, own: list[str], columns_of: Callable[[str], list[str]]
    ) -> list[str]:
        """The columns to neutralize by: a feature set's, or a model's own."""
        if not self.neutralize_proportion:
            return []
        name = self.neutralize_feature_set
        return columns_of(name) if name else own


class ValidateSection(Section):
    """How models are judged."""

    folds: int = Field(default=4, ge=1)
    purge: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        default="auto", description="must be 'auto' or a whole number, 0 or more"
    )
    compare_with_gain: bool = False
    fnc_feature_set: str = "auto"
    benchmark: str = "auto"

    def purge_of(self, target: str) -> int:
        """Eras to leave out between training and validation, for a target."""
        if self.purge != "auto":
            return self.purge
        if (horizon := horizon_of(target)) in _PURGE:
            return _PURGE[horizon]
        raise ConfigError(
            f"[validate] purge = 'auto' only works for targets of 20 and 60 days, "
            f"not {target!r}: set purge to a number of eras."
        )

    def benchmark_of(self, version: str, target: str) -> str:
        """The benchmark model, such as v53_lgbm_ender60; "" for none."""
        if self.benchmark != "auto":
            return self.benchmark
        short = target.removeprefix("target_").replace("_", "")
        return f"{version.replace('.', '')}_lgbm_{short}"


class SubmitSection(Section):
    """How Numerai is called."""

    require_open: bool = False
    timeout: float = Field(default=60.0, gt=0, le=86_400)
    retries: int = Field(default=3, ge=0, le=100)


class ExportSection(Section):
    """The model as a pickle that Numerai runs."""

    automatic: bool = False


class Member(Section):
    """A fit, and its weight in the blend of a model."""

    name: _MemberName
    weight: float = Field(default=1.0, gt=0)
    train: TrainSection


class Model(Section):
    """A model at Numerai: one fit, or a blend of several.

    `train` has the target that the model is scored on; what its fits learn from, their
    own do. The only member of a model that is no blend is called "model".
    """

    name: _Name
    train: TrainSection
    predict: PredictSection
    members: tuple[Member, ...]


class Config(Section):
    """A configuration file, checked, with all that its models share resolved."""

    data: DataSection
    models: tuple[Model, ...]
    validation: ValidateSection
    submit: SubmitSection
    export: ExportSection

    def model(self, name: str | None) -> Model:
        """The model of a name; None is the only one."""
        found = {model.name: model for model in self.models}
        if name is None and len(found) == 1:
            return self.models[0]
        if name in found:
            return found[name]
        given = "choose one with --model" if name is None else f"there is no {name!r}"
        raise ConfigError(
            f"The configuration has the models {', '.join(found)}: {given}."
        )


def check_target(target: str, known: Sequence[str] = ()) -> str:
    """Check that a name says which target is meant, and that the data have it."""
    named = [name for name in known if name != "target"]
    shown = f" Available targets: {', '.join(named)}." if named else ""
    if target == "target":
        raise ConfigError(
            "target = 'target' is an alias, and Numerai changes its meaning: use the "
            f"full name of a target, like 'target_ender_60'.{shown}"
        )
    if known and target not in named:
        raise ConfigError(f"Unknown target {target!r}.{shown}")
    return target


def horizon_of(target: str) -> int | None:
    """The business days that a target looks ahead, from the end of its name."""
    match = re.fullmatch(r"target_\w+_(\d+)", target)
    return int(match[1]) if match else None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the configuration file in what is said of it."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"'{path}': {error}") from error


def load_config(path: Path) -> tuple[Config, Workspace]:
    """Read a configuration file; its folders lie beside it, or beside a link to it."""
    try:
        with naming(path):
            config = resolve(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise ConfigError(
            f"Configuration file '{path}' not found: create it with 'sklearn-era "
            "numerai init', or pass another with --config."
        ) from None
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ConfigError(f"'{path}' is not valid TOML: {reason}.") from error
    return config, Workspace(path.absolute().parent, config.data.version, path)


def write_config(path: Path, *, name: str, target: str, version: str) -> None:
    """Write the template with a model's name, its target and a version of the data."""
    given = {"name": name, "target": check_target(target), "version": version}
    for option, value in given.items():
        if re.fullmatch(r"\w[\w.-]*", value) is None:
            allowed = "may only contain letters, digits, '_', '-' and '.'"
            raise ConfigError(f"--{option} {value!r} {allowed}.")
    text = string.Template(TEMPLATE.read_text("utf-8")).substitute(given)
    resolve(tomllib.loads(text))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        told = "already exists: edit it, or pass another path with --config"
        raise ConfigError(f"'{path}' {told}.") from None
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror}.") from error


def resolve(document: Mapping[str, Any]) -> Config:
    """Check a document, and give each member of each model the settings that it has."""
    if (version := document.get("format", 1)) not in (1, FORMAT):
        told = "is not supported by this version: upgrade sklearn-era"
        raise ConfigError(f"format = {version!r} {told}.")
    names = ("data", "train", "validate", "predict", "submit", "export")
    check_keys(dict.fromkeys(document, ""), ["format", "model", *names])
    tables = {x: merge((f"[{x}]", document.get(x, {})))[0] for x in names}
    defaults = _template()["train"]["parameters"]
    if version == 1:
        defaults = _from_format_1(tables)
    layers = {x: (f"[{x}]", table) for x, table in tables.items()}
    config = Config(
        data=parse(DataSection, layers["data"]),
        models=tuple(_parse_models(document.get("model", []), layers, defaults)),
        validation=parse(ValidateSection, layers["validate"]),
        submit=parse(SubmitSection, layers["submit"]),
        export=parse(ExportSection, layers["export"]),
    )
    for model in config.models:
        for train in (model.train, *(member.train for member in model.members)):
            config.validation.purge_of(train.target)
    return config


def _parse_models(
    given: Any, layers: Mapping[str, Layer], defaults: Mapping[str, Any]
) -> Iterator[Model]:
    """Models with their own settings over the shared ones, members with theirs."""
    for layer, model in entries("[[model]]", given, TrainSection, _OF_MODEL):
        where, shared = layer[0], (layers["train"], layer)
        members, member_tables = [], model.pop("member", [{"name": "model"}])
        at = f"{where}, [[model.member]]"
        for own, member in entries(at, member_tables, TrainSection, _OF_MEMBER):
            member["train"] = _parse_train(defaults, *shared, own)
            members.append(parse(Member, (own[0], member)))
        predict = (f"{where} predict", model.get("predict", {}))
        model["predict"] = parse(PredictSection, layers["predict"], predict)
        model["train"] = _parse_train(defaults, *shared)
        yield parse(Model, (where, model | {"members": tuple(members)}))


def _parse_train(defaults: Mapping[str, Any], *layers: Layer) -> TrainSection:
    """The settings of a fit, whose parameters are those of all layers."""
    tables = [(at, own["parameters"]) for at, own in layers if "parameters" in own]
    at_of = {"[train]": _PARAMETERS}
    given, origins = merge(*((at_of.get(x, f"{x} parameters"), y) for x, y in tables))
    parameters = {**defaults, **given}
    with suppress(KeyError, TypeError, ValueError):  # of no criterion, told elsewhere
        read = parameters_read(parameters["split_criterion"])
        for name in {*defaults} & {*ERA_PARAMETER_NAMES} - {*read, *given}:
            del parameters[name]
    train = parse(TrainSection, *layers, ("", {"parameters": parameters}))
    train._tables = origins
    return train


# What the first version of the program trained with where a file did not say.
_FORMAT_1_PARAMETERS = {
    "split_criterion": "directional", "min_direction_agreement": 0.0,
    "min_era_coverage": 0.5, "max_iter": 2000, "learning_rate": 0.01, "max_depth": 5,
    "max_leaf_nodes": 32, "min_samples_leaf": 100, "colsample_bytree": 0.1,
    "l2_regularization": 0.0,
}  # fmt: skip


def _from_format_1(tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Put a file of the first version into the terms of this one; its parameters."""
    train, export = tables["train"], tables["export"]
    train.setdefault("files", ["train"])
    for key in ("purge", "compare_with_gain"):
        if key in train:
            tables["validate"][key] = train.pop(key)
    export["automatic"] = export.pop("weekly", True)
    return {} if "parameters" in train else _FORMAT_1_PARAMETERS
