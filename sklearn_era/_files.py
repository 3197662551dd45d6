"""Write files whole or not at all, and make text of unknown files printable."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path; after the block, rename the file there to `path`."""
    # In the same folder, so that the replacement is atomic.
    with TemporaryDirectory(
        dir=path.parent, prefix=".sklearn-era-", ignore_cleanup_errors=True
    ) as folder:
        yield (temporary := Path(folder, path.name))
        put_in_place(temporary, path)


def put_in_place(written: Path, path: Path) -> None:
    """Replace the file `path` by `written`, a file on the same disk. After a crash,
    `path` is either the former file or the new one, never a part of one.
    """
    with written.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(written, path)
    _sync(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and sync them so that they survive a power cut."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def _sync(folder: Path) -> None:
    """Write the names of a folder's files to disk, if the system supports it."""
    # Windows opens no folders, and some network file systems cannot sync them.
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def printable(text: str) -> str:
    """Return a line of text with "?" for characters that could control the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
