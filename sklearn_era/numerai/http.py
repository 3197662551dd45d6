"""Send HTTP requests with bounded time and size, and classify their failures.

A signed address of the storage gives access to whoever has it. Messages, logs and
chained exceptions therefore show neither signed addresses nor keys.
"""

import json
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from sklearn_era._files import printable
from sklearn_era.numerai.errors import ApiError

_T = TypeVar("_T")

SITE = "numer.ai"  # codespell:ignore numer
MOST_BYTES = 32 << 20  # of an answer held in memory
_CHUNK = 1 << 16  # at most 64 MB after a thousandfold decompression
# Bytes a second: a slower download has stalled; an upload's time limit allows for it.
_LEAST_SPEED, _UPLOAD_SPEED = 1_000, 100_000
# Seconds between two attempts, and the longest Retry-After that is obeyed.
_MOST_WAIT, _MOST_ASKED = 64.0, 900.0
_MOST_REDIRECTS = 5
_THREAD = "sklearn-era-http"
_LOCAL = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


class HttpFailure(ApiError):
    """A failed call. `transient` is whether another attempt may succeed, and `unclear`
    whether the server may have carried out the call.
    """

    def __init__(
        self, text: str, status: int = 0, transient: bool = False, unclear: bool = False
    ) -> None:
        super().__init__(text)
        self.status, self.transient, self.unclear = status, transient, unclear
        # Seconds that the server asks to wait, perhaps more than a run may take.
        self.retry_after, self.asks_too_much = 0.0, False


class Http:
    """Sends requests. All but file transfers end within 20 * `timeout` seconds."""

    def __init__(self, timeout: float, retries: int, backoff: float = 1.0) -> None:
        self.timeout, self.retries, self.backoff = timeout, retries, backoff
        self._skew = timedelta(0)
        # These log addresses: at DEBUG, and in warnings about odd headers.
        for name in ("urllib3.connectionpool", "urllib3.connection"):
            logging.getLogger(name).addFilter(_is_foreign)

    def now(self) -> datetime:
        """Return the UTC time, corrected by Numerai's clock after its first answer."""
        return datetime.now(UTC) + self._skew

    def wait(self, attempt: int, asked: float = 0.0) -> None:
        """Wait at least `asked` seconds; the wait grows with `attempt`, from 0 on."""
        # Jitter: clients that failed at the same time must not return together.
        backoff = self.backoff * 2.0 ** min(attempt, 10) * random.uniform(0.5, 1.0)
        time.sleep(max(min(backoff, _MOST_WAIT), asked))

    def retry(self, attempt: Callable[[], _T]) -> _T:
        """Return the result of `attempt`; call it again after transient failures."""
        for count in range(self.retries):
            try:
                return attempt()
            except HttpFailure as failure:
                if not failure.transient or failure.asks_too_much:
                    raise
                self.wait(count, failure.retry_after)
        return attempt()

    def post_json(self, step: str, url: str, body: Any, token: str | None) -> Any:
        """Post `body` to Numerai's API once, and return the data of the answer."""
        peer, headers = f"{step}: Numerai's API", {"Accept": "application/json"}
        headers |= {"Authorization": token} if token else {}
        with self._open(peer, "POST", url, headers, json=body) as response:
            content = b"".join(self._chunks(peer, response))
        if date := _date(response.headers.get("Date", "")):
            self._skew = date - datetime.now(UTC)
        data, complaint = _parse_answer(content, token)
        advice = f" ({complaint})" if complaint else ""
        if token is not None and response.status_code in (401, 403):
            advice = f": check NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY{advice}"
        self._check(peer, response, advice)
        if complaint:
            raise HttpFailure(f"{peer} refused: {complaint.rstrip('.')}.", 200)
        if data is not None:
            return data
        text = f"{peer} did not answer with data (a proxy?): open {SITE} in a browser."
        raise HttpFailure(text, 200, unclear=True)

    def put(self, step: str, url: str, content: bytes, headers: dict[str, str]) -> None:
        """Upload bytes to a signed address of the storage, without other attempts."""
        peer = f"{step}: the storage"
        # A stream: the timeout then applies to each block instead of the whole.
        stream, size = BytesIO(content), len(content)
        with self._open(peer, "PUT", url, headers, size, data=stream) as response:
            self._check(peer, response, is_signed=True)

    @contextmanager
    def get(
        self, step: str, url: str, limited: bool = True, **headers: str
    ) -> Iterator[tuple[Any, Iterator[bytes]]]:
        """Open a signed address; yield the reply, and an iterator over chunks of its
        body: the whole file, a range of the file (status 206), or no part of it (416).
        """
        peer = f"{step}: the storage"
        for _ in range(_MOST_REDIRECTS):
            response = self._open(peer, "GET", url, headers)
            if not response.is_redirect:
                break
            response.close()
            url = _redirected(url, response.headers["Location"])
        with response:
            if response.status_code != 416:
                self._check(peer, response, is_signed=True)
            # Decompressed, its size would neither be known nor bounded.
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise HttpFailure(f"{peer} sent the file compressed, unasked.")
            yield response, self._chunks(peer, response, limited)

    def _open(
        self, peer: str, method: str, url: str, headers: Any, size: int = 0, **body: Any
    ) -> Any:
        """Send a request of `size` bytes; return the reply before its body is read."""
        if not may_be_called(url):
            raise HttpFailure(f"{peer} cannot be called: its address is not https.")
        seconds = 10 * self.timeout + size / _UPLOAD_SPEED
        send = partial(self._send, method, url, headers, **body)
        late = f"did not finish answering within {seconds:.3g} seconds"
        outcome = _started(partial(self._classified, peer, send))
        try:
            return outcome.result(seconds)
        except TimeoutError:
            outcome.add_done_callback(lambda x: x.exception() or x.result().close())
        raise HttpFailure(f"{peer} {late}.", transient=True, unclear=True)

    def _send(self, method: str, url: str, headers: Any, **body: Any) -> Any:
        ours = {"Accept-Encoding": "identity", "Connection": "close"}
        headers = {"User-Agent": "sklearn-era", **ours, **headers}
        # Not by the session: it would follow redirects, turning a post into a get that
        # looks like success, and send ~/.netrc instead of the key.
        with requests.Session() as session:
            # No proxy to this machine itself.
            session.trust_env = not is_loopback(url)
            given: Any = session.merge_environment_settings(url, {}, True, None, None)
            request = requests.Request(method, url, headers, **body).prepare()
            return session.get_adapter(url).send(request, timeout=self.timeout, **given)

    def _chunks(self, peer: str, reply: Any, limited: bool = True) -> Iterator[bytes]:
        """Yield a body in chunks; raise HttpFailure if the body arrives too slowly or,
        if `limited`, if it is too long or takes too long as a whole.
        """
        spent, taken, elapsed, total = 0.0, 0, 0.0, 0
        read, began = partial(self._read, reply.raw), time.monotonic()
        while chunk := self._classified(peer, read):
            spent, taken = spent + time.monotonic() - began, taken + len(chunk)
            total += len(chunk)
            if limited and total > MOST_BYTES:
                text = f"{peer} sent more than {MOST_BYTES:,} bytes."
                raise HttpFailure(text, unclear=True)
            if spent >= self.timeout:
                elapsed += spent
                late = limited and elapsed >= 10 * self.timeout
                if late or taken < _LEAST_SPEED * spent:
                    text = f"sent only {total:,} bytes in {elapsed:.3g} seconds"
                    raise HttpFailure(f"{peer} {text}.", 0, True, unclear=True)
                spent, taken = 0.0, 0
            yield chunk
            began = time.monotonic()

    def _read(self, raw: Any) -> bytes:
        """Return the next bytes of a body; raise TimeoutError after 2 * `timeout`."""
        try:
            chunk = _started(partial(raw.read1, _CHUNK, decode_content=True))
            return chunk.result(2 * self.timeout)
        except BaseException:  # Ctrl-C, too: to close it would wait for the thread
            with suppress(OSError, RuntimeError, ValueError):  # it is closed
                raw.shutdown()
            raise

    def _classified(self, peer: str, call: Callable[[], _T]) -> _T:
        """Return the result of `call`; raise HttpFailure in place of network errors."""
        errors, below, passing = requests.exceptions, urllib3.exceptions, False
        try:
            return call()
        except (TimeoutError, errors.Timeout, below.TimeoutError):
            text, passing = f"did not answer within {self.timeout:g} seconds", True
        except errors.SSLError:
            text = "has a certificate that could not be verified"
        except (errors.ConnectionError, below.HTTPError):
            text = "could not be reached, or closed the connection: check the network"
            passing = True
        except errors.RequestException as error:
            text = f"could not be called ({type(error).__name__})"
        except OSError as error:  # such as a bad REQUESTS_CA_BUNDLE
            text = f"could not be called ({redact(error)})"
        # Outside the handlers: errors of requests hold headers and addresses.
        raise HttpFailure(f"{peer} {text}.", transient=passing, unclear=passing)

    def _check(
        self, peer: str, response: Any, advice: str = "", is_signed: bool = False
    ) -> None:
        """Raise HttpFailure unless the status is 2xx. The message names the server
        `peer` and has `advice` after the status. If `is_signed`, the failure is
        transient for status 403, which the storage sends if an address has expired.
        """
        if 200 <= (status := response.status_code) < 300:
            return
        unclear = status >= 500 or status == 408
        # An expired signed address is replaced by a new one.
        transient = unclear or status == 429 or (is_signed and status == 403)
        asked, seconds = response.headers.get("Retry-After", "").strip(), 0.0
        if date := _date(asked):
            seconds = (date - self.now()).total_seconds()
        elif asked.isdecimal():
            seconds = float(asked)
        if seconds > _MOST_ASKED:
            asks = f"asks to wait {seconds:,.0f} seconds: run this command again then"
            advice += f" and {asks}"
        text = f"{peer} answered HTTP {status}{advice}."
        failure = HttpFailure(text, status, transient, unclear)
        failure.retry_after, failure.asks_too_much = seconds, seconds > _MOST_ASKED
        raise failure


def _started(call: Callable[[], _T]) -> Future[_T]:
    """Start a call in a thread and return its future, so that the caller can wait for a
    limited time. A socket's own timeout sets no limit, since each byte restarts it.
    """
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name=_THREAD, daemon=True).start()
    return outcome


def _is_foreign(record: logging.LogRecord) -> bool:
    """Return whether a log record is about a request that another package sent."""
    return threading.current_thread().name != _THREAD


def is_loopback(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    return bool(_LOCAL.fullmatch(urlsplit(url).hostname or ""))


def may_be_called(url: str) -> bool:
    """Return whether a URL may be called: it is https, or its host is this machine."""
    with suppress(ValueError):  # such as an unclosed bracket
        parts = urlsplit(url)
        schemes = ("https", "http") if is_loopback(url) else ("https",)
        return parts.scheme in schemes and bool(parts.hostname)
    return False


def redact(text: object, *secrets: str) -> str:
    """Return a server's message on one line, without secrets and signed addresses."""
    line = printable(" ".join(str(text).split()))
    for secret in filter(None, secrets):
        line = line.replace(secret, "***")
    line = re.sub(r"https?://\S+", "<address>", line)
    return line if len(line) <= 300 else f"{line[:300]}..."


def _redirected(url: str, location: str) -> str:
    """Return the URL that a redirect from `url` leads to; "" if this URL is invalid, or
    if it is on this machine and `url` is not.
    """
    with suppress(ValueError):
        target = urljoin(url, location)
        if is_loopback(url) or not is_loopback(target):
            return target
    return ""


def _parse_answer(content: bytes, token: str | None) -> tuple[Any, str]:
    """Return (data, complaint) of a GraphQL answer: its data, or None if it has none;
    and its error messages on one line, without the keys in `token`.
    """
    document: Any = None
    with suppress(ValueError, RecursionError):
        document = json.loads(content)
    document = document if isinstance(document, dict) else {}
    data, errors = document.get("data"), document.get("errors") or []
    texts = [
        (x.get("message") or x.get("detail") or x) if isinstance(x, dict) else x
        for x in (errors if isinstance(errors, list) else [errors])
    ]
    public_id, _, secret_key = (token or "").removeprefix("Token ").partition("$")
    complaint = redact("; ".join(map(str, texts)), secret_key, public_id)
    return data if isinstance(data, dict) else None, complaint


def _date(text: str) -> datetime | None:
    """Return the time that a header's text states; None if it states no time."""
    with suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(text)
        return date.replace(tzinfo=date.tzinfo or UTC)
    return None
