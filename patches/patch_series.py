"""The patch series of this folder: what it is pinned to, and its order.

Neither scikit-learn nor NumPy is imported: the installed distribution is located and
its files are read.
"""

import hashlib
import importlib.metadata
import re
import sys
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import unified_diff
from unified_diff import Patch, PatchError

FOLDER = Path(__file__).resolve().parent


class Pin(NamedTuple):
    """The release of scikit-learn to build with, and its files that are pinned."""

    version: str
    hashes: dict[str, str]  # SHA-256 of the text, by the path in the wheel

    @property
    def taken(self) -> list[str]:
        """The files to patch; declarations are compiled against where they are."""
        return [path for path in self.hashes if not path.endswith(".pxd")]

    def rename(self, text: str) -> str:
        """Move the modules taken, and no others, to ``sklearn_era``."""
        modules = "|".join(
            re.escape(PurePosixPath(path).with_suffix("").as_posix().replace("/", "."))
            for path in self.taken
        )
        return re.sub(rf"(?<![\w.])(?=(?:{modules})\b)sklearn\.", "sklearn_era.", text)


def read_text(path: Path) -> str:
    r"""Read a UTF-8 file and turn ``\r\n`` into ``\n``, and nothing else."""
    try:
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PatchError(f"{path}: not UTF-8: {error}") from error


def read_pin(folder: Path) -> Pin:
    """Read ``UPSTREAM``."""
    lines = _entries(folder / "UPSTREAM")
    text = "\n".join(lines)
    versions = re.findall(r"^version (\S+)$", text, re.MULTILINE)
    pins = re.findall(r"^([0-9a-f]{64})  (sklearn/\S+)$", text, re.MULTILINE)
    if len(versions) != 1 or not pins or len(lines) != 1 + len(pins):
        raise PatchError(
            f"{folder / 'UPSTREAM'}: expected one line 'version X', and one line "
            "'SHA-256  sklearn/PATH' for each file"
        )
    return Pin(versions[0], {path: digest for digest, path in pins})


def read_series(folder: Path) -> list[Patch]:
    """Read the patches that ``series`` lists, in the order of application."""
    names = _entries(folder / "series")
    return [unified_diff.parse(name, read_text(folder / name)) for name in names]


def _entries(path: Path) -> list[str]:
    """Return the lines of a list, less blanks and ``#`` comments."""
    lines = read_text(path).split("\n")
    return [line.rstrip() for line in lines if line.strip() and line[0] != "#"]


def locate_upstream(pin: Pin) -> dict[str, Path]:
    """Find the pinned files in the installed scikit-learn, which is the one pinned."""
    needed = f"scikit-learn {pin.version} is needed to build"
    try:
        found = importlib.metadata.distribution("scikit-learn")
    except importlib.metadata.PackageNotFoundError as error:
        raise PatchError(f"{needed}, found none for {sys.executable}") from error
    if found.version != pin.version:
        raise PatchError(f"{needed}, found {found.version} at {found.locate_file('')}")
    return {path: Path(found.locate_file(path)) for path in pin.hashes}


def read_upstream(pin: Pin) -> dict[str, str]:
    """Check all pinned files; return the texts of those taken, by path in the wheel."""
    texts = {path: read_text(file) for path, file in locate_upstream(pin).items()}
    for path, expected in pin.hashes.items():
        found = hashlib.sha256(texts[path].encode("utf-8")).hexdigest()
        if found != expected:
            raise PatchError(
                f"{path}: not the file of scikit-learn {pin.version} that "
                f"patches/UPSTREAM pins: expected SHA-256 {expected}, found {found}"
            )
    return {path: texts[path] for path in pin.taken}
