"""The patch series: how it is applied at import, and how it is edited."""

import inspect
import linecache
import re
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
import sklearn

from sklearn_era.ensemble._hist_gradient_boosting import gradient_boosting

PATCHES = Path(__file__).resolve().parents[2] / "patches"

with pytest.MonkeyPatch.context() as context:
    # `patches` holds scripts, which find each other beside them, and is no package.
    context.setattr(sys, "path", [str(PATCHES), *sys.path])
    import patch_series
    import repository
    import tool

ALPHA, BETA = "sklearn/wood/alpha.py", "sklearn/wood/beta.py"
LINES = "".join(f"line {n}\n" for n in range(1, 21))
IMPORTS = "import sklearn.wood.alpha, sklearn.wood.alphabet, my_sklearn.wood.beta\n"
RELATIVE = "from . import alpha\nfrom .alpha import x\nfrom ..base import clone\n"
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
    "repository/tests/test_wood.py": "",
    "repository/tests/test_bark.py": "",
    "repository/patches/UPSTREAM": f"versions 9.7\n{'0' * 64}  {ALPHA}\n"
    f"{'0' * 64}  {BETA}\n\nversions 9.8 9.9\n"
    f"{sha256(LINES.encode()).hexdigest()}  {ALPHA}\n"
    f"{sha256((LINES + IMPORTS).encode()).hexdigest()}  {BETA}\n",
    "repository/patches/series": "# order\n\nalpha.patch\n",
    "repository/patches/alpha.patch": PATCH,
}


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Hold a series of one patch to scikit-learn 9.9, which breaks no rule."""
    write(tmp_path, FILES)
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "repository/patches"


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def read(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def patched(folder):
    _, texts = repository.read_installed(folder)
    for patch in patch_series.read_series(folder):
        texts = patch_series.apply(patch, texts)
    return texts


@pytest.fixture
def refusal(folder, capsys):
    """Return a function that runs a command which fails, and returns the message."""

    def run(*arguments):
        before = read(folder)
        assert (tool.main([*map(str, arguments)], folder), read(folder)) == (1, before)
        return capsys.readouterr().err

    return run


def test_the_series_of_this_repository_holds_to_the_rules():
    assert tool.check(PATCHES) == []


def test_a_hunk_applies_in_the_one_place_of_its_lines(folder, tmp_path):
    alpha = LINES.replace("line 5", "line 50")
    assert patched(folder) == {ALPHA: alpha, BETA: LINES + IMPORTS}
    edit(folder / "alpha.patch", "-3,5 +3,5", "-9,5 +9,5")
    assert "line 50\n" in patched(folder)[ALPHA]


def test_patched_modules_import_one_another_from_this_package():
    own = IMPORTS.replace("sklearn", "sklearn_era", 1)
    relative = "from sklearn.wood import alpha\nfrom sklearn_era.wood.alpha import x\n"
    relative += "from sklearn.base import clone\n"
    renamed = patch_series.rename({ALPHA: IMPORTS, BETA: RELATIVE + IMPORTS})
    assert renamed == {ALPHA: own, BETA: relative + own}


def test_lines_of_a_traceback_are_those_of_the_patched_text():
    fit = gradient_boosting.BaseHistGradientBoosting.fit
    assert "eras=None" in inspect.getsource(fit)
    code = inspect.unwrap(fit).__code__
    assert "def fit(" in linecache.getline(code.co_filename, code.co_firstlineno + 1)


OTHER_FILES = """
import sys, sklearn_era.datasets, sklearn_era.environments, sklearn_era.metrics
import sklearn, sklearn_era.model_selection
assert not [name for name in sys.modules if name.startswith("sklearn_era.ens")]
assert not any(str(getattr(m, "__file__", "")).endswith((".so", ".pyd"))
               for n, m in [*sys.modules.items()] if n.startswith("sklearn_era"))
from pathlib import Path
file = Path("sklearn/ensemble/_hist_gradient_boosting/gradient_boosting.py")
text = (Path(sklearn.__file__).parents[1] / file).read_text(encoding="utf-8")
file.parent.mkdir(parents=True)
version, change = sys.argv[1:]
if change != "missing":
    changed = eval(change)(text)
    assert changed != text
    file.write_text(changed, encoding="utf-8")
sklearn.__file__ = str(Path("sklearn/__init__.py").resolve())
sklearn.__version__ = version
from sklearn_era.ensemble import HistGradientBoostingRegressor
HistGradientBoostingRegressor(max_iter=2).fit([[0], [1]] * 40, [0, 1] * 40)
"""
KNOWN = "1\\.7\\.0, 1\\.7\\.1, 1\\.7\\.2, 1\\.8\\.0, 1\\.9\\.0, 1\\.9\\.1"
UNFIT = (
    rf"ImportError: sklearn_era\.ensemble works with scikit-learn {KNOWN} as released, "
)
NEXT = ".".join([*sklearn.__version__.split(".")[:2], "99"])

PATCHED_LINE = next(
    line[1:]
    for hunks in patch_series.read_series(PATCHES)[0].files.values()
    for line in hunks[0] if line[0] == " " and line.strip()
)  # fmt: skip


@pytest.mark.parametrize(("version", "change", "last_line"), [
    # A comment where no hunk is: patched, with a warning.
    (NEXT, "lambda text: text + '# changed\\n'", ""),
    ("9.9.0", "lambda text: text + '# changed\\n'",
     UNFIT + r"and the installed 9\.9\.0 has other files \(.*gradient_boosting\.py in "
     r".*\): install one of these anew\."),
    (NEXT, f"lambda text: text.replace({PATCHED_LINE!r}, 'changed')", UNFIT + ".*"
     r"which do not fit \(.*hunk.*in 0 places.*\): install one of these anew\."),
    (NEXT, "lambda text: text + text", UNFIT + r".*hunk.*in 2 places.*anew\."),
    (NEXT, "missing", "ImportError: sklearn_era.ensemble patches the source of the "
     r"installed scikit-learn, which is not there \(.*gradient_boosting\.py\)\. Where "
     r"files are collected .* keep this one; PyInstaller's hook does\."),
])  # fmt: skip
def test_other_files_are_patched_if_all_fits_or_refused(
    version, change, last_line, tmp_path
):
    """In a process that takes the installed scikit-learn for one with other files."""
    done = subprocess.run([sys.executable, "-c", OTHER_FILES, version, change],
                          cwd=tmp_path, capture_output=True, text=True)  # fmt: skip
    if last_line:
        assert re.fullmatch(last_line, done.stderr.splitlines()[-1])
        return
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Warning") == 1
    told = rf"UserWarning: scikit-learn {NEXT} is none of those .* \({KNOWN}\), but all"
    assert re.search(told, done.stderr)


def test_patched_text_is_a_file_for_debuggers_and_coverage(tmp_path):
    """Kept where Python keeps bytecode; what runs does not come from it."""
    script = """
import os, sys, linecache, scipy.stats, sklearn.ensemble, sklearn.model_selection
from pathlib import Path
from pdb import Pdb
for line in sys.stdin:
    if os.fork():
        os.wait()
        continue
    sys.pycache_prefix, writes = line.split()  # of what is imported from here on
    sys.dont_write_bytecode = writes == "False"
    from sklearn_era.ensemble._hist_gradient_boosting import gradient_boosting as module
    file, fit = Path(module.__file__), module.BaseHistGradientBoosting.fit
    line = fit.__wrapped__.__code__.co_firstlineno + 1
    found = "def fit(" in linecache.getline(str(file), line)
    print(file, Pdb().set_break(str(file), line), found, flush=True)
    os._exit(0)
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", script], **pipes)

    def run(prefix=tmp_path, writes=True):
        process.stdin.write(f"{prefix} {writes}\n")
        process.stdin.flush()
        path, *rest = process.stdout.readline().strip().split(" ", 1)
        return Path(path), rest

    # An error of Pdb's in place of None, if there is no line.
    file, rest = run()
    assert rest == ["None True"]
    text = file.read_text(encoding="utf-8")
    assert tmp_path in file.parents
    file.write_text("raise SystemExit", encoding="utf-8")
    assert run() == (file, ["None True"])
    assert file.read_text(encoding="utf-8") == text
    file.unlink()
    other, _ = run(writes=False)
    assert not other.exists()
    (path := tmp_path / "file").touch()  # where no folder can be made
    other, _ = run(path)
    assert not other.exists()
    process.communicate()


def test_nothing_is_compiled_against_scikit_learn():
    for file in (PATCHES.parent / "sklearn_era").rglob("*.p[yx][xd]"):
        assert not re.search(r"from sklearn\.\S+ cimport", file.read_text()), file


@pytest.mark.parametrize(("old", "new", "message"), [
    # A hunk is whole, and has the lines that it counts.
    ("+3,5", "+3,6", "alpha.patch: empty or cut off"),
    ("+3,5", "+3,4", "alpha.patch:18: ' line 7' is not a line that its hunk"),
    (" line 7\n", " line 7\n\\ No newline\n", "alpha.patch:19: expected a hunk"),
    (" line 6", "", "alpha.patch:17: '' is not a line that its hunk counts"),
    (" line 7\n", " line", "alpha.patch: empty or cut off"),
    (" line 7\n", " line 7\n line", "alpha.patch: empty or cut off"),
    (" line 7\n", f" line 7\n--- a/{BETA}\n", "alpha.patch: empty or cut off"),
    ("+++ b/", "+++ ", "alpha.patch:11: expected a hunk, or '--- a/PATH' and "),
    # It applies in one place, below the hunk before it.
    (" line 6", " line six", f"{ALPHA}: the lines of hunk 1 are in 0 places"),
    ("7\n", "7\n@@ -3 +3,2 @@\n line 3\n+x\n",
     "the lines of hunk 2 are in 0 places, and not in one, below line 8: "),
    (f"a/{ALPHA}\n+++ b/{ALPHA}", "a/x\n+++ b/x", "alpha.patch: x: not listed in"),
    # The files are those pinned.
    ("versions 9.7\n", "", "UPSTREAM: expected lines 'versions X ...', each with"),
    ("  sklearn/", "  /sklearn/", "a line 'SHA-256  sklearn/PATH' below it for"),
    (f"{'0' * 64}  {BETA}\n", "", "below it for each of the same files"),
    (sha256(LINES.encode()).hexdigest(), "1" * 64,
     "scikit-learn 9.7, 9.8, 9.9 as released, and the installed 9.9 has other"),
    # The series lists all patches, and their headers have all fields.
    ("\nalpha", "\nbeta", "beta.patch"),
    ("\nalpha.patch\n", "", "alpha.patch: not listed in series"),
    ("Reason: seam\n", "", "alpha.patch: no Reason: field"),
    (": all other lines.", ":", "alpha.patch: no Invariant: field"),
    ("seam", "whim", "alpha.patch: Reason: whim is none of build, seam, behaviour"),
    ("bark", "root", "alpha.patch: Tested-by: tests/test_root.py is no file"),
])  # fmt: skip
def test_check_refuses(folder, refusal, old, new, message):
    path = next(path for path in folder.iterdir() if old in path.read_text())
    edit(path, old, new)
    assert message in refusal("check")


def test_check_needs_scikit_learn_and_caps_the_sizes(refusal, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [])
        assert "no scikit-learn is installed for" in refusal("check")
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
    assert (tool.main(["export", str(clone)], folder), read(folder)) == (0, before)
    repository.git(clone, "reset", "--hard", "upstream")
    edit(clone / BETA, "line 9\n", "rest\n")
    header = PATCH.partition("\n--- ")[0].replace("Grow line 5", "Rest, at ease")
    repository.git(clone, "commit", "--all", "--message", header)
    repository.git(clone, "cherry-pick", "HEAD@{2}")
    assert tool.main(["export", str(clone)], folder) == 0
    assert read(folder)["series"] == "# order\n\nrest-at-ease.patch\nalpha.patch\n"
    assert (read(folder)["alpha.patch"], tool.check(folder)) == (PATCH, [])
    assert "line 8\nrest\nline 10\n" in patched(folder)[BETA]
    repository.git(clone, "reset", "--hard", "HEAD~")
    assert tool.main(["export", str(clone)], folder) == 0
    assert read(folder).keys() == {"UPSTREAM", "series", "rest-at-ease.patch"}


@pytest.mark.parametrize(("commands", "message"), [
    (f"rm {BETA}", "and no uncommitted changes; git status says"),
    ("checkout --detach", "expected branch series, no rebase and no"),
    ("reset --hard upstream", "no commit after tag upstream"),
    ("tag --no-sign -f upstream", "is not the installed scikit-learn"),
    ("commit --allow-empty -m Rest", "rest.patch: empty or cut off"),
    ("commit --allow-empty -C HEAD", "a second one for alpha.patch"),
    (f"mv {BETA} x && commit -m Move", "more than modify: delete mode 100644"),
    ("switch -c a && commit --amend -m A && switch series && merge a", "a merge"),
])  # fmt: skip
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
    "site/sklearn/__init__.py": "",
    "site/sklearn/wood/__init__.py": "",
    "site/sklearn/wood/bark.py": "age = 9\nclass Bark:\n    _rings = 3\n"
    "    def grow(self): pass\n",
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
    "repository/sklearn_era/own.py": OWN_MODULE,
    "repository/pyproject.toml": 'dependencies = ["scikit-learn>=9.7,<9.10"]\n',
}
WHEEL = {
    "METADATA": "Metadata-Version: 2.1\nName: scikit-learn\nVersion: 9.10\n",
    "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
}


@pytest.fixture
def attempt(folder, tmp_path, monkeypatch, capsys):
    """Return a function that tries scikit-learn 9.10: the release before, edited."""
    pytest.importorskip("pip")
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    write(tmp_path, BARK | OWN)
    repository.git(tmp_path / "repository", "init", "--quiet")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wheel = tmp_path / "scikit_learn-9.10-py3-none-any.whl"

    def run(edits, *options, version=wheel):
        release = tmp_path / "release"
        shutil.copytree(tmp_path / "site", release)
        shutil.rmtree(release / "scikit_learn-9.9.dist-info")
        write(release / "scikit_learn-9.10.dist-info", WHEEL)
        for path, *change in edits:
            edit(release / path, *change) if change else (release / path).unlink()
        with zipfile.ZipFile(wheel, "w") as archive:
            for path in filter(Path.is_file, release.rglob("*")):
                archive.write(path, path.relative_to(release))
        before, keep = read(folder), tmp_path / "keep"
        status = tool.main(["try", str(version), f"--keep={keep}", *options], folder)
        assert read(folder) == before
        assert all((tmp_path / path).read_text() == OWN[path] for path in OWN)
        return status, *capsys.readouterr(), keep

    return run


SHIFT = (ALPHA, "line 1\n", "new\nline 1\n")


@pytest.mark.parametrize(("edits", "state"), [
    ([], "applies"),
    ([SHIFT], "applies"),
    ([(ALPHA, "line 3\n", "line three\n")], "merged by git, to be read"),
], ids=["same", "moved", "merged"])  # fmt: skip
def test_try_leaves_the_series_ready_for_a_release(attempt, monkeypatch, edits, state):
    status, out, err, keep = attempt(edits)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "scikit-learn 9.10, beside 9.9"
    assert f"\n  {'changed ' if edits else 'same    '}  {ALPHA}\n" in out
    assert f"\n  same      {BETA}\n" in out
    assert f"\n  alpha.patch: {state}\n" in out
    verdict = "scikit-learn 9.10 fits: the series applies, names are there"
    assert out.splitlines()[-1] == verdict
    copy = keep / "checkout"
    assert 'scikit-learn>=9.7"' in (copy / "pyproject.toml").read_text()
    *_, last = patch_series.read_pins(copy / "patches")
    assert last.versions == (["9.10"] if edits else ["9.8", "9.9", "9.10"])
    monkeypatch.syspath_prepend(keep / "site")
    assert tool.check(copy / "patches") == []
    assert "\nline 50\n" in patched(copy / "patches")[ALPHA]


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
    status, out, err, _ = attempt(edits)
    assert status == 1
    assert err == "error: scikit-learn 9.10 does not fit: names missing: 2\n"
    assert out.partition("\n\nNames used here and missing there\n")[2] == (
        "  sklearn.wood.bark.age: own.py\n"
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
    assert message == f"error: {BETA}: patched, and not in release 9.10\n"


@pytest.mark.slow
def test_try_says_which_step_of_a_build_fails(attempt):
    status, out, err, keep = attempt([], "--test")
    assert status == 1
    assert err == "error: scikit-learn 9.10 does not fit: build failed\n"
    assert "\n  passed  environment, " in out
    assert "\n  failed  build, " in out
    assert (keep / "build.log").read_text()
