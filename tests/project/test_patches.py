"""How the patch series is read, applied and written into the build folder."""

import importlib.metadata
import os
import random
import subprocess
import sys

import pytest

from project.patch_tree import (
    ALPHA,
    BETA,
    HEADER,
    NUMBERS,
    PATCHES,
    DiffError,
    PatchTree,
    SeriesError,
    diff_writer,
    patch_series,
    unified_diff,
    vendor,
)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    return PatchTree(tmp_path, monkeypatch)


def edit_at_random(text, rng):
    """Insert, repeat, delete and replace lines, with many equal lines to confuse."""
    lines = text.split("\n")[:-1]
    for _ in range(rng.randint(1, 6)):
        at = rng.randint(0, len(lines))
        before = lines[max(0, at - rng.randint(1, 5)) : at]
        odd = [rng.choice(["", "a", "  b", "\x0c", "-- a/x", "@@"])]
        lines[at : at + rng.randint(0, 3)] = rng.choice([[], before, odd, ["new"]])
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("seed", range(100))
def test_writing_then_applying_gives_the_same_bytes(seed):
    rng = random.Random(seed)
    lines = rng.choices(["", "a", "  b", "  )", "x \u2028 y"], k=rng.randint(0, 30))
    before = {"a.py": "".join(f"{line}\n" for line in lines), "b.py": NUMBERS}
    after = {path: edit_at_random(text, rng) for path, text in before.items()}
    text = diff_writer.render(HEADER, before, after)
    patch = unified_diff.parse("random.patch", text)
    assert patch.header == HEADER
    assert unified_diff.apply(patch, before) == after
    assert diff_writer.render(patch.header, before, after) == text


def test_hunks_have_short_context_and_name_their_definition():
    before = f"class Wood:\n    def __init__(\n        self,\n    ):\n{NUMBERS}"
    after = before.replace("line 5\n", "").replace("line 9\n", "line 9\nline 9½\n")
    after = after.replace("line 20\n", "")
    text = diff_writer.render("Subject", {"w.py": before}, {"w.py": after})
    assert text == (
        "Subject\n\n--- a/w.py\n+++ b/w.py\n"
        "@@ -7,9 +7,9 @@ def __init__(\n line 3\n line 4\n-line 5\n line 6\n line 7\n"
        " line 8\n line 9\n+line 9½\n line 10\n line 11\n"
        "@@ -22,3 +22,2 @@ def __init__(\n"
        " line 18\n line 19\n-line 20\n"
    )


@pytest.mark.parametrize(
    ("around", "block"),
    [
        ("x = f(\n    1,\n)\n{}z = 0\n", "y = f(\n    2,\n)\n"),
        ("{}@cached\ndef b():\n    pass\n", "@cached\ndef a():\n    pass\n\n"),
        ("def a():\n    return 0\n{}", "\n\ndef b():\n    return 0\n"),
    ],
)
def test_whole_statements_are_added(around, block):
    old, new = around.format(""), around.format(block)
    text = diff_writer.render("Subject", {"w.py": old}, {"w.py": new})
    added = [line[1:] for line in text.split("\n")[4:] if line.startswith("+")]
    assert "".join(f"{line}\n" for line in added) == block


def test_lines_that_are_frequent_in_a_long_file_still_match():
    before = "x = 0\n\n" * 200
    after = f"first\n{before}last\n"
    text = diff_writer.render("Subject", {"w.py": before}, {"w.py": after})
    assert (text.count("\n+"), text.count("\n-")) == (3, 1)  # with "+++" and "---"


def test_a_header_line_that_reads_as_a_file_is_refused():
    with pytest.raises(DiffError, match="starts with '--- '"):
        diff_writer.render("Subject\n\n--- a/x", {"x": "1\n"}, {"x": "2\n"})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@@ -3,5 +3,5 @@", "@@ -3,5 +3,5", "w.patch:14: malformed hunk header"),
        ("@@ -3,5 +3,5 @@", "@@ -3,5 +4,5 @@", "14: line numbers do not follow"),
        ("@@ -3,5 +3,5 @@", "@@ -3,6 +3,6 @@", "21: the hunk ends 1 lines too soon"),
        ("@@ -3,5 +3,5 @@", "@@ -3,4 +3,4 @@", "20: expected a hunk or a file"),
        ("-line 5\n+line 50", " line 5", "14: the hunk changes nothing"),
        (" line 6\n", "\n", "19: an empty line in a hunk; a blank context line is one"),
        (" line 7\n", " line 7\n\\ No newline at end of file\n", "21: a file with"),
        (" line 7\n", " line 7\n-- \n2.39.5\n", "21: expected a hunk or a file"),
        (" line 7\n", " line 7", "w.patch: no newline at the end"),
        ("--- a/sklearn", "--- a/sklearn_", "one PATH"),
        (f"--- a/{ALPHA}", "--- /dev/null", "files may only be modified"),
        ("--- a/", "*** a/", "nothing to apply"),
        ("+line 50", "*line 50", r"18: '\*line 50' does not fit the counts"),
        (" line 7\n", f" line 7\n--- a/{ALPHA}\n+++ b/{ALPHA}\n", "has two sections"),
        (" line 7\n", f" line 7\n--- a/{BETA}\n+++ b/{BETA}\n", "without hunks"),
    ],
)
def test_malformed_patches_are_refused(tree, old, new, message):
    tree.add_patch("w.patch", "line 5\n", "line 50\n")
    tree.edit("w.patch", old, new)
    with pytest.raises(DiffError, match=message):
        patch_series.read_patch("w.patch", tree.folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NUMBERS.replace("6", "six"), ":6: expected 'line 6', found 'line six'"),
        ("one\ntwo\n" + NUMBERS, ":3: expected 'line 3', found 'line 1'"),
        ("line 1\nline 2\nline 3\n", ":4: expected 'line 4', found the end"),
        ("line 1\n", ":3: no such line in a file of 1"),
        (None, ": not taken from upstream"),
    ],
    ids=["other context", "two lines further down", "short", "shorter", "missing"],
)
def test_application_is_strict(tree, text, message):
    tree.add_patch("w.patch", "line 5\n", "line 50\n")
    patch = patch_series.read_patch("w.patch", tree.folder)
    with pytest.raises(DiffError) as error:
        unified_diff.apply(patch, {BETA: NUMBERS} if text is None else {ALPHA: text})
    assert str(error.value) == f"w.patch: {ALPHA}{message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version 9.9", "version", r"UPSTREAM:2: expected 'version X' or 'SHA-256  P"),
        ("version 9.9\n", "", "expected one version and at least one file"),
        ("version 9.9\n", "version 9.9\nversion 9.8\n", "found 2 and 2"),
        ("sklearn/wood/alpha.pyx", "../alpha.pyx", "is not inside sklearn/"),
        ("sklearn/wood/alpha.pyx", "sklearn/beta.py", "a second file named beta.py"),
    ],
)
def test_malformed_pins_are_refused(tree, old, new, message):
    tree.edit("UPSTREAM", old, new)
    with pytest.raises(SeriesError, match=message):
        patch_series.read_pin(tree.folder)


@pytest.mark.parametrize("name", ["../w.patch", "0001-W.patch", "w.diff", " w.patch"])
def test_series_lists_kebab_case_names(tree, name):
    tree.list_patches(name)
    with pytest.raises(SeriesError, match=r"series:3: .* is not a kebab-case name"):
        patch_series.read_series(tree.folder)


def test_another_release_is_refused(tree):
    tree.edit("UPSTREAM", "version 9.9", "version 9.10")
    with pytest.raises(SeriesError) as error:
        patch_series.read_upstream(patch_series.read_pin(tree.folder))
    assert str(error.value) == (
        f"scikit-learn 9.10 is needed to build, found 9.9 at {tree.site}"
    )


def test_no_scikit_learn_is_refused(tree, monkeypatch):
    def find_none(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", find_none)
    with pytest.raises(SeriesError, match=r"9\.9 is needed to build, found none"):
        patch_series.locate_upstream(patch_series.read_pin(tree.folder))


def test_other_bytes_are_refused(tree):
    tree.write(tree.site / BETA, NUMBERS)
    with pytest.raises(SeriesError) as error:
        patch_series.read_upstream(patch_series.read_pin(tree.folder))
    assert str(error.value).startswith(f"{BETA}: not the file that patches/UPSTREAM")
    assert patch_series.digest(NUMBERS) in str(error.value)


def test_windows_line_ends_are_normalised(tree):
    tree.write(tree.site / ALPHA, NUMBERS.replace("\n", "\r\n"))
    assert patch_series.read_upstream(patch_series.read_pin(tree.folder)) == tree.texts


def test_only_the_modules_taken_are_renamed():
    folder = "sklearn.ensemble._hist_gradient_boosting"
    paths = [f"{folder.replace('.', '/')}/{n}" for n in ("grower.py", "splitting.pyx")]
    pin = patch_series.Pin("1.0", dict.fromkeys(paths, "0" * 64))
    ours = folder.replace("sklearn", "sklearn_era")
    for name in ("grower", "splitting"):
        assert pin.rename(f"({folder}.{name}.x)") == f"({ours}.{name}.x)"
    for text in (
        f"{folder}.predictor",
        f"{folder}.grower_",
        f"{folder}.growers",
        f"my_{folder}.grower",
        f"my.{folder}.grower",
        f"{ours}.grower",
        folder.replace(".", "x") + ".grower",
    ):
        assert pin.rename(text) == text


def run_vendor(tree):
    out = tree.root / "a build"
    depfile = tree.root / "vendor.d"
    status = vendor.main(["--out", str(out), "--depfile", str(depfile)], tree.folder)
    return status, out, depfile


def test_vendor_writes_patched_and_renamed_files(tree):
    tree.add_patch("w.patch", "line 5\n", "line 50\n")
    status, out, depfile = run_vendor(tree)
    assert status == 0
    assert {path.name for path in out.iterdir()} == {"alpha.pyx", "beta.py"}
    assert (out / "alpha.pyx").read_text() == NUMBERS.replace("line 5", "line 50")
    assert (out / "beta.py").read_text() == (
        "from sklearn_era.wood.alpha import a\nfrom sklearn.wood.other import b\n"
        + NUMBERS
    )
    targets, _, sources = depfile.read_text().replace("\\\n", "").partition(":")
    escaped = out.as_posix().replace(" ", "\\ ")
    assert targets == f"{escaped}/alpha.pyx {escaped}/beta.py"
    scripts = ("vendor.py", "patch_series.py", "unified_diff.py")
    assert set(sources.split()) == {
        *(
            (tree.folder / name).as_posix()
            for name in ("UPSTREAM", "series", "w.patch")
        ),
        *((PATCHES / name).as_posix() for name in scripts),
        *((tree.site / path).as_posix() for path in (ALPHA, BETA)),
    }


def test_vendor_leaves_unchanged_files_untouched(tree):
    tree.add_patch("w.patch", "line 5\n", "line 50\n")
    _, out, _ = run_vendor(tree)
    for path in out.iterdir():
        os.utime(path, ns=(1, 1))
    tree.add_patch("x.patch", "line 9\n", "line 90\n")
    assert run_vendor(tree)[0] == 0
    assert (out / "alpha.pyx").stat().st_mtime_ns > 1
    assert (out / "beta.py").stat().st_mtime_ns == 1


def test_vendor_writes_nothing_when_a_patch_fails(tree, capsys):
    for name, n in (("v.patch", 5), ("w.patch", 6)):
        tree.add_patch(name, f"line {n}\n", f"line {n}0\n")
    tree.list_patches("w.patch")
    status, out, depfile = run_vendor(tree)
    assert status == 1
    assert not out.exists()
    assert not depfile.exists()
    assert capsys.readouterr().err == (
        f"error: cannot patch scikit-learn: w.patch: {ALPHA}:5: "
        "expected 'line 50', found 'line 5'\n"
    )


def test_vendor_names_a_missing_patch(tree, capsys):
    tree.list_patches("w.patch")
    assert run_vendor(tree)[0] == 1
    assert f"{tree.folder / 'w.patch'}: No such file" in capsys.readouterr().err


def test_vendor_lists_its_outputs(tree, capsys):
    assert vendor.main(["--list"], tree.folder) == 0
    assert capsys.readouterr().out == "alpha.pyx\nbeta.py\n"


def test_vendor_patches_the_installed_scikit_learn_without_importing_it(tmp_path):
    arguments = ["--out", str(tmp_path), "--depfile", str(tmp_path / "vendor.d")]
    program = (
        "import sys, vendor; status = vendor.main(sys.argv[1:]); "
        "sys.exit(status or sorted({'sklearn', 'numpy'} & sys.modules.keys()) or 0)"
    )
    command = [sys.executable, "-c", program, *arguments]
    subprocess.run(command, cwd=PATCHES, check=True)
    for path in tmp_path.glob("*.py"):
        compile(path.read_text(encoding="utf-8"), path, "exec")
