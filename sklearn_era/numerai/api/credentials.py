"""The two halves of an API key, and where they are read from."""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sklearn_era.numerai.errors import ConfigError

PUBLIC_ID = "NUMERAI_PUBLIC_ID"
SECRET_KEY = "NUMERAI_SECRET_KEY"
SITE = "numer.ai"  # codespell:ignore numer

# What may stand in a header's value. An HTTP library would show a value that may not,
# the key in full, in its complaint.
_PRINTABLE = re.compile(r"[!#-&(-~]+")


class Secret:
    """A text that shows itself nowhere but where :meth:`reveal` is called."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret('***')"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __reduce__(self) -> str:
        raise TypeError("A secret is not pickled: it would be in the file.")


@dataclass(frozen=True)
class Keys:
    """An API key of Numerai's; either half may be missing until it is needed.

    Attributes
    ----------
    public_id, secret_key : Secret
        The halves, empty where missing.
    hint : str
        A sentence for the error about a missing half, or nothing.
    """

    public_id: Secret
    secret_key: Secret
    hint: str = ""

    def check(self) -> None:
        """Check that both halves are there and can be sent.

        Raises
        ------
        ConfigError
            If not. It never holds the key.
        """
        halves = {PUBLIC_ID: self.public_id, SECRET_KEY: self.secret_key}
        missing = [name for name, half in halves.items() if not half]
        if missing:
            there = [name for name in halves if name not in missing]
            verb = "are not set" if len(missing) > 1 else "is not set"
            also = f" ({there[0]} is)" if there else ""
            hint = f" {self.hint}" if self.hint else ""
            raise ConfigError(
                f"{' and '.join(missing)} {verb}{also}. Create a key at "
                f"{SITE}/account with upload_submission scope.{hint}"
            )
        for name, half in halves.items():
            if not _PRINTABLE.fullmatch(half.reveal()):
                raise ConfigError(
                    f"{name} holds a blank, a quotation mark or another character "
                    f"that no key has: copy it anew from {SITE}/account."
                )

    def token(self) -> Secret:
        """What goes into the header of a call, once checked."""
        self.check()
        return Secret(f"Token {self.public_id.reveal()}${self.secret_key.reveal()}")


def read_keys(env_file: str | os.PathLike[str] | None = None) -> Keys:
    """Read a key from the environment, else from a file of settings.

    Parameters
    ----------
    env_file : str or path-like, default=None
        A file with lines like ``NUMERAI_PUBLIC_ID=...``, which python-dotenv reads;
        ``.env`` in the current folder if None. It need not exist, and the environment
        comes first. Nothing is put into the environment.

    Returns
    -------
    keys : Keys
        What was found; nothing is raised where a half is missing.

    Raises
    ------
    ConfigError
        If the file cannot be read.
    """
    found = {name: os.environ.get(name, "").strip() for name in (PUBLIC_ID, SECRET_KEY)}
    hint = ""
    path = Path(env_file) if env_file is not None else Path(".env")
    if not all(found.values()) and path.is_file():
        settings, odd_lines = _read_settings(path)
        if settings is None:
            hint = (
                f"{path} was not read, as python-dotenv is not installed: "
                "pip install python-dotenv."
            )
        else:
            for name, value in found.items():
                found[name] = value or (settings.get(name) or "").strip()
            hint = f"{path} was read as well"
            if odd_lines:
                hint += f", and is not of the form NAME=value in line {odd_lines[0]}"
            hint += "."
    return Keys(Secret(found[PUBLIC_ID]), Secret(found[SECRET_KEY]), hint)


def _read_settings(
    path: Path,
) -> tuple[Mapping[str, str | None] | None, list[object]]:
    """The settings of a file, and the numbers of lines that are none.

    The settings are None where python-dotenv is not installed.
    """
    try:
        from dotenv import dotenv_values
    except ModuleNotFoundError:
        return None, []
    odd_lines: list[object] = []

    def collect(record: logging.LogRecord) -> bool:
        """Take the number from a log line, which would be printed for each."""
        odd_lines.extend(record.args or ())
        return False

    logger = logging.getLogger("dotenv.main")
    logger.addFilter(collect)
    try:
        return dotenv_values(path, interpolate=False), odd_lines
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    finally:
        logger.removeFilter(collect)
    # Not within the handler: the error of a decoder holds what it could not decode.
    raise ConfigError(
        f"{path} cannot be read as a file of settings ({reason}): save it as plain "
        "text in UTF-8."
    )


__all__ = ["PUBLIC_ID", "SECRET_KEY", "SITE", "Keys", "Secret", "read_keys"]
