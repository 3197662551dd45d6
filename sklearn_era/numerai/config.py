"""Read ``numerai.toml``, the settings of data, training, validation and submission.

Each class describes a table of the file. The template in this folder has every key
with its default. A file without ``format`` keeps the defaults of version 0.1.0.
"""

import re
import string
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sklearn_era.numerai.errors import ConfigError, alternatives
from sklearn_era.numerai.files import Workspace as Workspace

TEMPLATE = Path(__file__).with_name("numerai.toml")
_DEFAULTS = tomllib.loads(TEMPLATE.read_text("utf-8"))

# Weekly eras purged before validation, by the target's horizon in business days, from
# Numerai's documentation (models.md): 4 or 12 weeks, and the overlap of neighbours.
_PURGE = {20: 8, 60: 16}
# Parameters of version 0.1.0 where its file has none.
_FORMAT_1_PARAMETERS = {
    "split_criterion": "directional", "split_criterion__min_agreement": 0.0,
    "min_era_coverage": 0.5, "min_gain_share": 0.0, "max_iter": 2000,
    "learning_rate": 0.01, "max_depth": 5, "max_leaf_nodes": 32,
    "min_samples_leaf": 100, "colsample_bytree": 0.1, "l2_regularization": 0.0,
}  # fmt: skip
_USED_BY = {"time_budget": "auto", "checkpoint_every": "boosting"}  # estimators
_WHOLE = "see the file that 'sklearn-era numerai init' writes"
# The name of a table in messages, and its value (not yet checked to be a table).
_Layer = tuple[str, Any]
# By the names of a table and of its key, the estimators of the fits that inherit it.
_Users = dict[tuple[str, str], set[str]]


def _form(pattern: str, demand: str) -> Any:
    """Return a field for text that must match a pattern; errors end with `demand`."""
    return Field(pattern=rf"^{pattern}\Z", description=f"must be {demand}")


_Set = Annotated[str, _form(".+", "a name")]
_Era = Annotated[str, _form(r"(\d{4})?", "four digits, or ''")]
_Version = Annotated[str, _form(r"v\d+\.\d+", "a version like 'v5.3'")]
# Names of folders and files, too. A member's has no dot, which ends the name of a fit.
_Name = Annotated[str, _form(r"\w[\w.-]*", "made of letters, digits, '_', '-' and '.'")]
_OF_FIT = "made of letters, digits, '_' and '-', and not 'gain' or 'folds'"
_MemberName = Annotated[str, _form(r"(?!(gain|folds)\Z)[\w-]+", _OF_FIT)]
_ANY_FILE = Field(min_length=1, description="must list at least one file name")
_BOTH = Field(min_length=1, description="must list 'train', 'validation' or both")
_Trained = Annotated[list[Literal["train", "validation"]], _BOTH]


class Section(BaseModel):
    """A table of the file. Errors on a value end with the description of its field."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False,
        regex_engine="python-re",
    )  # fmt: skip

    @classmethod
    def parse(cls, *layers: _Layer) -> Self:
        """Merge layers into a checked table; later values replace earlier ones."""
        values, origins = _merge(*layers)
        check_keys(origins, cls.model_fields)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
        text = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        # A check of several keys has no location; its text begins with the first key.
        key = str(first["loc"][0]) if first["loc"] else text.split()[0]
        if first["type"] == "missing":
            text = f"{key} is missing; {_WHOLE}"
        elif first["loc"]:
            demand = cls.model_fields[key].description or text.replace("should", "must")
            text = f"{key} = {values[key]!r} {demand}"
        raise ConfigError(f"{origins.get(key, layers[0][0])} {text}.")


class DataSection(Section):
    """The version of Numerai's data, and the names of the files to use."""

    version: _Version = "v5.3"
    files: Annotated[list[str], _ANY_FILE] = _DEFAULTS["data"]["files"]
    refresh: list[str] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in {*self.refresh}.difference(self.files):
            raise ValueError(f"refresh names {name!r}, which is not in files")
        return self


class TrainSection(Section):
    """The training data and parameters of a model or a member of a blend."""

    target: _Set
    feature_set: _Set = "medium"
    files: _Trained = _DEFAULTS["train"]["files"]
    first_era: _Era = ""
    last_era: _Era = ""
    every_nth_era: int = Field(default=1, ge=1)
    era_offset: int = Field(default=0, ge=0)
    era_groups: int = Field(default=0, ge=0)
    random_state: int = Field(default=0, ge=0, lt=2**32)
    estimator: Literal["boosting", "auto"] = "boosting"
    time_budget: float = Field(default=0.0, ge=0)
    checkpoint_every: int = Field(default=100, ge=1)
    parameters: dict[str, Any] = {}
    _tables: dict[str, str] = {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_target(self.target)
        if len({*self.files}) < len(self.files):
            raise ValueError(f"files = {self.files} must list each file once")
        if (first := self.first_era) > (last := self.last_era or "9999"):
            raise ValueError(f"first_era = {first!r} is after last_era = {last!r}")
        if (k := self.era_offset) >= (n := self.every_nth_era):
            raise ValueError(f"era_offset = {k} must be less than every_nth_era = {n}")
        return self

    def table_of(self, message: object) -> str:
        """Return the name of the table that sets the parameter named in `message`."""
        named = [x for x in re.findall(r"\w+", str(message)) if x in self._tables]
        return self._tables[named[0]] if named else "[train.parameters]"


class PredictSection(Section):
    """The settings of neutralization, for live predictions and validation."""

    neutralize_proportion: float = Field(default=0.0, ge=0, le=1)
    neutralize_feature_set: str = ""

    def neutralizers(self, own: list[str], of: Callable[[str], list[str]]) -> list[str]:
        """Return the columns to neutralize by. If a feature set is configured, these
        are its columns, which the function `of` returns; otherwise they are `own`, the
        features of the fits. Return [] if the proportion is 0.
        """
        if self.neutralize_proportion and self.neutralize_feature_set:
            return of(self.neutralize_feature_set)
        return own if self.neutralize_proportion else []


class ValidateSection(Section):
    folds: int = Field(default=4, ge=1)
    purge: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        default="auto", description="must be 'auto' or a whole number, 0 or more"
    )
    compare_with_gain: bool = False
    fnc_feature_set: str = "auto"
    benchmark: str = "auto"

    def purge_of(self, target: str) -> int:
        """Return how many eras to purge between training and validation."""
        if self.purge != "auto":
            return self.purge
        if (horizon := horizon_of(target)) in _PURGE:
            return _PURGE[horizon]
        text = f"for targets of 20 and 60 days, not {target!r}: set purge to a number"
        raise ConfigError(f"[validate] purge = 'auto' only works {text} of eras.")

    def benchmark_of(self, version: str, target: str) -> str:
        """Return the benchmark model's column, like v53_lgbm_ender60; "" means none."""
        if self.benchmark != "auto":
            return self.benchmark
        short = target.removeprefix("target_").replace("_", "")
        return f"{version.replace('.', '')}_lgbm_{short}"


class SubmitSection(Section):
    require_open: bool = False
    timeout: float = Field(default=60.0, gt=0, le=86_400)
    retries: int = Field(default=3, ge=0, le=100)


class ExportSection(Section):
    automatic: bool = False


class BlendMember(Section):
    """A member of a blend: its name, its weight, and the settings of its fit."""

    name: _MemberName
    weight: float = Field(default=1.0, gt=0)
    train: TrainSection


class Model(Section):
    """A model at Numerai: a fit or a blend. Validation scores it on `train.target`."""

    name: _Name
    train: TrainSection
    predict: PredictSection
    members: tuple[BlendMember, ...]


class Config(Section):
    """A checked configuration file, in which each model has the shared settings."""

    data: DataSection
    models: tuple[Model, ...]
    validation: ValidateSection
    submit: SubmitSection
    export: ExportSection

    def model(self, name: str | None) -> Model:
        """Return the model `name` or, if `name` is None, the only model. Raise
        ConfigError for an unknown `name`, and for None if there are several models.
        """
        found = [model for model in self.models if name in (None, model.name)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(model.name for model in self.models)
        text = "choose one with --model" if found else f"there is no {name!r}"
        raise ConfigError(f"The configuration has the models {names}: {text}.")


def check_target(target: str, known: Sequence[str] = ()) -> str:
    """Return the target; raise ConfigError unless it is named in full and is known."""
    named = [name for name in known if name != "target"]
    shown = f" Available targets: {', '.join(named)}." if named else ""
    if target == "target":
        text = "is an alias, and Numerai changes its meaning: use the full name of one"
        raise ConfigError(f"target = 'target' {text}, like 'target_ender_60'.{shown}")
    if known and target not in named:
        raise ConfigError(f"Unknown target {target!r}.{shown}")
    return target


def horizon_of(target: str) -> int | None:
    """Return the business days at the end of a target's name; None without a number."""
    match = re.fullmatch(r"target_\w+_(\d+)", target)
    return int(match[1]) if match else None


def load_config(path: Path) -> tuple[Config, Workspace]:
    """Return the checked configuration in a file, and the workspace in its folder."""
    try:
        config = resolve(tomllib.loads(path.read_text("utf-8")))
    except ConfigError as error:
        raise ConfigError(f"'{path}': {error}") from error
    except FileNotFoundError:
        text = "create it with 'sklearn-era numerai init' or pass another with --config"
        raise ConfigError(f"Configuration file '{path}' not found: {text}.") from None
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ConfigError(f"'{path}' is not valid TOML: {reason}.") from error
    return config, Workspace(path.absolute().parent, config.data.version, path)


def write_config(path: Path, *, name: str, target: str, version: str) -> None:
    """Write a configuration for a model, and list ``.env`` in ``.gitignore``."""
    given = {"name": name, "target": check_target(target), "version": version}
    for option, value in given.items():
        if re.fullmatch(r"\w[\w.-]*", value) is None:
            message = "may only contain letters, digits, '_', '-' and '.'"
            raise ConfigError(f"--{option} {value!r} {message}.")
    text = string.Template(TEMPLATE.read_text("utf-8")).substitute(given)
    resolve(tomllib.loads(text))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        with (path.parent / ".gitignore").open("a+b") as ignored:
            ignored.seek(0)
            if b".env" not in (lines := ignored.read()).splitlines():
                ignored.write(b".env\n" if lines[-1:] in b"\n" else b"\n.env\n")
    except FileExistsError:
        message = "already exists: edit it, or pass another path with --config"
        raise ConfigError(f"'{path}' {message}.") from None
    except OSError as error:
        named = error.filename or path
        raise ConfigError(f"'{named}' cannot be written: {error.strerror}.") from error


def resolve(document: Mapping[str, Any]) -> Config:
    """Return the configuration in a parsed file; raise ConfigError if it is invalid."""
    if (form := document.get("format", 1)) not in (1, 2):
        raise ConfigError(f"format = {form!r} is not supported: upgrade sklearn-era.")
    names = ("data", "train", "validate", "predict", "submit", "export")
    check_keys(dict.fromkeys(document, ""), ["format", "model", *names])
    tables = {x: _merge((f"[{x}]", document.get(x, {})))[0] for x in names}
    defaults = _DEFAULTS["train"]["parameters"]
    if form == 1:
        train, export = tables["train"], tables["export"]
        train.setdefault("files", ["train"])
        for key in ("purge", "compare_with_gain"):
            if key in train:
                tables["validate"][key] = train.pop(key)
        export["automatic"] = export.pop("weekly", True)
        defaults = {} if "parameters" in train else _FORMAT_1_PARAMETERS
    layers = {x: (f"[{x}]", table) for x, table in tables.items()}
    config = Config(
        data=DataSection.parse(layers["data"]),
        models=tuple(_parse_models(document.get("model", []), layers, defaults)),
        validation=ValidateSection.parse(layers["validate"]),
        submit=SubmitSection.parse(layers["submit"]),
        export=ExportSection.parse(layers["export"]),
    )
    for model in config.models:
        for own in (model.train, *(member.train for member in model.members)):
            config.validation.purge_of(own.target)
    return config


def _parse_models(
    given: Any, layers: Mapping[str, _Layer], defaults: Mapping[str, Any]
) -> Iterator[Model]:
    """Yield the models of numerai.toml. The settings of a blend's member override the
    settings of its model, which override the shared settings.
    """
    users: _Users = {}
    for layer, model in _items("[[model]]", given, ("name", "predict", "member")):
        where, shared = layer[0], (layers["train"], layer)
        members, tables = [], model.pop("member", [{"name": "model"}])
        at = f"{where}, [[model.member]]"
        for own, member in _items(at, tables, ("name", "weight")):
            member["train"] = _parse_train(defaults, users, *shared, own)
            members.append(BlendMember.parse((own[0], member)))
        predict = (f"{where} predict", model.get("predict", {}))
        model["predict"] = PredictSection.parse(layers["predict"], predict)
        model["train"] = _parse_train(defaults, {}, *shared)
        yield Model.parse((where, model | {"members": tuple(members)}))
    for (where, key), estimators in users.items():
        if _USED_BY[key] not in estimators:
            text = f"is of no use with estimator = {estimators.pop()!r}: remove it."
            raise ConfigError(f"{where} {key} {text}")


def _items(where: str, given: Any, own: Sequence[str]) -> Iterator[tuple[_Layer, Any]]:
    """Yield (layer, owned) for each table in `given`: `layer` is the pair of the
    table's name and its settings without the keys in `own`, and `owned` is a dict of
    the settings with these keys. Raise ConfigError for a name that is given twice.
    """
    if given == []:
        raise ConfigError(f"{where} is missing; {_WHOLE}.")
    seen = dict[str, str]()
    for entry in given if isinstance(given, list) else [given]:
        named = isinstance(entry, dict) and "name" in entry
        at = f"{where} {entry['name']!r}" if named else where
        if twin := seen.get(at.casefold()):
            text = f", as folders may not tell it from {twin}: choose another name"
            raise ConfigError(f"{at} is defined twice{'' if twin == at else text}.")
        seen[at.casefold()] = at
        settings, origins = _merge((at, entry))
        check_keys(origins, [*own, *TrainSection.model_fields])
        yield (at, settings), {key: settings.pop(key) for key in own if key in settings}


def _parse_train(defaults: Any, users: _Users, *layers: _Layer) -> TrainSection:
    """Return the settings of a fit, and add the fit to `users`. Values of later layers
    replace values of earlier layers; their `parameters` replace `defaults`.
    """
    of = {"[train]": "[train.parameters]"}  # other names have two words
    own = [(of.get(x, f"{x} parameters"), y.get("parameters", {})) for x, y in layers]
    _, origins = _merge(*own)
    parameters = dict[str, Any]()
    for _, table in (("", defaults), *own):
        criterion = parameters.get("split_criterion")
        if table.get("split_criterion", criterion) != criterion:
            # A new criterion drops the parameters of the inherited one.
            for name in [x for x in parameters if x.startswith("split_criterion__")]:
                del parameters[name]
        parameters |= table
    train = TrainSection.parse(*layers, ("", {"parameters": parameters}))
    train._tables = origins
    estimator = "boosting"
    for where, table in layers:
        estimator = table.get("estimator", estimator)
        for key in filter(table.get, _USED_BY):
            users.setdefault((where, key), set()).update((estimator, train.estimator))
    return train


def _merge(*layers: _Layer) -> tuple[dict[str, Any], dict[str, str]]:
    """Merge layers, in which later values replace earlier ones. Return the table, and a
    dict from each key to the name of the layer that set it.
    """
    values, origins = dict[str, Any](), dict[str, str]()
    for where, table in layers:
        if not isinstance(table, dict):
            raise ConfigError(f"{where} must be a table.")
        values |= table
        origins |= dict.fromkeys(table, where)
    return values, origins


def check_keys(origins: Mapping[str, str], known: Collection[str]) -> None:
    """Raise ConfigError for unknown keys; `origins` names the table of each key."""
    for key, where in origins.items():
        if key not in known:
            shown = f"{where} {key}" if where else f"[{key}]"
            raise ConfigError(f"{shown} is not a valid key; {alternatives(key, known)}")
