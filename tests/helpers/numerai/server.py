"""A stand-in for Numerai's API and its storage, on this machine.

It answers what numerapi 3.1.1 asks, hands out signed addresses of its own, keeps a list
of the requests and of the submissions, and fails where it is told to.
"""

import hashlib
import io
import json
import re
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from sklearn_era.numerai.api.client import NumeraiClient
from sklearn_era.numerai.api.credentials import Keys, Secret

PUBLIC_ID = "PUBLICHALF"
SECRET_KEY = "THISISTHESECRETHALF"
VERSION = "v5.3"
FEATURES = [f"feature_{name}" for name in "abcdef"]
TARGETS = ["target_ender_20", "target_ender_60"]

# What an operation is called here, by what its query holds; the first match counts.
_OPERATIONS = (
    "submission_upload_auth",
    "create_submission",
    "submissionDownloadAuth",
    "listDatasets",
    "dataset",
    "submissions",
    "rounds",
    "models",
)
_WITH_KEY = frozenset(
    {
        "submission_upload_auth",
        "create_submission",
        "submissionDownloadAuth",
        "submissions",
        "models",
    }
)


# The operations of a submission that meets with no trouble.
SUBMISSION_IN_ORDER = [
    "models",
    "rounds",
    "dataset",
    "GET",
    "submissions",
    "submission_upload_auth",
    "PUT",
    "create_submission",
    "submissions",
    "submissionDownloadAuth",
    "GET",
]


@dataclass
class Fault:
    """What goes wrong, in which operation, and how often.

    Parameters
    ----------
    operation : str
        A name of `_OPERATIONS`, or "PUT" or "GET" for the storage.
    kind : int or str
        An HTTP status; or "errors", GraphQL's; "garbage", which is no JSON; "hang", no
        answer; "drop", a connection closed without one; "lost", the same, after what
        was asked for is done; "truncated" and "corrupt", of what is sent, the second
        of the right size; "unlisted", a submission that the list lacks.
    times : int
        For how many calls.
    message : str
        What the errors say.
    """

    operation: str
    kind: int | str
    times: int = 1
    message: str = "something is wrong"


@dataclass
class Request:
    """A request as it came in, its key left out."""

    method: str
    operation: str
    variables: dict[str, Any] = field(default_factory=dict)
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class NumeraiServer:
    """Numerai, for a test: a context manager.

    Parameters
    ----------
    files : mapping of str to bytes or Path, default=None
        The data it serves, by names like ``"v5.3/live.parquet"``.
    models : mapping of str to str, default=None
        The Classic models of the account and their ids. There is one of Signals too.
    round_number : int, default=1401
        The current round.
    is_open : bool, default=True
        Whether it takes submissions.
    between_rounds : bool, default=False
        Whether "the current round" is refused, as between two rounds.

    Attributes
    ----------
    url : str
        Where it listens.
    requests : list of Request
        What came in.
    submissions : list of dict
        Those made, oldest first: id, filename, modelId, insertedAt, content.
    faults : list of Fault
        What is still to go wrong, appended to at any time.
    """

    def __init__(
        self,
        files: Mapping[str, bytes | Path] | None = None,
        *,
        models: Mapping[str, str] | None = None,
        round_number: int = 1401,
        is_open: bool = True,
        between_rounds: bool = False,
    ) -> None:
        self.files = dict(files or {})
        self.models = dict(models or {"my_model": "11111111-aaaa", "other": "22222222"})
        self.round_number = round_number
        self.is_open = is_open
        self.between_rounds = between_rounds
        self.requests: list[Request] = []
        self.submissions: list[dict[str, Any]] = []
        self.faults: list[Fault] = []
        self.stored: dict[str, bytes] = {}
        self.signatures: dict[str, str] = {}
        self.unlisted: set[str] = set()
        self.closing = threading.Event()
        self.lock = threading.RLock()

    def __enter__(self) -> "NumeraiServer":
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.numerai = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def environment(self) -> dict[str, str]:
        """What a program's environment needs to call this one."""
        return {
            "NUMERAI_PUBLIC_ID": PUBLIC_ID,
            "NUMERAI_SECRET_KEY": SECRET_KEY,
            "SKLEARN_ERA_NUMERAI_API_URL": self.url,
        }

    @property
    def operations(self) -> list[str]:
        """The operations in the order of the requests."""
        return [request.operation for request in self.requests]

    @property
    def secrets(self) -> list[str]:
        """What nobody may write anywhere: the key's half, and all signatures."""
        return [SECRET_KEY, *self.signatures]

    def fail(
        self,
        operation: str,
        kind: int | str,
        times: int = 1,
        message: str = "something is wrong",
    ) -> None:
        """Let the next calls of an operation fail."""
        self.faults.append(Fault(operation, kind, times, message))

    def add_submission(self, model_id: str, content: bytes, filename: str) -> str:
        """Put a submission on the list, as from elsewhere; return its id."""
        with self.lock:
            number = len(self.submissions) + 1
            start = datetime(2026, 11, 21, 12, tzinfo=UTC)
            self.submissions.append(
                {
                    "id": f"submission-{number}",
                    "filename": filename,
                    "modelId": model_id,
                    "insertedAt": (start + timedelta(minutes=number)).isoformat(),
                    "content": content,
                }
            )
        return f"submission-{number}"

    def sign(self, path: str) -> str:
        """An address of the storage that holds for `path` alone."""
        seed = f"{path} {len(self.signatures)}"
        signature = hashlib.sha256(seed.encode()).hexdigest()
        self.signatures[signature] = path
        return f"{self.url}{path}?X-Amz-Signature={signature}"

    def take_fault(self, operation: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.operation == operation and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def answer(self, operation: str, query: str, variables: dict[str, Any]) -> Any:
        """The data that an operation answers with; ValueError for an error."""
        return getattr(self, f"_{operation}")(query, variables)

    def _models(self, query: str, variables: dict[str, Any]) -> Any:
        models = [
            {"id": key, "name": name, "tournament": 8}
            for name, key in self.models.items()
        ]
        models.append({"id": "33333333", "name": "signals_model", "tournament": 11})
        return {"account": {"models": models}}

    def _rounds(self, query: str, variables: dict[str, Any]) -> Any:
        if variables["tournament"] != 8:
            raise ValueError("unknown tournament")
        if self.between_rounds and "number: 0" in query:
            raise ValueError("Current round not open for submissions")
        now = datetime.now(UTC)
        closes = now + timedelta(hours=1 if self.is_open else -1)
        current = self._round(self.round_number, now - timedelta(days=1), closes)
        if "number: 0" in query:
            return {"rounds": [current]}
        before = self._round(self.round_number - 1, now - timedelta(days=2), now)
        after = self._round(self.round_number + 1, now + timedelta(days=1), None)
        return {"rounds": [after, before, current]}

    @staticmethod
    def _round(number: int, opens: datetime, closes: datetime | None) -> Any:
        def written(time: datetime | None) -> str | None:
            return None if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"

        return {
            "number": number,
            "openTime": written(opens),
            "closeStakingTime": written(closes),
        }

    def _listDatasets(self, query: str, variables: dict[str, Any]) -> Any:
        return {"listDatasets": sorted(self.files)}

    def _dataset(self, query: str, variables: dict[str, Any]) -> Any:
        if variables["filename"] not in self.files:
            raise ValueError("no such file")
        return {"dataset": self.sign(f"/data/{variables['filename']}")}

    def _submission_upload_auth(self, query: str, variables: dict[str, Any]) -> Any:
        if variables["modelId"] not in self.models.values():
            raise ValueError("unknown model")
        stem = Path(variables["filename"]).stem
        name = f"{stem}-{len(self.signatures):08d}.csv"
        return {
            "submission_upload_auth": {
                "filename": name,
                "url": self.sign(f"/uploads/{name}"),
            }
        }

    def _create_submission(self, query: str, variables: dict[str, Any]) -> Any:
        content = self.stored.get(variables["filename"])
        if content is None:
            # As Numerai does: it takes the call for a file that never arrived.
            content = b""
        made = self.add_submission(variables["modelId"], content, variables["filename"])
        return {"create_submission": {"id": made}}

    def _submissions(self, query: str, variables: dict[str, Any]) -> Any:
        listed = [
            {key: entry[key] for key in ("id", "filename", "insertedAt")}
            for entry in self.submissions
            if entry["modelId"] == variables["modelId"]
            and entry["id"] not in self.unlisted
        ]
        return {"submissions": listed}

    def _submissionDownloadAuth(self, query: str, variables: dict[str, Any]) -> Any:
        for entry in self.submissions:
            if entry["id"] == variables["id"]:
                url = self.sign(f"/submissions/{entry['id']}")
                answer = {"filename": entry["filename"], "url": url}
                return {"submissionDownloadAuth": answer}
        raise ValueError("no such submission")

    def read(self, path: str) -> bytes | None:
        """What lies in the storage."""
        kind, _, name = path.lstrip("/").partition("/")
        if kind == "data" and name in self.files:
            content = self.files[name]
            return content.read_bytes() if isinstance(content, Path) else content
        for entry in self.submissions:
            if kind == "submissions" and entry["id"] == name:
                return bytes(entry["content"])
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def numerai(self) -> NumeraiServer:
        return self.server.numerai  # type: ignore[attr-defined, no-any-return]

    def log_message(self, *_: object) -> None:
        return

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_POST(self) -> None:
        server = self.numerai
        body = self.rfile.read(int(self.headers["Content-Length"]))
        document = json.loads(body)
        query, variables = document["query"], document["variables"] or {}
        operation = next(
            name for name in _OPERATIONS if re.search(rf"\b{name}\b", query)
        )
        self._note("POST", operation, variables, body)
        fault = server.take_fault(operation)
        if self._fails(fault):
            return
        token = f"Token {PUBLIC_ID}${SECRET_KEY}"
        if operation in _WITH_KEY and self.headers.get("Authorization") != token:
            self._send_json({"errors": [{"detail": "Unauthorized"}]}, 401)
            return
        try:
            with server.lock:
                data = server.answer(operation, query, variables)
        except ValueError as error:
            self._send_json({"errors": [{"message": str(error)}], "data": None})
            return
        if fault is not None and fault.kind == "unlisted":
            server.unlisted.add(data["create_submission"]["id"])
        if fault is not None and fault.kind == "lost":
            self.close_connection = True
            return
        self._send_json({"data": data})

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._note("PUT", "PUT", {}, body)
        if self._fails(self.numerai.take_fault("PUT")):
            return
        path = self._signed_path()
        if path is None or not path.startswith("/uploads/"):
            self._send(403, b"<Error>SignatureDoesNotMatch</Error>")
            return
        self.numerai.stored[path.removeprefix("/uploads/")] = body
        self._send(200, b"")

    def do_GET(self) -> None:
        self._note("GET", "GET", {}, b"")
        fault = self.numerai.take_fault("GET")
        if self._fails(fault):
            return
        path = self._signed_path()
        content = None if path is None else self.numerai.read(path)
        if content is None:
            self._send(403, b"<Error>AccessDenied</Error>")
            return
        kind = fault.kind if fault is not None else ""
        if kind == "corrupt":
            # The data; head and footer stay as they are, and so does the size.
            middle = len(content) // 2
            content = content[:8] + bytes(middle - 8) + content[middle:]
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        sent = content[start:]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        if kind == "truncated":
            sent = sent[: len(sent) // 2]
            self.close_connection = True
        self.wfile.write(sent)

    def _note(
        self, method: str, operation: str, variables: dict[str, Any], body: bytes
    ) -> None:
        headers = {
            name.lower(): value
            for name, value in self.headers.items()
            if name.lower() != "authorization"
        }
        path = urlsplit(self.path).path
        self.numerai.requests.append(
            Request(method, operation, variables, path, headers, body)
        )

    def _fails(self, fault: Fault | None) -> bool:
        """Answer as a fault says; False if the operation is to go on."""
        if fault is None:
            return False
        if isinstance(fault.kind, int):
            self._send_json({"message": fault.message}, fault.kind)
        elif fault.kind == "errors":
            errors = [{"message": fault.message}, {"message": "and another"}]
            self._send_json({"errors": errors, "data": None})
        elif fault.kind == "garbage":
            self._send(200, b"<html>Please log in to the hotel's network</html>")
        elif fault.kind == "hang":
            self.numerai.closing.wait(30)
            self.close_connection = True
        elif fault.kind == "drop":
            self.close_connection = True
        else:
            return False
        return True

    def _signed_path(self) -> str | None:
        parts = urlsplit(self.path)
        signature = parse_qs(parts.query).get("X-Amz-Signature", [""])[0]
        signed = self.numerai.signatures.get(signature)
        return signed if signed == parts.path else None

    def _send_json(self, document: Any, status: int = 200) -> None:
        self._send(status, json.dumps(document).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def live_ids(n_rows: int = 30, seed: int = 0) -> list[str]:
    """Ids as Numerai's: an n and 15 hexadecimal digits."""
    digits = np.random.default_rng(seed).integers(0, 16, (n_rows, 15))
    return ["n" + "".join(f"{digit:x}" for digit in row) for row in digits]


def parquet_bytes(
    eras: list[str], ids: list[str], data_type: str, *, seed: int = 0
) -> bytes:
    """A file in the form of Numerai's: the ids as index, features, targets."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"era": eras, "data_type": data_type})
    frame.index = pd.Index(ids, name="id")
    for feature in FEATURES:
        frame[feature] = rng.integers(0, 5, len(ids), dtype=np.int8)
    for target in TARGETS:
        values = rng.choice([0, 0.25, 0.5, 0.75, 1], len(ids)).astype(np.float32)
        frame[target] = np.float32(np.nan) if data_type == "live" else values
    buffer = io.BytesIO()
    # Plain, so that files of as many rows are of the same size.
    frame.to_parquet(buffer, compression=None, use_dictionary=False)
    return buffer.getvalue()


def live_parquet(n_rows: int = 30, *, ids_seed: int = 0, seed: int = 0) -> bytes:
    """A live file, of one era."""
    return parquet_bytes(["X"] * n_rows, live_ids(n_rows, ids_seed), "live", seed=seed)


def numerai_files(version: str = VERSION) -> dict[str, bytes | Path]:
    """The files of a version, a few rows each."""
    eras = [f"{era:04d}" for era in range(1, 7) for _ in range(5)]
    later = [f"{int(era) + 10:04d}" for era in eras]
    document = {
        "feature_sets": {"small": FEATURES[:2], "all": FEATURES},
        "targets": ["target", *TARGETS],
    }
    return {
        f"{version}/features.json": json.dumps(document).encode(),
        f"{version}/train.parquet": parquet_bytes(eras, live_ids(30, 1), "train"),
        f"{version}/validation.parquet": parquet_bytes(
            later, live_ids(30, 2), "validation"
        ),
        f"{version}/live.parquet": live_parquet(),
    }


def make_client(server: NumeraiServer, **options: Any) -> NumeraiClient:
    """A client of the stand-in, which does not wait between attempts."""
    options = {"retries": 2, "backoff": 0.0, "timeout": 5.0, **options}
    keys = Keys(Secret(PUBLIC_ID), Secret(SECRET_KEY))
    return NumeraiClient(keys, api_url=server.url, **options)


def everything_said(error: BaseException) -> str:
    """The text of an exception and of all that it holds on to, shown or not."""
    texts = []
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is not None:
            texts += [str(one), repr(one), repr(one.args), repr(vars(one))]
            texts += traceback.format_exception(one)
            pending += [one.__cause__, one.__context__]
    return "\n".join(texts)


def assert_discreet(server: NumeraiServer, *texts: str) -> None:
    """Assert that no text holds the secret key or a signed address."""
    for secret in server.secrets:
        for text in texts:
            assert secret not in text
