"""One exchange over HTTP: bounded in time and size, told apart, silent about secrets.

A failure is an `HttpFailure` that says whether to try again, and whether the server may
have acted all the same. Addresses of the storage are signed, and whoever has one may
use it: no message, log or chain of exceptions shows one.
"""

import json
import logging
import math
import random
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
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

    A call of the API or an upload takes ten times as long at most.
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
        peer, limit = f"{step}: Numerai's API", 10 * self.timeout
        headers = {"Accept": "application/json"}
        headers |= {"Authorization": token} if token else {}
        response, content = self._call(peer, "POST", url, headers, limit, json=body)
        status = response.status_code
        if (date := _date(response.headers.get("Date"))) is not None:
            self._skew = date - datetime.now(UTC)
        document = _parse(content, response.headers.get("Content-Encoding"))
        said = _errors_in(document, token)
        if not 200 <= status < 300:
            advice = f" ({said})" if said else ""
            if status in (401, 403) and token is not None:
                advice = f": check NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY{advice}"
            raise self._refusal(f"{peer} answered HTTP {status}{advice}.", response)
        if said:
            raise HttpFailure(f"{peer} refused: {said.rstrip('.')}.", status)
        data = document.get("data") if isinstance(document, dict) else None
        if isinstance(data, dict):
            return data
        told = "something else than data, as a proxy in between may"
        told = f"{peer} answered with {told}: open {SITE} in a browser."
        raise HttpFailure(told, status, unclear=True)

    def put(self, step: str, url: str, content: bytes, headers: Any) -> None:
        """Put bytes where a signed address says, once."""
        peer = f"{step}: the storage"
        seconds = 10 * self.timeout + len(content) / _UPLOAD_SPEED
        # As a stream, each block of which has the timeout, and not all together.
        stream = BytesIO(content)
        response, _ = self._call(peer, "PUT", url, headers, seconds, data=stream)
        if not 200 <= (status := response.status_code) < 300:
            told = f"{peer} refused the file (HTTP {status})."
            raise self._refusal(told, response, _EXPIRED)

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
            send = partial(self._send, peer, "GET", url, headers)
            response = self._within(peer, 10 * self.timeout, send)
            if response.status_code not in (301, 302, 303, 307, 308):
                break
            response.close()
            url = _redirected(peer, url, response.headers.get("Location", ""))
        with response:
            if (status := response.status_code) not in (200, 206, 416):
                told = f"{peer} refused to send it (HTTP {status})."
                raise self._refusal(told, response, _EXPIRED)
            if response.headers.get("Content-Encoding", "identity") != "identity":
                told = f"{peer} sent the file encoded, and was asked for it as it is."
                raise HttpFailure(told, status)
            at_most = MOST_BYTES if limited else math.inf
            yield response, self._chunks(peer, response.raw, at_most)

    def _call(
        self, peer: str, method: str, url: str, headers: Any, limit: float, **body: Any
    ) -> tuple[Any, bytes]:
        """Exchange a request for an answer that is held in memory, within some time."""

        def exchange() -> tuple[Any, bytes]:
            with self._send(peer, method, url, headers, **body) as response:
                chunks = self._chunks(peer, response.raw, MOST_BYTES)
                return response, b"".join(chunks)

        return self._within(peer, limit, exchange)

    def _send(self, peer: str, method: str, url: str, headers: Any, **body: Any) -> Any:
        """Send a request; the body of the answer is still to be read."""
        if not may_be_called(url):
            raise HttpFailure(f"{peer} cannot be called: its address is not https.")
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

    def _within(self, peer: str, seconds: float, call: Callable[[], _T]) -> _T:
        """Call in a thread, which is left behind when the time is up."""
        # As the timeout of a socket begins anew with every byte that comes in.
        outcome: Future[_T] = Future()

        def run() -> None:
            try:
                outcome.set_result(self._told_apart(peer, call))
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            return outcome.result(seconds)
        except TimeoutError:
            told = f"{peer} had not answered in full after {seconds:.3g} seconds."
        raise HttpFailure(told, transient=True, unclear=True)

    def _chunks(self, peer: str, raw: Any, at_most: float) -> Iterator[bytes]:
        """A body as it comes in, from a peer that neither stalls nor goes on and on."""
        spent, taken, total = 0.0, 0, 0
        began = time.monotonic()
        while chunk := self._told_apart(peer, partial(raw.read1, _CHUNK)):
            spent, taken = spent + time.monotonic() - began, taken + len(chunk)
            if spent >= self.timeout:
                if taken < _LEAST_SPEED * spent:
                    told = f"{peer} sent {taken:,} bytes in {spent:.3g} seconds."
                    raise HttpFailure(told, transient=True, unclear=True)
                spent, taken = 0.0, 0
            if (total := total + len(chunk)) > at_most:
                told = f"{peer} sent more than {at_most:,} bytes."
                raise HttpFailure(told, unclear=True)
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
            told, passing = "could not be reached, or broke off", True
        except errors.RequestException as error:
            told = f"could not be called ({type(error).__name__})"
        except OSError as error:  # that of requests for REQUESTS_CA_BUNDLE, say
            told = f"could not be called ({tell(error)})"
        # Not within the handlers: the errors of requests hold headers and addresses.
        raise HttpFailure(f"{peer} {told}.", transient=passing, unclear=passing)

    def _refusal(self, message: str, response: Any, *passing: int) -> HttpFailure:
        """The failure that a status means; it passes if it is one of those given."""
        status = response.status_code
        asked = response.headers.get("Retry-After", "").strip()
        wait = float(asked) if asked.isdecimal() else 0.0
        if (date := _date(asked)) is not None:
            wait = (date - self.now()).total_seconds()
        transient = status >= 500 or status in (408, 429, *passing)
        unclear = status >= 500 or status == 408
        return HttpFailure(message, status, transient, unclear, wait)


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    return bool(_LOCAL.fullmatch(urlsplit(url).hostname or ""))


def may_be_called(url: str) -> bool:
    """Whether an address is of https, or on this machine."""
    try:
        parts, local = urlsplit(url), is_loopback(url)
    except ValueError:  # of brackets that do not close, for one
        return False
    return bool(parts.hostname) and parts.scheme in (
        "https",
        "http" if local else "https",
    )


def tell(text: object, *secrets: str) -> str:
    """What a server said, on one line, without secrets or signed addresses."""
    line = " ".join(str(text).split())
    # What a terminal would take for commands.
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    for secret in filter(None, secrets):
        line = line.replace(secret, "***")
    line = re.sub(r"https?://\S+", "<address>", line)
    return line if len(line) <= 300 else f"{line[:300]}..."


def _redirected(peer: str, url: str, location: str) -> str:
    """Where a redirect leads, which is https if it comes from there."""
    with suppress(ValueError):
        target = urljoin(url, location)
        if may_be_called(target) and (is_loopback(url) or not is_loopback(target)):
            return target
    raise HttpFailure(f"{peer} redirects to an address that is not https.")


def _parse(content: bytes, encoding: str | None) -> Any:
    """A JSON document, None if it is none."""
    try:
        if encoding == "gzip":
            decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
            content = decoder.decompress(content, MOST_BYTES)
        return json.loads(content)
    except (ValueError, RecursionError, zlib.error):
        return None


def _errors_in(document: Any, token: str | None) -> str:
    """What GraphQL complains of, all of it, or nothing."""
    errors = document.get("errors") if isinstance(document, dict) else None
    texts = [
        (x.get("message") or x.get("detail") or x) if isinstance(x, dict) else x
        for x in (errors if isinstance(errors, list) else [errors] if errors else [])
    ]
    public_id, _, secret_key = (token or "").removeprefix("Token ").partition("$")
    return tell("; ".join(map(str, texts)), secret_key, public_id)


def _date(text: str | None) -> datetime | None:
    """The time of a header, None if there is none."""
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
