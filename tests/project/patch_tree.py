"""A small scikit-learn and a series that patches it, for the tests of ``patches/``."""

import sys
from pathlib import Path

import pytest

PATCHES = Path(__file__).resolve().parents[2] / "patches"

with pytest.MonkeyPatch.context() as context:
    # `patches` holds scripts, which find each other beside them, and is no package.
    context.setattr(sys, "path", [str(PATCHES), *sys.path])
    import check_series
    import diff_writer
    import git_tree
    import patch_series
    import tool
    import unified_diff
    import vendor
    from patch_series import SeriesError
    from unified_diff import DiffError

__all__ = [
    "DiffError",
    "SeriesError",
    "check_series",
    "diff_writer",
    "git_tree",
    "patch_series",
    "tool",
    "unified_diff",
    "vendor",
]

ALPHA = "sklearn/wood/alpha.pyx"
BETA = "sklearn/wood/beta.py"
NUMBERS = "".join(f"line {n}\n" for n in range(1, 21))
IMPORTS = "from sklearn.wood.alpha import a\nfrom sklearn.wood.other import b\n"

HEADER = """\
Grow the number on line 5

Line 5 is the only one that the wood looks at.

Why-not-subclass: lines have no classes,
 and never will.
Reason: seam
Drop-when: upstream has a larger number.
Invariant: all other lines.
Tested-by: tests/test_wood.py::test_line[5], tests/test_wood.py"""


class PatchTree:
    """A repository with a series, and a scikit-learn 9.9 to build it with.

    Parameters
    ----------
    root : Path
        An empty folder.
    monkeypatch : pytest.MonkeyPatch
        Puts the scikit-learn on ``sys.path`` for the test's duration.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch):
        self.root = root
        self.folder = root / "repository" / "patches"
        self.site = root / "site"
        self.texts = {ALPHA: NUMBERS, BETA: IMPORTS + NUMBERS}
        self._patched = dict(self.texts)
        self.write(self.folder.parent / "tests" / "test_wood.py", "def test_line():")
        self.write(
            self.site / "scikit_learn-9.9.dist-info" / "METADATA",
            "Metadata-Version: 2.1\nName: scikit-learn\nVersion: 9.9\n",
        )
        for path, text in self.texts.items():
            self.write(self.site / path, text)
        pins = [f"{patch_series.digest(t)}  {path}\n" for path, t in self.texts.items()]
        self.write(self.folder / "UPSTREAM", "".join(["# why\nversion 9.9\n\n", *pins]))
        self.list_patches()
        monkeypatch.syspath_prepend(self.site)

    @staticmethod
    def write(path: Path, text: str) -> None:
        """Write a file and the folders that it is in, without changing line ends."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))

    def list_patches(self, *names: str) -> None:
        """Make `names` the series."""
        self.write(self.folder / "series", "\n".join(["# order", "", *names, ""]))

    def add_patch(
        self, name: str, old: str, new: str, *, header: str = HEADER, path: str = ALPHA
    ) -> None:
        """Append to the series a patch that replaces `old` in a file by `new`."""
        before = dict(self._patched)
        assert old in before[path]
        self._patched[path] = before[path].replace(old, new, 1)
        text = diff_writer.render(header, before, self._patched)
        self.write(self.folder / name, text)
        self.list_patches(*patch_series.read_series(self.folder), name)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace `old` in a file beside the series by `new`."""
        text = (self.folder / name).read_bytes().decode("utf-8")
        assert old in text
        self.write(self.folder / name, text.replace(old, new, 1))
