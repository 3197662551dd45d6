"""Times and groups at once: four questions, by eras of times, of groups and of both.

The protocol, written before anything was measured.

Seven tables with both axes: juice (stores x weeks), retail (states, and industries, x
quarters), trade (exporters x years), rain (places x quarters), salaries (teams x
years), and a simulation (60 shops x 40 weeks of 5 rows, a level that walks at random,
shops of as large a spread as noise). Three splits: a fifth of the groups is left out,
drawn by the split's number as seed, and so are the last ``8 + 4 * number`` eras of
weeks and quarters, the last ``3 + number`` of years. Training rows are at most 5,000 of
the others, drawn by the same seed. Tests are the rows of the first era left out (next)
and, with a horizon of 4 eras (2 of years), those of the era so much later and the one
after it (later), of groups left out (new) and of the others (known).

AutoEra, seed 0, all else as by default, in each question with its horizon: eras are the
times; the groups, unordered; or both, with the question's group, and predictions that
are told both. The group's column is a feature of all of them, as are all columns but
the era and the names of single rows (player, pair). The loss is the mean squared error
or the log loss; figures are paired differences of logarithms to both axes, in per cent,
means over tables and splits, and errors over tables.
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from experiments.common import (
    bars,
    find_data_file,
    kind_of,
    measure_cells,
    parts_of,
    summarize,
)
from sklearn_era import auto, ensemble

TITLE = "Times and groups: logarithm of the loss, by the eras that AutoEra is told"
N_RUNS = 3
# The column of groups, the horizon, and names of rows, by table.
TABLES: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "orange_juice": ("store", 4, ()),
    "retail_turnover": ("state", 4, ("series",)),
    "retail_turnover, industries": ("industry", 4, ("series",)),
    "trade_of_nations": ("exporter", 2, ("pair",)),
    "rain_australia": ("Location", 4, ()),
    "baseball_salaries": ("team", 2, ("player",)),
    "simulated": ("shop", 4, ()),
}
DATA_FILES = tuple(dict.fromkeys(f"{x.split(',')[0]}.parquet" for x in [*TABLES][:-1]))
QUESTIONS = tuple(product(("known", "new"), ("next", "later")))
AXES = ("times", "groups", "both")


def simulate(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    week, shop, _ = map(np.ravel, np.indices((40, 60, 5)))
    X = rng.normal(size=(week.size, 4))
    level = np.cumsum(rng.normal(size=40, scale=0.3))[week]
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + level + rng.normal(size=60)[shop]
    data = pd.DataFrame(X, columns=[*"abcd"]).assign(shop=[f"s{i}" for i in shop])
    return data.assign(target=y + rng.normal(size=week.size), era=week)


draw = bars("question", "eras", "table")


def run(
    data_dir: Path | None, n_runs: int, quick: bool, cache: Path | None = None
) -> pd.DataFrame:
    """`quick` has the simulated table, and few rows."""
    paths = {name: find_data_file(name, data_dir) for name in DATA_FILES}
    cells = (
        {"table": name, "run": number, "size": 300 if quick else 5_000}
        for number, name in product(range(n_runs), [*TABLES][-1:] if quick else TABLES)
    )
    rows = measure_cells(_measure, cells, cache=cache, paths=paths)
    return summarize(rows, by=["table", "question", "eras"], value="loss")


def _measure(table: str, run: int, size: int, paths: dict[str, Path]) -> list[dict]:
    """The logarithms of losses, by question and eras."""
    if table == "simulated":
        data = simulate(run)
    else:
        data = pd.read_parquet(paths[f"{table.split(',')[0]}.parquet"])
    group, horizon, names = TABLES[table]
    X, y, era = parts_of(data, *names)
    rng, labels = np.random.default_rng(run), np.unique(era)
    groups = data[group].to_numpy(str)
    all_groups = np.unique(groups)
    drawn = rng.choice(all_groups, max(1, all_groups.size // 5), replace=False)
    is_new = np.isin(groups, drawn)
    first = labels.size - (3 + run if horizon == 2 else 8 + 4 * run)
    train = np.flatnonzero((era < labels[first]) & ~is_new)
    train = np.sort(rng.permutation(train)[:size])
    is_class = {*y} == {0, 1}
    plain = kind_of(ensemble, "HistGradientBoosting", is_class)(random_state=0)
    kind = kind_of(auto, "AutoEra", is_class)
    both = pd.DataFrame({"era": era, "group": groups})
    found: list[dict] = []
    at_once = both.iloc[train]
    for (which, when), axes in product(QUESTIONS, AXES):
        ahead = 1 if when == "next" else horizon
        asked = labels[first + ahead - 1 :][: 1 if ahead == 1 else 2]
        test = np.isin(era, asked) & (is_new == (which == "new"))
        eras: Any = {"times": era, "groups": groups}.get(axes)
        told: dict[str, Any] = {}
        params: dict[str, Any] = {"horizon": ahead}
        if axes == "groups":
            params = {"era_order": "unordered"}
        elif axes == "both":
            params["group"], told["eras"] = which, both[test]
        fit = at_once if eras is None else eras[train]
        model = kind(plain, **params).fit(X.iloc[train], y[train], eras=fit)
        if is_class:
            loss = log_loss(y[test], model.predict_proba(X[test], **told)[:, 1])
        else:
            loss = np.mean((y[test] - model.predict(X[test], **told)) ** 2)
        case = {"question": f"{which} {when}", "eras": axes}
        found.append({**case, "loss": float(np.log(loss))})
    return found
