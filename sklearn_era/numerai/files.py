"""Find the workspace's files, write files atomically, and keep records and locks."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import filelock
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from sklearn_era._files import make_folder, whole_file
from sklearn_era.numerai.errors import BusyError, DataError, warn


class Workspace:
    """The folder of the configuration, and the files in it.

    ::

        data/<version>/<name>_<round>.parquet   as downloaded; features_<round>.json
        models/<model>/                         fits, records, checkpoints, folds
        reports/<model>/                        validation: JSON and PNG
        rounds/<round>/<model>/                 the submission and its record

    Names of data files include the round of the download, as Numerai changes files.
    """

    def __init__(self, root: Path, version: str, toml: Path | None = None) -> None:
        here = Path.cwd()  # messages show paths relative to it
        self.root = root.relative_to(here) if root.is_relative_to(here) else root
        self.version = version
        self.toml = toml or self.root / "numerai.toml"
        self.data_dir = self.root / "data" / version

    def model_dir(self, model: str) -> Path:
        return self.root / "models" / model

    def report_dir(self, model: str) -> Path:
        return self.root / "reports" / model

    def round_dir(self, round_number: int, model: str) -> Path:
        return self.root / "rounds" / str(round_number) / model

    def lock_file(self, name: str) -> Path:
        return self.root / "locks" / f"{name}.lock"

    def data_file(self, name: str, round_number: int) -> Path:
        """Return the path of a round's data file: JSON for "features", else Parquet."""
        suffix = "json" if name == "features" else "parquet"
        return self.data_dir / f"{name}_{round_number}.{suffix}"

    def rounds_of(self, name: str) -> list[int]:
        """Return the rounds, ascending, that have a local file of this name."""
        pattern = rf"{re.escape(name)}_(\d+)\.(json|parquet)"
        found = (re.fullmatch(pattern, x.name) for x in self.data_dir.glob("*"))
        return sorted(int(match[1]) for match in found if match)

    def newest(self, name: str) -> Path | None:
        """Return the newest file of this name; None if there is none."""
        rounds = self.rounds_of(name)
        return self.data_file(name, rounds[-1]) if rounds else None

    def need(self, name: str) -> Path:
        """Return the newest file of this name; raise DataError if there is none."""
        if path := self.newest(name):
            return path
        text = f"add {name!r} to [data] files and run 'sklearn-era numerai download'"
        raise DataError(f"{self.data_dir} has no {name}_<round> file: {text}.")


def utc_now() -> str:
    """Return the present time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the blake2b digest of named arrays, in hexadecimal."""
    digest = hashlib.blake2b(digest_size=32)
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        # Flat in memory order, hence a view.
        digest.update(array.reshape(-1, order="A").view(np.uint8).data)
    return digest.hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path for the block to write to, and then move the file there to
    `path`, whose folder is made. Raise DataError if the file cannot be written.
    """
    try:
        make_folder(path.parent)
        with whole_file(path) as partial:
            yield partial
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error


def write_whole(path: Path, content: bytes) -> None:
    with replacing(path) as partial:
        partial.write_bytes(content)


class Record(BaseModel):
    """A JSON file that later versions can read: unknown keys are ignored, and missing
    keys have their defaults. `format` grows if older versions would misread the file.
    """

    # pydantic 2.8 warns of fields named model_*.
    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())
    format: int = 1

    @classmethod
    def read(cls, path: Path, *, advice: str) -> Self | None:
        """Return the record in a file, or None if there is no file. Raise DataError if
        the file is unreadable, is damaged, or was written by a newer version. For a
        damaged file, the error's message ends with `advice`.
        """
        try:
            record = cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        except ValidationError as error:
            text = f"{path} is damaged ({complaint(error)})"
            raise DataError(f"{text}. {advice}") from None
        newest = cls.model_fields["format"].default
        if not 1 <= record.format <= newest:
            text = f"{path} has format {record.format}, but this version reads"
            raise DataError(f"{text} formats up to {newest}: upgrade sklearn-era.")
        return record

    def write(self, path: Path) -> None:
        write_json(path, self.model_dump(mode="json"))


def complaint(error: ValidationError) -> str:
    """Return the location and text of a validation's first error, without its input."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def write_json(path: Path, document: Any) -> None:
    """Write a document, which may hold NumPy's numbers, to a JSON file, atomically."""
    text = json.dumps(document, indent=1, default=plain, allow_nan=False) + "\n"
    write_whole(path, text.encode())


def plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} of type {type(value).__name__} has no form in JSON.")


@contextmanager
def lock(path: Path, what: str, *, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file during the ``with`` block. Raise BusyError if another run still
    holds it after `wait` seconds; in the message, `what` is the other run's work.
    """
    own = filelock.FileLock(path, timeout=wait)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        own.acquire()
    except filelock.Timeout:
        raise BusyError(f"Another run is {what}: wait for it to finish.") from None
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error
    except (NotImplementedError, OSError):
        text = f"{path.parent} is on a file system without locks"
        warn(f"{text}: make sure that no other run is {what}.")
    try:
        yield
    finally:
        own.release()
