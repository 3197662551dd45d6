"""``sklearn-era numerai`` on a full disk, beside another run, or cut off."""

import errno
import fcntl
import inspect
import json
import logging
import math
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("numerapi")
pytest.importorskip("numerai_tools")
pytest.importorskip("matplotlib")
pytest.importorskip("dotenv")
numerai_program = pytest.importorskip("helpers.numerai.program")

from helpers.cli import invoke  # noqa: E402
from helpers.numerai.program import NAME, Program  # noqa: E402
from helpers.numerai.server import PUBLIC_ID, SECRET_KEY  # noqa: E402
from sklearn_era.cli.numerai._app import numerai  # noqa: E402
from sklearn_era.numerai.api.transport import Transport  # noqa: E402
from sklearn_era.numerai.errors import ConfigError  # noqa: E402
from sklearn_era.numerai.submission import record  # noqa: E402

COMMAND = [sys.executable, "-c", "from sklearn_era.cli import main; main()", "numerai"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return numerai_program.demo_files(tmp_path_factory.mktemp("numerai"))


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    return numerai_program.trained_folder(tmp_path_factory.mktemp("trained"), files)


@pytest.fixture
def program(trained, files, tmp_path, monkeypatch, caplog):
    """A program in a folder where all is done but the submission."""
    numerai_program.copied(trained, tmp_path)
    with numerai_program.standing_in(tmp_path, files, monkeypatch, caplog) as program:
        yield program


def assert_submitted_once(program):
    program.run("submit")
    (made,) = program.server.submissions
    document = json.loads((program.round_folder / "submission.json").read_text())
    assert document["state"] == "submitted"
    assert document["submission_id"] == made["id"]


# Files and folders.


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("download", "data"),
        ("train", "models"),
        ("predict", "models"),
        ("export", "models"),
        ("validate", "reports"),
        ("predict", "rounds"),
    ],
)
def test_a_file_in_place_of_a_folder_is_named(program: Program, command, folder):
    place = program.folder / folder
    if place.exists():
        place.rename(program.folder / "moved")
    place.write_text("")
    message = program.fail(command, code=3)
    assert str(place) in message
    assert "Not a directory" in message


def test_predictions_that_cannot_be_written_are_named(program: Program):
    path = program.round_folder / "predictions.csv"
    path.unlink()
    path.mkdir()
    message = program.fail("predict", code=3)
    assert message == f"{path} cannot be written: Is a directory."


def test_an_export_goes_into_a_file_of_a_folder(program: Program):
    message = program.fail("export", "--out", program.folder, code=2)
    assert message == f"--out: '{program.folder}' is a folder: name a file in it."
    message = program.fail("export", "--out", program.folder / "no" / "x.pkl", code=2)
    assert message.startswith(f"--out: there is no folder '{program.folder / 'no'}'")


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (0, "nothing was submitted"),
        (1, "nothing was submitted"),
        (2, "Numerai has submission submission-1 all the same"),
        (3, "Numerai has submission submission-1 all the same"),
    ],
)
def test_a_record_that_cannot_be_written_says_what_numerai_has(
    program: Program, monkeypatch, write, said
):
    write_atomically = record.write_atomically
    count = 0

    def fill_up(path, content):
        nonlocal count
        count += 1
        if count > write:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_atomically(path, content)

    monkeypatch.setattr(record, "write_atomically", fill_up)
    message = program.fail("submit", code=3)
    path = program.round_folder / "submission.json"
    assert message == (
        f"{path} cannot be written (No space left on device), and {said}: mend that, "
        "and repeat this command."
    )
    assert len(program.server.submissions) == ("has submission" in said)
    monkeypatch.setattr(record, "write_atomically", write_atomically)
    assert_submitted_once(program)


def test_too_little_memory_says_how_to_need_less(program: Program, monkeypatch):
    def take(*_, **__):
        raise MemoryError

    monkeypatch.setattr("sklearn_era.numerai.steps.train_model", take)
    assert "take a smaller feature_set" in program.fail("train", code=1)


def test_what_was_downloaded_before_a_failure_is_told(program: Program):
    for name in ("train", "validation"):
        (program.folder / "data" / "v5.3" / f"{name}_1401.parquet").unlink()
    program.server.files["v5.3/validation.parquet"] = b"PAR1 but no more of it"
    result = program.invoke("download")
    assert result.exit_code == 3
    assert "train_1401.parquet: downloaded\n" in result.stdout
    assert "validation_1401.parquet" not in result.stdout
    assert "validation_1401.parquet is cut off" in result.stderr


def test_files_that_do_not_go_together_are_mended_as_told(program: Program, files):
    data = program.folder / "data" / "v5.3"
    document = json.loads(files["v5.3/features.json"])
    document["feature_sets"]["all"].append("feature_of_tomorrow")
    (data / "features_1401.json").write_text(json.dumps(document))
    message = program.fail("download", code=3)
    assert "(first: feature_of_tomorrow)" in message
    assert message.endswith("Remove both files, and download them again.")
    for name in ("features_1401.json", "train_1401.parquet"):
        (data / name).unlink()
    program.run("download")


# The environment.


@pytest.fixture
def settings(program, monkeypatch):
    """The file of settings, the only place for keys."""
    monkeypatch.delenv("NUMERAI_PUBLIC_ID")
    monkeypatch.delenv("NUMERAI_SECRET_KEY")
    return program.folder.joinpath(".env")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("form", ["{}={}", "export {}='{}'  # mine", '{} = "{}"'])
def test_keys_may_be_in_a_file_of_settings(program: Program, settings, form, encoding):
    keys = {"NUMERAI_PUBLIC_ID": PUBLIC_ID, "NUMERAI_SECRET_KEY": SECRET_KEY}
    lines = [form.format(*item) for item in keys.items()]
    settings.write_bytes("\r\n".join(lines).encode(encoding))
    program.run("submit")
    settings.unlink()  # the one file that is to hold the key


def test_lines_that_are_no_settings_are_counted_not_shown(
    program: Program, settings, caplog
):
    settings.write_text(f"# keys\nNUMERAI_SECRET_KEY: {SECRET_KEY}\n= {PUBLIC_ID}\n")
    message = program.fail("submit", code=2)
    assert message.endswith(
        f"{settings} was read as well, and is not of the form NAME=value in line 2."
    )
    assert not [entry for entry in caplog.records if entry.name.startswith("dotenv")]
    assert not logging.getLogger("dotenv.main").filters
    settings.unlink()


def test_settings_in_another_encoding_are_refused_unseen(program: Program, settings):
    settings.write_bytes(f"NUMERAI_SECRET_KEY={SECRET_KEY}".encode("utf-16"))
    message = program.fail("submit", code=2)
    assert message == (
        f"{settings} cannot be read as a file of settings (it is not UTF-8): save it "
        "as plain text in UTF-8."
    )


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "127.0.0.1:80", "http://user:pass@numerai.invalid/x", "https://"],
)
def test_an_address_that_is_refused_is_said_to_be_the_variables(
    program: Program, monkeypatch, url
):
    monkeypatch.setenv("SKLEARN_ERA_NUMERAI_API_URL", url)
    message = program.fail("submit", code=2)
    assert "it is that of SKLEARN_ERA_NUMERAI_API_URL" in message
    assert "pass" not in message


def test_certificates_that_are_not_there_are_named(program: Program, monkeypatch):
    monkeypatch.setenv("SKLEARN_ERA_NUMERAI_API_URL", "https://numerai.invalid")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle")
    for command in ("submit", "download"):
        message = program.fail(command, code=4)
        assert "could not be called" in message
        assert message.endswith("invalid path: /no/such/bundle).")


def test_a_timeout_beyond_the_systems_clock_is_refused(program: Program):
    program.change("timeout = 2.0", "timeout = 1e300")
    assert "timeout = 1e+300" in program.fail("submit", code=2)
    for timeout in (1e300, math.inf, math.nan, 0.0):
        with pytest.raises(ConfigError, match=r"timeout must be .* 86400, got"):
            Transport(timeout=timeout, retries=1, backoff=1.0)


def test_waits_double_to_a_minute_only(monkeypatch):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    transport = Transport(timeout=1.0, retries=2000, backoff=1.0)
    for attempt in (0, 1, 6, 7, 2000):
        transport.wait(attempt)
    assert waits == [1, 2, 64, 64, 64]


# Other runs, and the end of one.


def test_two_runs_do_not_download_at_once(program: Program):
    data = program.folder / "data" / "v5.3"
    partial = data / "train_1401.parquet.0123abcd.partial"
    partial.write_bytes(b"of the run that goes on")
    descriptor = os.open(data, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        message = program.fail("download", code=3)
    finally:
        os.close(descriptor)
    assert message == f"Another run is downloading to {data}: wait for its end."
    assert partial.exists()
    (data / "train_1401.parquet").unlink()
    program.run("download")
    assert not partial.exists()


@pytest.mark.parametrize("command", ["train", "weekly"])
def test_two_runs_do_not_train_at_once(program: Program, command):
    folder = program.folder / "models" / NAME
    before = {path: path.read_bytes() for path in folder.iterdir()}
    program.change("max_iter = 10", "max_iter = 11")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        message = program.fail(command, code=3)
    finally:
        os.close(descriptor)
    assert message == f"Another run is training in {folder}: wait for its end."
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert program.server.submissions == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("operation", ["PUT", "submissionDownloadAuth"])
def test_a_run_that_is_cut_off_can_be_repeated(program: Program, number, operation):
    program.change("timeout = 2.0", "timeout = 60.0")
    program.server.fail(operation, "hang")
    with subprocess.Popen(
        [*COMMAND, "submit"],
        cwd=program.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 60
        while operation not in program.server.operations:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        said = process.communicate(timeout=60)
    program.said += said
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert said[1] == "Interrupted: the same command can be run again.\n"
    assert_submitted_once(program)


def test_bars_are_for_terminals(program: Program):
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, "download"],
        cwd=program.folder,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    with process:
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the end, on Linux
                break
            if not part:
                break
            shown += part
        stdout = process.communicate(timeout=60)[0]
    os.close(ours)
    assert process.returncode == 0
    assert b"100%" in shown or b"live" in shown
    assert "live_1401.parquet: downloaded" in stdout


def test_the_table_is_whole_and_plain_where_there_is_no_terminal(program: Program):
    done = subprocess.run(
        [*COMMAND, "validate"],
        cwd=program.folder,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b"max_feature_exposure" in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize(
    "command", ["init", "download", "train", "validate", "predict", "submit", "export"]
)
def test_help_fits_a_terminal_of_80_columns(command):
    (found,) = [
        entry.callback
        for entry in numerai.registered_commands
        if entry.callback.__name__ == command
    ]
    _, *lines = inspect.getdoc(found).splitlines()
    # Those of a paragraph are not joined: a longer one would leave a word on its own.
    assert [line for line in lines if len(line) > 78] == []


def test_a_name_of_digits_is_a_text(program: Program):
    path = program.folder / "other.toml"
    done = invoke(
        "numerai", "init", "--name", "123", "--target", "target_x_20", "-c", path
    )
    assert done.exit_code == 0
    assert 'name = "123"' in path.read_text()
    program.change(f'name = "{NAME}"', "name = 123")
    assert "[model] name = 123" in program.fail("submit", code=2)
