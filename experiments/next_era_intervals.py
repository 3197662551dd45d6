"""Intervals for the next era: how many new eras they cover, beside MAPIE's.

The protocol was written before anything was measured. *Natural eras*: the scenarios and
last three splits of `natural_eras`, of 5,000 rows to train on and as many to test on;
the plain booster; level 0.9. Ours are the intervals, or sets of classes, for a random
row, and those for a share of 0.9 of the eras; in time also with eras taken for groups.
MAPIE's are CV+ (`CrossConformalRegressor`, `CrossConformalClassifier` with the labels
compared in folds) in five folds of whole eras. Test eras of 30 rows or more count
alike: the share of a coverage of 0.85 or more, and of 0.9 or more; mean coverage; and
the mean width or number of classes by that of MAPIE's in the same split. Splits in
which ours are infinite, as there are too few eras, are counted, and left out for all.
Time and groups are apart. *Simulated eras*: an intercept, a slope and noise, 50 rows in
each of 5 to 50 eras, a linear model, level and share 0.8; 200 new eras for each of 100
draws. *Calibration*: on the scenarios of two classes, the log loss in test eras, and
the level and slope over them, of the plain booster, of `EraCalibratedClassifier` and of
`CalibratedClassifierCV` in the same folds of eras.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold
from threadpoolctl import threadpool_limits

from experiments._natural_eras_data import FILES, SCENARIOS, Scenario
from experiments._natural_eras_fresh import FRESH
from experiments._natural_eras_measure import splits, thinned
from experiments.common import ExperimentError, bars, find_data_file, seed_of
from experiments.natural_eras import booster
from sklearn_era.calibration import (
    EraCalibratedClassifier,
    EraConformalClassifier,
    EraConformalRegressor,
    coverage_score,
    era_calibration,
)
from sklearn_era.metrics import era_scores

TITLE = "Intervals for the next era, at 90 %: coverage of new eras, and its price"
DATA_FILES = FILES
# Hundreds of draws of simulated data.
N_RUNS = 1

LEVEL, SIMULATED_LEVEL = 0.9, 0.8
ENOUGH = 0.85
ROWS, ERAS, AS_GROUPS, FROZEN = "a row", "of eras", ", as groups", ", frozen"
MAPIE = "MAPIE"
HAS_MAPIE = find_spec("mapie") is not None
NUMBERS_OF_ERAS = (5, 10, 20, 50)

SHARE = "share >= .85"
_SPLITS = (4, 2, 3)
_LEAST_ROWS = 30
_MOST_ROWS = 5_000
_QUICK = ("bike rentals, months", "bank clients, countries and sexes")
_COLUMNS = ["part", "data", "split", "method", "era", "coverage", "size"]
# CSV columns: those of calibration have numbers of this name instead.
_CALIBRATION = ("log loss", "level", "slope")


def _by_mapie(model: Any, X: Any, y: Any, eras: Any, X_test: Any) -> Any:
    """MAPIE's intervals, or sets of two classes, by CV+ in folds of eras."""
    kinds = (("regression", "Regressor"), ("classification", "Classifier"))
    make_regressor, make_classifier = (
        getattr(import_module(f"mapie.{task}"), f"CrossConformal{kind}")
        for task, kind in kinds
    )
    folds = GroupKFold(min(5, np.unique(eras).size))
    if not hasattr(model, "predict_proba"):
        regressor = make_regressor(model, confidence_level=LEVEL, cv=folds)
        regressor.fit_conformalize(X, y, groups=eras)
        return regressor.predict_interval(X_test)[1][:, :, 0]
    classifier = make_classifier(model, confidence_level=LEVEL, cv=folds)
    classifier.fit_conformalize(X, y.astype(int), groups=eras)
    return classifier.predict_set(X_test, agg_scores="crossval")[1][:, :, 0]


def _found(scenario: Scenario, split: int, name: str, data_dir: Path | None) -> Any:
    """Rows of a split: coverage and size by method and era, and calibration."""
    X, y, eras, _ = scenario.load(data_dir)
    train, test = list(splits(scenario, eras))[split]
    seed = seed_of("next era", name, split)
    train = thinned(train, eras, _MOST_ROWS, seed)
    test = thinned(test, eras, _MOST_ROWS, seed + 1)
    labels, counts = np.unique(eras[test], return_counts=True)
    test = test[np.isin(eras[test], labels[counts >= _LEAST_ROWS])]
    if test.size == 0:
        return []
    is_number, model = scenario.task == "regression", booster()(scenario.task, seed)
    kind: Any = EraConformalRegressor if is_number else EraConformalClassifier
    orders = {"": "ordered", AS_GROUPS: "unordered"}
    if scenario.kind == "groups":
        orders = {"": "unordered"}
    found, too_few = {}, set()
    for suffix, order in orders.items():
        ours = kind(model, era_order=order).fit(X[train], y[train], eras=eras[train])
        ask = ours.predict_interval if is_number else ours.predict_set
        found[ROWS + suffix] = ask(X[test], LEVEL)
        found[ERAS + suffix] = ask(X[test], LEVEL, share_of_eras=LEVEL)
        if ours.era_labels_.size < LEVEL / (1 - LEVEL) - 1e-9:
            too_few |= {ROWS + suffix, ERAS + suffix}
    if HAS_MAPIE:
        found[MAPIE] = _by_mapie(model, X[train], y[train], eras[train], X[test])
    classes = None if is_number else np.array([0.0, 1.0])
    rows: list[dict] = []
    for method, sets in found.items():
        covered = era_scores(y[test], sets, eras=eras[test], metric=coverage_score,
                             classes=classes)  # fmt: skip
        size = np.mean(sets[:, 1] - sets[:, 0] if is_number else sets.sum(axis=1))
        size = np.inf if method in too_few else size
        rows += [
            {"method": method, "era": era, "coverage": covered[era], "size": size}
            for era in covered
        ]
    if not is_number:
        rows += _calibrations(
            model, X, y, eras, train, test, next(iter(orders.values()))
        )
    part = f"{scenario.kind}, {scenario.task}"
    return [{"part": part, "data": name, "split": split, **row} for row in rows]


def _calibrations(
    model: Any, X: Any, y: Any, eras: Any, train: Any, test: Any, order: str
) -> list[dict]:
    """The log loss in new eras, level and slope, before recalibration and after."""
    ours = EraCalibratedClassifier(model, era_order=order)
    ours.fit(X[train], y[train], eras=eras[train])
    folds = GroupKFold(min(5, np.unique(eras[train]).size))
    parts = list(folds.split(X[train], groups=eras[train]))
    stock = CalibratedClassifierCV(model, cv=parts, ensemble=False)
    models = {"plain": ours.estimator_, "by era": ours,
              "sigmoid": stock.fit(X[train], y[train])}  # fmt: skip
    rows = []
    for name, one in models.items():
        p = one.predict_proba(X[test])[:, 1]
        losses = era_scores(y[test], p, eras=eras[test], metric=log_loss, labels=[0, 1])
        found = era_calibration(y[test], p, eras=eras[test])
        values = (losses.mean(), found.typical["level"], found.typical["slope"])
        for what, value in zip(_CALIBRATION, values, strict=True):
            rows.append(
                {"method": name, "era": what, "coverage": value, "size": np.nan}
            )
    return rows


def _measure(
    scenario: Scenario, split: int, name: str, data_dir: Path | None,
    cache: Path | None,
) -> list[dict]:  # fmt: skip
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rows = _found(scenario, split, name, data_dir)
        except ExperimentError:
            rows = []
    if cache is not None and rows:
        table = pd.DataFrame(rows, columns=_COLUMNS)
        table.to_csv(cache, mode="a", header=False, index=False)
    return rows


def _simulate(n_eras: int, n_runs: int) -> list[dict]:
    """Coverage of new eras that are drawn as the others were."""
    rows = []
    for run in range(n_runs):
        rng = np.random.default_rng(seed_of("simulated intervals", n_eras, run))
        (X, y, eras), new = _draw(n_eras, rng), _draw(200, rng)
        X_old, y_old, _ = _draw(n_eras, rng)
        plain = LinearRegression()
        frozen = FrozenEstimator(LinearRegression().fit(X_old, y_old))
        models = {"": plain, FROZEN: frozen}
        found = {}
        for suffix, model in models.items():
            ours = EraConformalRegressor(model, era_order="unordered")
            ours.fit(X, y, eras=eras)
            found[ROWS + suffix] = ours.predict_interval(new[0], SIMULATED_LEVEL)
            found[ERAS + suffix] = ours.predict_interval(
                new[0], SIMULATED_LEVEL, share_of_eras=SIMULATED_LEVEL
            )
        folds = KFold(5, shuffle=True, random_state=run)
        by_row = EraConformalRegressor(plain, cv=folds, era_order="unordered")
        by_row.fit(X, y, eras=np.arange(y.size))
        found["rows as eras"] = by_row.predict_interval(new[0], SIMULATED_LEVEL)
        for method, ends in found.items():
            is_in = (ends[:, 0] <= new[1]) & (new[1] <= ends[:, 1])
            of_eras = is_in.reshape(200, -1).mean(axis=1)
            rows.append({
                "part": "simulated", "data": n_eras, "split": run, "method": method,
                "era": np.mean(of_eras >= SIMULATED_LEVEL - 1e-9),
                "coverage": of_eras.mean(), "size": np.mean(ends[:, 1] - ends[:, 0]),
            })  # fmt: skip
    return rows


def _draw(n_eras: int, rng: np.random.Generator) -> Any:
    eras = np.repeat(np.arange(n_eras), 50)
    X = rng.normal(size=(eras.size, 2))
    level, slope = rng.normal(size=(2, n_eras))[:, eras]
    y = X[:, 0] + level + 0.5 * slope * X[:, 1] + rng.normal(size=eras.size)
    return X, y, eras


draw = bars("part", "method", quantity=SHARE)


def run(
    *, data_dir: Path | None, n_runs: int = N_RUNS, quick: bool = False,
    cache: Path | None = None, n_jobs: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Measure the table; `quick` has two scenarios, one split and few draws.

    A row for each part, method and quantity: see `show`.
    """
    if data_dir is None or not any((data_dir / name).is_file() for name in DATA_FILES):
        find_data_file(DATA_FILES[0], data_dir)
    scenarios = SCENARIOS | FRESH
    if quick:
        scenarios = {name: scenarios[name] for name in _QUICK}
    known = pd.DataFrame(columns=_COLUMNS)
    if cache is not None:
        if not cache.is_file():
            known.to_csv(cache, index=False)
        known = pd.read_csv(cache)
    done = set(zip(known["data"], known["split"], strict=True))
    calls = [
        delayed(_measure)(scenario, split, name, data_dir, cache)
        for split in _SPLITS[: 1 if quick else None]
        for name, scenario in scenarios.items()
        if (name, split) not in done
    ]
    found = [row for rows in Parallel(n_jobs)(calls) for row in rows]
    natural = pd.DataFrame([*known.to_dict("records"), *found], columns=_COLUMNS)
    if natural.empty:
        raise ExperimentError("None of the scenarios has its data.")
    n = 2 if quick else 100 * n_runs
    drawn = pd.DataFrame([x for m in NUMBERS_OF_ERAS for x in _simulate(m, n)])
    table = pd.concat([_summarize(natural), _summarize_simulated(drawn)])
    table = table.melt(["part", "method"], var_name="quantity", value_name="mean")
    return table.dropna(subset="mean").assign(n_runs=n_runs, paper=np.nan)


def _summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """Means of each part and method, over eras and over splits."""
    of_calibration = rows["era"].isin(_CALIBRATION)
    tables = []
    for part, of_part in rows[~of_calibration].groupby("part"):
        split = ["data", "split"]
        sizes = of_part.groupby([*split, "method"])["size"].first().unstack()
        # Sizes that suffice for a row do so for a share of eras.
        is_finite: pd.Series = sizes.abs().max(axis=1) < np.inf
        ours = of_part.set_index(split)
        ours = ours.loc[is_finite.reindex(ours.index).to_numpy()]
        for method, own in ours.groupby("method"):
            ratios = (sizes[method] / sizes.get(MAPIE, sizes[ROWS]))[is_finite]
            shares = own["coverage"].astype(float)
            tables.append({
                "part": part, "method": method, "data sets": ours.index.unique(0).size,
                "infinite splits": int((~is_finite).sum()), "eras": len(own),
                SHARE: np.mean(shares >= ENOUGH - 1e-9),
                "share >= .9": np.mean(shares >= LEVEL - 1e-9),
                "coverage": shares.mean(), "size": np.exp(np.log(ratios).mean()),
            })  # fmt: skip
    names = ["part", "era", "method"]
    for names_of, own in rows[of_calibration].groupby(names):
        part, what, method = map(str, names_of)
        tables.append({"part": f"{part}: {what}", "method": method, "eras": len(own),
                       "data sets": own["data"].nunique(),
                       "coverage": own["coverage"].astype(float).mean()})  # fmt: skip
    return pd.DataFrame(tables)


def _summarize_simulated(rows: pd.DataFrame) -> pd.DataFrame:
    means = rows.groupby(["data", "method"], sort=False)[["era", "coverage", "size"]]
    table = means.mean().rename(columns={"era": "share >= level"}).reset_index()
    table["part"] = "simulated, " + table.pop("data").astype(str) + " eras"
    return table


def show(frame: pd.DataFrame) -> str:
    """The table as text."""
    table = frame.pivot(index=["part", "method"], columns="quantity", values="mean")
    return table.to_string(na_rep="", float_format=lambda x: f"{x:.3f}")
