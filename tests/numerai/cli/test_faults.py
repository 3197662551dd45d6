"""What goes wrong in ``sklearn-era numerai`` is one line, and nothing by halves."""

import io
import json

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("numerapi")
pytest.importorskip("numerai_tools")
numerai_program = pytest.importorskip("helpers.numerai.program")

import pandas as pd  # noqa: E402

from helpers.numerai.program import LIVE, NAME, SUBMITTED, Program  # noqa: E402
from helpers.numerai.server import SECRET_KEY  # noqa: E402
from sklearn_era.numerai.api.credentials import SITE  # noqa: E402
from sklearn_era.numerai.data.feature_blocks import (  # noqa: E402
    era_runs,
    open_columns,
)
from sklearn_era.numerai.errors import DataError  # noqa: E402

UNTIL = {name: SUBMITTED[: SUBMITTED.index(name) + 1] for name in set(SUBMITTED)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return numerai_program.demo_files(tmp_path_factory.mktemp("numerai"))


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    return numerai_program.trained_folder(tmp_path_factory.mktemp("trained"), files)


@pytest.fixture
def empty(files, tmp_path, monkeypatch, caplog):
    """A program in a folder that has the configuration alone."""
    numerai_program.write_settings(tmp_path)
    with numerai_program.standing_in(tmp_path, files, monkeypatch, caplog) as program:
        yield program


@pytest.fixture
def program(trained, files, tmp_path, monkeypatch, caplog):
    """A program in a folder where all is done but the submission."""
    numerai_program.copied(trained, tmp_path)
    with numerai_program.standing_in(tmp_path, files, monkeypatch, caplog) as program:
        yield program


def rewritten(content, change):
    """A Parquet file with its frame changed."""
    buffer = io.BytesIO()
    change(pd.read_parquet(io.BytesIO(content))).to_parquet(buffer)
    return buffer.getvalue()


def assert_submitted(program):
    """Assert that the next attempt succeeds, and that it is the only submission."""
    program.server.faults.clear()
    assert "submission-1" in program.run("submit")
    (made,) = program.server.submissions
    sent = (program.round_folder / "predictions.csv").read_bytes()
    assert made["content"] == sent
    record = json.loads((program.round_folder / "submission.json").read_text())
    assert (record["state"], record["submission_id"]) == ("submitted", "submission-1")


# The API's calls in the order of a submission, each refused or failing for good.


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("operation", ["models", "submissions"])
def test_a_refused_key_is_an_error_of_the_api(program: Program, operation, status):
    program.server.fail(operation, status, 9)
    message = program.fail("submit", code=4)
    assert message.endswith(
        f"Numerai's API answered HTTP {status}: check NUMERAI_PUBLIC_ID and "
        "NUMERAI_SECRET_KEY."
    )
    assert program.server.operations == UNTIL[operation]
    assert_submitted(program)


def test_what_numerai_says_is_passed_on_without_secrets_and_controls(program: Program):
    address = program.server.sign("/uploads/x")
    said = f"bad key {SECRET_KEY}\nat {address} \x1b[2J\x07"
    program.server.fail("models", "errors", message=said)
    assert program.fail("submit", code=4) == (
        "Looking up the model: Numerai's API refused: bad key *** at <address> ?[2J?; "
        "and another."
    )


@pytest.mark.parametrize("kind", ["errors", 500, "garbage", "drop", "hang"])
@pytest.mark.parametrize(
    ("operation", "step"),
    [
        ("models", "Looking up the model"),
        ("rounds", "Looking up the current round"),
        ("dataset", "Downloading v5.3/live.parquet"),
        ("submissions", "Listing the submissions"),
    ],
)
def test_an_api_that_fails_stops_the_submission(
    program: Program, operation, step, kind
):
    program.change("timeout = 2.0", "timeout = 0.2")
    program.server.fail(operation, kind, 9)
    message = program.fail("submit", code=4)
    assert message.startswith(f"{step}: ")
    assert message.removeprefix(f"{step}: ").split(" ")[0] == "Numerai's"
    assert "PUT" not in program.server.operations
    program.change("timeout = 0.2", "timeout = 2.0")
    assert_submitted(program)


@pytest.mark.parametrize("kind", [403, 500, "drop", "hang"])
def test_a_file_that_the_storage_refuses_is_not_submitted(program: Program, kind):
    program.change("timeout = 2.0", "timeout = 0.2")
    program.server.fail("PUT", kind, 9)
    message = program.fail("submit", code=6)
    assert message.startswith("Uploading: the storage ")
    assert message.endswith("; nothing was submitted.")
    assert "create_submission" not in program.server.operations
    assert program.server.submissions == []
    program.change("timeout = 0.2", "timeout = 2.0")
    assert_submitted(program)


@pytest.mark.parametrize("operation", sorted({*SUBMITTED} - {"create_submission"}))
@pytest.mark.parametrize("kind", ["hang", 503, "drop"])
def test_a_failure_that_passes_is_not_seen(program: Program, operation, kind):
    program.change("timeout = 2.0", "timeout = 0.2")
    program.server.fail(operation, kind)
    assert_submitted(program)


@pytest.mark.parametrize("kind", ["lost", "drop", 500])
def test_a_lost_answer_is_one_submission(program: Program, kind):
    program.server.fail("create_submission", kind)
    program.run("submit")
    assert_submitted(program)


@pytest.mark.parametrize("kind", [401, "errors"])
def test_a_refused_submission_is_none(program: Program, kind):
    program.server.fail("create_submission", kind, 9)
    message = program.fail("submit", code=6)
    assert message.startswith("Making the submission: Numerai's API ")
    assert message.endswith("; nothing was submitted.")
    assert_submitted(program)


def test_a_submission_that_is_not_listed_is_not_confirmed(program: Program):
    program.server.fail("create_submission", "unlisted")
    message = program.fail("submit", code=6)
    assert "does not list submission submission-1: repeat this command" in message
    program.server.unlisted.clear()
    assert_submitted(program)


def test_an_unknown_model_is_told_with_the_known_ones(program: Program):
    program.server.models = {"mine": "1", "another": "2"}
    message = program.fail("submit", code=4)
    assert message == f"No Classic model named '{NAME}'. Your models: another, mine."
    assert program.server.operations == ["models"]


@pytest.mark.parametrize(
    ("options", "configured"), [(["--require-open"], False), ([], True)]
)
def test_a_closed_round_stops_where_it_has_to_be_open(
    program: Program, options, configured
):
    if configured:
        program.change("require_open = false", "require_open = true")
    program.server.is_open = False
    message = program.fail("submit", *options, code=5)
    assert message.startswith("Round 1401 closed at 20")
    assert message.endswith("Use --allow-closed to have it queued for the next round.")
    assert program.server.operations == UNTIL["rounds"]
    said = program.run("submit", "--allow-closed", warned="queued for the next round")
    assert "submission-1" in said
    assert len(program.server.submissions) == 1


def test_a_round_that_has_passed_stops_the_submission(program: Program):
    program.server.round_number = 1402
    message = program.fail("submit", code=5)
    assert "the current round is 1402: run download and predict again" in message
    assert program.server.submissions == []
    assert "no live file of round 1402" in program.fail(
        "submit", "--round", 1402, code=3
    )


def test_ids_that_changed_since_the_download_stop_the_submission(
    program: Program, files
):
    program.server.files[LIVE] = rewritten(
        files[LIVE], lambda frame: frame.rename(index=lambda label: f"{label[:-1]}g")
    )
    message = program.fail("submit", code=5)
    assert message == (
        "The ids changed since live_1401 was downloaded (40 new, 40 gone): run "
        "download and predict again; nothing was submitted."
    )
    assert program.server.operations == UNTIL["GET"]
    program.run("download")
    assert "40 of 40 live ids have no prediction" in program.fail("submit", code=5)
    program.run("predict")
    assert_submitted(program)


@pytest.mark.parametrize("missing", ["PUBLIC_ID", "SECRET_KEY", "both"])
@pytest.mark.parametrize("command", ["submit", "weekly"])
def test_a_missing_key_is_named_before_any_call(
    program: Program, monkeypatch, missing, command
):
    names = [f"NUMERAI_{half}" for half in ("PUBLIC_ID", "SECRET_KEY")]
    gone = [name for name in names if missing in (name[8:], "both")]
    for name in gone:
        monkeypatch.delenv(name)
    message = program.fail(command, code=2)
    verb = "are" if missing == "both" else "is"
    assert message.startswith(f"{' and '.join(gone)} {verb} not set")
    assert f"Create a key at {SITE}/account with upload_submission scope" in message
    assert program.server.requests == []
    # Neither download nor prediction need one.
    program.run("download")
    program.run("predict")


# Downloads.


@pytest.mark.parametrize("kind", ["truncated", "corrupt"])
def test_a_live_file_that_comes_damaged_is_fetched_again(empty: Program, files, kind):
    empty.server.fail("GET", kind)
    empty.run("download")
    live = empty.folder / "data" / "v5.3" / "live_1401.parquet"
    assert live.read_bytes() == files[LIVE]


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("truncated", 4, "the storage could not be reached, or broke off"),
        ("corrupt", 3, "is damaged"),
        (403, 4, "(HTTP 403)"),
        (500, 4, "(HTTP 500)"),
        ("drop", 4, "could not be reached, or broke off"),
    ],
)
def test_a_live_file_that_does_not_come_whole_is_not_there(
    program: Program, kind, code, said
):
    data = program.folder / "data" / "v5.3"
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    program.server.fail("GET", kind, 99)
    assert said in program.fail("download", code=code)
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before


def test_a_live_file_of_the_same_size_is_another_one(program: Program, files):
    live = program.folder / "data" / "v5.3" / "live_1401.parquet"
    old = live.read_bytes()
    live.write_bytes(bytes(len(old)))
    program.run("download")
    assert live.read_bytes() == files[LIVE] == old


def test_leftovers_are_removed(program: Program):
    data = program.folder / "data" / "v5.3"
    for name in ("live.parquet.temp", "live_1400.parquet.0123abcd.partial"):
        (data / name).write_bytes(b"PAR1")
    program.run("download")
    assert {path.suffix for path in data.iterdir()} == {".json", ".parquet"}


def test_a_version_that_is_gone_is_told_with_the_latest(program: Program, files):
    program.server.files = {
        name.replace("v5.3", "v6.0"): content for name, content in files.items()
    }
    message = program.fail("download", code=3)
    assert message == (
        "v5.3/live.parquet is no longer served; latest is v6.0. Retrain on it: set "
        "version = 'v6.0' in [data], and train again."
    )


# A model and data that do not go together.


def test_a_feature_that_live_data_lack_is_named(program: Program, files):
    document = json.loads(files["v5.3/features.json"])
    lost = document["feature_sets"]["small"][1]
    live = program.folder / "data" / "v5.3" / "live_1401.parquet"
    live.write_bytes(rewritten(files[LIVE], lambda frame: frame.drop(columns=lost)))
    for path in program.round_folder.iterdir():
        path.unlink()
    message = program.fail("predict", code=3)
    assert message.startswith(f"Live data lack 1 of 4 model features (first: {lost}).")
    assert list(program.round_folder.iterdir()) == []
    assert "predict' first" in program.fail("submit", code=3)
    assert program.server.requests == []


def test_a_model_of_another_version_is_warned_of(program: Program):
    program.change('version = "v5.3"', 'version = "v5.4"')
    data = program.folder / "data"
    (data / "v5.3").rename(data / "v5.4")
    result = program.invoke("predict")
    assert result.exit_code == 0
    assert "40 predictions" in result.stdout
    warnings = result.stderr.splitlines()
    assert len(warnings) == 2
    assert "The model was trained on v5.3" in warnings[0]
    assert "the model is to be trained again: version" in warnings[1]


def test_eras_that_are_damaged_are_an_error_of_the_file(files, tmp_path):
    path = tmp_path / "validation.parquet"
    content = files["v5.3/validation.parquet"]
    middle = len(content) // 2
    path.write_bytes(content[:4] + bytes(middle - 4) + content[middle:])
    columns = open_columns(path)
    with pytest.raises(DataError) as caught:
        era_runs(columns, path)
    assert str(caught.value).startswith(f"{path} is damaged (")


def test_a_damaged_file_to_compare_with_is_warned_of(program: Program):
    path = program.folder / "data" / "v5.3" / "live_example_preds_1401.parquet"
    path.write_bytes(path.read_bytes()[:-5])
    program.run("predict", warned=f"{path} is cut off")
