"""A stand-in for Numerai's API and its storage, on this machine.

It answers what numerapi 3.1.1 asks, hands out signed addresses of its own, keeps a list
of the requests and of the submissions, and fails where it is told to.
"""

import gzip
import hashlib
import io
import json
import logging
import re
import threading
import traceback
from collections import namedtuple
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest

from sklearn_era.numerai.api.client import NumeraiClient
from sklearn_era.numerai.api.credentials import Keys, Secret
from sklearn_era.numerai.errors import ApiError

PUBLIC_ID = "PUBLICHALF"
SECRET_KEY = "THISISTHESECRETHALF"
MODEL_ID = "11111111-aaaa"
FEATURES = [f"feature_{name}" for name in "abcdef"]
TARGETS = ["target_ender_20", "target_ender_60"]

# What an operation is called here, by what its query holds; the first match counts.
_OPERATIONS = (
    "submission_upload_auth", "create_submission", "submissionDownloadAuth",
    "listDatasets", "dataset", "submissions", "rounds", "models",
)  # fmt: skip
_WITHOUT_KEY = ("listDatasets", "dataset", "rounds")

# The operations of a submission that meets with no trouble.
SUBMISSION_IN_ORDER = [
    "models", "rounds", "dataset", "GET", "submissions", "submission_upload_auth",
    "PUT", "create_submission", "submissions", "submissionDownloadAuth", "GET",
]  # fmt: skip


@dataclass
class Fault:
    """What goes wrong, in which operation, for how many calls, and what errors say.

    The operation is one of `_OPERATIONS`, or "PUT" or "GET" for the storage. The kind
    is an HTTP status; or "errors", GraphQL's; "garbage", which is no JSON; "hang", no
    answer; "drop", a connection closed without one; "lost", the same, after what was
    asked for is done; "truncated" and "corrupt", of what is sent, the second of the
    right size; "compressed", sent so; "unlisted", a submission that the list lacks.
    """

    operation: str
    kind: int | str
    times: int = 1
    message: str = "something is wrong"


# As it came in, its key left out.
Request = namedtuple("Request", "method operation variables path headers body")


class NumeraiServer:
    """Numerai, for a test: a context manager.

    It serves files by names like ``"v5.3/live.parquet"``. Its current round, whether
    that is open, its models (there is one of Signals too) and the `faults` that are
    still to come may be changed at any time; `requests` and `submissions` tell what
    came in, oldest first.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = dict(files)
        self.models = {"my_model": MODEL_ID, "other": "22222222"}
        self.round_number = 1401
        self.is_open = True
        self.between_rounds = False
        self.requests: list[Request] = []
        self.submissions: list[dict] = []
        self.faults: list[Fault] = []
        self.stored: dict[str, bytes] = {}
        self.signatures: dict[str, str] = {}
        self.unlisted: set[str] = set()
        self.hold = bytes  # what is made of a submission's content
        self.closing = threading.Event()
        self.lock = threading.RLock()

    def __enter__(self) -> "NumeraiServer":
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.numerai = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        # What a program's environment needs to call this one.
        self.environment = {
            "NUMERAI_PUBLIC_ID": PUBLIC_ID,
            "NUMERAI_SECRET_KEY": SECRET_KEY,
            "SKLEARN_ERA_NUMERAI_API_URL": self.url,
        }
        serve = partial(self._http.serve_forever, poll_interval=0.01)
        self._thread = threading.Thread(target=serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def operations(self) -> list[str]:
        return [request.operation for request in self.requests]

    def fail(self, *fault, **more) -> None:
        """Let the next calls of an operation fail, as `Fault` says."""
        self.faults.append(Fault(*fault, **more))

    def add_submission(self, model_id: str, content: bytes, filename: str) -> str:
        """Put a submission on the list, as from elsewhere; return its id."""
        with self.lock:
            number = len(self.submissions) + 1
            entry = {"id": f"submission-{number}", "filename": filename}
            entry["insertedAt"] = f"2026-11-21T12:{number:02d}:00+00:00"
            self.submissions.append(entry | {"modelId": model_id, "content": content})
        return entry["id"]

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

    # The data that each operation answers with; ValueError for an error.

    def _models(self, query, variables):
        rows = [(key, name, 8) for name, key in self.models.items()]
        rows.append(("33333333", "signals_model", 11))
        models = [{"id": id_, "name": name, "tournament": n} for id_, name, n in rows]
        return {"account": {"models": models}}

    def _rounds(self, query, variables):
        if variables["tournament"] != 8:
            raise ValueError("unknown tournament")
        if self.between_rounds and "number: 0" in query:
            raise ValueError("Current round not open for submissions")
        now = datetime.now(UTC)

        def round_of(number, *hours):
            times = [h and now + timedelta(hours=h) for h in hours]
            opened, closed = (t and t.strftime("%Y-%m-%dT%H:%M:%SZ") for t in times)
            return {"number": number, "openTime": opened, "closeStakingTime": closed}

        n, rounds = self.round_number, []
        if "number: 0" not in query:
            rounds = [round_of(n + 1, 24, None), round_of(n - 1, -48, -0.001)]
        return {"rounds": [*rounds, round_of(n, -24, 1 if self.is_open else -1)]}

    def _listDatasets(self, query, variables):
        return {"listDatasets": sorted(self.files)}

    def _dataset(self, query, variables):
        if variables["filename"] not in self.files:
            raise ValueError("no such file")
        return {"dataset": self.sign(f"/data/{variables['filename']}")}

    def _submission_upload_auth(self, query, variables):
        if variables["modelId"] not in self.models.values():
            raise ValueError("unknown model")
        name = f"{Path(variables['filename']).stem}-{len(self.signatures):08d}.csv"
        granted = {"filename": name, "url": self.sign(f"/uploads/{name}")}
        return {"submission_upload_auth": granted}

    def _create_submission(self, query, variables):
        # As Numerai does: it takes the call for a file that never arrived.
        model_id, name = variables["modelId"], variables["filename"]
        made = self.add_submission(model_id, self.stored.get(name, b""), name)
        return {"create_submission": {"id": made}}

    def _submissions(self, query, variables):
        made = (x for x in self.submissions if x["id"] not in self.unlisted)
        own = (x for x in made if x["modelId"] == variables["modelId"])
        names = ("id", "filename", "insertedAt")
        return {"submissions": [{name: x[name] for name in names} for x in own]}

    def _submissionDownloadAuth(self, query, variables):
        path = f"/submissions/{variables['id']}"
        if self.read(path) is None:
            raise ValueError("no such submission")
        return {"submissionDownloadAuth": {"filename": "-", "url": self.sign(path)}}

    def read(self, path: str) -> bytes | None:
        """What lies in the storage."""
        kind, _, name = path.lstrip("/").partition("/")
        if kind == "data":
            return self.files.get(name)
        made = {entry["id"]: self.hold(entry["content"]) for entry in self.submissions}
        return made.get(name) if kind == "submissions" else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        return

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_POST(self) -> None:
        server = self.server.numerai
        body = self.rfile.read(int(self.headers["Content-Length"]))
        document = json.loads(body)
        query, variables = document["query"], document["variables"] or {}
        operation, *_ = (x for x in _OPERATIONS if re.search(rf"\b{x}\b", query))
        self._note(operation, variables, body)
        fault = server.take_fault(operation)
        if self._fails(fault):
            return
        token = f"Token {PUBLIC_ID}${SECRET_KEY}"
        if operation not in _WITHOUT_KEY and self.headers.get("Authorization") != token:
            self._send_json({"errors": [{"detail": "Unauthorized"}]}, 401)
            return
        try:
            with server.lock:
                data = getattr(server, f"_{operation}")(query, variables)
        except ValueError as error:
            self._send_json({"errors": [{"message": str(error)}], "data": None})
            return
        if fault and fault.kind == "unlisted":
            server.unlisted.add(data["create_submission"]["id"])
        if fault and fault.kind == "lost":
            self.close_connection = True
        else:
            self._send_json({"data": data})

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._note("PUT", {}, body)
        if self._fails(self.server.numerai.take_fault("PUT")):
            return
        path = self._signed_path()
        if not path.startswith("/uploads/"):
            self._send(403, b"<Error>SignatureDoesNotMatch</Error>")
            return
        self.server.numerai.stored[path.removeprefix("/uploads/")] = body
        self._send(200, b"")

    def do_GET(self) -> None:
        self._note("GET", {}, b"")
        fault = self.server.numerai.take_fault("GET")
        if self._fails(fault):
            return
        content = self.server.numerai.read(self._signed_path())
        if content is None:
            self._send(403, b"<Error>AccessDenied</Error>")
            return
        kind, headers = fault and fault.kind, {}
        if kind == "corrupt":
            # The data; head and footer stay as they are, and so does the size.
            middle = len(content) // 2
            content = content[:8] + bytes(middle - 8) + content[middle:]
        if kind == "compressed":
            content = gzip.compress(content)
            headers["Content-Encoding"] = "gzip"
        announced = len(content)
        if kind == "truncated":
            content = content[: announced // 2]
            self.close_connection = True
        self._send(200, content, announced, **headers)

    def _note(self, operation, variables, body):
        headers = {name.lower(): value for name, value in self.headers.items()}
        headers.pop("authorization", None)
        path = urlsplit(self.path).path
        noted = Request(self.command, operation, variables, path, headers, body)
        self.server.numerai.requests.append(noted)

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
        elif fault.kind in ("hang", "drop"):
            if fault.kind == "hang":
                self.server.numerai.closing.wait(30)
            self.close_connection = True
        else:
            return False
        return True

    def _signed_path(self) -> str:
        """The path, or nothing if the address was not signed for it."""
        parts = urlsplit(self.path)
        signature = parse_qs(parts.query).get("X-Amz-Signature", [""])[0]
        signed = self.server.numerai.signatures.get(signature)
        return parts.path if signed == parts.path else ""

    def _send_json(self, document, status=200):
        self._send(status, json.dumps(document).encode())

    def _send(self, status, body, announced=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(announced or len(body)))
        self.end_headers()
        self.wfile.write(body)


def live_ids(seed: int = 0) -> list[str]:
    """30 ids as Numerai's: an n and 15 hexadecimal digits."""
    digits = np.random.default_rng(seed).integers(0, 16, (30, 15))
    return ["n" + "".join(f"{digit:x}" for digit in row) for row in digits]


def parquet_bytes(eras, ids, data_type, seed=0) -> bytes:
    """A file in the form of Numerai's: the ids as index, features, targets."""
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


def live_parquet(ids_seed: int = 0, seed: int = 0) -> bytes:
    """A live file, of one era."""
    return parquet_bytes(["X"] * 30, live_ids(ids_seed), "live", seed)


def numerai_files() -> dict[str, bytes]:
    """The files of a version of the data, a few rows each."""
    eras = [f"{era:04d}" for era in range(1, 7) for _ in range(5)]
    later = [f"{int(era) + 10:04d}" for era in eras]
    sets = {"small": FEATURES[:2], "all": FEATURES}
    document = {"feature_sets": sets, "targets": ["target", *TARGETS]}
    return {
        "v5.3/features.json": json.dumps(document).encode(),
        "v5.3/train.parquet": parquet_bytes(eras, live_ids(1), "train"),
        "v5.3/validation.parquet": parquet_bytes(later, live_ids(2), "validation"),
        "v5.3/live.parquet": live_parquet(),
    }


def make_client(server: NumeraiServer, **options) -> NumeraiClient:
    """A client of the stand-in, which does not wait between attempts."""
    options = {"retries": 2, "backoff": 0.0, "timeout": 5.0, **options}
    keys = Keys(Secret(PUBLIC_ID), Secret(SECRET_KEY))
    return NumeraiClient(keys, api_url=server.url, **options)


def everything_said(error: BaseException) -> str:
    """The text of an exception and of all that it holds on to, shown or not."""
    texts, pending = [], [error]
    while pending:
        one = pending.pop()
        if one is not None:
            texts += [str(one), repr(one), repr(one.args), repr(vars(one))]
            texts += traceback.format_exception(one)
            pending += [one.__cause__, one.__context__]
    return "\n".join(texts)


def assert_discreet(server: NumeraiServer, *texts: str) -> None:
    """Assert that no text holds the secret key or a signed address."""
    for secret in (SECRET_KEY, *server.signatures):
        assert secret not in "\n".join(texts)


def refused(server, error, call, *args, **options) -> str:
    """Call, which fails with an error that gives nothing away; return its one line."""
    with pytest.raises(error) as caught:
        call(*args, **options)
    assert type(caught.value) is error or error is ApiError
    assert_discreet(server, everything_said(caught.value))
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@contextmanager
def discreet_server(files, folder, caplog, capfd):
    """A server; at the end, no secret is in a log, on the screen or in the folder."""
    caplog.set_level(logging.DEBUG)
    with NumeraiServer(files) as server:
        yield server
    texts = [record.getMessage() for record in caplog.get_records("call")]
    written = [path for path in folder.rglob("*") if path.is_file()] if folder else []
    texts += [path.read_bytes().decode("latin-1") for path in written]
    assert_discreet(server, *texts, *capfd.readouterr())
    # Nothing is left lying about, whatever went wrong.
    assert not [path for path in written if path.suffix in (".partial", ".temp")]
