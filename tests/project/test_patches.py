"""The patch series: how it is applied, what the build calls, how it is edited."""

import os
import shutil
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

PATCHES = Path(__file__).resolve().parents[2] / "patches"

with pytest.MonkeyPatch.context() as context:
    # `patches` holds scripts, which find each other beside them, and is no package.
    context.setattr(sys, "path", [str(PATCHES), *sys.path])
    import repository
    import tool
    import used_names
    import vendor

ALPHA, BETA = "sklearn/wood/alpha.pyx", "sklearn/wood/beta.py"
GRAIN = "sklearn/wood/grain.pxd"  # compiled against, and not taken
DECLARED = "cdef struct grain\n"
LINES = "".join(f"line {n}\n" for n in range(1, 21))
IMPORTS = "import sklearn.wood.alpha, sklearn.wood.alphabet, my_sklearn.wood.beta\n"
PATCH = f"""\
Grow line 5

Why-not-subclass: lines have no classes,
 and never will.
Reason: seam
Drop-when: upstream has a larger number.
Invariant: all other lines.
Tested-by: tests/test_wood.py, tests/test_bark.py

--- a/{ALPHA}
+++ b/{ALPHA}
@@ -3,5 +3,5 @@
 line 3
 line 4
-line 5
+line 50
 line 6
 line 7
"""
FILES = {
    "site/scikit_learn-9.9.dist-info/METADATA": "Name: scikit-learn\nVersion: 9.9\n",
    f"site/{ALPHA}": LINES.replace("\n", "\r\n"),  # as in the Windows wheel
    f"site/{BETA}": LINES + IMPORTS,
    f"site/{GRAIN}": DECLARED,
    "repository/tests/test_wood.py": "",
    "repository/tests/test_bark.py": "",
    "repository/patches/UPSTREAM": "version 9.9\n"
    f"{sha256(LINES.encode()).hexdigest()}  {ALPHA}\n"
    f"{sha256((LINES + IMPORTS).encode()).hexdigest()}  {BETA}\n"
    f"{sha256(DECLARED.encode()).hexdigest()}  {GRAIN}\n",
    "repository/patches/series": "# order\n\nalpha.patch\n",
    "repository/patches/alpha.patch": PATCH,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Hold a series of one patch to scikit-learn 9.9, which breaks no rule."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text.encode())
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "repository/patches"


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def read(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def run_vendor(folder, out):
    return vendor.main(["--out", str(out), "--depfile", f"{out}.d"], folder)


@pytest.fixture
def refusal(folder, capsys):
    """Return a function that runs a command which fails, and returns the message."""

    def run(*arguments):
        before = read(folder)
        assert tool.main([*map(str, arguments)], folder) == 1
        assert read(folder) == before
        return capsys.readouterr().err

    return run


def test_the_series_of_this_repository_holds_to_the_rules():
    assert tool.check(PATCHES) == []


def test_vendor_writes_patched_and_renamed_files(folder, tmp_path, capsys):
    assert vendor.main(["--list"], folder) == 0
    assert capsys.readouterr().out == "alpha.pyx\nbeta.py\n"
    assert run_vendor(folder, tmp_path / "a build") == 0
    assert read(tmp_path / "a build") == {
        "alpha.pyx": LINES.replace("line 5", "line 50"),
        "beta.py": LINES + IMPORTS.replace("sklearn", "sklearn_era", 1),
    }
    targets, _, sources = (tmp_path / "a build.d").read_text().partition(":")
    out = f"{tmp_path}/a\\ build"
    assert targets == f"{out}/alpha.pyx {out}/beta.py"
    scripts = [PATCHES / n for n in ("vendor.py", "patch_series.py", "unified_diff.py")]
    pinned = [tmp_path / "site" / path for path in (ALPHA, BETA, GRAIN)]
    expected = {str(path) for path in [*folder.iterdir(), *scripts, *pinned]}
    assert set(sources.replace("\\\n", "").split()) == expected


def test_vendor_lists_nothing_with_another_scikit_learn(folder, capsys):
    edit(folder / "UPSTREAM", " 9.9", " 9.8")
    assert vendor.main(["--list"], folder) == 1
    listed = capsys.readouterr()
    assert listed.out == ""
    assert "scikit-learn 9.8 is needed to build, found 9.9 at" in listed.err


def test_vendor_lists_nothing_where_a_declaration_has_other_bytes(
    folder, tmp_path, capsys
):
    edit(tmp_path / "site" / GRAIN, "grain", "knot")
    assert vendor.main(["--list"], folder) == 1
    listed = capsys.readouterr()
    assert listed.out == ""
    assert f"{GRAIN}: not the file of scikit-learn 9.9 that patches/UP" in listed.err


def test_all_that_cython_is_compiled_against_is_pinned():
    declared = used_names.declarations(PATCHES.parent / "sklearn_era")
    pinned = tool.patch_series.read_pin(PATCHES).hashes
    assert declared == sorted(path for path in pinned if path.endswith(".pxd"))


def test_vendor_leaves_unchanged_files_untouched(folder, tmp_path):
    run_vendor(folder, tmp_path / "out")
    alpha, beta = sorted((tmp_path / "out").iterdir())
    for path in (alpha, beta):
        os.utime(path, ns=(1, 1))
    edit(folder / "alpha.patch", "line 50", "line 51")
    run_vendor(folder, tmp_path / "out")
    assert alpha.stat().st_mtime_ns > beta.stat().st_mtime_ns == 1


def test_vendor_writes_nothing_when_a_patch_fails(folder, tmp_path, capsys):
    edit(folder / "alpha.patch", " line 6\n", " line six\n")
    assert run_vendor(folder, tmp_path / "out") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"repository", "site"}
    assert capsys.readouterr().err == (
        f"error: cannot patch scikit-learn: alpha.patch: {ALPHA}:6: "
        "expected 'line six', found 'line 6'\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # A hunk is whole, and has the lines that it counts.
        ("+3,5", "+3,6", "alpha.patch: empty or cut off"),
        ("+3,5", "+3,4", "alpha.patch:18: ' line 7' is not a line that its hunk"),
        (" line 7\n", " line 7\n\\ No newline\n", "alpha.patch:19: expected a hunk"),
        (" line 6", "", "alpha.patch:17: '' is not a line that its hunk counts"),
        (" line 7\n", " line", "alpha.patch: empty or cut off"),
        (" line 7\n", " line 7\n line", "alpha.patch: empty or cut off"),
        (" line 7\n", f" line 7\n--- a/{BETA}\n", "alpha.patch: empty or cut off"),
        ("+++ b/", "+++ ", "alpha.patch:11: expected a hunk, or '--- a/PATH' and "),
        # It applies at its line numbers, or not at all.
        ("-3,5", "-2,5", f"{ALPHA}:2: expected 'line 3', found 'line 2'"),
        ("7\n", "7\n@@ -2,0 +2 @@\n+x\n", f"{ALPHA}:3: a hunk outside lines 8 to 20"),
        ("7\n", "7\n@@ -21,0 +22 @@\n+x\n",
         f"{ALPHA}:22: a hunk outside lines 8 to 20"),
        (f"a/{ALPHA}\n+++ b/{ALPHA}", "a/x\n+++ b/x", "alpha.patch: x: not listed in"),
        # The files are those pinned.
        ("version 9.9\n", "", "UPSTREAM: expected one line 'version X'"),
        (" 9.9", " 9.8", "scikit-learn 9.8 is needed to build, found 9.9 at"),
        ("  sklearn/", "  /sklearn/", "one line 'SHA-256  sklearn/PATH' for each file"),
        (f"  {BETA}", f"  {ALPHA}", f"{ALPHA}: not the file of scikit-learn 9.9 that"),
        # The series lists all patches, and their headers have all fields.
        ("\nalpha", "\nbeta", "beta.patch"),
        ("\nalpha.patch\n", "", "alpha.patch: not listed in series"),
        ("Reason: seam\n", "", "alpha.patch: no Reason: field"),
        (": all other lines.", ":", "alpha.patch: no Invariant: field"),
        ("seam", "whim", "alpha.patch: Reason: whim is none of build, seam, behaviour"),
        ("bark", "root", "alpha.patch: Tested-by: tests/test_root.py is no file"),
    ],
)  # fmt: skip
def test_check_refuses(folder, refusal, old, new, message):
    path = next(path for path in folder.iterdir() if old in path.read_text())
    edit(path, old, new)
    assert message in refusal("check")


def test_check_needs_scikit_learn_and_caps_the_sizes(refusal, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [])
        assert "scikit-learn 9.9 is needed to build, found none for" in refusal("check")
    for limit in ("MAX_PATCHES", "MAX_PATCH_LINES", "MAX_SERIES_LINES"):
        monkeypatch.setattr(tool, limit, 0)
    assert refusal("check").count("over 0\n") == 3


@pytest.fixture
def clone(folder, tmp_path, monkeypatch):
    """Materialise the series in spite of a developer's configuration and of a hook."""
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    options = "[core]\neditor=false\n[user]\nname=\n[gpg]\nprogram=false\n"
    options += "[commit]\ngpgSign=1\n[tag]\ngpgSign=1\n"
    (tmp_path / ".gitconfig").write_text(options)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert tool.main(["materialise", str(tmp_path / "clone")], folder) == 0
    return tmp_path / "clone"


def test_export_follows_the_commits(folder, clone, tmp_path):
    before = read(folder)
    assert tool.main(["export", str(clone)], folder) == 0
    assert read(folder) == before
    repository.git(clone, "reset", "--hard", "upstream")
    edit(clone / BETA, "line 9\n", "rest\n")
    header = PATCH.partition("\n--- ")[0].replace("Grow line 5", "Rest, at ease")
    repository.git(clone, "commit", "--all", "--message", header)
    repository.git(clone, "cherry-pick", "HEAD@{2}")
    assert tool.main(["export", str(clone)], folder) == 0
    assert read(folder)["series"] == "# order\n\nrest-at-ease.patch\nalpha.patch\n"
    assert read(folder)["alpha.patch"] == PATCH
    assert tool.check(folder) == []
    run_vendor(folder, tmp_path / "out")
    assert "line 8\nrest\nline 10\n" in read(tmp_path / "out")["beta.py"]
    repository.git(clone, "reset", "--hard", "HEAD~")
    assert tool.main(["export", str(clone)], folder) == 0
    assert read(folder).keys() == {"UPSTREAM", "series", "rest-at-ease.patch"}


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (f"rm {BETA}", "and no uncommitted changes; git status says"),
        ("checkout --detach", "expected branch series, no rebase and no"),
        ("reset --hard upstream", "no commit after tag upstream"),
        ("tag --no-sign -f upstream", "is not what patches/UPSTREAM pins"),
        ("commit --allow-empty -m Rest", "rest.patch: empty or cut off"),
        ("commit --allow-empty -C HEAD", "a second one for alpha.patch"),
        (f"mv {BETA} x && commit -m Move", "more than modify: delete mode 100644"),
        ("switch -c a && commit --amend -m A && switch series && merge a", "a merge"),
    ],
)
def test_export_refuses(clone, refusal, commands, message):
    for command in commands.split(" && "):
        repository.git(clone, *command.split())
    assert message in refusal("export", clone)


def test_git_is_not_needed_to_check(folder, tmp_path, refusal, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert tool.check(folder) == []
    assert "'git'" in refusal("materialise", tmp_path / "clone")
    assert "is not an empty folder" in refusal("materialise", tmp_path)


BARK = {
    "sklearn/__init__.py": "",
    "sklearn/wood/__init__.py": "",
    "sklearn/wood/bark.py": "age = 9\nclass Bark:\n    _rings = 3\n"
    "    def grow(self): pass\n",
    "sklearn/wood/bark.pxd": "cdef int grow()\ncdef int shed()\n",
}
OWN_MODULE = """\
from sklearn.wood import bark
from sklearn.wood.bark import (
    age,  # in years
    Bark as Skin,
)
Skin.grow, Skin.rough, bark.age, Skin()._rings, Skin()._leaves
"""
OWN = {
    "sklearn_era/own.py": OWN_MODULE,
    "sklearn_era/own.pyx": "from sklearn.wood.bark cimport grow, shed\n",
    "pyproject.toml": 'requires = ["scikit-learn==9.9"]\n',
}


@pytest.fixture
def attempt(folder, tmp_path, monkeypatch, capsys):
    """Return a function that tries scikit-learn 9.10: the release before, edited."""
    pytest.importorskip("pip")
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    for root, files in (("site", BARK), ("repository", OWN)):
        for path, text in files.items():
            (tmp_path / root / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / root / path).write_text(text)
    repository.git(tmp_path / "repository", "init", "--quiet")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wheel = tmp_path / "scikit_learn-9.10-py3-none-any.whl"

    def run(edits, *options, version=wheel):
        release = tmp_path / "release"
        shutil.copytree(tmp_path / "site", release)
        shutil.rmtree(release / "scikit_learn-9.9.dist-info")
        info = release / "scikit_learn-9.10.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: scikit-learn\nVersion: 9.10\n"
        )
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
        for path, *change in edits:
            edit(release / path, *change) if change else (release / path).unlink()
        with zipfile.ZipFile(wheel, "w") as archive:
            for path in filter(Path.is_file, release.rglob("*")):
                archive.write(path, path.relative_to(release))
        before = read(folder)
        keep = tmp_path / "keep"
        status = tool.main(["try", str(version), f"--keep={keep}", *options], folder)
        assert read(folder) == before
        for path, text in OWN.items():
            assert (tmp_path / "repository" / path).read_text() == text
        return status, *capsys.readouterr(), keep

    return run


SHIFT = (ALPHA, "line 1\n", "new\nline 1\n")


@pytest.mark.parametrize(
    ("edits", "state"),
    [
        ([], "alpha.patch: strict"),
        ([SHIFT], "alpha.patch: offset +1"),
        (
            [(ALPHA, "line 3\n", "line three\n")],
            "alpha.patch: merged by git, to be read",
        ),
    ],
    ids=["strict", "offset", "merged"],
)
def test_try_leaves_the_series_ready_for_the_release(
    attempt, monkeypatch, edits, state, tmp_path
):
    status, out, err, keep = attempt(edits)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "scikit-learn 9.10, where 9.9 is pinned"
    assert f"\n  {'changed ' if edits else 'same    '}  {ALPHA}\n" in out
    assert f"\n  same      {BETA}\n" in out
    assert f"\n  {state}\n" in out
    verdict = "scikit-learn 9.10 fits: the series applies, names are there"
    assert out.splitlines()[-1] == verdict
    copy = keep / "checkout"
    assert "scikit-learn==9.10" in (copy / "pyproject.toml").read_text()
    monkeypatch.syspath_prepend(keep / "site")
    assert tool.check(copy / "patches") == []
    run_vendor(copy / "patches", tmp_path / "out")
    assert "\nline 50\n" in read(tmp_path / "out")["alpha.pyx"]


def test_try_shows_conflicts_and_leaves_the_rebase_to_be_done(attempt):
    status, out, err, keep = attempt([SHIFT, (ALPHA, "line 5\n", "line five\n")])
    assert status == 1
    assert err == "error: scikit-learn 9.10 does not fit: patches in conflict: 1\n"
    assert (
        f"  alpha.patch: conflict\n    {ALPHA}:6\n"
        "      | line five\n      - line 5\n      + line 50\n"
    ) in out
    with pytest.raises(tool.PatchError, match="git rebase"):
        repository.git(keep / "series", "rebase", "--onto", "upstream", "pinned")
    assert "<<<<<<<" in (keep / "series" / ALPHA).read_text()


def test_try_says_when_the_release_has_a_patch_already(attempt):
    _, out, _, _ = attempt([(ALPHA, "line 5\n", "line 50\n")])
    assert "alpha.patch: conflict\n    the release has it already\n" in out


def test_try_names_what_is_missing_and_what_has_other_parameters(attempt):
    bark = "sklearn/wood/bark.py"
    edits = [(bark, old, new) for old, new in (
        ("age", "years"), ("_rings", "_bands"), ("self", "self, by"))]  # fmt: skip
    edits += [("sklearn/wood/bark.pxd", "cdef int shed()\n", "")]
    status, out, err, _ = attempt(edits)
    assert status == 1
    assert err == "error: scikit-learn 9.10 does not fit: names missing: 3\n"
    assert "\n  changed   sklearn/wood/bark.pxd\n" in out
    assert out.partition("\n\nNames used here and missing there\n")[2] == (
        "  sklearn.wood.bark.age: own.py\n"
        "  sklearn.wood.bark.shed: own.pyx\n"
        "  _rings: own.py\n\n"
        "Names used here that have other parameters there\n"
        "  sklearn.wood.bark.Bark.grow: own.py\n\n"
    )


def test_try_refuses(attempt, folder, refusal, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    message = refusal("try", "9.9", "--keep", tmp_path / "full")
    assert "full: exists and is not an empty folder" in message
    message = refusal("try", "0.0")
    assert "scikit-learn 0.0: pip download failed: ERROR: No matching distri" in message
    _, _, message, _ = attempt([(BETA,)])
    assert message == f"error: {BETA}: pinned in UPSTREAM, not in release 9.10\n"


@pytest.mark.slow
def test_try_says_which_step_of_a_build_fails(attempt):
    status, out, err, keep = attempt([], "--test")
    assert status == 1
    assert err == "error: scikit-learn 9.10 does not fit: build failed\n"
    assert "\n  passed  environment, " in out
    assert "\n  failed  build, " in out
    assert (keep / "build.log").read_text()
