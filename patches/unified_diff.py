"""Read and apply patch files, strictly and in memory.

A patch file is a header in plain text, a blank line, and a unified diff that modifies
files. Since these are pinned by hash, a hunk applies at its line numbers or not at all.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@(?: .*)?")

# The 0-based line that it starts at, and its lines, each with its ' ', '-' or '+'.
Hunk = tuple[int, list[str]]


class PatchError(Exception):
    """A series that cannot be read, applied or exported; the message says where."""


class Patch(NamedTuple):
    """A patch file: its name, its header, and the hunks of each file by its path."""

    name: str
    header: str
    files: dict[str, list[Hunk]]

    @property
    def size(self) -> int:
        """Number of lines added and removed."""
        hunks = [lines for hunks in self.files.values() for _, lines in hunks]
        return sum(line[0] != " " for lines in hunks for line in lines)


def parse(name: str, text: str) -> Patch:
    """Read the text of a patch file; refuse one that is malformed or cut off."""
    header: list[str] = []
    files: dict[str, list[Hunk]] = {}
    path = None
    old = new = 0  # lines that the hunk still lacks
    *lines, tail = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if old > 0 or new > 0:
            old -= line.startswith((" ", "-"))
            new -= line.startswith((" ", "+"))
            if not line.startswith((" ", "-", "+")) or min(old, new) < 0:
                raise PatchError(
                    f"{name}:{number}: {line!r} is not a line that its hunk counts"
                )
            files[path][-1][1].append(line)
        elif line.startswith("--- a/"):
            path = line.removeprefix("--- a/")
        elif path is None:
            header.append(line)
        elif line == f"+++ b/{path}":
            files.setdefault(path, [])
        elif path in files and (match := _HUNK.fullmatch(line)):
            start, old, new = map(int, match.groups("1"))
            # An empty range is numbered by the line before it, any other by its first.
            files[path].append((start - (old > 0), []))
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
    """Return `texts`, by path, with those changed that `patch` names."""
    result = dict(texts)
    for path, hunks in patch.files.items():
        where = f"{patch.name}: {path}"
        if path not in texts:
            raise PatchError(f"{where}: not listed in patches/UPSTREAM")
        *before, tail = texts[path].split("\n")
        after: list[str] = []
        done = 0
        for start, lines in hunks:
            if not done <= start <= len(before):
                inside = f"{done + 1} to {len(before)}"
                raise PatchError(f"{where}:{start + 1}: a hunk outside lines {inside}")
            after += before[done:start]
            done = start
            for mark, expected in ((line[0], line[1:]) for line in lines):
                if mark != "+":
                    found = repr(before[done]) if done < len(before) else "the end"
                    if found != repr(expected):
                        raise PatchError(
                            f"{where}:{done + 1}: expected {expected!r}, found {found}"
                        )
                    done += 1
                if mark != "-":
                    after.append(expected)
        result[path] = "\n".join([*after, *before[done:], tail])
    return result
