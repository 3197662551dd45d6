"""Upload an exported model to Numerai, and wait until it has run there."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sklearn_era.numerai import queries
from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.data import decoding
from sklearn_era.numerai.errors import ApiError, ConfigError, UploadError
from sklearn_era.numerai.http import SITE, tell

# Seconds between two looks at the validation, at most.
_PAUSE = 15.0
_FAILED = ("error", "failed")


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
    """Upload a pickle to a model's slot, and wait for Numerai's validation of it.

    `image` and `data_version` are names, such as "Python 3.12" and "v5.3"; without them
    they are Numerai's defaults. Returns the status, after `wait` seconds that of the
    moment. `assign` lets a validated pickle make the submissions of the slot, which
    then takes none from anybody else.
    """
    model_id = client.model_id(model_name)
    run_by = _choose(client.ask(queries.IMAGES), image, "image")
    data = _choose(client.ask(queries.DATA_VERSIONS), data_version, "data version")
    with decoding(path):
        content = path.read_bytes()
    name = client.store(content, path.name, model_id, queries.PICKLE_AUTH)
    given = name, model_id, data and data.id, run_by and run_by.id
    # Once, as a second would be another upload.
    upload_id = client.ask(queries.CREATE_PICKLE, *given, retry=False).id
    where = run_by.name if run_by else "the default image"
    on_step(f"Uploaded {path.name} as {upload_id}; it will run in {where}.")
    end, last, pause = time.monotonic() + wait, "", 1.0
    while True:
        status, told = _look(client, upload_id)
        left = end - time.monotonic()
        if status in ("success", *_FAILED) or left <= 0:
            break
        if status != last:
            on_step(f"Numerai's validation: {status}.")
        time.sleep(min(pause, left))
        last, pause = status, min(2 * pause, _PAUSE)
    if status in _FAILED:
        raise UploadError(
            f"Numerai could not validate upload {upload_id} of {path.name} ({told})."
        )
    if status != "success":
        on_step(f"Numerai has not validated it yet ({told}): check {SITE}.")
        return status
    on_step("Numerai has validated it.")
    if assign:
        client.ask(queries.ASSIGN_PICKLE, upload_id, model_id)
        on_step(f"It now makes the submissions of {model_name}.")
    return status


def _choose(entries: Sequence[Any], name: str | None, what: str) -> Any:
    """The entry of a name or id; without one the default, None if there is none."""
    for entry in entries:
        if entry.default if name is None else name in (entry.name, entry.id):
            return entry
    if name is None:
        return None
    known = ", ".join(entry.name for entry in entries) or "none"
    raise ConfigError(f"Numerai has no {what} {name!r}; it offers {known}.")


def _look(client: Numerai, upload_id: str) -> tuple[str, str]:
    """The status of a validation, alone and with what Numerai says of it."""
    for found in client.ask(queries.PICKLES, upload_id):
        status = found.validationStatus or "unknown"
        told = [y.description for x in found.triggers for y in x.statuses]
        return status, ": ".join([status, *map(tell, list(filter(None, told))[-1:])])
    step = queries.PICKLES.step
    raise ApiError(f"{step}: Numerai does not list {upload_id}.")
