"""What is wrong with a configuration file, in a sentence."""

import difflib
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

# Kinds of the errors of our own checks: a sentence about a value, or about a table.
BAD_VALUE, BAD_TABLE = "bad_value", "bad_table"

# What pydantic's kinds of errors ask for, in the words of a TOML file.
_DEMANDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "string_type": lambda _: "must be a text in quotes",
    "int_type": lambda _: "must be a whole number",
    "float_type": lambda _: "must be a number",
    "finite_number": lambda _: "must be a finite number",
    "bool_type": lambda _: "must be true or false",
    "list_type": lambda _: "must be a list in brackets",
    "dict_type": lambda _: "must be a table",
    "model_type": lambda _: "must be a table",
    "too_short": lambda _: "must not be empty",
    "string_too_short": lambda _: "must not be empty",
    "literal_error": lambda limit: f"must be {limit['expected']}",
    "greater_than": lambda limit: f"must be more than {limit['gt']:g}",
    "greater_than_equal": lambda limit: f"must be {limit['ge']:g} or more",
    "less_than": lambda limit: f"must be less than {limit['lt']}",
    "less_than_equal": lambda limit: f"must be {limit['le']:g} or less",
}


def first_error(error: ValidationError, model: type[BaseModel]) -> str:
    """The first thing wrong in a document, in a sentence.

    Parameters
    ----------
    error : ValidationError
        What pydantic found.
    model : type of BaseModel
        What the document should be, whose fields are its tables.
    """
    first = error.errors(include_url=False)[0]
    # What follows the key is a position in a list.
    where = [str(part) for part in first["loc"]][:2]
    if not where:
        return f"{first['msg']}."
    table, key = ".".join(where[:-1]), where[-1]
    shown = f"[{table}] {key}" if table else f"[{key}]"
    if first["type"] == "missing":
        return f"{shown} is missing; 'sklearn-era numerai init' writes a whole file."
    if first["type"] == "extra_forbidden":
        known = _keys_of(model, where[:-1])
        close = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}."
        return f"{shown} is not a key of the configuration; {hint}"
    if first["type"] == BAD_TABLE:
        return f"{shown} {first['msg']}."
    return f"{shown}{_shown_value(first['input'])} {_demand(first)}."


def _demand(error: ErrorDetails) -> str:
    if error["type"] in _DEMANDS:
        return _DEMANDS[error["type"]](error.get("ctx", {}))
    return error["msg"]


def _shown_value(value: Any) -> str:
    """A value as the file has it; nothing for a table, which may be long."""
    if isinstance(value, bool):
        return f" = {str(value).lower()}"
    if isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(item, dict) for item in value)
    ):
        return ""
    return f" = {value!r}"


def _keys_of(model: type[BaseModel], where: list[str]) -> list[str]:
    keys = {field.alias or name: field for name, field in model.model_fields.items()}
    if not where:
        return list(keys)
    section = keys[where[0]].annotation
    return list(getattr(section, "model_fields", {}))


__all__ = ["BAD_TABLE", "BAD_VALUE", "first_error"]
