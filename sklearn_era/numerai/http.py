"""One exchange over HTTP: bounded in time and size, told apart, silent about secrets.

A failure is an `HttpFailure` that says whether to try again, and whether the server may
have acted all the same. Addresses of the storage are signed, and whoever has one may
use it: no message, log or chain of exceptions shows one.
"""

import json
import logging
import random
import re
import threading
import time
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from sklearn_era._optional import import_optional
from sklearn_era.numerai.errors import ApiError

_T = TypeVar("_T")

SITE = "numer.ai"  # codespell:ignore numer
MOST_BYTES = 32 << 20  # of an answer that is held in memory
_CHUNK = 1 << 18
# Bytes a second, below which a download has stalled, and for which an upload has time.
_LEAST_SPEED, _UPLOAD_SPEED = 1_000, 100_000
_MOST_WAIT = 64.0
_MOST_REDIRECTS = 5
_LOCAL = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
_SUCCESS = range(200, 300)
_EXPIRED = 403  # of a signed address, in place of which there is another


@dataclass(eq=False)
class HttpFailure(ApiError):
    """A call failed; it may succeed later (`transient`), or have acted (`unclear`)."""

    message: str
    status: int | None = None
    transient: bool = False
    unclear: bool = False
    retry_after: float = 0.0  # seconds that the server asks to wait

    def __post_init__(self) -> None:
        super().__init__(self.message)


class Http:
    """Sends requests; `timeout` is in seconds, for each part of an answer.

    Sending takes ten times as long at most, an upload longer by its size, and so does
    an answer that is held in memory.
    """

    def __init__(self, timeout: float, retries: int, backoff: float = 1.0) -> None:
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self._skew = timedelta(0)
        # They log addresses, at DEBUG and, where headers are odd, as warnings.
        for name in ("urllib3.connectionpool", "urllib3.connection"):
            logging.getLogger(name).setLevel(logging.ERROR)

    def now(self) -> datetime:
        """The time by Numerai's clock, as far as it has been heard."""
        return datetime.now(UTC) + self._skew

    def wait(self, attempt: int, asked: float = 0.0) -> None:
        """Wait after a failed attempt, counted from 0, as long as the server asks."""
        # Clients that failed at the same time shall not come back at the same time.
        backoff = self.backoff * 2.0 ** min(attempt, 10) * random.uniform(0.5, 1.0)
        time.sleep(min(max(backoff, asked), _MOST_WAIT))

    def retry(self, attempt: Callable[[], _T]) -> _T:
        """Call until it succeeds, fails for good, or has been retried often enough."""
        for count in range(self.retries):
            try:
                return attempt()
            except HttpFailure as failure:
                if not failure.transient:
                    raise
                self.wait(count, failure.retry_after)
        return attempt()

    def post_json(
        self, step: str, url: str, body: Mapping[str, Any], token: str | None
    ) -> dict[str, Any]:
        """Post to the API, once; return the data that it answers with."""
        peer = f"{step}: Numerai's API"
        headers = {"Accept": "application/json"}
        headers |= {"Authorization": token} if token else {}
        with self._open(peer, "POST", url, headers, json=body) as response:
            content = b"".join(self._chunks(peer, response))
        status = response.status_code
        if date := _date(response.headers.get("Date", "")):
            self._skew = date - datetime.now(UTC)
        document = _parse(content, response.headers.get("Content-Encoding"))
        said = _errors_in(document, token)
        advice = f" ({said})" if said else ""
        if status in (401, 403) and token is not None:
            advice = f": check NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY{advice}"
        self._check(response, f"{peer} answered HTTP {status}{advice}.")
        if said:
            raise HttpFailure(f"{peer} refused: {said.rstrip('.')}.", status)
        if isinstance(data := document.get("data"), dict):
            return data
        told = "did not answer with data, perhaps because of a proxy"
        told = f"{peer} {told}: open {SITE} in a browser."
        raise HttpFailure(told, status, unclear=True)

    def put(self, step: str, url: str, content: bytes, headers: Any) -> None:
        """Put bytes where a signed address says, once."""
        peer = f"{step}: the storage"
        # As a stream, each block of which has the timeout, and not all together.
        stream, size = BytesIO(content), len(content)
        with self._open(peer, "PUT", url, headers, size, data=stream) as response:
            told = f"{peer} refused the file (HTTP {response.status_code})."
            self._check(response, told, _EXPIRED)

    @contextmanager
    def get(
        self, step: str, url: str, limited: bool = True, **headers: str
    ) -> Iterator[tuple[Any, Iterator[bytes]]]:
        """Open what is at a signed address: all of it, a range (206) or none (416).

        Redirects are followed, from https to https only. An encoded answer is refused:
        its size would say nothing, and not be bounded.
        """
        peer = f"{step}: the storage"
        for _ in range(_MOST_REDIRECTS):
            response = self._open(peer, "GET", url, headers)
            if not response.is_redirect:
                break
            response.close()
            url = _redirected(url, response.headers["Location"])
        with response:
            told = f"{peer} refused to send the file (HTTP {response.status_code})."
            self._check(response, told, _EXPIRED, good=(200, 206, 416))
            if response.headers.get("Content-Encoding", "identity") != "identity":
                told = f"{peer} sent the file compressed, which was not asked for."
                raise HttpFailure(told)
            yield response, self._chunks(peer, response, limited)

    def _open(
        self, peer: str, method: str, url: str, headers: Any, size: int = 0, **body: Any
    ) -> Any:
        """Send a request with a body of a size; that of the answer is still to come."""
        if not may_be_called(url):
            raise HttpFailure(f"{peer} cannot be called: its address is not https.")
        seconds = 10 * self.timeout + size / _UPLOAD_SPEED
        send = partial(self._send, method, url, headers, **body)
        outcome: Future[Any] = Future()

        def run() -> None:
            try:
                outcome.set_result(self._told_apart(peer, send))
            except BaseException as error:
                outcome.set_exception(error)

        # In a thread, which is left behind when the time is up: the timeout of a socket
        # begins anew with every byte that comes in.
        threading.Thread(target=run, daemon=True).start()
        try:
            return outcome.result(seconds)
        except TimeoutError:
            outcome.add_done_callback(lambda x: x.exception() or x.result().close())
            told = f"{peer} did not finish answering within {seconds:.3g} seconds."
        raise HttpFailure(told, transient=True, unclear=True)

    def _send(self, method: str, url: str, headers: Any, **body: Any) -> Any:
        requests = import_optional("requests", extra="numerai")
        ours = {"Accept-Encoding": "identity", "Connection": "close"}
        headers = {"User-Agent": "sklearn-era", **ours, **headers}
        # Not by the session: it would follow redirects, of which a post becomes a get
        # that looks like success, and send ~/.netrc instead of the key.
        with requests.Session() as session:
            # On this machine there is no proxy in between.
            session.trust_env = not is_loopback(url)
            settings = session.merge_environment_settings(url, {}, True, None, None)
            request = requests.Request(method, url, headers, **body).prepare()
            send = session.get_adapter(url).send
            return send(request, timeout=self.timeout, **settings)

    def _chunks(self, peer: str, reply: Any, limited: bool = True) -> Iterator[bytes]:
        """A body as it comes in, from a peer that neither stalls nor goes on and on."""
        read = partial(reply.raw.read1, _CHUNK)
        spent, taken, elapsed, total = 0.0, 0, 0.0, 0
        began = time.monotonic()
        while chunk := self._told_apart(peer, read):
            spent, taken = spent + time.monotonic() - began, taken + len(chunk)
            total += len(chunk)
            if limited and total > MOST_BYTES:
                told = f"{peer} sent more than {MOST_BYTES:,} bytes."
                raise HttpFailure(told, unclear=True)
            if spent >= self.timeout:
                elapsed += spent
                late = limited and elapsed >= 10 * self.timeout
                if late or taken < _LEAST_SPEED * spent:
                    told = f"{peer} sent only {total:,} bytes in {elapsed:.3g} seconds."
                    raise HttpFailure(told, transient=True, unclear=True)
                spent, taken = 0.0, 0
            yield chunk
            began = time.monotonic()

    def _told_apart(self, peer: str, call: Callable[[], _T]) -> _T:
        """Call; what goes wrong in the network is told in our words."""
        errors = import_optional("requests", extra="numerai").exceptions
        below = import_optional("urllib3", extra="numerai").exceptions
        passing = False
        try:
            return call()
        except (errors.Timeout, below.TimeoutError):
            told, passing = f"did not answer within {self.timeout:g} seconds", True
        except errors.SSLError:
            told = "has a certificate that could not be verified"
        except (errors.ConnectionError, below.HTTPError):
            told, passing = "could not be reached, or closed the connection", True
        except errors.RequestException as error:
            told = f"could not be called ({type(error).__name__})"
        except OSError as error:  # that of requests for REQUESTS_CA_BUNDLE, say
            told = f"could not be called ({tell(error)})"
        # Not within the handlers: the errors of requests hold headers and addresses.
        raise HttpFailure(f"{peer} {told}.", transient=passing, unclear=passing)

    def _check(
        self, response: Any, told: str, *passing: int, good: Container[int] = _SUCCESS
    ) -> None:
        """Raise what is told if a status is not good; it may be one that passes."""
        if (status := response.status_code) in good:
            return
        asked = response.headers.get("Retry-After", "").strip()
        wait = float(asked) if asked.isdecimal() else 0.0
        if date := _date(asked):
            wait = (date - self.now()).total_seconds()
        transient = status >= 500 or status in (408, 429, *passing)
        unclear = status >= 500 or status == 408
        raise HttpFailure(told, status, transient, unclear, wait)


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    return bool(_LOCAL.fullmatch(urlsplit(url).hostname or ""))


def may_be_called(url: str) -> bool:
    """Whether an address is of https, or on this machine."""
    with suppress(ValueError):  # of brackets that do not close, for one
        scheme, named = urlsplit(url).scheme, bool(urlsplit(url).hostname)
        return named and (scheme == "https" or (scheme == "http" and is_loopback(url)))
    return False


def tell(text: object, *secrets: str) -> str:
    """What a server said, on one line, without secrets or signed addresses."""
    line = " ".join(str(text).split())
    # What a terminal would take for commands.
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    for secret in filter(None, secrets):
        line = line.replace(secret, "***")
    line = re.sub(r"https?://\S+", "<address>", line)
    return line if len(line) <= 300 else f"{line[:300]}..."


def _redirected(url: str, location: str) -> str:
    """Where a redirect leads; "" if from elsewhere to this machine, or nowhere."""
    with suppress(ValueError):
        target = urljoin(url, location)
        if is_loopback(url) or not is_loopback(target):
            return target
    return ""


def _parse(content: bytes, encoding: str | None) -> dict[str, Any]:
    """An object in JSON, an empty one if it is none."""
    document = None
    with suppress(ValueError, RecursionError, zlib.error):
        if encoding == "gzip":
            decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
            content = decoder.decompress(content, MOST_BYTES)
        document = json.loads(content)
    return document if isinstance(document, dict) else {}


def _errors_in(document: Mapping[str, Any], token: str | None) -> str:
    """What GraphQL complains of, all of it, or nothing."""
    errors = document.get("errors") or []
    texts = [
        (x.get("message") or x.get("detail") or x) if isinstance(x, dict) else x
        for x in (errors if isinstance(errors, list) else [errors])
    ]
    public_id, _, secret_key = (token or "").removeprefix("Token ").partition("$")
    return tell("; ".join(map(str, texts)), secret_key, public_id)


def _date(text: str) -> datetime | None:
    """The time of a header, None if there is none."""
    with suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(text)
        return date.replace(tzinfo=date.tzinfo or UTC)
    return None
