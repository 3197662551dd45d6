"""The client of Numerai's API: what a week's work asks of it, a method each."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from sklearn_era.numerai.api.api_calls import CLASSIC, ApiCalls, unknown_answer
from sklearn_era.numerai.api.credentials import SITE, Keys, Secret, read_keys
from sklearn_era.numerai.api.fetching import fetch_file
from sklearn_era.numerai.api.submission_calls import (
    ListedSubmission,
    create,
    fetch_submission,
    find_submission,
    list_submissions,
    store,
    utc,
)
from sklearn_era.numerai.api.transport import HttpFailure, Transport
from sklearn_era.numerai.errors import ApiError, DataError, UploadError

# Where the API is, for a stand-in; Numerai's own if it is not set.
API_URL_VARIABLE = "SKLEARN_ERA_NUMERAI_API_URL"

_ROUND_FIELDS = "number openTime closeStakingTime"
_CURRENT_ROUND = f"""
query($tournament: Int!) {{ rounds(tournament: $tournament number: 0) {{
  {_ROUND_FIELDS} }} }}"""
_ALL_ROUNDS = f"""
query($tournament: Int!) {{ rounds(tournament: $tournament) {{ {_ROUND_FIELDS} }} }}"""


@dataclass(frozen=True)
class Round:
    """A round of the tournament.

    Attributes
    ----------
    number : int
        Its number.
    close_time : datetime or None
        When it closes or closed, in UTC; None if Numerai does not say.
    is_open : bool
        Whether it takes submissions now.
    """

    number: int
    close_time: datetime | None
    is_open: bool


class NumeraiClient:
    """A client of Numerai's API, for the Classic tournament.

    Most users want :meth:`from_environment`.

    Parameters
    ----------
    keys : Keys, default=None
        The API key; None for calls that need none, such as downloads.

    api_url : str, default=None
        The API's address, for a stand-in: https, or on this machine. None for that
        of numerapi, which is Numerai's own.

    timeout : float, default=60.0
        Seconds to wait for a connection, and for each part of an answer.

    retries : int, default=3
        How often to repeat a call that timed out, could not connect, or was answered
        by an error of the server's.

    backoff : float, default=1.0
        Seconds before the first repetition; they double each time.

    Raises
    ------
    ConfigError
        If a number is out of its range, or `api_url` may not be sent a key.
    """

    def __init__(
        self,
        keys: Keys | None = None,
        *,
        api_url: str | None = None,
        timeout: float = 60.0,
        retries: int = 3,
        backoff: float = 1.0,
    ) -> None:
        self._calls = ApiCalls(
            keys or Keys(Secret(""), Secret("")),
            Transport(timeout=timeout, retries=retries, backoff=backoff),
            api_url,
        )

    @classmethod
    def from_environment(
        cls,
        env_file: str | os.PathLike[str] | None = None,
        api_url: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        backoff: float = 1.0,
    ) -> "NumeraiClient":
        """A client with the key of NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY.

        Parameters
        ----------
        env_file : str or path-like, default=None
            A file that may set them where the environment does not; ``.env`` in the
            current folder by default. It is read by python-dotenv.

        api_url : str, default=None
            As for the class; by default what ``SKLEARN_ERA_NUMERAI_API_URL`` says.

        timeout, retries, backoff
            As for the class.

        Returns
        -------
        client : NumeraiClient
            It may lack keys, which is an error once they are needed:
            :meth:`check_keys`.

        Raises
        ------
        ConfigError
            As for the class, or if `env_file` cannot be read.
        """
        return cls(
            read_keys(env_file),
            api_url=api_url or os.environ.get(API_URL_VARIABLE) or None,
            timeout=timeout,
            retries=retries,
            backoff=backoff,
        )

    def __repr__(self) -> str:
        return "NumeraiClient()"

    def check_keys(self) -> None:
        """Check that there is a key, without a call.

        Raises
        ------
        ConfigError
            If a half is missing, or cannot be one.
        """
        self._calls.keys.check()

    def current_round(self) -> Round:
        """The round that is open, or was last.

        Raises
        ------
        ApiError
            If Numerai cannot be asked, or names no round.
        """
        step = "Looking up the current round"
        variables = {"tournament": CLASSIC}
        try:
            found = self._calls.query(step, _CURRENT_ROUND, variables)["rounds"]
        except HttpFailure as failure:
            # Between two rounds none is the current one, which GraphQL refuses.
            if failure.status != 200:
                raise
            found = None
        if not found or found[0] is None:
            found = self._calls.query(step, _ALL_ROUNDS, variables)["rounds"]
        try:
            rounds = _opened_rounds(found or [])
        except (KeyError, TypeError, ValueError) as error:
            rounds, reason = None, type(error).__name__
        if rounds is None:
            raise unknown_answer(step, reason)
        if not rounds:
            raise ApiError(f"{step}: Numerai's API names no round that has opened.")
        return max(rounds, key=lambda entry: entry.number)

    def model_id(self, name: str) -> str:
        """The id of a Classic model of the account.

        Raises
        ------
        ApiError
            If there is no model of that name.
        """
        models = self._calls.numerapi("Looking up the model", "get_models")
        if name not in models:
            known = f"Your models: {', '.join(sorted(models))}."
            raise ApiError(
                f"No Classic model named {name!r}. "
                + (known if models else f"The account has none: add one at {SITE}.")
            )
        return str(models[name])

    def list_datasets(self) -> list[str]:
        """The names of the files that Numerai serves, ``"v5.3/live.parquet"`` for one.

        Raises
        ------
        ApiError
            If Numerai cannot be asked.
        """
        step = "Listing the data"
        listed = self._calls.numerapi(step, "list_datasets")
        if not isinstance(listed, list):
            raise unknown_answer(step, f"a {type(listed).__name__}")
        return [str(name) for name in listed]

    def submission_ids(self, model_id: str) -> list[ListedSubmission]:
        """The submissions of a model, the newest first.

        Raises
        ------
        ApiError
            If Numerai cannot be asked.
        """
        return list_submissions(self._calls, model_id)

    def download(
        self,
        filename: str,
        path: Path,
        *,
        check: Callable[[Path], object] | None = None,
        on_bytes: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Download a file of the data; it appears complete and checked or not at all.

        Parameters
        ----------
        filename : str
            Its name at Numerai, ``"v5.3/live.parquet"`` for one.

        path : Path
            Where it goes; a file there is replaced.

        check : callable, default=None
            Called with the path of the complete file before it has its name. Raises
            DataError if the file is bad, which is then fetched once more.

        on_bytes : callable, default=None
            Called with the bytes so far and those announced, 0 if they are not.

        Returns
        -------
        path : Path
            The same.

        Raises
        ------
        ApiError
            If it cannot be fetched.
        DataError
            If it is bad twice, or cannot be written.
        """
        path = Path(path)
        fetch_file(self._calls, filename, path, check=check, on_bytes=on_bytes)
        return path

    def download_submission(self, submission_id: str) -> bytes:
        """The file of a submission, as Numerai has it.

        Raises
        ------
        ApiError
            If it is not to be had.
        """
        return fetch_submission(self._calls, submission_id)

    def upload_submission(
        self,
        path: Path,
        model_id: str,
        *,
        known: Collection[str] | None = None,
        expected_sha256: str | None = None,
        on_stored: Callable[[str], None] | None = None,
    ) -> str:
        """Upload a file and make a submission of it.

        The submission is made only once the storage has accepted the file. If it then
        is unclear whether it was made, Numerai's list decides before another attempt.

        Parameters
        ----------
        path : Path
            The CSV file, which is sent as it is.

        model_id : str
            The model's id.

        known : collection of str, default=None
            The ids of the model's submissions until now; asked for by default.

        expected_sha256 : str, default=None
            The digest of the file that was checked, in hexadecimal digits.

        on_stored : callable, default=None
            Called with the name that Numerai gave the file once it is stored, before
            the submission is made.

        Returns
        -------
        submission_id : str
            The id of the submission.

        Raises
        ------
        ApiError
            If Numerai cannot be asked; nothing was submitted.
        UploadError
            If the file or the submission is refused, or cannot be told from none.
        DataError
            If the file cannot be read.
        """
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from None
        digest = sha256(content).hexdigest()
        if expected_sha256 not in (None, digest):
            raise UploadError(
                f"{path} has changed since it was checked; nothing was submitted."
            )
        if known is None:
            known = [entry.submission_id for entry in self.submission_ids(model_id)]
        filename = store(self._calls, content, path.name, model_id)
        if on_stored is not None:
            on_stored(filename)
        return create(self._calls, filename, model_id, known, digest)

    def find_submission(
        self,
        model_id: str,
        *,
        known: Collection[str],
        filename: str | None,
        sha256: str,
    ) -> str | None:
        """The id of a submission of a file, if it is not among those known before.

        Parameters
        ----------
        model_id : str
            The model's id.

        known : collection of str
            The ids of the submissions from before the upload.

        filename : str or None
            The name that Numerai gave the file, if that is known.

        sha256 : str
            The file's digest, which decides where the name does not.

        Raises
        ------
        ApiError
            If Numerai cannot be asked.
        """
        return find_submission(
            self._calls, model_id, known=known, filename=filename, sha256=sha256
        )

    def wait(self, attempt: int) -> bool:
        """Wait as after a failed attempt, counted from 0; False if it was the last."""
        if attempt >= self._calls.transport.retries:
            return False
        self._calls.transport.wait(attempt)
        return True


def _opened_rounds(entries: Sequence[Mapping[str, Any]]) -> list[Round]:
    now = datetime.now(UTC)
    rounds = []
    for entry in entries:
        opens, closes = utc(entry["openTime"]), utc(entry["closeStakingTime"])
        if opens is None or opens <= now:
            is_open = closes is None or now < closes
            rounds.append(Round(int(entry["number"]), closes, is_open))
    return rounds


__all__ = ["API_URL_VARIABLE", "ListedSubmission", "NumeraiClient", "Round"]
