"""The HTTP of the stand-in for Numerai, with faults on request."""

import gzip
import json
import re
from collections import namedtuple
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

PUBLIC_ID = "PUBLICHALF"
SECRET_KEY = "THISISTHESECRETHALF"
_WITHOUT_KEY = ("listDatasets", "dataset", "rounds", "submissionScores")


@dataclass
class Fault:
    """A fault: its kind, operation, number of calls, and message.

    The operation is a query's field ("models" or "latestSubmissions" of the account),
    or "PUT" or "GET" for the storage. The kind is an HTTP status, such as 302 with
    `headers` for where to; or

    - "errors", GraphQL's; "garbage", which is no JSON; "deep", JSON that nests too
      deeply; "shape", an answer that is `value` instead;
    - "hang", no answer; "drip", one that comes byte by byte, "drip head", the same from
      its first line on, and "drip size", from the size of its first chunk on; "drop", a
      connection closed without one; "lost", the same, after the request is done;
    - "truncated" and "corrupt", of what is sent, the second of the right size;
      "compressed", sent so; "bomb", 100 MB of zeros, compressed; "part", sent unasked;
    - "unlisted", a submission that the list lacks.
    """

    operation: str
    kind: int | str
    times: int = 1
    message: str = "something is wrong"
    value: Any = None
    headers: dict[str, str] = field(default_factory=dict)


_BODIES = {"garbage": b"<html>Please log in to the hotel's network</html>"}
_BODIES["deep"] = b'{"data": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"


class _Answered(Exception):
    """There is nothing more to send."""


# As it came in, its key left out.
Request = namedtuple("Request", "method operation variables path headers body")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def numerai(self):
        return self.server.numerai

    def log_message(self, *_: object) -> None:
        return

    def date_time_string(self, timestamp=None) -> str:
        return format_datetime(self.numerai.now(), usegmt=True)

    def handle_one_request(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError, _Answered):
            super().handle_one_request()
            return
        self.close_connection = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        document = json.loads(body)
        query, variables = document["query"], document["variables"] or {}
        root = operation = re.search(r"\{ (\w+)", query)[1]
        if root == "account":
            latest = "latestSubmissions"
            operation = latest if latest in query else "models"
        kind, value = self._noted(operation, variables, body)
        token = f"Token {PUBLIC_ID}${SECRET_KEY}"
        if operation not in _WITHOUT_KEY and self.headers.get("Authorization") != token:
            self._send_json({"errors": [{"detail": "Unauthorized"}]}, 401)
            return
        try:
            with self.numerai.lock:
                data = getattr(self.numerai, f"_{operation}")(**variables)
        except ValueError as error:
            self._send_json({"errors": [{"message": str(error)}], "data": None})
            return
        if kind == "unlisted":
            self.numerai.unlisted.add(data["id"])
        if kind == "lost":
            raise _Answered
        data = value if kind == "shape" else data
        self._send_json({"data": {root: data}}, kind=kind)

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind, _ = self._noted("PUT", {}, body)
        path = self._signed_path()
        if path.startswith("/uploads/"):
            self.numerai.stored[path.removeprefix("/uploads/")] = body
            self._send(200, b"", kind=kind)
        else:
            self._send(403, b"<Error>SignatureDoesNotMatch</Error>")

    def do_GET(self) -> None:
        kind, _ = self._noted("GET", {}, b"")
        content = self.numerai.read(self._signed_path())
        if content is None:
            self._send(403, b"<Error>AccessDenied</Error>")
            return
        if kind == "corrupt":
            # The data; head and footer stay as they are, and so does the size.
            middle = len(content) // 2
            content = content[:8] + bytes(middle - 8) + content[middle:]
        headers, status, size = self.numerai.version_of(content), 200, len(content)
        start = 3 if kind == "part" else self._range_start(headers)
        if start is not None:
            status = 206 if start < size else 416
            last = f"{start}-{size - 1}" if status == 206 else "*"
            headers["Content-Range"] = f"bytes {last}/{size}"
        self._send(status, content[start or 0 :], kind=kind, **headers)

    def _range_start(self, version: dict[str, str]) -> int | None:
        """The start of a requested range that may be sent."""
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        same = condition in (None, version.get("ETag")) or self.numerai.any_range
        return int(match[1]) if match and same else None

    def _noted(self, operation, variables, body) -> tuple[Any, Any]:
        """Note a request; answer by its fault, or return the fault's kind and value."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        headers.pop("authorization", None)
        path = urlsplit(self.path).path
        noted = Request(self.command, operation, variables, path, headers, body)
        self.numerai.requests.append(noted)
        fault = self.numerai.take_fault(operation) or Fault("", "")
        kind = fault.kind
        if isinstance(kind, int):
            self._send_json({"message": fault.message}, kind, **fault.headers)
        elif kind == "errors":
            errors = [{"message": fault.message}, {"message": "and another"}]
            self._send_json({"errors": errors, "data": None})
        elif kind in _BODIES:
            self._send(200, _BODIES[kind])
        elif kind == "drip head":
            self._drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000)
        elif kind == "drip size":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._drip(b"0" * 10_000)
        elif kind == "hang":
            self.numerai.closing.wait(30)
        elif kind != "drop":
            return kind, fault.value
        raise _Answered

    def _signed_path(self) -> str:
        """The path, or nothing if the address was not signed for it."""
        parts = urlsplit(self.path)
        signature = parse_qs(parts.query).get("X-Amz-Signature", [""])[0]
        signed = self.numerai.signatures.get(signature)
        return parts.path if signed == parts.path else ""

    def _send_json(self, document, status=200, **more):
        self._send(status, json.dumps(document).encode(), **more)

    def _send(self, status, body, *, kind=None, **headers):
        if kind in ("compressed", "bomb"):
            body = gzip.compress(body if kind == "compressed" else bytes(100 << 20), 9)
            headers["Content-Encoding"] = "gzip"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if kind == "drip":
            self._drip(body)
        self.wfile.write(body[: len(body) // 2] if kind == "truncated" else body)
        self.close_connection = True

    def _drip(self, content: bytes) -> None:
        for byte in content:
            self.wfile.write(bytes([byte]))
            if self.numerai.closing.wait(self.numerai.drip_seconds):
                break
        raise _Answered
