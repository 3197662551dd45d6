"""Files of the data, fetched whole or not at all."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sklearn_era.numerai.api.api_calls import CLASSIC, ApiCalls
from sklearn_era.numerai.errors import ApiError, DataError
from sklearn_era.numerai.files import partial_path

_DATASET = """
query($filename: String! $round: Int $tournament: Int) {
  dataset(filename: $filename round: $round tournament: $tournament) }"""


def fetch_file(
    calls: ApiCalls,
    filename: str,
    path: Path,
    *,
    check: Callable[[Path], object] | None,
    on_bytes: Callable[[int, int], None] | None,
) -> None:
    """Fetch a file; see :meth:`NumeraiClient.download`."""
    partial = partial_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _fetch_once(calls, filename, partial, on_bytes)
            _check(check, partial)
        except DataError:
            # Damaged on its way, it may be, or in a cache: once more from the start.
            partial.unlink(missing_ok=True)
            _fetch_once(calls, filename, partial, on_bytes)
            _check(check, partial)
        os.replace(partial, path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        with suppress(OSError):  # of a folder that is none, say, as told above
            partial.unlink(missing_ok=True)


def _check(check: Callable[[Path], object] | None, path: Path) -> None:
    if check is not None:
        check(path)


def _fetch_once(
    calls: ApiCalls,
    filename: str,
    partial: Path,
    on_bytes: Callable[[int, int], None] | None,
) -> None:
    step = f"Downloading {filename}"
    variables = {"filename": filename, "round": None, "tournament": CLASSIC}

    def attempt() -> None:
        # An address anew for each attempt, as they run out.
        data = calls.query(step, _DATASET, variables, retry=False)
        if not data.get("dataset"):
            raise ApiError(f"{step}: Numerai's API gave no address for it.")
        with partial.open("wb") as file:
            calls.transport.get(step, str(data["dataset"]), file, on_bytes, check_room)
            file.flush()
            os.fsync(file.fileno())

    def check_room(size: int) -> None:
        free = shutil.disk_usage(partial.parent).free
        if size > free:
            # What the system would say after hours of writing.
            raise OSError(
                errno.ENOSPC,
                f"it takes {size:,} bytes, and {partial.parent} has {free:,} left",
            )

    calls.transport.retry(attempt)


__all__ = ["fetch_file"]
