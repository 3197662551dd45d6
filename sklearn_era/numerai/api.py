"""Numerai's API: a method for each thing that a round asks for."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import SecretStr, ValidationError

from sklearn_era._optional import import_optional
from sklearn_era.numerai import queries
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError, UploadError
from sklearn_era.numerai.http import SITE, Http, HttpFailure, may_be_called, tell
from sklearn_era.numerai.queries import SOURCE, UPLOAD_AUTH, Image, Listed, Query
from sklearn_era.numerai.resume import fetch_file

API_URL = "https://api-tournament.numer.ai"  # codespell:ignore numer
# Where a stand-in for it is.
API_URL_VARIABLE = "SKLEARN_ERA_NUMERAI_API_URL"
KEY_NAMES = ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY")

# What may stand in a header's value. An HTTP library would show a value that may not,
# the key in full, in its complaint.
_PLAIN = re.compile(r"[!#-&(-~]+")
# Names of scores, such as canon_corr, v2_corr20, mmc60 and fnc_v3.
_SCORE = re.compile(r"(canon_|v2_|)(corr|mmc|bmc|fnc)(?:_v3)?(\d*)")
_BEGIN, _END = (x.replace(tzinfo=UTC) for x in (datetime.min, datetime.max))
_OFFICIAL = ("", "v2_", "canon_")


class Round(NamedTuple):
    """A round of the tournament; its times are in UTC, None if Numerai does not say."""

    number: int
    opens: datetime | None
    closes: datetime | None
    is_open: bool


class RoundScore(NamedTuple):
    """The scores of a model in a round, None where there is none (yet)."""

    round_number: int
    resolved: bool
    corr: float | None = None
    mmc: float | None = None
    bmc: float | None = None
    fnc: float | None = None
    model: str = ""


class Numerai:
    """A client of Numerai's API, for the Classic tournament; calls raise ApiError."""

    def __init__(
        self, http: Http, public_id: str = "", secret_key: str = "", url: str = API_URL
    ) -> None:
        if not may_be_called(url):
            told = "is refused: a key is sent by https only, or to http://127.0.0.1"
            # Not shown, as a password may stand in it.
            raise ConfigError(f"The address in {API_URL_VARIABLE} {told}.")
        self.http = http
        self._url = url
        self._keys = (SecretStr(public_id), SecretStr(secret_key))

    @classmethod
    def from_environment(
        cls, folder: Path, timeout: float = 60.0, retries: int = 3, backoff: float = 1.0
    ) -> Self:
        """A client with the keys, if any, of the environment, or else of ``.env``."""
        own = {name: os.environ.get(name, "").strip() for name in KEY_NAMES}
        other = {} if all(own.values()) else _read_settings(folder / ".env")
        keys = [own[name] or (other.get(name) or "").strip() for name in KEY_NAMES]
        url = os.environ.get(API_URL_VARIABLE) or API_URL
        return cls(Http(timeout, retries, backoff), keys[0], keys[1], url)

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
                "set, in the environment or in .env beside the configuration. Create a "
                f"key at {SITE}/account with the scopes upload_submission, "
                "read_submission_info and read_user_info."
            )
        for name, half in named:
            if not _PLAIN.fullmatch(half):
                raise ConfigError(
                    f"{name} holds a blank, a quotation mark or another character that "
                    f"no key has: copy it anew from {SITE}/account."
                )
        return "Token {}${}".format(*halves)

    def models(self) -> dict[str, str]:
        """The ids of the account's Classic models, by name."""
        listed = self._ask(queries.MODELS).models
        return {x.name: x.id for x in listed if x.tournament == queries.CLASSIC}

    def model_id(self, name: str) -> str:
        """The id of a Classic model of the account."""
        return self.check_model(name, self.models())

    def check_model(self, name: str, known: Mapping[str, str]) -> str:
        """The id of a model, if it is among those of the account."""
        if name not in known:
            told = f"The account has none: add one at {SITE}."
            if known:
                told = f"Your models: {', '.join(sorted(known))}."
            raise ApiError(f"No Classic model named {name!r}. {told}")
        return known[name]

    def datasets(self) -> list[str]:
        """The names of Numerai's files, ``"v5.3/live.parquet"`` for one."""
        return list(self._ask(queries.DATASETS))

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
        raise ApiError(f"{queries.ROUNDS.step}: Numerai's API names none.")

    def next_opening(self) -> datetime | None:
        """When the next round opens, None if Numerai does not say."""
        now = self.http.now()
        openings = [x.opens for x in self._rounds(None) if x.opens and x.opens > now]
        return min(openings, default=None)

    def _rounds(self, number: int | None) -> list[Round]:
        """The rounds of a number, where 0 is the current one; all of them for None."""
        found = self._ask(queries.ROUNDS, number)
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
        address = partial(self._ask, query, filename, round_number, retry=False)
        fetch_file(self.http, query.step, path, address, check, on_bytes)

    def submissions(self, model_id: str) -> list[Listed]:
        """The submissions of a model, the newest first."""
        listed = self._list(model_id)
        try:
            models = self._ask(queries.LATEST, retry=False).models
        except HttpFailure:
            return listed  # which is all that has to be known
        fates = [x for m in models if m.id == model_id for x in m.latestSubmissions]
        told = {key: x for x in fates for key in (x.filename, x.id) if key}
        found = [told.get(x.id) or told.get(x.filename) for x in listed]
        return [
            x._replace(round_number=y.roundNumber, status=y.status) if y else x
            for x, y in zip(listed, found, strict=True)
        ]

    def _list(self, model_id: str) -> list[Listed]:
        found = self._ask(queries.SUBMISSIONS, model_id)
        listed = [Listed(x.id, x.filename, x.insertedAt) for x in found]
        return sorted(listed, key=lambda x: x.inserted or _BEGIN, reverse=True)

    def fetch(self, submission_id: str) -> bytes:
        """The file of a submission, as Numerai has it."""
        query = queries.DOWNLOAD_AUTH

        def attempt() -> bytes:
            url = self._ask(query, submission_id, retry=False).url
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
        named = (entry.id for entry in new if filename and entry.filename == filename)
        if own := next(named, None):
            return own
        for entry in new:
            try:
                content = self.fetch(entry.id)
            except HttpFailure as failure:
                # What may be ours, and cannot be had just now, is not passed over.
                if failure.transient:
                    raise
                continue
            if hashlib.sha256(content).hexdigest() == sha256:
                return entry.id
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
            grant = self._ask(query, name, model_id, retry=False)
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
        given = filename, model_id, os.environ.get("TRIGGER_ID"), SOURCE
        unclear = False
        for count in range(self.http.retries + 1):
            try:
                return str(self._ask(queries.CREATE, *given, retry=False).id)
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
        told = "whether it was made is unclear: repeat this command, which asks before"
        told = f"{told} it uploads again" if unclear else "nothing was submitted"
        raise UploadError(f"{str(failure).rstrip('.')}; {told}.")

    def round_scores(
        self, model_id: str, n_rounds: int, horizon: int
    ) -> list[RoundScore]:
        """The latest scores in the last rounds for a horizon in business days.

        A score that names it counts before the official one.
        """
        found = []
        for score in self._ask(queries.SCORES, model_id, n_rounds):
            match = _SCORE.fullmatch(score.displayName)
            if score.value is not None and match and match[3] in ("", str(horizon)):
                rank = bool(match[3]), _OFFICIAL.index(match[1]), score.day or 0
                found.append((rank, match[2], score))
        rounds: dict[int, dict[str, Any]] = {}
        for _, metric, score in sorted(found, key=itemgetter(0)):
            rounds.setdefault(score.roundNumber, {})[metric] = score
        return [
            RoundScore(
                number,
                all(score.resolved for score in best.values()),
                **{metric: score.value for metric, score in best.items()},
            )
            for number, best in sorted(rounds.items())[-n_rounds:]
        ]

    def pickle_images(self) -> list[Image]:
        """The container images that run uploaded models."""
        return [Image(**dict(x)) for x in self._ask(queries.IMAGES)]

    def pickle_data_versions(self) -> list[Image]:
        """The versions of the data that uploaded models can have."""
        return [Image(**dict(x)) for x in self._ask(queries.DATA_VERSIONS)]

    def upload_pickle(
        self, path: Path, model_id: str, data_version: str | None, image: str | None
    ) -> str:
        """Upload a model for a data version and an image, by their ids; return its."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from None
        name = self.store(content, path.name, model_id, queries.PICKLE_AUTH)
        given = name, model_id, data_version, image, SOURCE
        # Once, as a second would be another upload.
        return str(self._ask(queries.CREATE_PICKLE, *given, retry=False).id)

    def assign_pickle(self, upload_id: str, model_id: str) -> None:
        """Let an uploaded model make the submissions of a slot from now on."""
        self._ask(queries.ASSIGN_PICKLE, upload_id, model_id)

    def pickle_status(self, upload_id: str) -> tuple[str, str]:
        """The validation status of an uploaded model, and what Numerai says of it."""
        for found in self._ask(queries.PICKLES, upload_id):
            told = [y.description for x in found.triggers for y in x.statuses]
            last = [text for text in told if text][-1:]
            return found.validationStatus or "unknown", tell("".join(last))
        step = queries.PICKLES.step
        raise ApiError(f"{step}: Numerai does not list {upload_id}.")

    def _ask(self, query: Query, *given: Any, retry: bool = True) -> Any:
        """Send a query; return the value of its field."""
        token = self._token() if query.keys else None
        body = query.body(*given)
        attempt = partial(self.http.post_json, query.step, self._url, body, token)
        data = self.http.retry(attempt) if retry else attempt()
        try:
            return query.checked(data.get(query.root))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, (query.root, *first["loc"])))
        told = f"in a form that is not known here ({where}: {first['msg']})"
        told = f"{query.step}: Numerai's API answers {told}: upgrade sklearn-era."
        # Numerai may have done all the same what it was asked for.
        raise HttpFailure(told, 200, unclear=True)


def _read_settings(path: Path) -> dict[str, str | None]:
    """The settings of a file of them, if it is there; errors do not show it."""
    if not path.is_file():
        return {}
    try:
        text = path.read_text("utf-8-sig", "replace")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    if "\ufffd" in text:
        raise ConfigError(f"{path} is not UTF-8: save it as text in UTF-8.")
    dotenv = import_optional("dotenv", extra="numerai")
    return dict(dotenv.dotenv_values(stream=StringIO(text), interpolate=False))
