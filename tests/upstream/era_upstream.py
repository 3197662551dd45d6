"""Pytest plugin: scikit-learn's own tests, run where pip put them, test our classes.

::

    PYTHONPATH=tests/upstream pytest -p era_upstream --pyargs \\
        sklearn.ensemble._hist_gradient_boosting

The names that those tests import are bound to ours before any of them is collected,
and the run is refused where something could still reach scikit-learn's. So that a run
which tests nothing of ours cannot pass unnoticed, two variables change it:

- ``ERA_UPSTREAM_STOCK=1`` leaves scikit-learn as it is: the run to compare with;
- ``ERA_UPSTREAM_SABOTAGE`` breaks a part of ours, "grower" or "fit": tests must fail;
  "binding" leaves a name bound to scikit-learn's: the run must be refused.
"""

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

STOCK_PACKAGE = "sklearn.ensemble._hist_gradient_boosting"
OUR_PACKAGE = "sklearn_era.ensemble._hist_gradient_boosting"
PATCHED = ("gradient_boosting",)
STOCK_MODULES = tuple(f"{STOCK_PACKAGE}.{name}" for name in PATCHED)
ESTIMATORS = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")

STOCK = os.environ.get("ERA_UPSTREAM_STOCK", "0") == "1"
SABOTAGE = os.environ.get("ERA_UPSTREAM_SABOTAGE", "")


def pytest_report_header() -> str:
    return "tested classes: " + ("scikit-learn's" if STOCK else "sklearn_era's")


# Before any conftest.py, as these import the names too.
@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    if not STOCK:
        sabotage()
        bind_names()


def sabotage() -> None:
    """Break one part of ours in a way that raises no error by itself."""
    if SABOTAGE == "grower":
        # Nodes have no histograms of missing values.
        hooks = import_module("sklearn_era.ensemble._boosters.hooks").EraFitMixin
        make = hooks._make_grower

        def make_blind(self, *, has_missing_values, **rest):
            return make(self, has_missing_values=0 * has_missing_values, **rest)

        hooks._make_grower = make_blind
    elif SABOTAGE == "fit":
        # Sample weights get lost.
        module = import_module(f"{OUR_PACKAGE}.gradient_boosting")
        base = module.BaseHistGradientBoosting
        fit = base.fit
        base.fit = lambda self, X, y, weight=None, **rest: fit(self, X, y, **rest)


def bind_names() -> None:
    theirs = import_module("sklearn.ensemble")
    ours = import_module("sklearn_era.ensemble")
    stock = sys.modules[f"{STOCK_PACKAGE}.gradient_boosting"]
    patched = sys.modules[f"{OUR_PACKAGE}.gradient_boosting"]
    # Our estimators derive from the stock base class, and take `fit` alone from the
    # patched one: a module that now imports the base for its isinstance checks, as
    # sklearn.inspection does, has to find the one that ours derive from.
    patched.BaseHistGradientBoosting = stock.BaseHistGradientBoosting
    for name in ESTIMATORS[SABOTAGE == "binding" :]:
        setattr(theirs, name, getattr(ours, name))
        setattr(patched, name, getattr(ours, name))
    for name in PATCHED:
        module = sys.modules[f"{OUR_PACKAGE}.{name}"]
        sys.modules[f"{STOCK_PACKAGE}.{name}"] = module
        setattr(sys.modules[STOCK_PACKAGE], name, module)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if STOCK:
        return
    modules = {name: m for name, m in sys.modules.items() if name[:8] == "sklearn."}
    modules |= {item.module.__name__: item.module for item in items}
    left = [f"{name}.{key}" for name in modules for key in stock_names(modules[name])]
    if left:
        raise pytest.UsageError(
            "still bound to scikit-learn's own, which the run would test in place of "
            "sklearn_era's: " + ", ".join(sorted(left))
        )


def stock_names(module: ModuleType) -> Iterator[str]:
    if module.__name__ in STOCK_MODULES:
        return
    for key, value in vars(module).items():
        attribute = "__name__" if isinstance(value, ModuleType) else "__module__"
        home = getattr(value, attribute, None)
        # The base class stays the stock one, see `bind_names`.
        if home in STOCK_MODULES and key != "BaseHistGradientBoosting":
            yield key
