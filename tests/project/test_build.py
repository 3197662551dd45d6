"""Messages of a build that cannot start, and the settings of the wheels."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


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


def test_wheels_are_for_the_pythons_that_are_claimed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheels = project["tool"]["cibuildwheel"]["build"].split()
    prefix = "Programming Language :: Python :: 3."
    claimed = [
        f"cp3{name.removeprefix(prefix)}-*"
        for name in project["project"]["classifiers"]
        if name.startswith(prefix)
    ]
    assert wheels == claimed
    oldest = wheels[0].removeprefix("cp3").removesuffix("-*")
    assert project["project"]["requires-python"] == f">=3.{oldest}"
