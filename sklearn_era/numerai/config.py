"""``numerai.toml``: what is downloaded, and how models are made, judged and submitted.

The tables of the file are the classes below, and ``numerai.toml`` beside this module is
the file that ``init`` writes: every key with its default. A file without ``format`` was
written for the first version of the program, whose defaults it keeps.
"""

import difflib
import re
import string
import tomllib
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sklearn_era._criterion_table import ERA_PARAMETER_NAMES, parameters_read
from sklearn_era.numerai.errors import ConfigError, DataError

TEMPLATE = Path(__file__).with_name("numerai.toml")
FORMAT = 2

# Weekly eras left out between training and validation, by the target's horizon in
# business days: targets of 20 days span 4 weeks and those of 60 days 12; the rest is
# for what else neighbouring eras share. Numerai's documentation gives both (models.md).
_PURGE = {20: 8, 60: 16}
# What lies beside the fits of a model, which have the names of its members.
_RESERVED = ("gain", "folds")


def _refusal(told: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{told}", {"told": told})


def _form(pattern: str, demand: str) -> AfterValidator:
    """Check that a text is of a form, which the message tells in words."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise _refusal(demand)
        return text

    return AfterValidator(check)


def _check_purge(value: Any) -> Any:
    if value == "auto" or (type(value) is int and value >= 0):
        return value
    raise _refusal("must be 'auto' or a whole number of 0 or more")


def _check_once(names: list[Any]) -> list[Any]:
    for name in names:
        if names.count(name) > 1:
            raise _refusal(f"must not name {name!r} twice")
    return names


_Era = Annotated[str, _form(r"(\d{4})?", "must be four digits, such as '0157'")]
# Of folders and files, too.
_Name = Annotated[
    str, _form(r"\w[\w.-]*", "must be a name of letters, digits, '_', '-' and '.'")
]


class Section(BaseModel):
    """A table, all of whose keys are known and of the right type."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False
    )


class DataSection(Section):
    """Which of Numerai's files to use."""

    version: Annotated[str, _form(r"v\d+\.\d+", "must be such as 'v5.3'")] = "v5.3"
    files: Annotated[list[str], Field(min_length=1)]
    refresh: list[str] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.refresh:
            if name not in self.files:
                raise _refusal(f"refresh names {name!r}, which files does not")
        return self


class TrainSection(Section):
    """What a model, or a member of a blend, learns from."""

    target: str
    feature_set: Annotated[str, Field(min_length=1)] = "medium"
    files: Annotated[
        list[Literal["train", "validation"]],
        Field(min_length=1),
        AfterValidator(_check_once),
    ]
    first_era: _Era = ""
    last_era: _Era = ""
    every_nth_era: Annotated[int, Field(ge=1)] = 1
    era_offset: Annotated[int, Field(ge=0)] = 0
    era_groups: Annotated[int, Field(ge=0)] = 0
    random_state: Annotated[int, Field(ge=0, lt=2**32)] = 0
    checkpoint_every: Annotated[int, Field(ge=1)] = 100
    parameters: dict[str, Any] = {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_target(self.target)
        if self.first_era and self.last_era and self.first_era > self.last_era:
            first, last = self.first_era, self.last_era
            raise _refusal(f"first_era = {first!r} is after last_era = {last!r}")
        if self.era_offset >= self.every_nth_era:
            raise _refusal(
                f"era_offset = {self.era_offset} must be less than every_nth_era = "
                f"{self.every_nth_era}"
            )
        return self


class PredictSection(Section):
    """What becomes of predictions, of live data and in validation."""

    neutralize_proportion: Annotated[float, Field(ge=0, le=1)] = 0.0
    neutralize_feature_set: str = ""


class ValidateSection(Section):
    """How models are judged."""

    folds: Annotated[int, Field(ge=1)] = 4
    purge: Annotated[int | Literal["auto"], BeforeValidator(_check_purge)] = "auto"
    compare_with_gain: bool = False
    fnc_feature_set: str = "auto"
    benchmark: str = "auto"

    def purge_of(self, target: str) -> int:
        """Eras to leave out between training and validation, for a target."""
        if self.purge != "auto":
            return self.purge
        horizon = horizon_of(target)
        if horizon not in _PURGE:
            raise ConfigError(
                f"[validate] purge = 'auto' knows targets of 20 and 60 days, and "
                f"{target!r} is neither: set purge to a number of eras."
            )
        return _PURGE[horizon]

    def benchmark_of(self, version: str, target: str) -> str:
        """The benchmark model, such as v53_lgbm_ender60; "" for none."""
        if self.benchmark != "auto":
            return self.benchmark
        short = target.removeprefix("target_").replace("_", "")
        return f"{version.replace('.', '')}_lgbm_{short}"


class SubmitSection(Section):
    """How Numerai is called."""

    require_open: bool = False
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    retries: Annotated[int, Field(ge=0, le=100)] = 3


class ExportSection(Section):
    """The model as a pickle that Numerai runs."""

    automatic: bool = False


class Member(Section):
    """A fit, and its weight in the blend of a model."""

    # No dot: files beside a fit have one after its name.
    name: Annotated[
        str, _form(r"[\w-]+", "must be a name of letters, digits, '_' and '-'")
    ]
    weight: Annotated[float, Field(gt=0)] = 1.0
    train: TrainSection


class Model(Section):
    """A model at Numerai: one fit, or a blend of several.

    `train` has the target that the model is scored on; what its fits learn from, their
    own do. The only member of a model that is no blend is called "model".
    """

    name: _Name
    train: TrainSection
    predict: PredictSection
    members: Annotated[tuple[Member, ...], Field(min_length=1)]


class Config(Section):
    """A configuration file, checked, with all that its models share resolved."""

    data: DataSection
    models: Annotated[tuple[Model, ...], Field(min_length=1)]
    validation: ValidateSection
    submit: SubmitSection
    export: ExportSection

    def model(self, name: str | None) -> Model:
        """The model of a name; None is the only one."""
        names = [model.name for model in self.models]
        if name is None and len(names) == 1:
            return self.models[0]
        if name not in names:
            given = "name one with --model" if name is None else f"there is no {name!r}"
            raise ConfigError(
                f"The configuration has the models {', '.join(names)}: {given}."
            )
        return self.models[names.index(name)]


class Workspace:
    """Where the files lie, beside the configuration.

    ::

        data/<version>/<name>_<round>.parquet   as downloaded; features_<round>.json
        models/<model>/                         fits, records, checkpoints, folds
        reports/<model>/                        validation: JSON and PNG
        rounds/<round>/<model>/                 the submission and its record

    Files of the data are named by the round in which they were downloaded: Numerai
    changes files in place, and an old one is never taken for a new one.
    """

    def __init__(self, root: Path, version: str) -> None:
        self.root = root
        self.version = version
        self.data_dir = root / "data" / version

    def model_dir(self, model: str) -> Path:
        return self.root / "models" / model

    def report_dir(self, model: str) -> Path:
        return self.root / "reports" / model

    def round_dir(self, round_number: int, model: str) -> Path:
        return self.root / "rounds" / str(round_number) / model

    def lock_file(self, name: str) -> Path:
        return self.root / "locks" / f"{name}.lock"

    def data_file(self, name: str, round_number: int) -> Path:
        """A file of the data as of a round; "features" is ``features.json``."""
        suffix = "json" if name == "features" else "parquet"
        return self.data_dir / f"{name}_{round_number}.{suffix}"

    def rounds_of(self, name: str) -> list[int]:
        """The rounds of which a file is here, ascending."""
        pattern = re.compile(rf"{re.escape(name)}_(\d+)\.(json|parquet)")
        if not self.data_dir.is_dir():
            return []
        matches = (pattern.fullmatch(path.name) for path in self.data_dir.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def newest(self, name: str) -> Path | None:
        """The newest file of a name, None if there is none."""
        rounds = self.rounds_of(name)
        return self.data_file(name, rounds[-1]) if rounds else None

    def need(self, name: str) -> Path:
        """The newest file of a name, or an error that says how to get one."""
        path = self.newest(name)
        if path is None:
            raise DataError(
                f"{self.data_dir} has no {name}_<round> file: run 'sklearn-era numerai "
                f"download' with {name!r} in [data] files."
            )
        return path


def check_target(target: str, known: Sequence[str] = ()) -> str:
    """Check that a name says which target is meant, and that the data have it."""
    named = [name for name in known if name != "target"]
    shown = f" The data have {', '.join(named)}." if named else ""
    if target == "target":
        raise ConfigError(
            "target = 'target' is an alias that Numerai moves from one target to "
            f"another: name the target itself, such as 'target_ender_60'.{shown}"
        )
    if not target or (known and target not in named):
        problem = f"there is no target {target!r}" if target else "target is not set"
        raise ConfigError(f"{problem[0].upper()}{problem[1:]}.{shown}")
    return target


def horizon_of(target: str) -> int | None:
    """The business days that a target looks ahead, from the end of its name."""
    match = re.fullmatch(r"target_\w+_(\d+)", target)
    return int(match[1]) if match else None


@cache
def _template() -> dict[str, Any]:
    return tomllib.loads(TEMPLATE.read_text("utf-8"))


def default_parameters() -> dict[str, Any]:
    """What a table ``[train.parameters]`` has unless it says otherwise."""
    return dict(_template()["train"]["parameters"])


def load_config(path: Path) -> tuple[Config, Workspace]:
    """Read a configuration file; its folders lie beside it, or beside a link to it."""
    try:
        config = resolve(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ConfigError(
            f"There is no configuration file '{path}': write one with 'sklearn-era "
            "numerai init', or name another with --config."
        ) from None
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror}.") from error
    except ConfigError as error:
        raise ConfigError(f"'{path}': {error}") from None
    except RecursionError:
        raise ConfigError(f"'{path}' is not a TOML file: nested too deeply.") from None
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ConfigError(f"'{path}' is not a TOML file: {reason}.") from error
    return config, Workspace(path.absolute().parent, config.data.version)


def write_config(path: Path, *, name: str, target: str, version: str) -> None:
    """Write the template with a model's name, its target and a version of the data."""
    for option, value in (
        ("--name", name),
        ("--target", target),
        ("--version", version),
    ):
        if re.fullmatch(r"\w[\w.-]*", value) is None:
            raise ConfigError(
                f"{option} {value!r} may hold only letters, digits, '_', '-' and '.'."
            )
    text = string.Template(TEMPLATE.read_text("utf-8")).substitute(
        name=name, target=check_target(target), version=version
    )
    resolve(tomllib.loads(text))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(
            f"'{path}' exists already: edit it, or write another with --config."
        ) from None
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror}.") from error


# Tables of the file over each other, each with what messages call it.
_Layer = tuple[str, dict[str, Any]]


def resolve(document: Mapping[str, Any]) -> Config:
    """Check a document, and give each member of each model the settings that it has."""
    version = document.get("format", 1)
    if version not in (1, FORMAT):
        raise ConfigError(
            f"format = {version!r} is not known to this version: upgrade sklearn-era."
        )
    names = ("data", "train", "validate", "predict", "submit", "export")
    check_keys(document, ["format", "model", *names], "")
    tables = {name: _table(document, name, f"[{name}]") for name in names}
    defaults = _template()["train"]
    if version == 1:
        _from_format_1(tables)
        defaults = {**defaults, "parameters": {}}
    defaults = {key: defaults[key] for key in ("files", "parameters")}
    layers = [("[train]", defaults), ("[train]", tables["train"])]
    models = document.get("model")
    models = [models] if isinstance(models, dict) else models
    if not isinstance(models, list) or not models:
        problem = "[[model]] is missing: 'sklearn-era numerai init' writes one."
        raise ConfigError(problem)
    predict = ("[predict]", tables["predict"])
    data = {"files": _template()["data"]["files"]}
    config = Config.model_construct(
        data=_parse(DataSection, ("[data]", data), ("[data]", tables["data"])),
        models=tuple(_resolve_model(model, layers, predict) for model in models),
        validation=_parse(ValidateSection, ("[validate]", tables["validate"])),
        submit=_parse(SubmitSection, ("[submit]", tables["submit"])),
        export=_parse(ExportSection, ("[export]", tables["export"])),
    )
    _refuse_twice(config.models, "[[model]]")
    for model in config.models:
        config.validation.purge_of(model.train.target)
        for member in model.members:
            config.validation.purge_of(member.train.target)
    return config


def _resolve_model(model: Any, layers: Sequence[_Layer], predict: _Layer) -> Model:
    """A model with its own settings over the shared ones, its members' over these."""
    if not isinstance(model, dict):
        raise ConfigError("[[model]] must be a table.")
    where = f"[[model]] {model['name']!r}" if "name" in model else "[[model]]"
    own = {k: v for k, v in model.items() if k not in ("name", "predict", "member")}
    layers = [*layers, (where, own)]
    members = model.get("member", [{"name": "model"}])
    if not isinstance(members, list) or not all(isinstance(x, dict) for x in members):
        raise ConfigError(f"{where} member must be tables [[model.member]].")
    resolved = []
    for member in members:
        at = where
        if "member" in model:
            at = f"{where}, [[model.member]] {member.get('name', '')!r}"
        if member.get("name") in _RESERVED:
            raise ConfigError(f"{at}: no member can be called {member['name']!r}.")
        head = {k: v for k, v in member.items() if k in ("name", "weight")}
        rest = {k: v for k, v in member.items() if k not in head}
        check_keys(rest, [*TrainSection.model_fields, "name", "weight"], at)
        head["train"] = _parse(TrainSection, *layers, (at, rest))
        resolved.append(_parse(Member, (at, head)))
    _refuse_twice(resolved, f"{where} member")
    document = {k: v for k, v in model.items() if k == "name"}
    document["train"] = _parse(TrainSection, *layers)
    own = _table(model, "predict", f"{where} predict")
    document["predict"] = _parse(PredictSection, predict, (f"{where} predict", own))
    return _parse(Model, (where, {**document, "members": tuple(resolved)}))


def _parse(section: type[Any], *layers: _Layer) -> Any:
    """Tables over each other as their class, or an error about what is wrong first."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for where, table in layers:
        check_keys(table, list(section.model_fields), where)
        origins |= dict.fromkeys(table, where)
        own = dict(table)
        if "parameters" in own:
            added = _table(own, "parameters", f"{where.rstrip(']')}.parameters]")
            own["parameters"] = {**values.get("parameters", {}), **added}
        values |= own
    if section is TrainSection:
        given = {
            name for _, table in layers[1:] for name in table.get("parameters", ())
        }
        _drop_unread(values["parameters"], given)
    try:
        return section.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    told = first["msg"].removeprefix("Input ").replace("should", "must")
    # A check of several keys has no place, and begins with the first of them.
    key = str(first["loc"][0]) if first["loc"] else told.split()[0]
    where = origins.get(key, layers[0][0])
    if first["type"] == "missing":
        raise ConfigError(
            f"{where} {key} is missing; 'sklearn-era numerai init' writes a whole file."
        )
    if not first["loc"]:
        raise ConfigError(f"{where} {told}.")
    if not told.startswith("must"):  # "List must have at least 1 item ...", for one
        told = f"is refused: {told}"
    raise ConfigError(f"{where} {key} = {values[key]!r} {told}.")


def _drop_unread(parameters: dict[str, Any], given: Container[str]) -> None:
    """Drop defaults that another criterion than the default one does not read."""
    with suppress(KeyError, TypeError, ValueError):  # of no criterion, told elsewhere
        read = parameters_read(parameters["split_criterion"])
        for name in ERA_PARAMETER_NAMES:
            if name in parameters and name not in given and name not in read:
                del parameters[name]


def check_keys(keys: Iterable[str], known: Sequence[str], where: str) -> None:
    """Check that a table has no other keys than these."""
    for key in keys:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"use {', '.join(known)}."
            )
            shown = f"{where} {key}" if where else f"[{key}]"
            raise ConfigError(f"{shown} is not a key of the configuration; {hint}")


def _table(document: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table.")
    return dict(value)


def _refuse_twice(entries: Sequence[Model | Member], where: str) -> None:
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}: the name {name!r} is there twice.")


# What the first version of the program trained with where a file did not say.
_FORMAT_1_PARAMETERS: dict[str, Any] = {
    "split_criterion": "directional",
    "min_direction_agreement": 0.0,
    "min_era_coverage": 0.5,
    "max_iter": 2000,
    "learning_rate": 0.01,
    "max_depth": 5,
    "max_leaf_nodes": 32,
    "min_samples_leaf": 100,
    "colsample_bytree": 0.1,
    "l2_regularization": 0.0,
}


def _from_format_1(tables: dict[str, dict[str, Any]]) -> None:
    """Put a file of the first version into the terms of this one: the same model."""
    train, export = tables["train"], tables["export"]
    train.setdefault("files", ["train"])
    train.setdefault("parameters", _FORMAT_1_PARAMETERS)
    for key in ("purge", "compare_with_gain"):
        if key in train:
            tables["validate"][key] = train.pop(key)
    export["automatic"] = export.pop("weekly", True)
