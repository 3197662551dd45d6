"""The rules of the patch series, and its way through git and back."""

import shutil
import subprocess

import pytest

from project.patch_tree import (
    ALPHA,
    BETA,
    HEADER,
    PATCHES,
    PatchTree,
    SeriesError,
    check_series,
    git_tree,
    patch_series,
    tool,
)

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Hold a series of two patches that breaks no rule."""
    for name in git_tree.REDIRECTIONS:
        monkeypatch.delenv(name, raising=False)
    tree = PatchTree(tmp_path, monkeypatch)
    tree.add_patch("alpha-grow.patch", "line 5\n", "line 50\n")
    header = HEADER.replace("line 5", "line 9")
    tree.add_patch("beta-grow.patch", "line 9\n", "line 90\n", header=header, path=BETA)
    return tree


def problems(tree):
    return check_series.check(tree.folder).problems


def test_the_series_of_this_repository_holds_to_the_rules():
    assert check_series.check(PATCHES).problems == []


@pytest.mark.parametrize("argument", ["check", "--check"])
def test_check_prints_the_size_of_the_delta(tree, capsys, argument):
    assert tool.main([argument], tree.folder) == 0
    assert capsys.readouterr().out.splitlines() == [
        "patch             files      +lines  -lines",
        "alpha-grow.patch  alpha.pyx       1       1",
        "beta-grow.patch   beta.py         1       1",
        "delta: 2 patches, +2 -2 lines",
    ]


def test_check_lists_all_problems(tree, capsys):
    tree.edit("alpha-grow.patch", "Reason: seam\n", "")
    tree.edit("beta-grow.patch", "Reason: seam", "Reason: whim")
    assert tool.main(["--check"], tree.folder) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: alpha-grow.patch: header: no Reason: field",
        "error: beta-grow.patch: header: Reason: is 'whim', none of build, seam, "
        "behaviour",
    ]


@pytest.mark.parametrize("arguments", [[], ["--check", "check"], ["--check", "export"]])
def test_tool_takes_one_command(arguments):
    with pytest.raises(SystemExit, match="2"):
        tool.main(arguments)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Grow", "Grows", "subject 'Grows the number on line 5' is not imperative"),
        ("Grow", "Growing", "is not imperative"),
        ("Grow", "Added", "is not imperative"),
        ("Grow", "grow", "is not imperative"),
        ("line 5\n", "line 5.\n", "without a full stop"),
        ("Grow", "Grow" + " more" * 15, "subject has 100 characters, over 72"),
        ("line 5\n\n", "line 5\n", "a blank line follows it"),
        ("\nLine 5 is the only one that the wood looks at.\n", "", "says why"),
        (f"{HEADER}\n", "Grow\n", "no paragraph between subject and fields says why"),
        ("Why-not-subclass:", "Why:", "no Why-not-subclass: field"),
        ("Why-not-subclass:", "Why:", "unknown field Why:"),
        ("Drop-when: upstream has a larger number.", "Drop-when:", "no Drop-when: f"),
        ("Invariant: all other lines.\n", "", "no Invariant: field"),
        ("Reason: seam\n", "Reason: seam\nReason: build\n", "second Reason: field"),
        ("Reason: seam\n", "Reason: seam\nmore\n", "'more' in the last paragraph"),
        (
            "Reason: seam\nDrop-when: upstream has a larger number.\n",
            "Drop-when: upstream has a larger number.\nReason: seam\n",
            "the order of fields is Why-not-subclass, Reason, Drop-when",
        ),
        ("looks at.\n", "looks at. \n", "git would not keep trailing blanks"),
        ("looks at.\n", "looks at.\n#5\n", "lines that start with #"),
        ("test_wood.py\n", "test_stone.py\n", "'tests/test_stone.py' is no file in"),
        ("test_line[5]", "test_row[5]", "tests/test_wood.py has no test_row"),
        (" tests/test_wood.py\n", " ../site/sklearn/wood/beta.py\n", "is no file in"),
        ("@@ -3,5 +3,5 @@\n", "@@ -3,5 +3,5 @@ x\n", "not what the tool would write"),
        ("\n--- a/", "\n\n--- a/", "not what the tool would write"),
        (" line 6\n", " line six\n", f"{ALPHA}:6: expected 'line six', found 'line 6'"),
        (" line 6\n", "\n", "alpha-grow.patch:19: an empty line in a hunk"),
    ],
)
def test_check_holds_each_patch_to_a_rule(tree, old, new, message):
    tree.edit("alpha-grow.patch", old, new)
    assert any(
        problem.startswith("alpha-grow.patch:") and message in problem
        for problem in problems(tree)
    )


def test_check_refuses_windows_line_ends(tree):
    tree.edit("alpha-grow.patch", "\n", "\r\n")
    assert problems(tree) == [
        "alpha-grow.patch: not what the tool would write; materialise and export it"
    ]


def test_check_compares_folder_and_series(tree):
    tree.list_patches("alpha-grow.patch", "gamma-grow.patch")
    unlisted, missing = problems(tree)
    assert unlisted == "beta-grow.patch: not listed in series"
    assert missing.startswith(f"{tree.folder / 'gamma-grow.patch'}: No such file")
    tree.list_patches("alpha-grow.patch", "beta-grow.patch", "alpha-grow.patch")
    assert problems(tree) == [
        f"{tree.folder / 'series'}:5: alpha-grow.patch is listed twice"
    ]


def test_check_needs_the_pinned_release(tree):
    tree.edit("UPSTREAM", "version 9.9", "version 9.8")
    tree.edit("beta-grow.patch", "Reason: seam", "Reason: whim")
    release, reason = problems(tree)
    assert release.startswith("scikit-learn 9.8 is needed to build, found 9.9 at")
    assert reason.startswith("beta-grow.patch: header: Reason")


def test_check_caps_the_size_of_a_patch(tree):
    header = HEADER.replace("line 5", "line 7")
    tree.add_patch("long.patch", "line 7\n", "line 70\n" * 150, header=header)
    assert problems(tree) == ["long.patch: changes 151 lines, over 150"]


def test_check_caps_the_size_of_the_series(tree):
    for n in range(10, 17):
        header = HEADER.replace("line 5", f"line {n}")
        tree.add_patch(f"n{n}.patch", f"line {n}\n", "more\n" * 60, header=header)
    assert problems(tree) == [
        "series: 9 patches, over 8",
        "series: changes 431 lines, over 400",
    ]


def git(folder, *arguments):
    """Run git as a developer would, who has a name."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgSign=0")
    command = ["git", *identity, *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def clone(tree):
    clone = tree.root / "clone"
    assert git_tree.materialise(tree.folder, clone) == 2
    return clone


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@needs_git
def test_materialise_then_export_changes_nothing(tree, clone, capsys):
    subjects = git(clone, "log", "--format=%s").splitlines()
    assert subjects == [
        "Grow the number on line 9",
        "Grow the number on line 5",
        "scikit-learn 9.9",
    ]
    before = snapshot(tree.folder)
    assert tool.main(["export", str(clone)], tree.folder) == 0
    assert capsys.readouterr().out == "kept alpha-grow.patch\nkept beta-grow.patch\n"
    assert snapshot(tree.folder) == before


@needs_git
def test_export_follows_the_commits(tree, clone):
    beta = clone / BETA
    git(clone, "reset", "--quiet", "--hard", "HEAD~2")
    beta.write_text(beta.read_text().replace("line 1\n", "\nline 1\n"))
    header = HEADER.replace("Grow the number on line 5", "Rest before line 1, at ease")
    git(clone, "commit", "--quiet", "--all", "--message", header)
    git(clone, "cherry-pick", "HEAD@{2}")
    assert git_tree.export(tree.folder, clone) == [
        "wrote rest-before-line-1-at-ease.patch",
        "wrote beta-grow.patch",
        "removed alpha-grow.patch",
        "wrote series",
    ]
    assert (tree.folder / "series").read_text() == (
        "# order\n\nrest-before-line-1-at-ease.patch\nbeta-grow.patch\n"
    )
    assert problems(tree) == []


def commit(clone, path, text, message="Change it"):
    (clone / path).write_text(text)
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", message)


def leave_uncommitted(clone):
    (clone / ALPHA).write_text("")


def merge(clone):
    git(clone, "checkout", "--quiet", "-b", "side", "upstream")
    git(clone, "merge", "--quiet", "--no-ff", "--no-edit", "series")


def stop_a_rebase(clone):
    (clone / ".git" / "rebase-merge").mkdir()


@needs_git
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (leave_uncommitted, "has changes that are not committed"),
        (merge, "a merge; the series is linear"),
        (stop_a_rebase, "finish or abort the rebase first"),
        (lambda c: commit(c, "new.py", ""), "new.py: a patch only modifies the files"),
        (
            lambda c: (c / BETA).unlink() or git(c, "commit", "-am", "x"),
            "only modifies",
        ),
        (lambda c: git(c, "commit", "--allow-empty", "-m", "x"), "changes no text"),
        (lambda c: commit(c, ALPHA, "1\n", "fixup! x"), "rebase -i --autosquash first"),
        (lambda c: commit(c, ALPHA, "1\n", "½"), "no file name can be made of"),
        (lambda c: commit(c, ALPHA, "1", "Cut it"), "no newline at the end"),
        (
            lambda c: commit(c, ALPHA, "1\n", "Grow the number on line 5"),
            "a second commit for alpha-grow.patch",
        ),
        (
            lambda c: git(c, "tag", "-f", "upstream", "HEAD"),
            "not the file that patches",
        ),
        (lambda c: git(c, "tag", "-d", "upstream"), "does not descend from tag"),
    ],
)
def test_export_refuses_what_is_no_series(tree, clone, spoil, message):
    spoil(clone)
    before = snapshot(tree.folder)
    with pytest.raises(SeriesError, match=message):
        git_tree.export(tree.folder, clone)
    assert snapshot(tree.folder) == before


@needs_git
def test_export_refuses_a_folder_of_another_repository(tree, clone):
    with pytest.raises(SeriesError, match="not a materialised series but a part of"):
        git_tree.export(tree.folder, clone / "sklearn")


def test_materialise_refuses_to_overwrite(tree):
    with pytest.raises(SeriesError, match="is not an empty folder"):
        git_tree.materialise(tree.folder, tree.site)
    with pytest.raises(SeriesError, match="outside this repository"):
        git_tree.materialise(tree.folder, tree.folder.parent / "clone")


def test_git_is_not_needed_to_check(tree, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert tool.main(["check"], tree.folder) == 0
    assert tool.main(["materialise", str(tree.root / "clone")], tree.folder) == 1
    assert capsys.readouterr().err.startswith("error: git, or the folder")


@needs_git
def test_materialise_ignores_the_repository_of_a_hook(tree, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tree.root / "elsewhere"))
    git_tree.materialise(tree.folder, tree.root / "clone")
    assert not (tree.root / "elsewhere").exists()
    assert patch_series.read_series(tree.folder)
