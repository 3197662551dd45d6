"""Builds, workflows, locks and the threat model."""

import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
LOCK = ROOT / ".ci/constraints.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(path):
    """Return the requirements of a lock, each with the lines that follow it."""
    lines = path.read_text().replace("\\\n", "").splitlines()
    return [line for line in lines if not line.startswith("#")]


def jobs(workflow):
    text = (ROOT / ".github/workflows" / workflow).read_text().partition("\njobs:\n")[2]
    parts = re.split(r"^  ([\w-]+):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_actions_are_commits_of_one_version_and_keep_no_credentials():
    versions = set()
    for path in [*WORKFLOWS, ROOT / "docs/numerai.md"]:
        text = path.read_text()
        used = re.findall(r"uses: (?!\./)(.*)", text)
        assert used or "uses: ./" in text
        pinned = r"[\w-]+(/[\w-]+)+@[0-9a-f]{40}  # v\d+\.\d+\.\d+"
        assert [action for action in used if not re.fullmatch(pinned, action)] == []
        versions |= {*used}
        checkouts = re.findall(r"actions/checkout@.*\n(.*)", text)
        assert all("persist-credentials: false" in line for line in checkouts)
        assert re.search(r"^permissions: \{(contents: read)?\}$", text, re.MULTILINE)
    assert len(versions) == len({action.partition("@")[0] for action in versions})


def test_a_release_is_what_passed_the_tests_on_main():
    release = jobs("release.yml")
    assert "uses: ./.github/workflows/tests.yml" in release["tests"]
    assert "needs: [tests, wheels]\n" in release["check"]
    assert 'git merge-base --is-ancestor "$GITHUB_SHA" origin/main' in release["check"]
    assert "python3 .ci/check_distributions.py dist" in release["check"]
    assert "needs: check\n" in release["publish"]
    assert "environment: pypi\n" in release["publish"]
    assert "attestations: true" in release["publish"]
    # A job that may publish runs no code of the repository.
    assert "run:" not in release["publish"]
    assert "checkout" not in release["publish"]
    assert [name for name in release if "id-token" in release[name]] == ["publish"]
    assert "workflow_call:" in (ROOT / ".github/workflows/tests.yml").read_text()


def test_installations_in_workflows_are_by_hash():
    for path in WORKFLOWS:
        text = path.read_text()
        for command in re.findall(r".*(?:\bpipx? |uv (?:pip|build)).*", text):
            by_hash = r"pip install -r \.ci/uv\.txt$|run: uv (pip|build)"
            assert re.search(by_hash, command)
        # But for the weekly tests with the newest versions.
        if path.name != "weekly.yml" and "run: uv " in text:
            assert "UV_CONSTRAINT: .ci/constraints.txt" in text
            assert "UV_BUILD_CONSTRAINT: .ci/constraints.txt" in text


def test_locks_have_a_version_and_hashes_of_each_package_and_name_no_server():
    entry = r"[\w.-]+==[\w.]+( ; [^-]+)?( +--hash=sha256:[0-9a-f]{64})+"
    for path in (LOCK, ROOT / ".ci/uv.txt"):
        assert [line for line in entries(path) if not re.fullmatch(entry, line)] == []
        assert "://" not in path.read_text()


def test_the_lock_has_all_that_the_project_names():
    own, groups = PROJECT["project"], PROJECT["dependency-groups"]
    asked = [*PROJECT["build-system"]["requires"], *own["dependencies"]]
    asked += chain(*own["optional-dependencies"].values(), *groups.values())
    lines = [line for line in asked if isinstance(line, str)]
    names = {canonical(re.match(r"[\w.-]+", line)[0]) for line in lines}
    locked = {canonical(line.partition("==")[0]) for line in entries(LOCK)}
    assert names - {"sklearn-era"} <= locked
    (uv,) = entries(ROOT / ".ci/uv.txt")
    assert uv in entries(LOCK)


def test_the_threat_model_names_tests_that_are_there():
    text = (ROOT / ".github/SECURITY.md").read_text()
    rows = re.findall(r"^\| (?!input|-)(.*) \|$", text, re.MULTILINE)
    hostile = [row.split(" | ") for row in rows if row.split(" | ")[1] != "no"]
    assert len(hostile) >= 6
    for *_, held_by in hostile:
        assert "tests/" in held_by
    for path in re.findall(r"`(tests/[^`]+)`", text):
        assert (ROOT / path).is_file(), path


def test_a_build_without_a_compiler_says_what_to_install(tmp_path):
    pytest.importorskip("mesonbuild", reason="needs Meson")
    result = subprocess.run(
        [sys.executable, "-m", "mesonbuild.mesonmain", "setup", tmp_path, ROOT],
        env=os.environ | {"CC": sys.executable}, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode != 0
    message = result.stdout.partition("ERROR: Problem encountered: ")[2]
    assert message.startswith("sklearn-era is compiled, and no working C compiler was")
    assert "install GCC or Clang" in message


def test_wheels_are_built_with_what_is_locked_for_the_pythons_that_are_claimed():
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert "-c {project}/.ci/constraints.txt" in wheels["before-build"]
    assert wheels["before-build"].endswith("pyproject.toml:build")
    assert wheels["build-frontend"]["args"] == ["--no-isolation"]
    wheels = wheels["build"].split()
    classifiers = "\n".join(PROJECT["project"]["classifiers"])
    minors = re.findall(r"^Programming .* Python :: 3\.(\d+)$", classifiers, re.M)
    assert wheels == [f"cp3{minor}-*" for minor in minors]
    assert PROJECT["project"]["requires-python"] == f">=3.{minors[0]}"
