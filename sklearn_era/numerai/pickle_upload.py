"""Uploads of exported models to Numerai, and their validation there."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sklearn_era.numerai.api import CREATED, GRANT, Numerai, Query
from sklearn_era.numerai.data import decoding
from sklearn_era.numerai.errors import ApiError, ConfigError, UploadError
from sklearn_era.numerai.http import SITE, redact

_PAUSE = 15.0  # most seconds between two polls
_CHOICES = [{"id": str, "name": str, "default": bool | None}]
_TRIGGERS = [{"statuses": [{"description": str | None}]}]
_STATUS = [{"validationStatus": str | None, "triggers": _TRIGGERS}]
_FILE = "$filename: String! $modelId: ID"

IMAGES = Query("Listing the container images", "computePickleDockerImages", _CHOICES)
VERSIONS = Query("Listing the data versions", "computePickleDataVersions", _CHOICES)
STORE = Query("Uploading the model", f"computePickleUploadAuth({_FILE})", GRANT)
_MAKE = (
    f"createComputePickleUpload({_FILE} $tournament: Int! $dataVersionId: ID "
    "$dockerImageId: ID $source: String)"
)
CREATE = Query("Uploading the model", _MAKE, CREATED, kind="mutation")
_ASSIGN = "assignPickleToModel($pickleId: ID $modelId: String)"
ASSIGN = Query("Assigning the uploaded model", _ASSIGN, Any, kind="mutation")
VALIDATION = Query("Looking up the upload", "computePickles($id: ID)", _STATUS)


def upload_pickle(
    client: Numerai,
    model_name: str,
    path: Path,
    *,
    image: str | None = None,
    data_version: str | None = None,
    wait: float = 1800.0,
    assign: bool = False,
    on_step: Callable[[str], None] = lambda text: None,
) -> str:
    """Upload a pickle to a model's slot, and wait up to `wait` seconds for Numerai's
    validation; return its status. A validated pickle, once assigned, makes all
    submissions of the slot.
    """
    model_id = client.model_id(model_name)
    run_by = _choose(client.ask(IMAGES), image, "image")
    data = _choose(client.ask(VERSIONS), data_version, "data version")
    with decoding(path):
        content = path.read_bytes()
    name = client.store(content, path.name, model_id, STORE)
    given = name, model_id, data and data.id, run_by and run_by.id
    # Without retries: a second call would be another upload.
    upload_id = client.ask(CREATE, *given, retry=False).id
    where = run_by.name if run_by else "the default image"
    on_step(f"Uploaded {path.name} as {upload_id}; it will run in {where}.")
    end, last, pause = time.monotonic() + wait, "", 1.0
    while True:
        if not (listed := client.ask(VALIDATION, upload_id)):
            raise ApiError(f"{VALIDATION.step}: Numerai does not list {upload_id}.")
        status = listed[0].validationStatus or "unknown"
        notes = [y.description for x in listed[0].triggers for y in x.statuses]
        text = ": ".join([status, *[redact(x) for x in notes if x][-1:]])
        if status == "success":
            break
        if status in ("error", "failed"):
            what = f"upload {upload_id} of {path.name}"
            raise UploadError(f"Numerai could not validate {what} ({text}).")
        if (left := end - time.monotonic()) <= 0:
            on_step(f"Numerai has not validated it yet ({text}): check {SITE}.")
            return status
        if status != last:
            on_step(f"Numerai's validation: {status}.")
        time.sleep(min(pause, left))
        last, pause = status, min(2 * pause, _PAUSE)
    on_step("Numerai has validated it.")
    if assign:
        client.ask(ASSIGN, upload_id, model_id)
        on_step(f"It now makes the submissions of {model_name}.")
    return status


def _choose(entries: Sequence[Any], name: str | None, what: str) -> Any:
    """The entry with this name or id, else the default one, or None."""
    for entry in entries:
        if entry.default if name is None else name in (entry.name, entry.id):
            return entry
    if name is not None:
        known = ", ".join(entry.name for entry in entries) or "none"
        raise ConfigError(f"Numerai has no {what} {name!r}; it offers {known}.")
