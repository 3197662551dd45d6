"""An exported model goes to Numerai, and its result is printed."""

from types import SimpleNamespace

import pytest

from helpers.numerai.server import MODEL_ID, refused
from sklearn_era.numerai import pickle_upload
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError, UploadError


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Time passes only while an upload waits."""
    now = [0.0]
    time = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
    )
    monkeypatch.setattr(pickle_upload, "time", time)
    return now


@pytest.fixture
def upload(client, tmp_path):
    path = tmp_path / "portable.pkl"
    path.write_bytes(b"a pickle")

    def run(**options):
        return pickle_upload.upload_pickle(client, "my_model", path, **options)

    run.path = path
    return run


def test_a_result_is_waited_for_and_told(server, upload):
    running, said = ("running", ""), []
    server.statuses = [("pending", ""), running, running, ("success", "passed")]
    server.fail("PUT", 503)
    assert upload(on_step=said.append) == "success"
    (own,) = server.pickles
    assert (own["content"], own["modelId"]) == (b"a pickle", MODEL_ID)
    assert (own["dockerImageId"], own["assigned"]) == ("image-12", None)
    assert said == [
        "Uploaded portable.pkl as pickle-1; it will run in Python 3.12.",
        "Numerai's validation: pending.",
        "Numerai's validation: running.",
        "Numerai has validated it.",
    ]


def test_image_and_version_are_chosen_by_name_or_id(server, upload, monkeypatch):
    upload(image="Python 3.11", data_version="data-53")
    # Without a default, Numerai decides.
    monkeypatch.setattr(server, "_computePickleDockerImages", list)
    upload(data_version="v5.2", assign=True)
    names = "dataVersionId", "dockerImageId", "assigned"
    assert [tuple(map(x.get, names)) for x in server.pickles] == [
        ("data-53", "image-11", None),
        ("data-52", None, MODEL_ID),
    ]
    for options, said in (
        ({"image": "3.9"}, r"Numerai has no image '3\.9'; it offers none\."),
        ({"data_version": "v4"}, r"no data version 'v4'; it offers v5\.2, v5\.3\."),
    ):
        with pytest.raises(ConfigError, match=said):
            upload(**options)
    assert len(server.pickles) == 2


@pytest.mark.parametrize("status", ["error", "failed"])
def test_a_model_that_does_not_run_there_is_an_error(server, upload, status):
    server.statuses = [("pending", ""), (status, "Segmentation fault!")]
    message = refused(server, UploadError, upload, assign=True)
    reason = f"({status}: Segmentation fault!)."
    assert message.endswith(f"validate upload pickle-1 of portable.pkl {reason}")
    assert server.pickles[0]["assigned"] is None


@pytest.mark.parametrize("wait", [0.0, 100.0])
def test_without_a_result_the_status_is_that_of_the_moment(server, upload, wait, clock):
    server.statuses, said = [("validating", None)], []
    assert upload(wait=wait, on_step=said.append) == "validating"
    assert clock[0] == pytest.approx(wait)
    assert said[-1].startswith("Numerai has not validated it yet (validating): check")


@pytest.mark.parametrize(
    ("operation", "fault", "error", "said"),
    [
        ("computePickleUploadAuth", "errors", ApiError, "the slot has a webhook"),
        ("PUT", 403, UploadError, "the storage answered HTTP 403"),
        ("createComputePickleUpload", 500, ApiError, "HTTP 500"),
        ("computePickles", "shape", ApiError, "does not list pickle-1"),
    ],
)
def test_what_numerai_refuses_it_says_itself(
    server, upload, operation, fault, error, said
):
    server.fail(operation, fault, 9, message="the slot has a webhook", value=[])
    assert said in refused(server, error, upload)
    # An upload is not made twice.
    assert server.operations.count("createComputePickleUpload") <= 1
    upload.path.unlink()
    assert "No such file" in refused(server, DataError, upload)
