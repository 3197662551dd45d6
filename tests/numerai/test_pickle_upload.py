"""An exported model goes to Numerai, and its result there is told."""

from types import SimpleNamespace

import pytest

from sklearn_era.numerai import pickle_upload
from sklearn_era.numerai.errors import ApiError, ConfigError, UploadError
from sklearn_era.numerai.pickle_upload import upload_pickle
from sklearn_era.numerai.queries import Image

IMAGES = [
    Image(id="i11", name="Python 3.11"),
    Image(id="i12", name="Python 3.12", default=True),
]
VERSIONS = [Image(id="d52", name="v5.2"), Image(id="d53", name="v5.3")]


class Numerai:
    """The calls of an upload, with the statuses that Numerai will give."""

    def __init__(self, *statuses: tuple[str, str]) -> None:
        self.statuses = list(statuses)
        self.sent: list[tuple] = []
        self.assigned: list[tuple] = []
        self.images = IMAGES

    def check_keys(self):
        return None

    def model_id(self, name):
        return f"id of {name}"

    def pickle_images(self):
        return self.images

    def pickle_data_versions(self):
        return VERSIONS

    def upload_pickle(self, path, model_id, data_version, image):
        self.sent.append((path.read_bytes(), model_id, data_version, image))
        return "upload-1"

    def pickle_status(self, upload_id):
        assert upload_id == "upload-1"
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]

    def assign_pickle(self, upload_id, model_id):
        self.assigned.append((upload_id, model_id))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "portable.pkl"
    path.write_bytes(b"a pickle")
    return path


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Time passes only while an upload waits."""
    now = [0.0]
    time = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
    )
    monkeypatch.setattr(pickle_upload, "time", time)
    return now


def test_a_result_is_waited_for_and_told(path):
    client = Numerai(("pending", ""), ("running", ""), ("running", ""), ("success", ""))
    said = []
    assert upload_pickle(client, "mine", path, on_step=said.append) == "success"
    assert client.sent == [(b"a pickle", "id of mine", None, "i12")]
    assert said == [
        "Uploaded portable.pkl as upload-1, to run in Python 3.12.",
        "Numerai's validation: pending.",
        "Numerai's validation: running.",
        "Numerai has validated it.",
    ]
    assert client.assigned == []


def test_image_and_version_are_chosen_by_name_or_id(path):
    client = Numerai(("success", ""))
    upload_pickle(client, "mine", path, image="Python 3.11", data_version="d53")
    client.images = IMAGES[:1]  # no default: Numerai decides
    upload_pickle(client, "mine", path, data_version="v5.2", assign=True)
    assert [sent[2:] for sent in client.sent] == [("d53", "i11"), ("d52", None)]
    assert client.assigned == [("upload-1", "id of mine")]
    for options, said in (
        ({"image": "3.9"}, r"Numerai has no image '3\.9'; it offers Python 3\.11\."),
        ({"data_version": "v4"}, r"no data version 'v4'; it offers v5\.2, v5\.3\."),
    ):
        with pytest.raises(ConfigError, match=said):
            upload_pickle(client, "mine", path, **options)
    assert len(client.sent) == 2


@pytest.mark.parametrize("status", ["error", "failed"])
def test_a_model_that_does_not_run_there_is_an_error(path, status):
    client = Numerai(("pending", ""), (status, "Segmentation fault!"))
    message = (
        rf"could not validate upload upload-1 of portable\.pkl \({status}: "
        r"Segmentation fault!\)\.$"
    )
    with pytest.raises(UploadError, match=message):
        upload_pickle(client, "mine", path, assign=True)
    assert client.assigned == []


@pytest.mark.parametrize("wait", [0.0, 100.0])
def test_without_a_result_the_status_is_that_of_the_moment(path, wait, clock):
    client, said = Numerai(("validating", "")), []
    status = upload_pickle(client, "mine", path, wait=wait, on_step=said.append)
    assert status == "validating"
    assert clock[0] == pytest.approx(wait)
    assert said[-1].startswith("Numerai has not validated it yet (validating): see at")


def test_what_numerai_refuses_it_says_itself(path):
    def refuse(*_):
        raise ApiError("Uploading the model: the slot has a webhook.")

    client = Numerai(("success", ""))
    client.upload_pickle = refuse
    with pytest.raises(ApiError, match="the slot has a webhook"):
        upload_pickle(client, "mine", path)
