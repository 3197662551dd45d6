"""Upload an exported model to Numerai, and wait until it has run there."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.errors import ConfigError, UploadError
from sklearn_era.numerai.http import SITE
from sklearn_era.numerai.queries import Image

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
    client.check_keys()
    model_id = client.model_id(model_name)
    images = client.pickle_images()
    default = next((entry for entry in images if entry.default), None)
    chosen = _choose(images, image, "image") or default
    data = _choose(client.pickle_data_versions(), data_version, "data_version")
    upload_id = client.upload_pickle(
        path, model_id, data.id if data else None, chosen.id if chosen else None
    )
    where = chosen.name if chosen else "the default image"
    on_step(f"Uploaded {path.name} as {upload_id}, to run in {where}.")
    end = time.monotonic() + wait
    last, pause = "", 1.0
    while True:
        status, message = client.pickle_status(upload_id)
        left = end - time.monotonic()
        if status in ("success", *_FAILED) or left <= 0:
            break
        if status != last:
            on_step(f"Numerai's validation: {status}.")
            last = status
        time.sleep(min(pause, left))
        pause = min(2 * pause, _PAUSE)
    told = f"{status}: {message}" if message else status
    if status in _FAILED:
        raise UploadError(
            f"Numerai could not validate upload {upload_id} of {path.name} ({told})."
        )
    if status != "success":
        on_step(f"Numerai has not validated it yet ({told}): see at {SITE}.")
        return status
    on_step("Numerai has validated it.")
    if assign:
        client.assign_pickle(upload_id, model_id)
        on_step(f"It makes the submissions of {model_name} from now on.")
    return status


def _choose(entries: Sequence[Image], name: str | None, what: str) -> Image | None:
    """The entry of a name or id; None for no name."""
    for entry in entries:
        if name in (entry.name, entry.id):
            return entry
    if name is None:
        return None
    known = ", ".join(entry.name for entry in entries) or "none"
    raise ConfigError(
        f"Numerai has no {what.replace('_', ' ')} {name!r}; it offers {known}."
    )
