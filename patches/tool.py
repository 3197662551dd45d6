"""Check and edit the patch series, as docs/patches.md shows.

Only `check` needs no git, and only `try` needs pip.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import patch_series
import try_release
from patch_series import Patch, PatchError
from repository import export, materialise, read_installed

FOLDER = Path(__file__).resolve().parent
MAX_PATCHES = 12
MAX_PATCH_LINES = 80
MAX_SERIES_LINES = 400
REASONS = ("build", "seam", "behaviour")
FIELDS = ("Why-not-subclass", "Reason", "Drop-when", "Invariant", "Tested-by")


def main(argv: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    for run in (check, materialise, export):
        command = commands.add_parser(run.__name__, help=run.__doc__.partition("\n")[0])
        command.set_defaults(run=run)
        if run is not check:
            command.add_argument("target", type=Path, metavar="DIR")
    attempt = commands.add_parser("try", help="Try another release of scikit-learn.")
    attempt.set_defaults(run=try_release.try_release)
    attempt.add_argument(
        "version", metavar="VERSION", help="1.9.0 for one, newest, or a wheel's path"
    )
    attempt.add_argument(
        "--keep", type=Path, metavar="DIR", help="empty folder to do it in, and to keep"
    )
    attempt.add_argument("--build", action="store_true", help="build with the release")
    attempt.add_argument(
        "--test", action="store_true", help="build, and run some tests"
    )
    arguments = vars(parser.parse_args(argv))
    try:
        problems = arguments.pop("run")(folder, **arguments) or []
    except (PatchError, OSError) as error:
        problems = [str(error)]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


def check(folder: Path) -> list[str]:
    """Apply the series to the installed scikit-learn, print its size and return the
    rules that it violates.
    """
    _, texts = read_installed(folder)
    patches = patch_series.read_series(folder)
    problems = []
    for patch in patches:
        texts = patch_series.apply(patch, texts)
        found = _patch_problems(patch, folder.parent)
        problems += [f"{patch.name}: {problem}" for problem in found]
    total = sum(patch.size for patch in patches)
    print(f"{total} changed lines in {len(patches)} patches", flush=True)
    if len(patches) > MAX_PATCHES:
        problems.append(f"series: {len(patches)} patches, over {MAX_PATCHES}")
    if total > MAX_SERIES_LINES:
        problems.append(f"series: {total} changed lines, over {MAX_SERIES_LINES}")
    unlisted = {path.name for path in folder.glob("*.patch")}
    unlisted -= {patch.name for patch in patches}
    return problems + [f"{name}: not listed in series" for name in sorted(unlisted)]


def _patch_problems(patch: Patch, root: Path) -> list[str]:
    """Check the size, and the fields of the header, which indented lines continue."""
    pairs = re.findall(r"^([\w-]+):(.*(?:\n .*)*)", patch.header, re.MULTILINE)
    fields = {name: " ".join(value.split()) for name, value in pairs}
    problems = [f"no {name}: field" for name in FIELDS if not fields.get(name)]
    if fields.get("Reason") and fields["Reason"] not in REASONS:
        problems.append(f"Reason: {fields['Reason']} is none of {', '.join(REASONS)}")
    for path in fields.get("Tested-by", "").replace(",", " ").split():
        if not (root / path).is_file():
            problems.append(f"Tested-by: {path} is no file in the repository")
    if patch.size > MAX_PATCH_LINES:
        problems.append(f"{patch.size} changed lines, over {MAX_PATCH_LINES}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
