"""Files that appear whole or not at all, records in JSON, and locks between runs."""

import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from sklearn_era._optional import import_optional
from sklearn_era.numerai.errors import BusyError, DataError


def utc_now() -> str:
    """The time to the second, as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file gets its name once it is whole and on disk."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
        try:
            yield partial
            with partial.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(partial, path)
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all; one of that name is replaced."""
    with replacing(path) as partial:
        partial.write_bytes(content)


class Record(BaseModel):
    """A JSON file that later versions can read.

    `format` goes up only when an older reader would misunderstand the file. Keys that
    are not known are left out, and those that are missing have their defaults: a file
    of an older version, or of a newer one of the same format, is read.
    """

    # Fields may be called model_name, against which pydantic 2.8 warns.
    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())
    format: int = 1

    @classmethod
    def read(cls, path: Path, *, advice: str) -> Self | None:
        """Read a record; None if there is no such file, and an error if it is damaged.

        `advice` is a sentence that says what to do about a damaged one.
        """
        try:
            record = cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            reason = f"{where}: {first['msg']}" if where else first["msg"]
            raise DataError(f"{path} is damaged ({reason}). {advice}") from None
        newest = cls.model_fields["format"].default
        if not 1 <= record.format <= newest:
            raise DataError(
                f"{path} has format {record.format}, but this version of sklearn-era "
                f"reads formats up to {newest}: upgrade sklearn-era."
            )
        return record

    def write(self, path: Path) -> None:
        """Write the record, whole or not at all."""
        write_json(path, self.model_dump(mode="json"))


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document, whole or not at all; NumPy's numbers are numbers."""
    text = json.dumps(document, indent=1, default=plain, allow_nan=False) + "\n"
    write_whole(path, text.encode())


def plain(value: Any) -> Any:
    """What JSON has for NumPy's numbers and arrays."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} of type {type(value).__name__} has no form in JSON.")


@contextmanager
def lock(path: Path, what: str, *, wait: float = 0.0) -> Iterator[None]:
    """Let no other run do something meanwhile; `path` is the lock file.

    Another run is waited for `wait` seconds, and then is a `BusyError`: "Another run is
    `what`". A file system without locks is warned of, and does without.
    """
    filelock = import_optional("filelock", extra="numerai")
    own = filelock.FileLock(path, timeout=wait)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        own.acquire()
    except filelock.Timeout:
        raise BusyError(f"Another run is {what}: wait for it to finish.") from None
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error
    except (NotImplementedError, OSError):
        warnings.warn(
            f"{path.parent} is on a file system without locks: make sure that no other "
            f"run is {what}.",
            stacklevel=3,
        )
    try:
        yield
    finally:
        own.release()
