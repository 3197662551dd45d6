"""Try another release of scikit-learn: does the series apply, does the package build?

Everything happens in a scratch folder: `wheel` holds the release, `site` its installed
files, `series` the rebased series as a git repository, `checkout` a copy of this
repository adapted to the release, and `venv` the environment to build and test it.
"""

import contextlib
import difflib
import importlib.metadata
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import patch_series
import repository
import used_names
from patch_series import Patch, PatchError, Pin
from repository import BASE, BRANCH, git

# Default fits are scikit-learn's bit for bit; brute force finds the same splits;
# scikit-learn's own tests pass with our classes. A minute or two.
TESTS = ("tests/ensemble/boosters/test_identity.py", "tests/oracle/test_ties.py")
_HIST = "sklearn.ensemble._hist_gradient_boosting"

# The new lines of upstream, the old ones, and the patch's, as marked by git.
_CONFLICT = re.compile(
    r"^<{7} .*?\n(.*?)^\|{7} .*?\n(.*?)^={7}\n(.*?)^>{7} ", re.MULTILINE | re.DOTALL
)
_TELLING = re.compile(r"\berror\b|not found|^E  |^FAILED|^ERROR", re.IGNORECASE)


def try_release(
    folder: Path, version: str, keep: Path | None, build: bool, test: bool
) -> list[str]:
    """Print how the repository fares with a release; return the failures."""
    with contextlib.ExitStack() as stack:
        if keep and keep.exists() and any(keep.iterdir()):
            raise PatchError(f"--keep {keep}: exists and is not an empty folder")
        scratch = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        scratch = scratch.resolve()
        _copy(folder.parent, scratch / "checkout")
        release = _fetch(version, scratch)
        n_conflicts, n_missing = _compare(folder, release, scratch)
        problems = [f"patches in conflict: {n_conflicts}"] if n_conflicts else []
        problems += [f"names missing: {n_missing}"] if n_missing else []
        if (build or test) and not n_conflicts:
            problems += _build(scratch, test)
    print(flush=True)
    if problems:
        return [f"scikit-learn {release} does not fit: {'; '.join(problems)}"]
    done = ", it builds" * (build or test) + ", the tests pass" * test
    print(f"scikit-learn {release} fits: the series applies, names are there{done}")
    return []


def _copy(root: Path, target: Path) -> None:
    """Copy the files of the repository, including uncommitted and new ones."""
    options = ("--cached", "--others", "--exclude-standard")
    for path in git(root, "ls-files", "-z", *options).split("\0"):
        if (root / path).is_file():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, target / path)


def _fetch(version: str, scratch: Path) -> str:
    """Download a wheel for this Python with pip, unpack it and return its version."""
    wanted = [version if version.endswith(".whl") else f"scikit-learn=={version}"]
    if version == "newest":
        wanted = ["--pre", "scikit-learn"]
    options = ("--no-deps", "--only-binary=:all:", f"--dest={scratch / 'wheel'}")
    command = [sys.executable, "-m", "pip", "download", *options, *wanted]
    ok, output = _run(command, Path.cwd())
    if not ok:
        last = output.strip().rpartition("\n")[2]
        raise PatchError(f"scikit-learn {version}: pip download failed: {last}")
    (wheel,) = (scratch / "wheel").glob("scikit_learn-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch / "site")
    return wheel.name.split("-")[1]


def _compare(folder: Path, release: str, scratch: Path) -> tuple[int, int]:
    """Print files, patches and names; return the numbers of conflicts and of names."""
    pins = patch_series.read_pins(folder)
    version, installed = repository.read_installed(folder)
    site, package = scratch / "site", folder.parent / "sklearn_era"
    print(f"scikit-learn {release}, beside {version}\n\nFiles")
    texts = {}
    for path, text in installed.items():
        if not (site / path).is_file():
            raise PatchError(f"{path}: patched, and not in release {release}")
        texts[path] = patch_series.read_text(site / path)
        print(f"  {'same' if texts[path] == text else 'changed':8}  {path}")
    print("\nPatches")
    n_conflicts = _rebase(folder, release, texts, scratch / "series")
    if not n_conflicts:
        _take(scratch / "checkout", pins, release, texts)
        sys.path.insert(0, str(site))  # exports refer to the installed release
        with contextlib.redirect_stdout(io.StringIO()):
            repository.export(scratch / "checkout/patches", scratch / "series")
        sys.path.remove(str(site))
    before = Path(str(importlib.metadata.distribution("scikit-learn").locate_file("")))
    missing, changed = used_names.compare(package, before, site)
    for title, names in (
        ("Names used here and missing there", missing),
        ("Names used here that have other parameters there", changed),
    ):
        print(f"\n{title}", *(f"  {name}" for name in names or ["none"]), sep="\n")
    return n_conflicts, len(missing)


def _take(checkout: Path, pins: list[Pin], release: str, texts: dict[str, str]) -> None:
    """Make the copy list the release, and require no older one."""
    hashes = {path: patch_series.sha256(text) for path, text in texts.items()}
    upstream, project = checkout / "patches/UPSTREAM", checkout / "pyproject.toml"
    listed = upstream.read_text(encoding="utf-8")
    alike = [pin.versions for pin in pins if pin.hashes == hashes]
    if not alike:
        lines = [f"\nversions {release}"]
        lines += [f"{digest}  {path}" for path, digest in hashes.items()]
        listed += "\n".join([*lines, ""])
    elif release not in alike[0]:
        old = f"versions {' '.join(alike[0])}\n"
        listed = listed.replace(old, f"{old[:-1]} {release}\n")
    upstream.write_text(listed, encoding="utf-8")
    if project.is_file():
        text = project.read_text(encoding="utf-8")
        text = re.sub(r"(scikit-learn>=[\d.]+),<[\d.]+", r"\1", text)
        project.write_text(text, encoding="utf-8")


def _rebase(folder: Path, release: str, texts: dict[str, str], target: Path) -> int:
    """Rebase the series on the release's files, print each patch, count conflicts.

    With conflicts, the branch stays on the tag `pinned`.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        repository.materialise(folder, target)
    git(target, "tag", "--no-sign", "pinned", BASE)
    commits = git(target, "rev-list", "--reverse", f"{BASE}..{BRANCH}").split()
    git(target, "checkout", "--quiet", "--detach", BASE)
    repository.add_commit(target, f"scikit-learn {release}", texts)
    git(target, "tag", "--no-sign", "--force", BASE)
    pick = ("-c", "merge.conflictStyle=diff3", "cherry-pick", "--cleanup=verbatim")
    what_fits = ("-Xours", "--allow-empty", "--keep-redundant-commits")
    n_conflicts = 0
    for commit, patch in zip(commits, patch_series.read_series(folder), strict=True):
        try:
            git(target, *pick, commit)
            state, details = _fit(patch, repository.read_diff(target, "HEAD")), []
        except PatchError:
            state, details = "conflict", _conflicts(patch, target)
            n_conflicts += 1
            git(target, "cherry-pick", "--abort")
            git(target, *pick, *what_fits, commit)  # The patches after it may need it.
        print(f"  {patch.name}: {state}", *details, sep="\n", flush=True)
    git(target, "checkout", "--quiet", *(() if n_conflicts else ("-B",)), BRANCH)
    return n_conflicts


def _fit(patch: Patch, diff: str) -> str:
    """Return whether a patch applies as it is, or git merged it."""
    picked = patch_series.parse(patch.name, f"\n{diff}")
    return "applies" if picked.files == patch.files else "merged by git, to be read"


def _conflicts(patch: Patch, target: Path) -> list[str]:
    """Show where git could not merge: upstream's lines, and the patch's changes."""
    shown = []
    for path in patch.files:
        text = patch_series.read_text(target / path)
        for match in _CONFLICT.finditer(text):
            theirs, before, after = (part.splitlines() for part in match.groups())
            shown.append(f"    {path}:{text.count(chr(10), 0, match.start()) + 1}")
            shown += [f"      | {line}" for line in theirs or ["(nothing there)"]]
            changes = [x for x in difflib.ndiff(before, after) if x[0] in "+-"]
            shown += [f"      {line}" for line in changes]
    return shown or ["    the release has it already"]


def _build(scratch: Path, test: bool) -> list[str]:
    """Build the copy in its own environment; return the failures."""
    checkout, python = scratch / "checkout", str(scratch / "venv/bin/python")
    # Optimising the code changes no result and takes most of the time.
    (wheel,) = (scratch / "wheel").iterdir()
    install = [python, "-m", "pip", "install", str(wheel), "."]
    install += ["--config-settings=setup-args=-Doptimization=1"]
    steps = {
        "environment": (scratch, [sys.executable, "-m", "venv", "venv"]),
        "build": (checkout, install),
    }
    if test:
        install += ["pytest", "hypothesis", "pandas"]
        pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        (scratch / "pytest.ini").write_text("[pytest]\n")  # not our configuration
        upstream = ["-c", "pytest.ini", "-p", "era_upstream", "--pyargs", _HIST]
        steps["tests"] = (checkout, [*pytest, *TESTS])
        steps["scikit-learn's tests"] = (scratch, [*pytest, *upstream])
    print("\nBuild")
    for name, (folder, command) in steps.items():
        began = time.monotonic()
        plugin = str(checkout / "tests/upstream")
        ok, output = _run(command, folder, PYTHONPATH=plugin, OMP_WAIT_POLICY="passive")
        (scratch / f"{name}.log").write_text(output)
        state = "passed" if ok else "failed"
        print(f"  {state}  {name}, {time.monotonic() - began:.0f} s", flush=True)
        if not ok:
            lines = output.splitlines()
            telling = [line for line in lines if _TELLING.search(line)] or lines[-5:]
            print("\n".join(f"    | {line.strip()}" for line in telling[:10]))
            return [f"{name} failed"]
    return []


def _run(command: Sequence[str], folder: Path, **variables: str) -> tuple[bool, str]:
    """Run a command; return whether it succeeded, and its output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    return done.returncode == 0, done.stdout
