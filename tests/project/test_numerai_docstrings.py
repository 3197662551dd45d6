"""The examples of sklearn_era.numerai run, module by module."""

import doctest
import importlib
import pkgutil

import pytest

pytest.importorskip("numerapi")
pytest.importorskip("pydantic")

from sklearn_era import numerai

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(numerai.__path__, f"{numerai.__name__}.")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run_and_names_exist(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    assert set(getattr(module, "__all__", [])) <= set(vars(module))
    assert doctest.testmod(module).failed == 0
