"""Keys, values and comments as a TOML document has them."""

import json
import math
import re
import textwrap
from typing import Any

from sklearn_era.numerai.errors import ConfigError

_WIDTH = 79


def comment_lines(text: str | None) -> list[str]:
    """A text as comments, of as many lines as it needs."""
    return textwrap.wrap(
        text or "",
        width=_WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def key_value(key: str, value: Any) -> str:
    """A key and its value, a long list an item a line.

    Raises
    ------
    ConfigError
        If there is no value, which TOML cannot say.
    """
    line = f"{_as_key(key)} = {_as_value(value)}"
    if len(line) > _WIDTH and isinstance(value, list):
        items = "".join(f"    {_as_value(item)},\n" for item in value)
        return f"{_as_key(key)} = [\n{items}]"
    return line


def _as_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _as_value(key)


def _as_value(value: Any) -> str:
    if value is None:
        raise ConfigError(
            "A configuration file cannot hold None: leave the key out instead."
        )
    if isinstance(value, dict):
        pairs = (f"{_as_key(key)} = {_as_value(item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # What is left of JSON is TOML, if characters are not written as two halves.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


__all__ = ["comment_lines", "key_value"]
