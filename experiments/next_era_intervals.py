"""Intervals for the next era: how many new eras they cover, beside MAPIE's.

The protocol was written before anything was measured. *Natural eras*: the last three
splits of the scenarios of `natural_eras`, of 5,000 rows to train on and as many to test
on. MAPIE's are CV+ (with the labels compared in folds) in five folds of whole eras.
Test eras of 30 rows or more count alike. Splits in which ours are infinite, as there
are too few eras, are counted, and left out for all. *Simulated eras*: an intercept, a
slope and noise, 50 rows in each of 5 to 50 eras, a linear model; 200 new eras for each
of 100 draws. *Calibration*: the log loss in test eras, and the level and slope over
them, of the plain booster, of `EraCalibratedClassifier` and of `CalibratedClassifierCV`
in the same folds of eras.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold

from experiments._natural_eras_data import (
    FILES,
    QUICK,
    SCENARIOS,
    Scenario,
    check_files,
)
from experiments._natural_eras_fresh import FRESH
from experiments._natural_eras_measure import Split, thinned
from experiments.common import bars, kind_of, measure_cells, respond, seed_of
from experiments.natural_eras import booster
from sklearn_era import calibration
from sklearn_era.calibration import (
    EraCalibratedClassifier,
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
ROWS, ERAS, AS_GROUPS = "a row", "of eras", ", as groups"
MAPIE = "MAPIE"
HAS_MAPIE = find_spec("mapie") is not None
NUMBERS_OF_ERAS = (5, 10, 20, 50)

SHARE = "share >= .85"
_SPLITS = (4, 2, 3)
_LEAST_ROWS = 30
_MOST_ROWS = 5_000
# Rows of calibration have numbers of this name instead.
_CALIBRATION = ("log loss", "level", "slope")


def _by_mapie(model: Any, X: Any, y: Any, eras: Any, X_test: Any) -> Any:
    """MAPIE's intervals, or sets of two classes, by CV+ in folds of eras."""
    is_class = hasattr(model, "predict_proba")
    module = import_module(f"mapie.{'classification' if is_class else 'regression'}")
    folds = GroupKFold(min(5, np.unique(eras).size))
    kind = kind_of(module, "CrossConformal", is_class)
    conformal = kind(model, confidence_level=LEVEL, cv=folds)
    if is_class:
        conformal.fit_conformalize(X, y.astype(int), groups=eras)
        return conformal.predict_set(X_test, agg_scores="crossval")[1][:, :, 0]
    conformal.fit_conformalize(X, y, groups=eras)
    return conformal.predict_interval(X_test)[1][:, :, 0]


def _measure(
    split: int, scenario: str, scenarios: Mapping[str, Scenario], data_dir: Path | None
) -> list[dict]:
    """Rows of a split: coverage and size by method and era, and calibration."""
    source, seed = scenarios[scenario], seed_of("next era", scenario, split)
    data = Split(source, split, data_dir, seed, _MOST_ROWS)
    X, y, eras, train = data.X, data.y, data.eras, data.train
    test = thinned(data.test, eras, _MOST_ROWS, seed + 1)
    labels, counts = np.unique(eras[test], return_counts=True)
    test = test[np.isin(eras[test], labels[counts >= _LEAST_ROWS])]
    if test.size == 0:
        return []
    is_number, model = source.task == "regression", booster()(source.task, seed)
    kind = kind_of(calibration, "EraConformal", not is_number)
    orders = {"": "ordered", AS_GROUPS: "unordered"}
    if source.kind == "groups":
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
    metric: Any = {
        "metric": coverage_score,
        "classes": None if is_number else [0.0, 1.0],
    }
    rows: list[dict] = []
    for method, sets in found.items():
        covered = era_scores(y[test], sets, eras=eras[test], **metric)
        size = np.mean(sets[:, 1] - sets[:, 0] if is_number else sets.sum(axis=1))
        size = np.inf if method in too_few else size
        rows += [
            {"method": method, "era": era, "coverage": covered[era], "size": size}
            for era in covered
        ]
    if not is_number:
        rows += _calibrations(model, X, y, eras, train, test, orders[""])
    part = f"{source.kind}, {source.task}"
    return [{"part": part, "data": scenario, **row} for row in rows]


def _calibrations(
    model: Any, X: Any, y: Any, eras: Any, train: Any, test: Any, order: str
) -> list[dict]:
    """The log loss in new eras, level and slope, before recalibration and after."""
    ours = EraCalibratedClassifier(model, era_order=order)
    ours.fit(X[train], y[train], eras=eras[train])
    folds = GroupKFold(min(5, np.unique(eras[train]).size))
    parts = list(folds.split(X[train], groups=eras[train]))
    stock = CalibratedClassifierCV(model, cv=parts, ensemble=False)
    stock.fit(X[train], y[train])
    models = {"plain": ours.estimator_, "by era": ours, "sigmoid": stock}
    rows = []
    for name, one in models.items():
        p = respond(one, X[test])
        losses = era_scores(y[test], p, eras=eras[test], metric=log_loss, labels=[0, 1])
        found = era_calibration(y[test], p, eras=eras[test])
        values = (losses.mean(), found.typical["level"], found.typical["slope"])
        rows += [
            {"method": name, "era": what, "coverage": value, "size": np.nan}
            for what, value in zip(_CALIBRATION, values, strict=True)
        ]
    return rows


def _simulate(n_eras: int, n_runs: int) -> list[dict]:
    """Coverage of new eras that are drawn as the others were."""
    rows = []
    for run in range(n_runs):
        rng = np.random.default_rng(seed_of("simulated intervals", n_eras, run))
        (X, y, eras), new = _draw(n_eras, rng), _draw(200, rng)
        plain = LinearRegression()
        ours = EraConformalRegressor(plain, era_order="unordered").fit(X, y, eras=eras)
        level: dict[str, Any] = {"level": SIMULATED_LEVEL}
        share = {**level, "share_of_eras": SIMULATED_LEVEL}
        found = {
            ROWS: ours.predict_interval(new[0], **level),
            ERAS: ours.predict_interval(new[0], **share),
        }
        folds = KFold(5, shuffle=True, random_state=run)
        by_row = EraConformalRegressor(plain, cv=folds, era_order="unordered")
        by_row.fit(X, y, eras=np.arange(y.size))
        found["rows as eras"] = by_row.predict_interval(new[0], SIMULATED_LEVEL)
        for method, ends in found.items():
            is_in = (ends[:, 0] <= new[1]) & (new[1] <= ends[:, 1])
            of_eras = is_in.reshape(200, -1).mean(axis=1)
            row = {"part": f"simulated, {n_eras} eras", "method": method}
            row["coverage"] = of_eras.mean()
            row["share >= level"] = np.mean(of_eras >= SIMULATED_LEVEL - 1e-9)
            rows.append(row | {"size": np.mean(ends[:, 1] - ends[:, 0])})
    return rows


def _draw(n_eras: int, rng: np.random.Generator) -> Any:
    eras = np.repeat(np.arange(n_eras), 50)
    X = rng.normal(size=(eras.size, 2))
    level, slope = rng.normal(size=(2, n_eras))[:, eras]
    y = X[:, 0] + level + 0.5 * slope * X[:, 1] + rng.normal(size=eras.size)
    return X, y, eras


draw = bars("part", "method", quantity=SHARE)


def run(
    data_dir: Path | None,
    n_runs: int,
    quick: bool,
    cache: Path | None = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Measure the table; `quick` has two scenarios, one split and few draws."""
    check_files(data_dir)
    scenarios = QUICK if quick else SCENARIOS | FRESH
    cells = (
        {"split": split, "scenario": name}
        for split in _SPLITS[: 1 if quick else None]
        for name in scenarios
    )
    given = {"scenarios": scenarios, "data_dir": data_dir}
    natural = measure_cells(_measure, cells, cache=cache, n_jobs=n_jobs, **given)
    n = 2 if quick else 100 * n_runs
    drawn = pd.DataFrame([x for m in NUMBERS_OF_ERAS for x in _simulate(m, n)])
    simulated = drawn.groupby(["part", "method"], sort=False).mean().reset_index()
    table = pd.concat([_summarize(natural), simulated])
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
            row = {"part": part, "method": method, "eras": len(own)}
            row["data sets"] = ours.index.unique(0).size
            row["infinite splits"] = int((~is_finite).sum())
            row[SHARE] = np.mean(shares >= ENOUGH - 1e-9)
            row |= {"coverage": shares.mean(), "size": np.exp(np.log(ratios).mean())}
            tables.append(row)
    calibrated = rows[of_calibration].groupby(["part", "era", "method"])
    columns = {
        "eras": calibrated.size(),
        "data sets": calibrated["data"].nunique(),
        "coverage": calibrated["coverage"].mean(),
    }
    means = pd.DataFrame(columns).reset_index()
    means["part"] = means["part"] + ": " + means.pop("era")
    return pd.concat([pd.DataFrame(tables), means])


def show(frame: pd.DataFrame) -> str:
    """The table as text."""
    table = frame.pivot(index=["part", "method"], columns="quantity", values="mean")
    return table.to_string(na_rep="", float_format=lambda x: f"{x:.3f}")
