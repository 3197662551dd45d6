"""Estimators, data, faults and interrupts of the tests of misuse."""

import inspect
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from scipy.sparse import csr_array
from sklearn.base import is_classifier

import sklearn_era
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.criteria import Gain
from sklearn_era.effects import GroupDRO
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor, JustTrainTwice
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.rules import RuleEnsembleClassifier

BOOSTERS = (Classifier, Regressor)
FORESTS = (EraForestClassifier, EraForestRegressor)
SMALL = {"max_iter": 3, "max_leaf_nodes": 4, "min_samples_leaf": 3, "random_state": 0}
FOREST = {"n_estimators": 3, "max_leaf_nodes": 4, "random_state": 0}
STOPPING = {"early_stopping": True, "validation_fraction": 0.3, "scoring": "loss"}
ORDERED = {"era_order": "ordered"}  # some labels are text, whose order is not known
N_ROWS = 48


def make_estimators() -> dict[str, Any]:
    """Small estimators of each kind, by name, none of them fitted."""
    auto = {"era_order": "unordered", "cv": 2, "random_state": 0}
    tiny = SMALL | {"max_iter": 1}  # of which a search fits about twenty
    return {
        "regressor": Regressor(**SMALL), "classifier": Classifier(**SMALL),
        "stopping": Classifier(**SMALL | STOPPING | ORDERED),
        "directional": Regressor(**SMALL, split_criterion="directional"),
        "group_dro": Regressor(**SMALL, era_weighting=GroupDRO()),
        "intercepts": Regressor(**SMALL | ORDERED, era_effects="intercept"),
        "forest_regressor": EraForestRegressor(**FOREST),
        "forest_classifier": EraForestClassifier(**FOREST, bootstrap="within_eras"),
        "rules": RuleEnsembleClassifier(3, beam_width=4, n_bins=8, random_state=0),
        "auto_regressor": AutoEraRegressor(Regressor(**tiny), **auto),
        "auto_classifier": AutoEraClassifier(Classifier(**tiny), **auto),
        "search": EraSearchCV(Classifier(**SMALL), {"max_leaf_nodes": [3, 4]},
                              rule="best", cv=2, era_order="unordered"),
        "train_twice": JustTrainTwice(Classifier(**SMALL), identification_iterations=1),
    }  # fmt: skip


def run_a_few(machine: type, n_steps: int) -> None:
    """Run programs of a state machine, a tenth of the examples, of so many steps."""
    few = settings(
        max_examples=max(1, settings.default.max_examples // 10),
        stateful_step_count=n_steps,
        phases=[Phase.generate],  # to shorten a program takes minutes
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=few)


@dataclass
class Rows:
    """Input of a fit; `names` and `categories` are letters, '' for none."""

    X: Any
    y: np.ndarray
    labels: np.ndarray  # of classes
    eras: Any
    names: str = ""
    categories: str = ""
    sample_weight: Any = None

    def arguments(self, estimator: Any) -> dict[str, Any]:
        y = self.labels if is_classifier(estimator) else self.y
        arguments = {"X": self.X, "y": y, "eras": self.eras}
        if self.sample_weight is not None:
            arguments["sample_weight"] = self.sample_weight
        return arguments

    def is_like(self, other: "Rows", estimator: Any) -> bool:
        """Return whether a warm start may go on from one to the other: rows without
        names for those that have some, models by era for the same eras.
        """
        knows_eras = getattr(estimator, "era_effects", None) is not None or isinstance(
            getattr(estimator, "era_weighting", None), GroupDRO
        )
        return (
            self.X.shape[1] == other.X.shape[1]
            and (self.names == other.names or "" in (self.names, other.names))
            and self.categories == other.categories
            and not (knows_eras and set(self.eras) != set(other.eras))
            and not (is_classifier(estimator) and set(self.labels) != set(other.labels))
        )


def _make_rows() -> dict[str, Rows]:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(N_ROWS, 9))
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    eras = np.arange(N_ROWS) % 4
    y = np.nan_to_num(numbers[:, 0] + 0.5 * numbers[:, 1]) + rng.normal(size=N_ROWS) / 5
    two = np.where(y > 0, "up", "down")
    three = np.array(["down", "flat", "up"])[np.digitize(y, [-0.4, 0.4])]

    def with_categories(*names: str) -> pd.DataFrame:
        frame = pd.DataFrame(numbers[:, :3], columns=["a", "b", "c"])
        frame["c"] = pd.Categorical(rng.choice(names, N_ROWS), categories=names)
        return frame

    narrow = numbers[:, :3]
    named = pd.DataFrame(narrow, columns=["a", "b", "c"])
    integers = rng.integers(0, 5, (N_ROWS, 3)).astype(np.uint8)
    letters = np.array(list("efgh"))[eras]
    other = np.where(y > 0, "left", "right")
    uvw, quvx = with_categories(*"uvw"), with_categories(*"quvx")
    return {
        "narrow": Rows(narrow, y, two, eras), "wide": Rows(numbers, y, two, eras),
        "one": Rows(numbers[:, :1], y, two, eras),
        "other_rows": Rows(-narrow[::-1], y, two, eras),
        "weighted": Rows(narrow, y, two, eras, sample_weight=1.0 + eras),
        "integers": Rows(integers, y, two, eras),
        "named": Rows(named, y, two, eras, names="abc"),
        "renamed": Rows(named.rename(columns=str.upper), y, two, eras, names="ABC"),
        "reordered": Rows(named[["c", "a", "b"]], y, two, eras, names="cab"),
        "categories": Rows(uvw, y, two, eras, "abc", "uvw"),
        "other_categories": Rows(quvx, y, two, eras, "abc", "quvx"),
        "three_classes": Rows(narrow, y, three, eras),
        "other_classes": Rows(narrow, y, other, eras),
        "other_eras": Rows(numbers[:, 3:6], -y, two[::-1], letters),
    }  # fmt: skip


ROWS = _make_rows()


def _with_nan(y: np.ndarray) -> np.ndarray:
    numbers = y if y.dtype.kind == "f" else np.unique(y, return_inverse=True)[1]
    return np.where(np.arange(y.size) == 7, np.nan, numbers)


def _with_text(X: Any) -> Any:
    is_text = np.arange(N_ROWS)[:, np.newaxis] == 5
    return np.where(is_text, "text", np.asarray(X, object))


# Faults of a fit's arguments: the name of one, and its change.
FAULTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "nan_in_y": ("y", _with_nan), "short_y": ("y", lambda y: y[:-1]),
    "no_y": ("y", lambda y: None),
    "continuous_or_text_y": ("y", lambda y:
        np.linspace(0, 1, N_ROWS) if y.dtype.kind == "U" else ["x"] * N_ROWS),
    "short_X": ("X", lambda X: X[:-3]), "no_rows": ("X", lambda X: X[:0]),
    "sparse_X": ("X", lambda X: csr_array(np.ones((N_ROWS, 3)))),
    "flat_X": ("X", lambda X: np.asarray(X)[:, 0]), "text_in_X": ("X", _with_text),
    "complex_X": ("X", lambda X: np.ones((N_ROWS, 2), complex)),
    "short_eras": ("eras", lambda eras: eras[:5]),
    "missing_era": ("eras", lambda eras: [None, *eras[1:]]),
    "mixed_eras": ("eras", lambda eras: [*eras[1:].tolist(), b"x"]),
    "eras_of_two_columns": ("eras", lambda eras: np.ones((N_ROWS, 2, 2))),
    "short_weights": ("sample_weight", lambda _: np.ones(N_ROWS - 1)),
    "nan_weights": ("sample_weight", lambda _: np.full(N_ROWS, np.nan)),
    "text_weights": ("sample_weight", lambda _: np.full(N_ROWS, "heavy")),
}  # fmt: skip


def bad_parameters(estimator: Any) -> dict[str, Any]:
    """Values of parameters with which a fit is refused, now and then only late."""
    if isinstance(estimator, AutoEraRegressor | AutoEraClassifier):
        return {"cv": 1, "members": ["no_such"], "estimator": 3, "time_budget": -1}
    if isinstance(estimator, EraSearchCV):
        return {"cv": 1, "scoring": "no_such_score", "estimator": 3, "choose_by": "x"}
    if isinstance(estimator, JustTrainTwice):
        return {"upweight": -1.0, "estimator__max_iter": -1}
    if isinstance(estimator, RuleEnsembleClassifier):
        return {"n_bins": 1, "feature_penalty": [1.0] * 20, "variance_penalty": -1.0}
    refused = {
        "max_bins": 1, "split_criterion": "no_such", "categorical_features": [99],
        "feature_penalty": {"no_such_column": 1.0},
    }  # fmt: skip
    if isinstance(estimator, BOOSTERS):
        return refused | {
            "max_iter": 0, "interaction_cst": [{99}], "monotonic_cst": [1] * 20,
        }  # fmt: skip
    return refused | {"random_segments": 99, "n_estimators": 0}


def good_parameters(estimator: Any) -> dict[str, list[Any]]:
    """Values of parameters with which trees grow in other ways."""
    values = {
        "split_criterion": ["gain", Gain(splitter="era"), "era", "directional"],
        "max_leaf_nodes": [2, 4, 12, None], "max_depth": [1, 3, None],
        "min_samples_leaf": [1, 3, 9], "max_features": [0.4, 1.0],
        "min_gain_share": [0.0, 0.5], "min_era_coverage": [0.3, 0.5, 1.0],
        "colsample_bytree": [0.5, 1.0], "l2_regularization": [0.0, 2.0],
        "interaction_cst": [None, "no_interactions"], "random_state": [0, 1],
    }  # fmt: skip
    return {name: values[name] for name in values if name in estimator.get_params()}


def trees_parameter(estimator: Any) -> str | None:
    if isinstance(estimator, BOOSTERS):
        return "max_iter"
    return "n_estimators" if isinstance(estimator, FORESTS) else None


class Interrupt:
    """Raise KeyboardInterrupt at one of the calls of Python functions in a block. Only
    functions of these packages count, and no generator, which may be resumed to end it.
    Put off to a later call are those of functions that tidy up, where an interrupt
    leaves what it leaves, and of those whose errors NumPy takes for others.
    """

    folders = tuple(
        str(Path(package.__file__).parent) for package in (np, sklearn, sklearn_era)
    )
    spared = (
        "end_fit", "restore_on_failure", "__exit__", "teardown", "raise_column_error",
        "suggest_eras_keyword", "_dtype_from_pep3118",
    )  # fmt: skip

    def __init__(self, at: int | None = None):
        self.at = at
        self.n_calls = 0
        self.place: str | None = None

    def _count(self, frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        is_counted = event == "call" and not code.co_flags & inspect.CO_GENERATOR
        if not is_counted or not code.co_filename.startswith(self.folders):
            return
        self.n_calls += 1
        if self.at is None or self.n_calls < self.at:
            return
        above = frame
        while above is not None:
            if above.f_code.co_name in self.spared:
                return
            above = above.f_back
        sys.setprofile(None)
        self.place = f"{code.co_qualname} of {Path(code.co_filename).name}"
        raise KeyboardInterrupt(self.place)

    @contextmanager
    def watch(self):
        assert threading.current_thread() is threading.main_thread()
        sys.setprofile(self._count)
        try:
            yield self
        finally:
            sys.setprofile(None)
