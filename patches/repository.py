"""The series as a git repository, one commit per patch: to edit and to export."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import patch_series
from patch_series import PatchError

BASE = "upstream"  # the tag of the commit with scikit-learn's own files
BRANCH = "series"

# Commits here must not depend on the developer's hooks, signing key or identity.
_GIT = (
    *("git", "-c", f"core.hooksPath={os.devnull}", "-c", "commit.gpgSign=false"),
    *("-c", "user.name=patches", "-c", "user.email=patches@sklearn-era.invalid"),
)


def read_installed(folder: Path) -> tuple[str, dict[str, str]]:
    """Return the version of the installed scikit-learn, and the files to patch."""
    try:
        found = importlib.metadata.distribution("scikit-learn")
    except importlib.metadata.PackageNotFoundError as error:
        raise PatchError(
            f"no scikit-learn is installed for {sys.executable}"
        ) from error
    site = Path(str(found.locate_file("")))
    pins = patch_series.read_pins(folder)
    texts = patch_series.read_upstream(pins, site)
    if not patch_series.are_pinned(pins, texts):
        raise patch_series.unfit(pins, site, found.version)
    return found.version, texts


def materialise(folder: Path, target: Path) -> None:
    """Make a git repository, one commit per patch, in an absent or empty folder."""
    if target.exists() and any(target.iterdir()):
        raise PatchError(f"{target}: exists and is not an empty folder")
    version, texts = read_installed(folder)
    commits = [(f"scikit-learn {version}", texts)]
    for patch in patch_series.read_series(folder):
        texts = patch_series.apply(patch, texts)
        commits.append((patch.header, texts))
    target.mkdir(parents=True, exist_ok=True)
    git(target, "init", "--quiet", f"--initial-branch={BRANCH}")
    # Hunks then name their method, not only the class.
    (target / ".git/info/attributes").write_text("*.py diff=python\n")
    for header, texts in commits:
        add_commit(target, header, texts)
    git(target, "tag", "--no-sign", BASE, f"HEAD~{len(commits) - 1}")
    print(f"{target}: {len(commits) - 1} commits after tag {BASE}")


def add_commit(target: Path, message: str, texts: dict[str, str]) -> None:
    """Commit files by path, even if none of them changed."""
    for path, text in texts.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(text.encode("utf-8"))
    git(target, "add", "--all", "--force")
    options = ("--quiet", "--allow-empty", "--cleanup=verbatim")
    git(target, "commit", *options, "-F", "-", stdin=message)


def export(folder: Path, target: Path) -> None:
    """Write the commits after the tag back as patches and ``series``.

    A commit belongs to the patch with its subject, which is unchanged if its lines are.
    Nothing is written unless all commits can be.
    """
    _, texts = read_installed(folder)
    old = patch_series.read_series(folder)
    names = {patch.header.partition("\n")[0]: patch.name for patch in old}
    new: dict[str, str] = {}
    for commit, header, diff in _read_commits(target, texts):
        subject = header.partition("\n")[0]
        slug = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")
        name = names.get(subject, f"{slug or 'unnamed'}.patch")
        if name in new:
            raise PatchError(f"commit {commit}: a second one for {name}")
        new[name] = f"{header}\n\n{diff}"
        patch = patch_series.parse(name, new[name])
        texts = patch_series.apply(patch, texts)
        if patch in old:
            new[name] = patch_series.read_text(folder / name)
    series = patch_series.read_text(folder / "series")
    comment = re.match(r"(#.*\n|\n)*", series)[0]
    new["series"] = comment + "".join(f"{name}\n" for name in new)
    for name, text in new.items():
        (folder / name).write_bytes(text.encode("utf-8"))
    for name in set(names.values()).difference(new):
        (folder / name).unlink()
    print(f"{folder}: {len(new) - 1} patches")


def _read_commits(target: Path, pinned: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return the commits after the tag, each with its message and diff."""
    status = git(target, "status", "--porcelain", "--branch").strip()
    if status != f"## {BRANCH}":
        state = f"branch {BRANCH}, no rebase and no uncommitted changes"
        raise PatchError(f"{target}: expected {state}; git status says {status}")
    for path, text in pinned.items():
        if git(target, "cat-file", "blob", f"{BASE}:{path}") != text:
            raise PatchError(f"{path}: tag {BASE} is not the installed scikit-learn")
    commits = []
    previous = git(target, "rev-parse", f"{BASE}^{{commit}}").strip()
    options = ("--reverse", "--topo-order", "--parents", f"{BASE}..{BRANCH}")
    for line in git(target, "rev-list", *options).splitlines():
        commit, *parents = line.split()
        if parents != [previous]:
            raise PatchError(f"commit {commit}: a merge, or not on top of tag {BASE}")
        if more := git(target, "diff-tree", "-r", "--summary", previous, commit):
            raise PatchError(f"commit {commit} does more than modify: {more.strip()}")
        message = git(target, "log", "-1", "--no-show-signature", "--format=%B", commit)
        commits.append((commit, message.strip("\n"), read_diff(target, commit)))
        previous = commit
    if not commits:
        raise PatchError(f"{target}: no commit after tag {BASE}")
    return commits


def read_diff(target: Path, commit: str) -> str:
    """Return the diff of a commit, as written in a patch file."""
    text = git(target, "diff-tree", "-p", "-U2", "--no-renames", f"{commit}^", commit)
    return re.sub(r"^(diff --git|index) .*\n", "", text, flags=re.MULTILINE)


def git(target: Path, *arguments: str, stdin: str = "") -> str:
    """Run git in `target` and return its output."""
    done = subprocess.run(
        [*_GIT, *arguments],
        cwd=target,
        # A hook's GIT_DIR and the like would point to the wrong repository.
        env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
        input=stdin,
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise PatchError(f"{target}: git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
