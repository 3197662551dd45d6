"""Tables of a configuration file over each other, and what is wrong with them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sklearn_era.numerai.errors import ConfigError, alternatives

_WHOLE = "see the file that 'sklearn-era numerai init' writes"
# What messages call a table of the file, and the table, or what is in its place.
Layer = tuple[str, Any]


class Section(BaseModel):
    """A table; the description of a field, if any, says what is wrong with a value."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        regex_engine="python-re",
    )


_Section = TypeVar("_Section", bound=Section)


def form(pattern: str, demand: str) -> Any:
    """A field that holds text of a form, which messages tell in words."""
    return Field(pattern=rf"^{pattern}\Z", description=f"must be {demand}")


def parse(section: type[_Section], *layers: Layer) -> _Section:
    """Tables over each other as their class, or an error about what is wrong first."""
    values, origins = merge(*layers)
    check_keys(origins, section.model_fields)
    try:
        return section.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    told = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    # A check of several keys has no place, and begins with the first of them.
    key = str(first["loc"][0]) if first["loc"] else told.split()[0]
    where = origins.get(key, layers[0][0])
    if first["type"] == "missing":
        told = f"{key} is missing; {_WHOLE}"
    elif first["loc"]:
        demand = section.model_fields[key].description or told.replace("should", "must")
        told = f"{key} = {values[key]!r} {demand}"
    raise ConfigError(f"{where} {told}.")


def entries(
    where: str, given: Any, section: type[Section], own: Sequence[str]
) -> Iterator[tuple[Layer, dict[str, Any]]]:
    """Of each table of an array, the keys of a section, and apart from them its own."""
    seen = set()
    tables = given if isinstance(given, list) else [given]
    if not tables:
        raise ConfigError(f"{where} is missing; {_WHOLE}.")
    for entry in tables:
        named = isinstance(entry, dict) and "name" in entry
        at = f"{where} {entry['name']!r}" if named else where
        if at in seen:
            raise ConfigError(f"{at} is defined twice.")
        seen.add(at)
        settings, origins = merge((at, entry))
        check_keys(origins, [*own, *section.model_fields])
        yield (at, settings), {key: settings.pop(key) for key in own if key in settings}


def merge(*layers: Layer) -> tuple[dict[str, Any], dict[str, str]]:
    """Tables over each other, and what the table of each key is called."""
    values, origins = dict[str, Any](), dict[str, str]()
    for where, table in layers:
        if not isinstance(table, dict):
            raise ConfigError(f"{where} must be a table.")
        values |= table
        origins |= dict.fromkeys(table, where)
    return values, origins


def check_keys(origins: Mapping[str, str], known: Collection[str]) -> None:
    """Check keys, given with what the table of each is called."""
    for key, where in origins.items():
        if key not in known:
            shown = f"{where} {key}" if where else f"[{key}]"
            hint = alternatives(key, known)
            raise ConfigError(f"{shown} is not a valid key; {hint}")
