"""Download Numerai's data; resume partial downloads in later attempts, runs and rounds.

The name of a partial download has the file's version, which is a strong ETag of the
storage: ``train_1401.parquet.<version>.partial``. Parts of versions are never mixed.
"""

import errno
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from glob import escape
from pathlib import Path

from sklearn_era._files import put_in_place
from sklearn_era.numerai import data, errors
from sklearn_era.numerai.api import DATASET, Numerai
from sklearn_era.numerai.config import DataSection, Workspace
from sklearn_era.numerai.data import read_features
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError
from sklearn_era.numerai.files import lock
from sklearn_era.numerai.http import HttpFailure
from sklearn_era.numerai.reporter import Reporter


class NotPublishedError(ApiError):
    """The live data of a round are not published yet."""


_WITHOUT_ERAS = "live_example_preds", "validation_example_preds"
_BENCHMARKS = "live_benchmark_models", "validation_benchmark_models"
OPTIONAL = (*_WITHOUT_ERAS, *_BENCHMARKS, "meta_model")  # for comparisons alone
_LOCK_WAIT = 600.0  # of another run, more than a live file takes
_PROGRESS = 1 << 20  # bytes that renew the number of attempts
_STRONG_ETAG = re.compile(r'"[\w.-]{1,64}"')


def served_name(version: str, name: str) -> str:
    return f"{version}/{name}.{'json' if name == 'features' else 'parquet'}"


def wanted(workspace: Workspace, section: DataSection, number: int) -> dict[str, str]:
    """Return a dict of the files to fetch, from names to reasons: a file is live,
    missing or old. A file is old if it is from an earlier round and is to be refreshed.
    """
    reasons, old = {}, {*section.refresh}
    if "validation" in old:  # others' predictions of its rows are to cover them
        old |= {name for name in OPTIONAL if not name.startswith("live")}
    for name in section.files:
        rounds = workspace.rounds_of(name)
        if name.startswith("live"):
            reasons[name] = f"needed for round {number}"
        elif not rounds:
            reasons[name] = "not downloaded yet"
        elif name in old and rounds[-1] < number:
            reasons[name] = f"the local file is from round {rounds[-1]}"
    return reasons


def download(
    client: Numerai, workspace: Workspace, section: DataSection, round_number: int,
    reporter: Reporter,
) -> None:  # fmt: skip
    """Fetch a section's files that are live, missing, old (see `wanted`) or damaged."""
    # Two locks, so that a round's small files do not wait for gigabytes of others.
    is_small = {name.startswith("live") or name == "features" for name in section.files}
    what = f"downloading to {workspace.data_dir}"
    with ExitStack() as locks:
        for small in sorted(is_small, reverse=True):
            path = workspace.lock_file("live" if small else "data")
            locks.enter_context(lock(path, what, wait=_LOCK_WAIT))
        reasons = wanted(workspace, section, round_number)
        for name in [x for x in dict.fromkeys(section.files) if x not in reasons]:
            path = workspace.need(name)
            try:
                _check(name, path)
                reporter.step(f"Kept {path.name}.")
            except DataError:
                reasons[name] = "the local file was damaged"
        for name in _served(client, workspace.version, reasons) if reasons else ():
            path = workspace.data_file(name, round_number)
            of_round = round_number if name.startswith("live") else None
            check = partial(check_new, workspace, name, round_number)
            on_bytes = partial(reporter.progress, name)
            file = served_name(workspace.version, name)
            try:
                Fetch(client, file, path, of_round, check, on_bytes)()
            except ApiError as error:
                if name != "live" or isinstance(error, HttpFailure):
                    raise
                # Numerai does not offer it yet.
                raise NotPublishedError(str(error)) from None
            why = f" ({reasons[name]})" if "local file" in reasons[name] else ""
            reporter.step(f"Downloaded {path.name}{why}.")


@dataclass(frozen=True)
class Fetch:
    """Fetches a file, or the rest of a partial download. If `check` raises DataError
    for the file, fetches it once more.
    """

    client: Numerai
    filename: str
    path: Path
    round_number: int | None = None
    check: Callable[[Path], object] = lambda path: None
    # Called with the bytes received and the total, 0 if unknown.
    on_bytes: Callable[[int, int], object] = lambda done, total: None

    def __call__(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._fetch_checked()
            except DataError:
                self._fetch_checked()  # perhaps damaged in transit or in a cache
        except OSError as error:
            text = f"{self.path} cannot be written: {error.strerror}."
            raise DataError(text) from None
        finally:
            # Without a version it cannot be resumed.
            with suppress(OSError):
                self._partial("").unlink()

    def _fetch_checked(self) -> None:
        """Fetch and check the file; try again if an attempt fails after a megabyte."""
        while True:
            before = self._size()
            try:
                whole = self.client.http.retry(self._attempt)
                self.check(whole)
                put_in_place(whole, self.path)
                return
            except HttpFailure as failure:
                may_succeed = failure.transient and not failure.asks_too_much
                if not may_succeed or self._size() < before + _PROGRESS:
                    raise
            except DataError:
                whole.unlink()
                raise

    def _attempt(self) -> Path:
        """Fetch the file, or the missing rest of a partial download; return the path of
        the complete temporary file.
        """
        # A new address for each attempt, since addresses expire.
        query = DATASET._replace(step=f"Downloading {self.filename}")
        url = self.client.ask(query, self.filename, self.round_number, retry=False)
        if url is None:
            raise ApiError(f"{query.step}: Numerai does not offer it.")
        begun, start, headers = self._begun(), 0, {}
        if begun is not None:
            version = begun.name.split(f"{self.path.suffix}.", 1)[1][: -len(".partial")]
            begun = begun.replace(self._partial(f'"{version}"'))
            # From the last byte on: a complete file has no range after it.
            start = max(begun.stat().st_size - 1, 0)
            headers = {"Range": f"bytes={start}-", "If-Range": f'"{version}"'}
        with self.client.http.get(query.step, url, False, **headers) as (reply, chunks):
            place = self._partial(reply.headers.get("ETag", ""))
            span = reply.headers.get("Content-Range", "")
            goes_on = place == begun and span.startswith(f"bytes {start}-")
            if begun is not None and not goes_on:
                begun.unlink()  # of another version
            if goes_on or reply.status_code == 200:
                size = int(reply.headers.get("Content-Length", "0"))
                self._write(chunks, place, start if goes_on else 0, size)
                return place
        if begun is None:
            raise HttpFailure(f"{query.step}: the storage sent only part of the file.")
        return self._attempt()

    def _write(self, parts: Iterable[bytes], path: Path, start: int, size: int) -> None:
        if size > (free := shutil.disk_usage(path.parent).free):
            # Now, instead of after hours of writing.
            text = f"it needs {size:,} bytes, but {path.parent} has {free:,} left"
            raise OSError(errno.ENOSPC, text)
        with path.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.truncate()
            for part in parts:
                file.write(part)
                self.on_bytes(file.tell(), start + size if size else 0)

    def _begun(self) -> Path | None:
        """Return the path of the file's newest partial download, of any round; None if
        there is no partial download.
        """
        stem = re.sub(r"_\d+$", "_[0-9]*", escape(self.path.stem))
        left = self.path.parent.glob(f"{stem}{self.path.suffix}.*.partial")
        return max(left, key=lambda x: x.stat().st_mtime, default=None)

    def _size(self) -> int:
        return begun.stat().st_size if (begun := self._begun()) else 0

    def _partial(self, etag: str) -> Path:
        tag = f".{etag[1:-1]}" if _STRONG_ETAG.fullmatch(etag) else ""
        return self.path.with_name(f"{self.path.name}{tag}.partial")


def check_new(workspace: Workspace, name: str, round_number: int, path: Path) -> None:
    """Raise DataError if the fetched file is damaged, and NotPublishedError if it is a
    live file with the ids of an earlier round.
    """
    try:
        _check(name, path)
    except DataError as error:
        shown = f"Numerai's {served_name(workspace.version, name)}"
        text = str(error).replace(str(path), shown)
        raise DataError(text.replace(data.ADVICE, "Run this command again.")) from None
    if name != "live":
        return
    # Numerai may serve the last round's file for a while. Submissions may be kept where
    # live files are not.
    live = {x: workspace.data_file("live", x) for x in workspace.rounds_of("live")}
    found = workspace.root.glob("rounds/*/*/predictions.csv")
    sent = {int(x.parts[-3]): x for x in found if x.parts[-3].isdecimal()}
    ids = {*data.read_ids(path)}
    for paths in (live, sent):
        older = max((x for x in paths if x < round_number), default=-1)
        with suppress(DataError, LookupError):  # a missing or damaged file: no evidence
            old, is_live = paths[older], paths is live
            known = data.read_ids(old) if is_live else data.read_predictions(old)["id"]
            if ids == set(known):
                text = f"The live data of round {round_number} are not published yet"
                text = f"{text}: Numerai still serves those of round {older}"
                raise NotPublishedError(f"{text}. Try again in a few minutes.")


def _check(name: str, path: Path) -> None:
    if name == "features":
        read_features(path)
    else:
        live, needs_era = name.startswith("live"), name not in _WITHOUT_ERAS
        data.check_parquet(path, live=live, needs_era=needs_era)


def _served(client: Numerai, version: str, names: Iterable[str]) -> list[str]:
    """Return those of `names` that Numerai serves, and warn of the missing files that
    are optional. Raise ConfigError if another file is missing, and DataError if Numerai
    serves no file of this version.
    """
    served = client.datasets()
    known = sorted(Path(x).stem for x in served if x.startswith(f"{version}/"))
    if not known:
        latest = latest_version(served) or "unknown"
        text = f"Numerai no longer serves {version}; the latest version is {latest}"
        raise DataError(f"{text}. Set version = {latest!r} in [data], and train again.")
    missing = [name for name in names if served_name(version, name) not in served]
    for name in missing:
        text = f"Numerai has no {served_name(version, name)}"
        if name not in OPTIONAL:
            raise ConfigError(f"{text}; {errors.alternatives(name, known)}")
        text += f": comparisons with it are left out. Remove {name!r} from [data] files"
        errors.warn(f"{text} to silence this warning.")
    return [name for name in names if name not in missing]


def latest_version(served: Sequence[str]) -> str | None:
    """Return the newest data version among Numerai's files; None if there is none."""
    matches = (re.match(r"v(\d+)\.(\d+)/", file) for file in served)
    found = [(int(match[1]), int(match[2])) for match in matches if match]
    return "v{}.{}".format(*max(found)) if found else None
