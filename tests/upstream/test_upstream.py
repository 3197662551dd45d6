"""scikit-learn's own tests, run where pip put them, with our classes in their place.

`era_upstream.py` is the plugin that puts them there. Every test must have the outcome
that it has with scikit-learn's classes, which ``--slow`` tests beside ours.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
import sklearn

from sklearn_era.ensemble._hist_gradient_boosting import RELEASES

HIST = "sklearn.ensemble._hist_gradient_boosting"
IS_NEWEST = RELEASES[-1] == sklearn.__version__

# Tests with more categories than bins, which scikit-learn refuses.
MANY_CATEGORIES = "test_categorical_bad_encoding or test_dataframe_categorical_errors"

# Which arguments select the tests that use the two classes, module by module.
SELECTIONS = {
    "hist_gradient_boosting": [HIST, "-k", f"not ({MANY_CATEGORIES})"],
    "inspection": ["sklearn.inspection.tests.test_partial_dependence"],
    "common": ["sklearn.tests.test_common", "-k", "HistGradientBoosting"],
    "elsewhere": [
        "sklearn.ensemble.tests.test_bagging::test_bagging_allow_nan_tag",
        "sklearn.experimental",
        "sklearn.feature_selection.tests.test_from_model::test_fit_accepts_nan_inf",
        "sklearn.feature_selection.tests.test_sequential::test_nan_support",
        "sklearn.model_selection.tests.test_search::test_n_features_in",
        "sklearn.tests.test_pipeline::test_n_features_in_pipeline",
    ],
}

# Modules of the first selection that grow trees and take little time; all tests pass.
QUICK = ["test_grower", "test_predictor"]

# Sabotaged part, and tests that must notice. They pass in the runs above.
SABOTAGES = {
    "grower": "test_missing_values_minmax_imputation",
    "fit": "test_zero_sample_weights_regression",
}

# `era_upstream_search.py` puts `EraSearchCV` in the place of `GridSearchCV`.
SEARCH = "sklearn.model_selection.tests.test_search"
EXTRA_COLUMNS = "cv_results_ has columns of scores by era, too"
NON_FINITE = "test_searchcv_raise_warning_with_non_finite_score"
ANOTHER = "another warning names the eras without a score"
NO_SCORE = "a search in which no candidate has a score in all folds raises an error"
# Its tests that do not apply to a search by eras.
NOT_OF_SEARCH = {
    "test_grid_search_no_score": "a target that is missing is refused before all else",
    "test_grid_search_groups": "the eras are the groups where none are passed",
    "test_grid_search_cv_results": EXTRA_COLUMNS,
    "test_grid_search_cv_results_multimetric": EXTRA_COLUMNS,
    "test_custom_run_search": EXTRA_COLUMNS,
    "test_refit": NO_SCORE,  # of folds without the class of which it is the precision
    "test_search_cv_results_none_param": NO_SCORE,
    "test_unsupported_sample_weight_scorer": NO_SCORE,
    f"{NON_FINITE}[GridSearchCV-specialized_params0-False]": ANOTHER,
    f"{NON_FINITE}[GridSearchCV-specialized_params0-True]": ANOTHER,
}


class Run(NamedTuple):
    returncode: int
    output: str
    outcomes: dict[str, str]  # test id -> "passed", "failure", "pytest.skip", ...


def run_upstream(
    folder: Path, *arguments: str, plugin: str = "era_upstream", **variables: str
) -> Run:
    """Run tests of the installed scikit-learn under a plugin, in `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\n")  # nothing of our configuration
    report = folder / "report.xml"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {
        "PYTHONPATH": str(Path(__file__).parent),
        # Two runs at a time on few cores: threads that spin for their share of a core
        # take minutes. scikit-learn's conftest.py overrides OMP_NUM_THREADS.
        "OMP_THREAD_LIMIT": "1",
        **variables,
    }
    command = [sys.executable, "-m", "pytest", "-p", plugin]
    # Named from there, tests have the same names whichever are run.
    command += ["-c", "pytest.ini", f"--rootdir={Path(sklearn.__file__).parents[1]}"]
    command += ["-p", "no:cacheprovider", f"--junitxml={report}", "--pyargs"]
    finished = subprocess.run([*command, *arguments], cwd=folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=500)  # fmt: skip
    outcomes = read_outcomes(report) if report.exists() else {}
    return Run(finished.returncode, finished.stdout, outcomes)


def read_outcomes(report: Path) -> dict[str, str]:
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        ends = [e for e in case if e.tag in ("failure", "error", "skipped")]
        result = ends[0] if ends else None
        outcome = "passed" if result is None else result.get("type", result.tag)
        module = case.get("classname", "").rpartition(".")[2]
        outcomes[f"{module}::{case.get('name')}"] = outcome
    return outcomes


def outcomes_of(whose: str, folder: Path, *arguments: str, **variables: str) -> dict:
    """Outcomes of a run of `whose` classes in which no test fails."""
    run = run_upstream(folder, *arguments, **variables)
    assert f"tested classes: {whose}" in run.output
    assert run.returncode == 0, run.output
    return run.outcomes


def test_tests_of_quick_modules_pass(tmp_path):
    modules = (f"{HIST}.tests.{module}" for module in QUICK)
    outcomes = outcomes_of("sklearn_era's", tmp_path, *modules)
    assert {test.partition("::")[0] for test in outcomes} == {*QUICK}
    assert {*outcomes.values()} == {"passed"}
    assert len(outcomes) > 50


@pytest.mark.skipif(IS_NEWEST, reason="--slow compares all outcomes")
def test_no_test_of_an_older_release_fails(tmp_path):
    selected = SELECTIONS["hist_gradient_boosting"]
    assert len(outcomes_of("sklearn_era's", tmp_path, *selected)) > 300


@pytest.mark.slow
def test_outcomes_are_those_of_grid_search(tmp_path):
    run = run_upstream(tmp_path, SEARCH, plugin="era_upstream_search")
    assert "tested search: sklearn_era's" in run.output
    fine = ("passed", "pytest.skip")
    failed = [name for name, outcome in run.outcomes.items() if outcome not in fine]
    failed = {name.partition("::")[2] for name in failed}
    assert failed == set(NOT_OF_SEARCH), run.output
    passed = [name for name, outcome in run.outcomes.items() if outcome == "passed"]
    assert len(passed) >= 130


@pytest.mark.slow
@pytest.mark.skipif(not IS_NEWEST, reason="selects tests of the newest release")
@pytest.mark.parametrize("selection", SELECTIONS)
def test_outcomes_are_those_of_stock(selection, tmp_path):
    tests = SELECTIONS[selection]
    ours = outcomes_of("sklearn_era's", tmp_path / "ours", *tests)
    stock = {"ERA_UPSTREAM_STOCK": "1"}
    assert len(ours) > 10
    assert ours == outcomes_of("scikit-learn's", tmp_path / "stock", *tests, **stock)


@pytest.mark.slow
@pytest.mark.parametrize("part", SABOTAGES)
def test_sabotage_is_noticed(part, tmp_path):
    test = f"{HIST}.tests.test_gradient_boosting::{SABOTAGES[part]}"
    run = run_upstream(tmp_path, test, ERA_UPSTREAM_SABOTAGE=part)
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.output
    # An assertion of scikit-learn's failed, not the sabotage itself.
    assert re.search(r"^E +(AssertionError|assert )", run.output, re.MULTILINE)


@pytest.mark.slow
def test_run_with_a_stock_name_left_is_refused(tmp_path):
    run = run_upstream(tmp_path, HIST, ERA_UPSTREAM_SABOTAGE="binding")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR, run.output
    assert "still bound to scikit-learn's own" in run.output
    assert not run.outcomes


def test_every_module_that_uses_the_classes_is_selected():
    """A later scikit-learn may test them in more places."""
    selected = [a.partition("::")[0] for chosen in SELECTIONS.values() for a in chosen]
    root = Path(sklearn.__file__).parent
    imported = r"^ *from [\w.]+ import (\([^)]*|.*)\bHistGradientBoosting"
    users = [
        ".".join(path.relative_to(root.parent).with_suffix("").parts)
        for path in root.rglob("tests/test_*.py")
        if re.search(imported, path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert users
    assert [user for user in users if not user.startswith(tuple(selected))] == []
