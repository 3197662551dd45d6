"""Numerai's API: a method for each thing that a round asks for."""

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import SecretStr

from sklearn_era._optional import import_optional
from sklearn_era.numerai import queries
from sklearn_era.numerai.errors import ApiError, ConfigError, UploadError
from sklearn_era.numerai.http import SITE, Http, HttpFailure, may_be_called
from sklearn_era.numerai.queries import UPLOAD_AUTH, Listed, Query
from sklearn_era.numerai.resume import Fetch

API_URL = "https://api-tournament.numer.ai"  # codespell:ignore numer
# Where a stand-in for it is.
API_URL_VARIABLE = "SKLEARN_ERA_NUMERAI_API_URL"
KEY_NAMES = ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY")

# What may stand in a header's value. An HTTP library would show a value that may not,
# the key in full, in its complaint.
_PLAIN = re.compile(r"[!#-&(-~]+")
_BEGIN, _END = (x.replace(tzinfo=UTC) for x in (datetime.min, datetime.max))


class Round(NamedTuple):
    """A round of the tournament; its times are in UTC, None if Numerai does not say."""

    number: int
    opens: datetime | None
    closes: datetime | None
    is_open: bool


class Numerai:
    """A client of Numerai's API, for the Classic tournament; calls raise ApiError."""

    def __init__(
        self, http: Http, public_id: str = "", secret_key: str = "", url: str = API_URL
    ) -> None:
        if not may_be_called(url):
            told = "is not allowed: keys only go over https, or to http://127.0.0.1"
            # Not shown, as a password may stand in it.
            raise ConfigError(f"The address in {API_URL_VARIABLE} {told}.")
        self.http = http
        self._url = url
        self._keys = SecretStr(public_id), SecretStr(secret_key)

    @classmethod
    def from_environment(
        cls, folder: Path, timeout: float = 60.0, retries: int = 3
    ) -> Self:
        """A client with the keys, if any, of the environment, or else of ``.env``."""
        own = {name: os.environ.get(name, "").strip() for name in KEY_NAMES}
        other = {} if all(own.values()) else _read_settings(folder / ".env")
        keys = [own[name] or (other.get(name) or "").strip() for name in KEY_NAMES]
        url = os.environ.get(API_URL_VARIABLE) or API_URL
        return cls(Http(timeout, retries), keys[0], keys[1], url)

    def check_keys(self) -> None:
        """Check that there are keys, without a call; ConfigError if not."""
        self._token()

    def _token(self) -> str:
        """What a call is authorized by."""
        halves = [half.get_secret_value() for half in self._keys]
        named = list(zip(KEY_NAMES, halves, strict=True))
        if missing := [name for name, half in named if not half]:
            raise ConfigError(
                f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not "
                "set in the environment or in .env next to the configuration. Create a "
                f"key at {SITE}/account with the scopes upload_submission, "
                "read_submission_info and read_user_info."
            )
        for name, half in named:
            if not _PLAIN.fullmatch(half):
                raise ConfigError(
                    f"{name} contains a space, a quote or another character that keys "
                    f"do not have: copy it again from {SITE}/account."
                )
        return "Token {}${}".format(*halves)

    def models(self) -> dict[str, str]:
        """The ids of the account's Classic models, by name."""
        listed = self.ask(queries.MODELS).models
        return {x.name: x.id for x in listed if x.tournament == queries.CLASSIC}

    def model_id(self, name: str, known: Mapping[str, str] | None = None) -> str:
        """The id of a Classic model of the account, whose models may be `known`."""
        known = self.models() if known is None else known
        if name not in known:
            told = f"Create it at {SITE}."
            if known:
                told = f"Your models: {', '.join(sorted(known))}."
            raise ApiError(f"Your account has no Classic model {name!r}. {told}")
        return known[name]

    def datasets(self) -> list[str]:
        """The names of Numerai's files, ``"v5.3/live.parquet"`` for one."""
        return list(self.ask(queries.DATASETS))

    def current_round(self) -> Round:
        """The round that is open, or was last; the first to open if none has yet."""
        found: list[Round] = []
        for number in (0, None):
            try:
                found += self._rounds(number)
            except HttpFailure as failure:
                # Between two rounds none is the current one, which GraphQL refuses.
                if number is None or failure.status != 200:
                    raise
            opened = [x for x in found if (x.opens or _BEGIN) <= self.http.now()]
            if opened:
                return max(opened, key=itemgetter(0))
        if found:
            return min(found, key=itemgetter(0))
        raise ApiError(f"{queries.ROUNDS.step}: Numerai's API returned none.")

    def next_opening(self) -> datetime | None:
        """When the next round opens, None if Numerai does not say."""
        now = self.http.now()
        openings = [x.opens for x in self._rounds(None) if x.opens and x.opens > now]
        return min(openings, default=None)

    def _rounds(self, number: int | None) -> list[Round]:
        """The rounds of a number, where 0 is the current one; all of them for None."""
        found = self.ask(queries.ROUNDS, number)
        rounds = [(x.number, x.openTime, x.closeStakingTime) for x in found]
        now = self.http.now()
        return [Round(*x, (x[1] or _BEGIN) <= now < (x[2] or _END)) for x in rounds]

    def download(
        self,
        filename: str,
        path: Path,
        *,
        round_number: int | None,
        check: Callable[[Path], object] | None = None,
        on_bytes: Callable[[int, int], None] | None = None,
    ) -> None:
        """Download a file of the data, or go on with it; it appears whole and checked.

        After a DataError of `check` it is fetched once more. `on_bytes` is called with
        the bytes so far and those in all, 0 if not known.
        """
        query = queries.DATASET._replace(step=f"Downloading {filename}")
        address = partial(self.ask, query, filename, round_number, retry=False)
        Fetch(self.http, query.step, path, address, check, on_bytes)()

    def submissions(self, model_id: str) -> list[Listed]:
        """The submissions of a model, the newest first."""
        listed = self._list(model_id)
        try:
            models = self.ask(queries.LATEST, retry=False).models
        except HttpFailure:
            return listed  # which is all that has to be known
        fates = [x for m in models if m.id == model_id for x in m.latestSubmissions]
        told = {key: x for x in fates for key in (x.filename, x.id) if key}
        for i, entry in enumerate(listed):
            if fate := told.get(entry.id) or told.get(entry.filename):
                of = {"round_number": fate.roundNumber, "status": fate.status}
                listed[i] = entry._replace(**of)
        return listed

    def _list(self, model_id: str) -> list[Listed]:
        found = self.ask(queries.SUBMISSIONS, model_id)
        listed = [Listed(x.id, x.filename, x.insertedAt) for x in found]
        return sorted(listed, key=lambda x: x.inserted or _BEGIN, reverse=True)

    def fetch(self, submission_id: str) -> bytes:
        """The file of a submission, as Numerai has it."""
        query = queries.DOWNLOAD_AUTH

        def attempt() -> bytes:
            url = self.ask(query, submission_id, retry=False).url
            with self.http.get(query.step, url) as (_, chunks):
                return b"".join(chunks)

        return self.http.retry(attempt)

    def find(
        self, model_id: str, known: Collection[str], filename: str | None, sha256: str
    ) -> str | None:
        """The id of a submission of a file, if it is not among those known before.

        The digest decides where the name that Numerai gave the file does not.
        """
        new = [entry for entry in self._list(model_id) if entry.id not in known]
        for entry in new:
            if filename and entry.filename == filename:
                return entry.id
        for entry in new:
            try:
                if hashlib.sha256(self.fetch(entry.id)).hexdigest() == sha256:
                    return entry.id
            except HttpFailure as failure:
                # What may be ours, and cannot be had just now, is not passed over.
                if failure.transient:
                    raise
        return None

    def store(
        self, content: bytes, name: str, model_id: str, query: Query = UPLOAD_AUTH
    ) -> str:
        """Put a submission into Numerai's storage; return its name there."""
        # Numerai's own compute cluster knows its runs by this.
        run_id = query is UPLOAD_AUTH and os.environ.get("NUMERAI_COMPUTE_ID")
        headers = {"x_compute_id": run_id} if run_id else {}
        granted = False

        def attempt() -> str:
            nonlocal granted
            # An address anew for each attempt, as they run out.
            granted = False
            grant = self.ask(query, name, model_id, retry=False)
            granted = True
            self.http.put(query.step, grant.url, content, headers)
            return str(grant.filename)

        try:
            return self.http.retry(attempt)
        except HttpFailure as failure:
            if not granted:
                raise
            told = str(failure).rstrip(".")
        raise UploadError(f"{told}; nothing was submitted.")

    def create(
        self, filename: str, model_id: str, known_ids: Collection[str], sha256: str
    ) -> str:
        """Make a submission of a stored file; return its id. UploadError if it fails.

        Where that is unclear, Numerai's list decides before the call is repeated, as a
        second submission would not be an error to Numerai.
        """
        # Set by Numerai's cluster alone, as in `store`.
        given = filename, model_id, os.environ.get("TRIGGER_ID")
        unclear = False
        for count in range(self.http.retries + 1):
            try:
                return str(self.ask(queries.CREATE, *given, retry=False).id)
            except HttpFailure as error:
                failure = error
            unclear |= failure.unclear
            if not (failure.unclear or failure.transient):
                break
            self.http.wait(count, failure.retry_after)
            try:
                found = unclear and self.find(model_id, known_ids, filename, sha256)
            except ApiError:
                break
            if found:
                return found
        told = "it is unclear whether it was created: run this command again, which"
        told = f"{told} asks Numerai first" if unclear else "nothing was submitted"
        raise UploadError(f"{str(failure).rstrip('.')}; {told}.")

    def ask(self, query: Query, *given: Any, retry: bool = True) -> Any:
        """Send a query; return the value of its field."""
        token = self._token() if query.keys else None
        body = query.body(*given)
        attempt = partial(self.http.post_json, query.step, self._url, body, token)
        return query.read(self.http.retry(attempt) if retry else attempt())


def _read_settings(path: Path) -> dict[str, str | None]:
    """The settings of a file of them, if it is there; errors do not show it."""
    if not path.is_file():
        return {}
    try:
        text = path.read_text("utf-8-sig", "replace")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    if "\ufffd" in text:
        raise ConfigError(f"{path} is not UTF-8 text: save it as UTF-8.")
    dotenv = import_optional("dotenv", extra="numerai")
    found = dict(dotenv.dotenv_values(stream=StringIO(text), interpolate=False))
    if os.name == "posix" and path.stat().st_mode & 0o077 and found.keys() & KEY_NAMES:
        told = f"Other users can read {path}, which contains your key"
        warnings.warn(f"{told}: run 'chmod 600 {path}'.", UserWarning, stacklevel=3)
    return found
