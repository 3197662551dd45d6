"""Files that appear whole or not at all, and what is printed of files of others."""

import os
from contextlib import suppress
from pathlib import Path


def put_in_place(written: Path, path: Path) -> None:
    """Replace a file by one written beside it; a crash leaves all of either."""
    with written.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(written, path)
    _sync(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, and those that it lies in, which a power cut leaves there."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def _sync(folder: Path) -> None:
    """Have the names in a folder on disk, where the system can do so."""
    # Windows opens no folders, and some network file systems sync none.
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def printable(text: str) -> str:
    """Return a line of text with "?" for what a terminal would take for commands."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


__all__ = ["make_folder", "printable", "put_in_place"]
