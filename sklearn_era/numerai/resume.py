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
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from sklearn_era.numerai.errors import ApiError, DataError
from sklearn_era.numerai.http import Http, HttpFailure

# Bytes, for which it is worth to go on at once after the last attempt.
_PROGRESS = 1 << 20
_STRONG_ETAG = re.compile(r'"[\w.-]{1,64}"')


@dataclass(frozen=True)
class Fetch:
    """Fetches a file that appears whole and checked or not at all.

    `address` asks for a signed address, anew for each attempt, as they run out.
    """

    http: Http
    step: str
    path: Path
    address: Callable[[], str | None]
    check: Callable[[Path], object] | None
    on_bytes: Callable[[int, int], None] | None

    def __call__(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._fetch_checked()
            except DataError:
                self._fetch_checked()  # damaged on its way, it may be, or in a cache
        except OSError as error:
            told = f"{self.path} cannot be written: {error.strerror}."
            raise DataError(told) from None
        finally:
            # Of no known version: nothing can be added to it.
            with suppress(OSError):
                self._partial("").unlink()

    def _fetch_checked(self) -> None:
        """Fetch the file in as many attempts as it takes, while more of it comes in."""
        while True:
            before = self._size()
            try:
                whole = self.http.retry(self._attempt)
                break
            except HttpFailure as failure:
                if not failure.transient or self._size() < before + _PROGRESS:
                    raise
        try:
            if self.check is not None:
                self.check(whole)
        except DataError:
            whole.unlink()
            raise
        os.replace(whole, self.path)

    def _attempt(self) -> Path:
        """Fetch the file, or what is missing of it; return where it is."""
        if (url := self.address()) is None:
            raise ApiError(f"{self.step}: Numerai does not offer it.")
        begun, start, headers = self._begun(), 0, {}
        if begun is not None:
            # From the last byte that is here, as there is no range after a whole file.
            start = max(begun.stat().st_size - 1, 0)
            version = begun.name[len(self.path.name) + 1 : -len(".partial")]
            headers = {"Range": f"bytes={start}-", "If-Range": f'"{version}"'}
        with self.http.get(self.step, url, False, **headers) as (reply, chunks):
            partial = self._partial(reply.headers.get("ETag", ""))
            span = reply.headers.get("Content-Range", "")
            goes_on = partial == begun and span.startswith(f"bytes {start}-")
            if begun is not None and not goes_on:
                begun.unlink()  # of another file than is served now
            if goes_on or reply.status_code == 200:
                length = int(reply.headers.get("Content-Length", "0"))
                self._write(chunks, partial, start if goes_on else 0, length)
                return partial
        if begun is None:
            raise HttpFailure(f"{self.step}: the storage sent only part of the file.")
        return self._attempt()

    def _write(
        self, chunks: Iterable[bytes], partial: Path, start: int, length: int
    ) -> None:
        """Write what comes in, from some byte on."""
        if length > (free := shutil.disk_usage(partial.parent).free):
            # What the system would say after hours of writing.
            told = f"it needs {length:,} bytes, but {partial.parent} has {free:,} left"
            raise OSError(errno.ENOSPC, told)
        with partial.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.truncate()
            for chunk in chunks:
                file.write(chunk)
                if self.on_bytes is not None:
                    self.on_bytes(file.tell(), start + length if length else 0)
            file.flush()
            os.fsync(file.fileno())

    def _begun(self) -> Path | None:
        """What earlier attempts left, of a known version."""
        pattern = f"{escape(self.path.name)}.*.partial"
        return next(self.path.parent.glob(pattern), None)

    def _size(self) -> int:
        return begun.stat().st_size if (begun := self._begun()) else 0

    def _partial(self, etag: str) -> Path:
        tag = f".{etag[1:-1]}" if _STRONG_ETAG.fullmatch(etag) else ""
        return self.path.with_name(f"{self.path.name}{tag}.partial")
