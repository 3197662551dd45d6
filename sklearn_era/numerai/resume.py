"""A file fetched over several attempts, or runs, without a byte of another file in it.

What has come in so far lies beside the file, under a name that tells its version (the
strong ETag of the storage): ``train_1401.parquet.<version>.partial``.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from glob import escape
from pathlib import Path

from sklearn_era.numerai.errors import ApiError, DataError
from sklearn_era.numerai.http import Http, HttpFailure

# Bytes, for which it is worth to go on at once after the last attempt.
_PROGRESS = 1 << 20
_STRONG_ETAG = re.compile(r'"[\w.-]{1,64}"')

_OnBytes = Callable[[int, int], None] | None


def fetch_file(
    http: Http,
    step: str,
    path: Path,
    address: Callable[[], str | None],
    check: Callable[[Path], object] | None,
    on_bytes: _OnBytes,
) -> None:
    """Fetch a file that appears whole and checked or not at all.

    `address` asks for a signed address, anew for each attempt, as they run out.
    """

    def attempt() -> Path:
        if (url := address()) is None:
            raise ApiError(f"{step}: Numerai does not offer it.")
        return _fetch(http, step, url, path, on_bytes)

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for last in (False, True):
            whole = _fetch_all(http, path, attempt)
            try:
                if check is not None:
                    check(whole)
                break
            except DataError:
                # Damaged on its way, it may be, or in a cache.
                whole.unlink()
                if last:
                    raise
        os.replace(whole, path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        # Of no known version: nothing can be added to it.
        with suppress(OSError):
            _partial(path, "").unlink()


def _fetch_all(http: Http, path: Path, attempt: Callable[[], Path]) -> Path:
    """Fetch a file in as many attempts as it takes, while more of it comes in."""
    while True:
        before = _size(path)
        try:
            return http.retry(attempt)
        except HttpFailure as failure:
            if not failure.transient or _size(path) < before + _PROGRESS:
                raise


def _fetch(http: Http, step: str, url: str, path: Path, on_bytes: _OnBytes) -> Path:
    """Fetch a file, or what is missing of it; return where it is."""
    begun, start, headers = _begun(path), 0, {}
    if begun is not None:
        # From the last byte that is here, as there is no range after a whole file.
        start = max(begun.stat().st_size - 1, 0)
        version = begun.name[len(path.name) + 1 : -len(".partial")]
        headers = {"Range": f"bytes={start}-", "If-Range": f'"{version}"'}
    with http.get(step, url, False, **headers) as (reply, chunks):
        partial = _partial(path, reply.headers.get("ETag", ""))
        span = reply.headers.get("Content-Range", "")
        goes_on = partial == begun and span.startswith(f"bytes {start}-")
        usable = reply.status_code == 200 or goes_on
        if begun is not None and not (usable and begun == partial):
            begun.unlink()  # of another file than is served now
        if usable:
            length = int(reply.headers.get("Content-Length", "0"))
            _write(chunks, length, partial, start if goes_on else 0, on_bytes)
            return partial
    if begun is None:
        raise HttpFailure(f"{step}: the storage sent a part of it, unasked.")
    return _fetch(http, step, url, path, on_bytes)


def _begun(path: Path) -> Path | None:
    """What earlier attempts left, of a known version."""
    return next(path.parent.glob(f"{escape(path.name)}.*.partial"), None)


def _size(path: Path) -> int:
    return begun.stat().st_size if (begun := _begun(path)) else 0


def _partial(path: Path, etag: str) -> Path:
    tag = f".{etag[1:-1]}" if _STRONG_ETAG.fullmatch(etag) else ""
    return path.with_name(f"{path.name}{tag}.partial")


def _write(
    chunks: Iterable[bytes], length: int, partial: Path, start: int, on_bytes: _OnBytes
) -> None:
    """Write what comes in, from some byte on."""
    if length > (free := shutil.disk_usage(partial.parent).free):
        # What the system would say after hours of writing.
        told = f"it takes {length:,} bytes, and {partial.parent} has {free:,} left"
        raise OSError(errno.ENOSPC, told)
    with partial.open("r+b" if start else "wb") as file:
        file.seek(start)
        file.truncate()
        for chunk in chunks:
            file.write(chunk)
            if on_bytes is not None:
                on_bytes(file.tell(), start + length if length else 0)
        file.flush()
        os.fsync(file.fileno())
