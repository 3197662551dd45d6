"""Files that appear whole, records that later versions can read, and locks."""

import errno
import os
import stat
import subprocess
import sys
from contextlib import suppress

import pytest

from sklearn_era.numerai.errors import BusyError, DataError
from sklearn_era.numerai.files import Record, lock, replacing, write_json, write_whole


class Example(Record):
    """A record whose second format has one key more, with a default."""

    format: int = 2
    name: str
    size: int = 0


def test_records_of_other_versions_are_read(tmp_path):
    path = tmp_path / "example.json"
    for text in ('{"format": 1, "name": "a"}', '{"name": "a", "new": [1], "size": 0}'):
        path.write_text(text)
        record = Example.read(path, advice="Help.")
        assert (record.name, record.size) == ("a", 0)
    record.write(path)
    assert Example.read(path, advice="Help.") == record
    path.unlink()
    assert Example.read(path, advice="Help.") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is damaged"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 2}', "name: Field required"),
        ('{"name": null}', "is damaged (name: "),
        ('{"name": "a", "size": "x"}', "is damaged (size: "),
        ("[" * 100_000, "is damaged"),
        ('{"name": "\xff"}', "is damaged"),
        (
            '{"format": 3, "name": "a"}',
            "this version reads formats up to 2: upgrade sklearn-era.",
        ),
    ],
)
def test_a_damaged_record_is_one_sentence(tmp_path, text, said):
    path = tmp_path / "example.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError) as caught:
        Example.read(path, advice="Help.")
    message = str(caught.value)
    assert message.startswith(f"{path} ")
    assert said in message
    assert "\n" not in message
    assert message.endswith(("Help.", "sklearn-era."))


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "new" / "file"
    write_whole(path, b"old")
    with suppress(ZeroDivisionError), replacing(path) as partial:
        partial.write_bytes(b"ne")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    with pytest.raises(DataError, match=f"{path}/below cannot be written: "):
        write_whole(path / "below", b"")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DataError, match="file cannot be written: No space left"):
        write_json(path, {"a": 1})
    assert [one.name for one in path.parent.iterdir()] == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="Windows opens no folders")
def test_a_file_is_on_disk_before_its_name_and_so_are_new_folders(
    tmp_path, monkeypatch
):
    """After a power cut, the record of an upload was that of before."""
    sync, replace, done = os.fsync, os.replace, []

    def note_sync(file):
        status = os.fstat(file)
        done.append(status.st_ino)
        sync(file)

    def note_replace(source, target):
        done.append("replace")
        replace(source, target)

    monkeypatch.setattr("os.fsync", note_sync)
    monkeypatch.setattr("os.replace", note_replace)
    path = tmp_path / "rounds" / "1401" / "file"
    write_whole(path, b"new")
    folders = [x.stat().st_ino for x in (tmp_path, path.parents[1], path.parent)]
    assert done == [*folders[:2], path.stat().st_ino, "replace", folders[2]]


def test_a_file_system_that_syncs_no_folders_will_do(tmp_path, monkeypatch):
    def refuse(file):
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("os.fsync", refuse)
    write_whole(tmp_path / "new" / "file", b"new")
    assert (tmp_path / "new" / "file").read_bytes() == b"new"


def test_one_run_at_a_time_and_a_killed_one_holds_nothing(tmp_path):
    path = tmp_path / "locks" / "x.lock"
    program = (
        "import sys, time; from pathlib import Path\n"
        "from sklearn_era.numerai.files import lock\n"
        "with lock(Path(sys.argv[1]), 'at it'): print(flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(
            BusyError, match=r"^Another run is at it: wait for it to finish"
        ):
            lock(path, "at it").__enter__()
        other.kill()
    with lock(path, "at it", wait=10):
        pass


def test_a_file_system_without_locks_is_warned_of(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    with (
        pytest.warns(UserWarning, match="is on a file system without locks"),
        lock(tmp_path / "x.lock", "at it"),
    ):
        pass


def test_a_command_imports_no_more_than_it_needs(tmp_path):
    """Reading the configuration needs neither an HTTP client nor a table."""
    program = (
        "import sys; from pathlib import Path\n"
        "from sklearn_era.numerai.config import load_config, write_config\n"
        "from sklearn_era.cli._numerai import check_packages\n"
        "path = Path(sys.argv[1])\n"
        "write_config(path, name='m', target='target_x_20', version='v5.3')\n"
        "check_packages()\n"
        "load_config(path)\n"
        "print(sorted({'requests', 'pandas', 'pyarrow', 'numerai_tools', 'lightgbm'}"
        " & sys.modules.keys()))\n"
    )
    path = str(tmp_path / "numerai.toml")
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
