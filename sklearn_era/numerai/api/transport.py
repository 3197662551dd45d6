"""HTTP as an upload within an hour needs it: bounded, told apart, and silent.

A failure is an :class:`HttpFailure` that says whether to try again, and whether the
server may have acted all the same. Addresses of the storage are signed, and whoever has
one may use it: no message, log or chain of exceptions shows one.
"""

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import IO, Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from sklearn_era._optional import import_optional
from sklearn_era.numerai.api.credentials import SITE
from sklearn_era.numerai.errors import ApiError, ConfigError

_T = TypeVar("_T")
_CHUNK = 1 << 20

# A minute, if the first wait is of a second: an upload has an hour.
_MOST_BACKOFF = 64
# A day. Sockets refuse what their clock does not reach.
_LONGEST_TIMEOUT = 86_400

# Answers after which the same call may succeed.
_TRANSIENT = frozenset({408, 429})
# A signed address has run out after a while; a new one is asked for.
_EXPIRED = 403


class HttpFailure(ApiError):
    """A call failed.

    Parameters
    ----------
    message : str
        What happened, in a sentence.
    status : int, default=None
        The status of the answer, None if there was none.
    transient : bool, default=False
        Whether it may succeed if it is tried again.
    unclear : bool, default=False
        Whether the server may have done what it was asked for.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        transient: bool = False,
        unclear: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.transient = transient
        self.unclear = unclear


@dataclass(frozen=True)
class Reply:
    """An answer: its status, its body unless that went to a file, bytes announced."""

    status: int
    content: bytes
    announced: int | None


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_api_url(url: str) -> str:
    """Check that an address may be sent a key.

    Raises
    ------
    ConfigError
        If it is neither https nor on this machine.
    """
    if not _may_be_called(url):
        # Without what may stand there besides, a password for one.
        parts = _split(url)
        host = parts and parts.hostname and f"{parts.scheme}://{parts.hostname}"
        raise ConfigError(
            f"api_url {host or 'without a host'} is refused: a key is sent by https "
            "only, or to http://127.0.0.1. From the environment it is that of "
            "SKLEARN_ERA_NUMERAI_API_URL."
        )
    return url


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:  # of brackets that do not close, for one
        return None


def _may_be_called(url: str) -> bool:
    parts = _split(url)
    if parts is None or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url))


def tell(text: object, *secrets: str) -> str:
    """What a server said, on one line, without secrets or signed addresses."""
    line = " ".join(str(text).split())
    # What a terminal would take for commands.
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    for secret in filter(None, secrets):
        line = line.replace(secret, "***")
    line = re.sub(r"https?://\S+", "<address>", line)
    return line if len(line) <= 300 else f"{line[:300]}..."


class Transport:
    """Sends requests.

    Parameters
    ----------
    timeout : float
        Seconds to wait for a connection, and for each part of an answer.
    retries : int
        How often to try again.
    backoff : float
        Seconds before the first of those, which double from one to the next, until
        they are 64 times the first.
    """

    def __init__(self, *, timeout: float, retries: int, backoff: float) -> None:
        for name, value, least in (("retries", retries, 0), ("backoff", backoff, 0)):
            if not value >= least:
                raise ConfigError(f"{name} must be {least} or more, got {value!r}.")
        if not 0 < timeout <= _LONGEST_TIMEOUT:
            raise ConfigError(
                "timeout must be more than 0 seconds, and no more than "
                f"{_LONGEST_TIMEOUT}, got {timeout!r}."
            )
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff

    def wait(self, attempt: int) -> None:
        """Wait after a failed attempt, counted from 0."""
        time.sleep(self.backoff * min(2**attempt, _MOST_BACKOFF))

    def retry(self, attempt: Callable[[], _T]) -> _T:
        """Call until it succeeds, fails for good, or has been retried often enough."""
        for count in range(self.retries):
            try:
                return attempt()
            except HttpFailure as failure:
                if not failure.transient:
                    raise
            self.wait(count)
        return attempt()

    def post_json(
        self, step: str, url: str, body: Mapping[str, Any], token: str | None
    ) -> dict[str, Any]:
        """Post to the API, once; return the data that it answers with."""
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = token
        reply = self._exchange(
            step, "Numerai's API", "POST", url, headers=headers, body=body
        )
        document = _parse(reply.content)
        said = _errors_in(document, token)
        if not 200 <= reply.status < 300:
            raise HttpFailure(
                f"{step}: Numerai's API answered HTTP {reply.status}"
                + _advice(reply.status, token, said),
                status=reply.status,
                transient=_is_transient(reply.status),
                unclear=reply.status >= 500 or reply.status == 408,
            )
        if said:
            raise HttpFailure(
                f"{step}: Numerai's API refused: {said.rstrip('.')}.", status=200
            )
        if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
            raise HttpFailure(
                f"{step}: Numerai's API answered with something else than data, as a "
                f"proxy in between may: open {SITE} in a browser.",
                status=reply.status,
                unclear=True,
            )
        data: dict[str, Any] = document["data"]
        return data

    def put(
        self, step: str, url: str, content: bytes, headers: Mapping[str, str]
    ) -> None:
        """Put bytes where a signed address says, once."""
        reply = self._exchange(
            step, "the storage", "PUT", url, headers=headers, data=content
        )
        _check_storage(step, reply, "refused the file", range(200, 300))

    def get(
        self,
        step: str,
        url: str,
        sink: IO[bytes],
        on_bytes: Callable[[int, int], None] | None = None,
        check_room: Callable[[int], None] | None = None,
    ) -> None:
        """Write what is at a signed address to `sink`, once, whole."""
        written = 0

        def take(chunk: bytes, total: int) -> None:
            nonlocal written
            if not written and check_room is not None:
                check_room(total)
            written += sink.write(chunk)
            if on_bytes is not None:
                on_bytes(written, total)

        headers = {"Accept-Encoding": "identity"}
        reply = self._exchange(
            step, "the storage", "GET", url, headers=headers, take=take
        )
        _check_storage(step, reply, "refused to send it", range(200, 201))
        if reply.announced is not None and written != reply.announced:
            raise HttpFailure(
                f"{step}: the storage announced {reply.announced:,} bytes and sent "
                f"{written:,}.",
                status=reply.status,
                transient=True,
            )

    def _exchange(
        self,
        step: str,
        who: str,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        take: Callable[[bytes, int], None] | None = None,
    ) -> Reply:
        if not _may_be_called(url):
            raise HttpFailure(f"{step}: Numerai's API gave an address without https.")
        requests = import_optional("requests", extra="numerai")
        errors = requests.exceptions
        with requests.Session() as session, _unlogged():
            # On this machine there is no proxy in between.
            session.trust_env = not is_loopback(url)
            try:
                with session.request(
                    method,
                    url,
                    headers=dict(headers),
                    json=body,
                    data=data,
                    # An entry in ~/.netrc would replace the header with the key.
                    auth=lambda request: request,
                    timeout=self.timeout,
                    # A redirected post becomes a get, which would look like success.
                    allow_redirects=method == "GET",
                    stream=True,
                ) as response:
                    return _read(response, take)
            except errors.Timeout:
                failure = f"did not answer within {self.timeout:g} seconds"
                transient = True
            except errors.SSLError:
                failure = "has a certificate that could not be verified"
                transient = False
            except (errors.ConnectionError, errors.ChunkedEncodingError):
                failure = "could not be reached, or broke off"
                transient = True
            except errors.RequestException as error:
                failure = f"could not be called ({type(error).__name__})"
                transient = False
            except OSError as error:
                if error.errno is not None:
                    raise  # of the file that is written to
                # That of requests for REQUESTS_CA_BUNDLE, say.
                failure = f"could not be called ({tell(error)})"
                transient = False
        # Not within the handlers: the errors of requests hold headers and addresses.
        raise HttpFailure(
            f"{step}: {who} {failure}.", transient=transient, unclear=transient
        )


def _read(response: Any, take: Callable[[bytes, int], None] | None) -> Reply:
    announced = response.headers.get("Content-Length", "")
    # Counted before a compression, of which the number says nothing.
    exact = announced.isdigit() and not response.headers.get("Content-Encoding")
    total = int(announced) if exact else None
    if take is None or response.status_code != 200:
        return Reply(response.status_code, response.content, total)
    for chunk in response.iter_content(_CHUNK):
        take(chunk, total or 0)
    return Reply(response.status_code, b"", total)


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _errors_in(document: Any, token: str | None) -> str:
    """What GraphQL complains of, all of it, or nothing."""
    errors = document.get("errors") if isinstance(document, dict) else None
    if not errors:
        return ""
    listed = errors if isinstance(errors, list) else [errors]
    texts = [
        str(error.get("message") or error.get("detail") or error)
        if isinstance(error, dict)
        else str(error)
        for error in listed
    ]
    public_id, _, secret_key = (token or "").removeprefix("Token ").partition("$")
    return tell("; ".join(texts), secret_key, public_id)


def _advice(status: int, token: str | None, said: str) -> str:
    told = f" ({said})" if said else ""
    if status in (401, 403) and token is not None:
        return f": check NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY{told}."
    return f"{told}."


def _is_transient(status: int) -> bool:
    return status >= 500 or status in _TRANSIENT


def _check_storage(step: str, reply: Reply, verb: str, accepted: range) -> None:
    if reply.status not in accepted:
        raise HttpFailure(
            f"{step}: the storage {verb} (HTTP {reply.status}).",
            status=reply.status,
            transient=_is_transient(reply.status) or reply.status == _EXPIRED,
        )


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep urllib3 from logging the addresses that this thread calls."""
    logger = logging.getLogger("urllib3.connectionpool")
    own = threading.get_ident()

    def passes(record: logging.LogRecord) -> bool:
        return record.thread != own

    logger.addFilter(passes)
    try:
        yield
    finally:
        logger.removeFilter(passes)


__all__ = ["HttpFailure", "Transport", "check_api_url", "is_loopback", "tell"]
