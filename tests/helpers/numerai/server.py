"""A stand-in for Numerai's API and its storage, on this machine.

It hands out signed addresses of its own, keeps a list of the requests, the submissions
and the uploaded models, and fails on request: see `Fault`.
"""

import hashlib
import logging
import re
import threading
import traceback
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from helpers.numerai.handler import PUBLIC_ID, SECRET_KEY, Fault, Handler
from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.errors import ApiError
from sklearn_era.numerai.http import Http

MODEL_ID = "11111111-aaaa"
NOTES = {"v5.3/notes.txt": bytes(range(256)) * 4000}


class NumeraiServer:
    """Numerai, for a test: a context manager.

    It serves files by names like ``"v5.3/live.parquet"``. All of it may be changed at
    any time: the current round, whether that is open, its models (there is one of
    Signals too), its clock, and the `faults` that are still to come. `requests`,
    `submissions` and `pickles` list what came in, oldest first.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.models = {"my_model": MODEL_ID, "other": "22222222"}
        self.round_number, self.is_open, self.between_rounds = 1401, True, False
        # Hours until the next round opens, if Numerai calls that the current one.
        self.opens_in: float | None = None
        # From the clock of the machine to that by which rounds open.
        self.clock_offset = timedelta(0)
        self.etags = "strong"  # or "weak", or "" for none
        self.etag_salt = ""  # another one changes them
        self.any_range = False  # whether If-Range is ignored
        self.drip_seconds = 0.05
        self.files, self.stored, self.signatures = dict(files), {}, {}
        self.requests, self.faults, self.submissions, self.pickles = [], [], [], []
        self.unlisted: set[str] = set()
        self.listed: dict = {}  # changes of the next entries of that list
        self.hold = bytes  # changes the content of submissions
        self.scores: list[dict] = []  # as Numerai lists them: see `add_score`
        # A pickle has one after the other, by request; the last one stays.
        self.statuses = [("pending", ""), ("success", "Model passed validation")]
        self.closing, self.lock = threading.Event(), threading.RLock()

    def __enter__(self) -> "NumeraiServer":
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.numerai = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        # The environment of programs that call this one.
        self.environment = {
            "NUMERAI_PUBLIC_ID": PUBLIC_ID, "NUMERAI_SECRET_KEY": SECRET_KEY,
            "SKLEARN_ERA_NUMERAI_API_URL": self.url,
        }  # fmt: skip
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
        """Let the next calls of an operation fail by a `Fault`."""
        self.faults.append(Fault(*fault, **more))

    def add_submission(self, model_id: str, content: bytes, filename: str) -> str:
        """Put a submission on the list, as from elsewhere; return its id."""
        with self.lock:
            n = len(self.submissions) + 1
            entry = {
                "id": f"submission-{n}", "filename": filename, "modelId": model_id,
                "content": content, "insertedAt": f"2026-11-21T12:{n:02d}:00+00:00",
                # Outside of its window, a submission is one for the next round.
                "roundNumber": self.round_number + (not self.is_open),
                "status": "on-time" if self.is_open else "queued",
            }  # fmt: skip
            self.submissions.append(entry | self.listed)
        return entry["id"]

    def sign(self, path: str) -> str:
        """An address of the storage that holds for `path` alone."""
        seed = f"{path} {len(self.signatures)}"
        signature = hashlib.sha256(seed.encode()).hexdigest()
        self.signatures[signature] = path
        return f"{self.url}{path}?X-Amz-Signature={signature}"

    def now(self) -> datetime:
        return datetime.now(UTC) + self.clock_offset

    def version_of(self, content: bytes) -> dict[str, str]:
        """The header with the version of a file."""
        salted = content + self.etag_salt.encode()
        etag = f'"{hashlib.md5(salted, usedforsecurity=False).hexdigest()}"'
        known = {"strong": {"ETag": etag}, "weak": {"ETag": f"W/{etag}"}}
        return known.get(self.etags, {})

    def add_score(self, number: int, resolved: bool = True, **scores: float) -> None:
        """Give my_model scores in a round, by their names at Numerai."""
        names = "modelId roundNumber day displayName value resolved"
        of = MODEL_ID, number, 20
        self.scores += _rows(names, *((*of, *x, resolved) for x in scores.items()))

    def take_fault(self, operation: str) -> Fault | None:
        with self.lock:
            left = (x for x in self.faults if x.operation == operation and x.times)
            if fault := next(left, None):
                fault.times -= 1
            return fault

    # Answers of each operation; ValueError for an error.

    def _models(self, **_):
        rows = [(key, name, 8) for name, key in self.models.items()]
        rows.append(("33333333", "signals_model", 11))
        return {"models": _rows("id name tournament", *rows)}

    def _rounds(self, tournament, number):
        if tournament != 8:
            raise ValueError("unknown tournament")
        if self.between_rounds and number == 0:
            raise ValueError("Current round not open for submissions")

        def round_of(number, *hours):
            times = [x and self.now() + timedelta(hours=x) for x in hours]
            stamps = [x and x.strftime("%Y-%m-%dT%H:%M:%SZ") for x in times]
            return _rows("number openTime closeStakingTime", (number, *stamps))[0]

        n = self.round_number
        this = round_of(n, -24, 1 if self.is_open else -1)
        coming = round_of(n + 1, self.opens_in or 24, None)
        if number == 0:
            return [this if self.opens_in is None else coming]
        return [coming, round_of(n - 1, -48, -0.001), this]

    def _listDatasets(self, **_):
        return sorted(self.files)

    def _dataset(self, filename, **_):
        if filename not in self.files:
            raise ValueError("no such file")
        return self.sign(f"/data/{filename}")

    def _submission_upload_auth(self, filename, modelId, **_):
        if modelId not in self.models.values():
            raise ValueError("unknown model")
        path = Path(filename)
        name = f"{path.stem}-{len(self.signatures):08d}{path.suffix}"
        return {"filename": name, "url": self.sign(f"/uploads/{name}")}

    _computePickleUploadAuth = _submission_upload_auth

    def _create_submission(self, filename, modelId, **_):
        # As Numerai does: it takes the call for a file that never arrived.
        content = self.stored.get(filename, b"")
        return {"id": self.add_submission(modelId, content, filename)}

    def _submissions(self, modelId, names="id filename insertedAt"):
        made = (x for x in self.submissions if x["id"] not in self.unlisted)
        own = [x for x in made if x["modelId"] == modelId]
        return [{name: x[name] for name in names.split()} for x in own]

    def _latestSubmissions(self, **_):
        names, models = "id filename roundNumber status", []
        none = dict.fromkeys(names.split()) | {"roundNumber": 1, "status": "none"}
        for key in self.models.values():
            latest = [*self._submissions(key, names), none]
            models.append({"id": key, "latestSubmissions": latest})
        return {"models": models}

    def _submissionDownloadAuth(self, id):
        path = f"/submissions/{id}"
        if self.read(path) is None:
            raise ValueError("no such submission")
        return {"filename": "-", "url": self.sign(path)}

    def _submissionScores(self, modelId, lastNRounds, **_):
        own = [x for x in self.scores if x["modelId"] == modelId]
        numbers = sorted({x["roundNumber"] for x in own})[-lastNRounds:]
        return [x for x in own if x["roundNumber"] in numbers]

    def _computePickleDockerImages(self, **_):
        images = ("image-11", "Python 3.11", False), ("image-12", "Python 3.12", True)
        return _rows("id name default", *images)

    def _computePickleDataVersions(self, **_):
        versions = ("data-52", "v5.2", None), ("data-53", "v5.3", True)
        return _rows("id name default", *versions)

    def _createComputePickleUpload(self, filename, **more):
        entry = {"id": f"pickle-{len(self.pickles) + 1}", "looks": 0, "assigned": None}
        self.pickles.append({**more, **entry, "content": self.stored[filename]})
        return {"id": entry["id"]}

    def _assignPickleToModel(self, pickleId, modelId):
        (own,) = (x for x in self.pickles if x["id"] == pickleId)
        own["assigned"] = modelId
        return "ok"

    def _computePickles(self, id):
        found = []
        for own in (x for x in self.pickles if x["id"] == id):
            status, told = self.statuses[min(own["looks"], len(self.statuses) - 1)]
            own["looks"] += 1
            triggers = [{"statuses": [{"description": told}]}]
            found.append({"validationStatus": status, "triggers": triggers})
        return found

    def read(self, path: str) -> bytes | None:
        kind, _, name = path.lstrip("/").partition("/")
        made = {x["id"]: self.hold(x["content"]) for x in self.submissions}
        return {"data": self.files, "submissions": made}.get(kind, {}).get(name)


def _rows(names: str, *rows: tuple) -> list[dict]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def make_client(server: NumeraiServer, **options) -> Numerai:
    """A client of the stand-in, which does not wait between attempts."""
    http = Http(**{"retries": 2, "backoff": 0.0, "timeout": 5.0, **options})
    return Numerai(http, PUBLIC_ID, SECRET_KEY, server.url)


def everything_said(error: BaseException) -> str:
    """The text of an exception and of all that it holds on to, shown or not."""
    own = [str(error), repr(error), repr(error.args), repr(vars(error))]
    chain = [x for x in (error.__cause__, error.__context__) if x is not None]
    texts = [*own, *traceback.format_exception(error), *map(everything_said, chain)]
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
    # Nothing is left lying about, whatever went wrong, but what is resumed later: it
    # has a version of 32 digits in its name.
    left = [path for path in written if path.suffix in (".partial", ".temp")]
    assert not [path for path in left if not re.search(r"\.[0-9a-f]{32}\.", path.name)]
    assert not [x for x in written if x.parent.name.startswith(".sklearn-era-")]
