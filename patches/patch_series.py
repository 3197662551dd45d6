"""The patch series: reads, checks and applies it in memory.

The series, with ``UPSTREAM``, ``series`` and the patches, is part of the installation,
and is applied to the installed scikit-learn when its modules are first imported. A
patch file is a header in plain text, a blank line, and a unified diff that modifies
files. A hunk applies where its lines are found, which must be exactly one place,
regardless of line numbers: so one series fits releases that differ elsewhere.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@(?: .*)?")


class PatchError(Exception):
    """A series that cannot be read, applied or exported; the message has the place."""


class Patch(NamedTuple):
    """A patch file: its name, its header, and the hunks of each file by path."""

    name: str
    header: str
    # Lines, each with its ' ', '-' or '+'.
    files: dict[str, list[list[str]]]

    @property
    def size(self) -> int:
        """Number of added and removed lines."""
        hunks = [lines for hunks in self.files.values() for lines in hunks]
        return sum(line[0] != " " for lines in hunks for line in lines)


class Pin(NamedTuple):
    """Releases of scikit-learn with the same bytes, and their hashes by path."""

    versions: list[str]
    hashes: dict[str, str]  # SHA-256 of the text


def read_text(file: Any) -> str:
    r"""Read a UTF-8 file and replace ``\r\n`` by ``\n``, nothing else."""
    try:
        return file.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PatchError(f"{file}: not UTF-8: {error}") from error


def read_pins(folder: Any) -> list[Pin]:
    """Read ``UPSTREAM``; its releases are in ascending order."""
    pins: list[Pin] = []
    for line in _entries(folder / "UPSTREAM"):
        digest, _, path = line.partition("  ")
        if line.startswith("versions "):
            pins.append(Pin(line.split()[1:], {}))
        elif pins and re.fullmatch(r"[0-9a-f]{64}  sklearn/\S+", line):
            pins[-1].hashes[path] = digest
        else:
            pins = []
            break
    if not pins or any(pin.hashes.keys() != pins[0].hashes.keys() for pin in pins):
        raise PatchError(
            f"{folder / 'UPSTREAM'}: expected lines 'versions X ...', each with "
            "a line 'SHA-256  sklearn/PATH' below it for each of the same files"
        )
    return pins


def read_series(folder: Any) -> list[Patch]:
    """Read the patches that ``series`` lists, in the order of application."""
    names = _entries(folder / "series")
    return [parse(name, read_text(folder / name)) for name in names]


def _entries(file: Any) -> list[str]:
    """Return the lines of a list, without blank lines and ``#`` comments."""
    lines = read_text(file).split("\n")
    return [line.rstrip() for line in lines if line.strip() and line[0] != "#"]


def read_upstream(pins: Sequence[Pin], site: Any) -> dict[str, str]:
    """Read the pinned files below the folder `site`."""
    try:
        return {path: read_text(site / path) for path in pins[0].hashes}
    except OSError as error:
        raise PatchError(
            "sklearn_era.ensemble patches the source of the installed scikit-learn, "
            f"which is not there ({error.filename}). Where files are collected or "
            "compiled to bytecode, keep this one; PyInstaller's hook does"
        ) from error


def are_pinned(pins: Sequence[Pin], texts: Mapping[str, str]) -> bool:
    """Return whether files have the bytes of a pin."""
    hashes = {path: sha256(text) for path, text in texts.items()}
    return any(hashes == pin.hashes for pin in pins)


def unfit(pins: Sequence[Pin], site: Any, version: str, reason: str = "") -> PatchError:
    """Return the error for a release that is not patched."""
    known = ", ".join(version for pin in pins for version in pin.versions)
    return PatchError(
        f"sklearn_era.ensemble works with scikit-learn {known} as released, and "
        f"the installed {version} has other files ({', '.join(pins[0].hashes)} in "
        f"{site}){reason}: install one of these anew"
    )


def patch_installed(
    folder: Any, site: Any, version: str
) -> tuple[dict[str, str], bool]:
    """Return the installed files, patched, and whether they are a known release's.

    Others are patched if the release is another one of a known minor version, and each
    hunk fits in exactly one place.
    """
    pins = read_pins(folder)
    texts = read_upstream(pins, site)
    is_known = are_pinned(pins, texts)
    minors = [known.split(".")[:2] for pin in pins for known in pin.versions]
    if not is_known and version.split(".")[:2] not in minors:
        raise unfit(pins, site, version)
    try:
        for patch in read_series(folder):
            texts = apply(patch, texts)
    except PatchError as error:
        if is_known:
            raise
        raise unfit(pins, site, version, f", which do not fit ({error})") from error
    return texts, is_known


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def parse(name: str, text: str) -> Patch:
    """Read the text of a patch file; raise PatchError if it is malformed or cut off."""
    header: list[str] = []
    files: dict[str, list[list[str]]] = {}
    path = None
    old = new = 0  # lines still missing from the hunk
    *lines, tail = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if old > 0 or new > 0:
            old -= line.startswith((" ", "-"))
            new -= line.startswith((" ", "+"))
            if not line.startswith((" ", "-", "+")) or min(old, new) < 0:
                raise PatchError(
                    f"{name}:{number}: {line!r} is not a line that its hunk counts"
                )
            files[path][-1].append(line)
        elif line.startswith("--- a/"):
            path = line.removeprefix("--- a/")
        elif path is None:
            header.append(line)
        elif line == f"+++ b/{path}":
            files.setdefault(path, [])
        elif path in files and (match := _HUNK.fullmatch(line)):
            old, new = (int(match[i] or 1) for i in (2, 3))
            files[path].append([])
        else:
            raise PatchError(
                f"{name}:{number}: expected a hunk, or '--- a/PATH' and '+++ b/PATH', "
                f"found {line!r}"
            )
    if tail or old or new or path not in files or not all(files.values()):
        raise PatchError(
            f"{name}: empty or cut off: expected '--- a/PATH', '+++ b/PATH' and whole "
            "hunks, to the newline at the end"
        )
    return Patch(name, "\n".join(header).strip("\n"), files)


def apply(patch: Patch, texts: Mapping[str, str]) -> dict[str, str]:
    """Return `texts`, by path, after the changes of `patch`."""
    result = dict(texts)
    for path, hunks in patch.files.items():
        if path not in texts:
            raise PatchError(f"{patch.name}: {path}: not listed in patches/UPSTREAM")
        done, text = "\n", "\n" + result[path]
        for number, lines in enumerate(hunks, start=1):
            before, after = (
                "".join(f"\n{line[1:]}" for line in lines if line[0] != mark) + "\n"
                for mark in "+-"
            )
            # The newline before a hunk's lines ends the line before them.
            places = text.count(before)
            if places != 1:
                raise PatchError(
                    f"{patch.name}: {path}: the lines of hunk {number} are in {places} "
                    f"places, and not in one, below line {done.count(chr(10))}: "
                    + repr(before.strip("\n"))
                )
            head, _, text = text.partition(before)
            done, text = done[:-1] + head + after, "\n" + text
        result[path] = (done[:-1] + text)[1:]
    return result


def rename(texts: Mapping[str, str]) -> dict[str, str]:
    """Make patched modules import one another from ``sklearn_era``, and everything else
    from scikit-learn by its full name.
    """
    modules = [path.removesuffix(".py").replace("/", ".") for path in texts]
    own = re.compile(
        rf"(?<![\w.])(?=(?:{'|'.join(map(re.escape, modules))})\b)sklearn\."
    )
    renamed = {}
    for (path, text), module in zip(texts.items(), modules, strict=True):
        packages = module.split(".")
        for n_dots in range(1, len(packages)):
            package = ".".join(packages[:-n_dots])
            from_it = re.compile(rf"(?m)^from \.{{{n_dots}}}(?!\.)(?=(\w?))")
            text = from_it.sub(
                lambda x, p=package: f"from {p}" + "." * bool(x[1]), text
            )
        renamed[path] = own.sub("sklearn_era.", text)
    return renamed
