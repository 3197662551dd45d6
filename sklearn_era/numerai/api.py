"""Call Numerai's GraphQL API. Queries are from its schema or the package numerapi."""

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from operator import attrgetter
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, NamedTuple, Self

import pydantic

from sklearn_era._optional import import_optional
from sklearn_era.numerai.errors import ApiError, ConfigError, UploadError, warn
from sklearn_era.numerai.files import complaint
from sklearn_era.numerai.http import SITE, Http, HttpFailure, may_be_called

API_URL = "https://api-tournament.numer.ai"  # codespell:ignore numer
API_URL_VARIABLE = "SKLEARN_ERA_NUMERAI_API_URL"  # another address, for tests
KEY_NAMES = ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY")

# Characters allowed in a header; a library's error about others would show the key.
_PLAIN = re.compile(r"[!#-&(-~]+")
_BEGIN, _END = (x.replace(tzinfo=UTC) for x in (datetime.min, datetime.max))
_CLASSIC = 8  # the tournament's number
_SAME_FOR_ALL = {"tournament": _CLASSIC, "source": "sklearn-era"}


class Query(NamedTuple):
    """A query of one field. `shape` has the parts of the field to ask for, and their
    types; `keys` states whether the query needs the account's keys.
    """

    step: str
    call: str
    shape: Any
    keys: bool = True
    kind: str = "query"

    def body(self, *given: Any) -> dict[str, Any]:
        """Return the body to post; `given` has the values of the query's arguments, in
        order, except arguments that have the same value in all queries.
        """
        declared = "".join(self.call.partition("(")[1:])
        passed = re.sub(r"\$(\w+): [\w!]+", r"\1: $\1", self.call)
        asked = f"{self.kind}{declared} {{ {passed}{_parts(self.shape)[0]} }}"
        names, values = re.findall(r"\$(\w+)", declared), iter(given)
        variables = {x: _SAME_FOR_ALL.get(x) or next(values) for x in names}
        return {"query": asked, "variables": variables}

    def read(self, data: Mapping[str, Any]) -> Any:
        """Return the field's value in an answer; raise HttpFailure for a bad answer."""
        root = self.call.partition("(")[0]
        try:
            return getattr(_parts({root: self.shape})[1].model_validate(data), root)
        except pydantic.ValidationError as error:
            text = f"answered in an unknown format ({complaint(error)})"
        text = f"{self.step}: Numerai's API {text}: upgrade sklearn-era."
        # Numerai may have acted all the same.
        raise HttpFailure(text, 200, unclear=True)


def _parts(shape: Any) -> tuple[str, Any]:
    """Return `shape` (see `Query`) in two forms: the parts to ask for, as GraphQL's
    text, and a type by which pydantic checks the answer.
    """
    if isinstance(shape, list):
        text, kind = _parts(shape[0])
        return text, Annotated[GenericAlias(list, kind), _NO_NULLS]
    if not isinstance(shape, dict):
        return "", shape
    parts = {name: _parts(part) for name, part in shape.items()}
    text = " ".join(name + part for name, (part, _) in parts.items())
    fields: Any = {name: (kind, ...) for name, (_, kind) in parts.items()}
    return f" {{ {text} }}", pydantic.create_model("Answer", **fields)


# GraphQL's lists may be null or hold nulls; times without a zone are UTC.
_NO_NULLS = pydantic.BeforeValidator(
    lambda x: [y for y in x or [] if y is not None] if isinstance(x, list | None) else x
)
_UTC = pydantic.AfterValidator(lambda x: x and x.replace(tzinfo=x.tzinfo or UTC))
_TIME = Annotated[datetime | None, _UTC]
_open = partial(Query, keys=False)  # needs no keys
_STR, _INT = str | None, int | None
_MODEL = {"id": str, "name": str, "tournament": _INT}
_ROUND = {"number": int, "openTime": _TIME, "closeStakingTime": _TIME}
_SENT = {"id": str, "filename": _STR, "insertedAt": _TIME}
_FATE = {"id": _STR, "filename": _STR, "roundNumber": _INT, "status": _STR}
_FATES = {"id": str, "latestSubmissions": [_FATE]}
CREATED, GRANT = {"id": str}, {"filename": str, "url": str}
_FILE = "$filename: String! $tournament: Int!"

MODELS = Query("Listing the models", "account", {"models": [_MODEL]})
LATEST = Query("Listing the latest submissions", "account", {"models": [_FATES]})
DATASETS = _open("Listing the data", "listDatasets($tournament: Int)", [str])
DATASET = _open("Downloading", f"dataset({_FILE} $round: Int)", _STR)
ROUNDS = _open("Listing the rounds", "rounds($tournament: Int! $number: Int)", [_ROUND])
SUBMISSIONS = Query("Listing the submissions", "submissions($modelId: String)", [_SENT])
FETCH = Query("Downloading the file", "submissionDownloadAuth($id: String)", GRANT)
STORE = Query("Uploading", f"submission_upload_auth({_FILE} $modelId: String)", GRANT)
_NEW = f"create_submission({_FILE} $modelId: String $triggerId: String $source: String)"
CREATE = Query("Creating the submission", _NEW, CREATED, kind="mutation")


class TournamentRound(NamedTuple):
    """A round of the tournament; times are in UTC, None if unknown."""

    number: int
    opens: datetime | None
    closes: datetime | None
    is_open: bool


class Listed(NamedTuple):
    """A submission in Numerai's list, with its round and status if these are known."""

    id: str
    filename: str | None = None
    inserted: datetime | None = None
    round_number: int | None = None
    status: str | None = None


class Numerai:
    """A client of Numerai's API for its Classic tournament, with the account's keys."""

    def __init__(
        self, http: Http, public_id: str = "", secret_key: str = "", url: str = API_URL
    ) -> None:
        if not may_be_called(url):
            text = "is not allowed: keys only go over https, or to http://127.0.0.1"
            # Not shown: it may contain a password.
            raise ConfigError(f"The address in {API_URL_VARIABLE} {text}.")
        self.http, self._url = http, url
        halves = map(pydantic.SecretStr, (public_id, secret_key))
        self._keys = dict(zip(KEY_NAMES, halves, strict=True))

    @classmethod
    def from_environment(
        cls, folder: Path, timeout: float = 60.0, retries: int = 3
    ) -> Self:
        """Return a client with the keys in the environment or, if one is missing there,
        in the file ``.env`` in `folder`. A key that is in neither place is empty.
        """
        own = {name: os.environ.get(name, "").strip() for name in KEY_NAMES}
        other = {} if all(own.values()) else _read_settings(folder / ".env")
        keys = [own[name] or (other.get(name) or "").strip() for name in KEY_NAMES]
        url = os.environ.get(API_URL_VARIABLE) or API_URL
        return cls(Http(timeout, retries), keys[0], keys[1], url)

    def check_keys(self) -> str:
        """Return the authorization header; raise ConfigError if a key is not valid."""
        keys = {name: half.get_secret_value() for name, half in self._keys.items()}
        if missing := [name for name, half in keys.items() if not half]:
            raise ConfigError(
                f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not "
                "set in the environment or in .env next to the configuration. Create a "
                f"key at {SITE}/account with the scopes upload_submission, "
                "read_submission_info and read_user_info."
            )
        for name, half in keys.items():
            if not _PLAIN.fullmatch(half):
                text = f"{name} contains a space, a quote or a sign that keys lack"
                raise ConfigError(f"{text}: copy it again from {SITE}/account.")
        return f"Token {'$'.join(keys.values())}"

    def ask(self, query: Query, *given: Any, retry: bool = True) -> Any:
        """Send a query, and return the value of its field."""
        token = self.check_keys() if query.keys else None
        body = query.body(*given)
        attempt = partial(self.http.post_json, query.step, self._url, body, token)
        return query.read(self.http.retry(attempt) if retry else attempt())

    def models(self) -> dict[str, str]:
        """Return the ids of the account's Classic models, by name."""
        models = self.ask(MODELS).models
        return {x.name: x.id for x in models if x.tournament == _CLASSIC}

    def model_id(self, name: str, known: Mapping[str, str] | None = None) -> str:
        """Return the id of the account's Classic model `name`; raise ApiError if there
        is none. `known` has all ids by name; if it is None, fetch them.
        """
        known = self.models() if known is None else known
        if name not in known:
            yours = f"Your models: {', '.join(sorted(known))}."
            text = yours if known else f"Create it at {SITE}."
            raise ApiError(f"Your account has no Classic model {name!r}. {text}")
        return known[name]

    def datasets(self) -> list[str]:
        return list(self.ask(DATASETS))

    def current_round(self) -> TournamentRound:
        """Return the round that opened last; if none has opened, the earliest round."""
        found: list[TournamentRound] = []
        for number in (0, None):  # only the current round; all rounds
            try:
                rounds = self.ask(ROUNDS, number)
            except HttpFailure as failure:
                # Between two rounds there is no current one: a GraphQL error.
                if number is None or failure.status != 200:
                    raise
                rounds = []
            now = self.http.now()
            for x in rounds:
                opens, closes = x.openTime, x.closeStakingTime
                is_open = (opens or _BEGIN) <= now < (closes or _END)
                found.append(TournamentRound(x.number, opens, closes, is_open))
            if opened := [x for x in found if (x.opens or _BEGIN) <= now]:
                return max(opened, key=attrgetter("number"))
        if not found:
            raise ApiError(f"{ROUNDS.step}: Numerai's API returned none.")
        return min(found, key=attrgetter("number"))

    def submissions(self, model_id: str) -> list[Listed]:
        """Return the submissions of a model, the newest first."""
        found = self.ask(SUBMISSIONS, model_id)
        listed = [Listed(x.id, x.filename, x.insertedAt) for x in found]
        listed.sort(key=lambda x: x.inserted or _BEGIN, reverse=True)
        try:
            models = self.ask(LATEST, retry=False).models
        except HttpFailure:
            return listed  # status and round are optional
        fates = [x for m in models if m.id == model_id for x in m.latestSubmissions]
        by_key = {key: x for x in fates for key in (x.filename, x.id) if key}
        for i, entry in enumerate(listed):
            if fate := by_key.get(entry.id) or by_key.get(entry.filename):
                listed[i] = Listed(*entry[:3], fate.roundNumber, fate.status)
        return listed

    def fetch(self, submission_id: str) -> bytes:
        """Download the file of a submission, and return its bytes."""

        def attempt() -> bytes:
            url = self.ask(FETCH, submission_id, retry=False).url
            with self.http.get(FETCH.step, url) as (_, chunks):
                return b"".join(chunks)

        return self.http.retry(attempt)

    def find(
        self, model_id: str, known: Collection[str], filename: str | None, sha256: str
    ) -> str | None:
        """Among submissions that are not in `known`, return the id of one with this
        file name or, if there is none, of one whose content has this digest; else
        return None.
        """
        new = [entry for entry in self.submissions(model_id) if entry.id not in known]
        if named := [x.id for x in new if filename and x.filename == filename]:
            return named[0]
        for entry in new:
            try:
                if hashlib.sha256(self.fetch(entry.id)).hexdigest() == sha256:
                    return entry.id
            except HttpFailure as failure:
                # It may be ours: do not skip it because of a passing failure.
                if failure.transient:
                    raise
        return None

    def store(self, body: bytes, name: str, model_id: str, query: Query = STORE) -> str:
        """Upload a file to Numerai's storage; return the file's name there."""
        grant: Any = None
        # Numerai's own compute cluster identifies its runs by this.
        run_id = query is STORE and os.environ.get("NUMERAI_COMPUTE_ID")
        headers = {"x_compute_id": run_id} if run_id else {}

        def attempt() -> str:
            nonlocal grant
            grant = None
            # A new address for each attempt, since addresses expire.
            grant = self.ask(query, name, model_id, retry=False)
            self.http.put(query.step, grant.url, body, headers)
            return str(grant.filename)

        try:
            return self.http.retry(attempt)
        except HttpFailure as failure:
            if grant is None:
                raise
            text = str(failure).rstrip(".")
        raise UploadError(f"{text}; nothing was submitted.")

    def create(
        self, filename: str, model_id: str, known_ids: Collection[str], sha256: str
    ) -> str:
        """Create a submission of a stored file; return its id, or raise UploadError."""
        unclear = False
        # TRIGGER_ID is set by Numerai's cluster only, as in `store`.
        given = filename, model_id, os.environ.get("TRIGGER_ID")
        for count in range(self.http.retries + 1):
            try:
                return str(self.ask(CREATE, *given, retry=False).id)
            except HttpFailure as error:
                failure = error
            unclear |= failure.unclear
            if failure.asks_too_much or not (failure.unclear or failure.transient):
                break
            self.http.wait(count, failure.retry_after)
            try:  # the list first: Numerai would accept a second submission
                found = unclear and self.find(model_id, known_ids, filename, sha256)
            except ApiError:
                break
            if found:
                return found
        text = "it is unclear whether it was created: run this command again, which"
        text = f"{text} asks Numerai first" if unclear else "nothing was submitted"
        raise UploadError(f"{str(failure).rstrip('.')}; {text}.")


def _read_settings(path: Path) -> dict[str, str | None]:
    """Return the settings in a ``.env`` file, {} if there is no file. Errors never show
    the file's text, which may contain keys.
    """
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
        message = f"Other users can read {path}, which contains your key"
        warn(f"{message}: run 'chmod 600 {path}'.")
    return found
