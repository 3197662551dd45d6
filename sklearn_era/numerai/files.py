"""Files that appear complete or not at all, and their digests."""

import hashlib
import os
import secrets
from pathlib import Path


def partial_path(path: Path) -> Path:
    """A name beside `path` that nothing else has, for what is not complete yet.

    It is a fresh one each time: what a run that was killed left behind is never
    continued.
    """
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file, on disk before it has its name; one of that name is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_path(path)
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


__all__ = ["file_sha256", "partial_path", "write_atomically"]
