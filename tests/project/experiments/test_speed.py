"""The speed of forests beside another package, in a Python of its own."""

import pytest

from experiments import forest_speed
from experiments.common import ExperimentError

SHAPE = (2500, 4)


def fake_python(folder, program):
    """An executable in place of the Python that has the other package."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    return str(path)


def test_one_tree_of_theirs_stands_for_all(monkeypatch, tmp_path):
    # It is handed the rows' file, and its last word is the seconds of a tree.
    program = 'test -f "$3" && echo warming up && echo 1000'
    monkeypatch.setenv(forest_speed.PEER_VARIABLE, fake_python(tmp_path, program))
    monkeypatch.setattr(forest_speed, "_fastest", lambda fits, n_runs: {
        name: fit() and 2.0 for name, fit in fits.items()
    })  # fmt: skip
    (row,) = forest_speed.beside_peer(SHAPE, n_trees=4, n_runs=1)
    # 4 trees of 1,000 seconds on two cores, and our 2 seconds.
    assert row["mean"] == 4 * 1000 / 2 / 2
    assert row["beside"] == "time-robust-forest"
    assert row["leaves"] > 1


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("echo no such module >&2; exit 1", "failed (no such module)"),
        ("exit 3", "failed (no message)"),
        (None, "cannot be run (No such file or directory)"),
    ],
)
def test_python_that_fails_is_named_in_one_sentence(
    monkeypatch, tmp_path, program, complaint
):
    python = str(tmp_path / "nothing")
    if program is not None:
        python = fake_python(tmp_path, program)
    monkeypatch.setenv(forest_speed.PEER_VARIABLE, python)
    with pytest.raises(ExperimentError) as caught:
        forest_speed.beside_peer(SHAPE, n_trees=1, n_runs=1)
    message = str(caught.value)
    assert message.startswith(f"SKLEARN_ERA_PEER_PYTHON={python} {complaint}")
    assert "\n" not in message


def test_other_package_is_left_out_with_a_sentence(monkeypatch):
    monkeypatch.delenv(forest_speed.PEER_VARIABLE, raising=False)
    with pytest.warns(UserWarning, match="SKLEARN_ERA_PEER_PYTHON is not set"):
        assert forest_speed.beside_peer(SHAPE, n_trees=1, n_runs=1) == []
