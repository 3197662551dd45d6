"""Whether the score of the next era is where `EraScoreForecast` expects it.

The protocol was written before anything was measured, but for the tuned model's
candidates. Intervals of 80 and 95 % are to have 75 to 85 % and 92 to 98 % of the scores
of eras that nothing was fitted to; of simulated ones, shares within two points.

Simulated eras: M = 5, 10, 30 scores of means that are normal with the standard
deviation `spread`, measured with errors whose squares are gamma around 1, or without
errors; one more is predicted. As groups, and in time, also as an AR(1) of rho = 0.7 and
with a slope of a third of the spread an era, without errors. The exact score, without
the last error, is forecast too. Widths are in those of the oracle, who knows m, the
spread and, of an AR(1) or a slope, these.

Natural eras: the sets and splits of natural_eras but for the second fresh ones. Scores
of training eras are out of era by the folds of `EraSearchCV`, those of test eras by a
model of all training eras. The tuned model is the best of 35 by the mean over eras of
the score in question. Sampling errors are in closed form; that of a test era is taken
from its number of rows.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import norm

from experiments._natural_eras_data import (
    FILES,
    QUICK,
    SCENARIOS,
    Scenario,
    check_files,
)
from experiments._natural_eras_fresh import FRESH
from experiments._next_era_data import OUT_OF_ERA, PLAIN, TEST, TUNED, collect
from experiments.common import bars, make_autoregressive, seed_of, summarize
from sklearn_era.metrics import EraScoreForecast

TITLE = "Scores of the next era inside their intervals, in %"
DATA_FILES = FILES
# Hundreds of simulated forecasts.
N_RUNS = 20

LEVELS = (0.8, 0.95)
SIZES = (5, 10, 30)
SPREADS = (0.0, 0.5, 1.0, 4.0, np.inf)
FORECAST, EXACT = "forecast", "forecast of the exact score"
BOUNDED, NO_TREND = "forecast, with bounds", "forecast, trend='none'"
NO_ERRORS, UNCORRECTED = "forecast, no errors", "forecast, choice not corrected"
OF_MEAN, OF_ERAS = "mean ± z sd / sqrt(M)", "mean ± z sd"
ALL = "all sets"

Values = NDArray[np.float64]


def _plug_in(scores: Values, level: float) -> dict[str, tuple[float, float]]:
    """Intervals of those who take the spread, or the mean's error, for known."""
    scores = scores[np.isfinite(scores)]
    mean, half = scores.mean(), norm.isf((1 - level) / 2) * scores.std(ddof=1)
    error = half / np.sqrt(scores.size)
    return {OF_MEAN: (mean - error, mean + error), OF_ERAS: (mean - half, mean + half)}


def _simulate(kind: str, n_eras: int, spread: float, run: int) -> list[dict]:
    """Draw scores a hundred times, and check which intervals have the last one."""
    seed = seed_of("next era", kind, str(n_eras), str(spread), run)
    part = {"part": kind, "cell": f"M = {n_eras}, spread {spread:g}", "model": "none"}
    rng, times = np.random.default_rng(seed), np.arange(n_eras + 1)
    rho, slope = {"AR(1)": (0.7, 0.0), "slope": (0.0, 1 / 3)}.get(kind, (0.0, 0.0))
    has_errors = np.isfinite(spread)
    spread = spread if has_errors else 1.0
    rows = []
    for _ in range(100):
        errors = np.sqrt(rng.gamma(4, 1 / 4, n_eras + 1)) * has_errors
        effects = rng.normal(size=n_eras + 1)
        make_autoregressive(effects, rho)
        exact = spread * effects + slope * times
        scores = exact + errors * rng.normal(size=n_eras + 1)
        forecast = EraScoreForecast().fit(
            scores[:-1],
            errors[:-1] if has_errors else None,
            None if kind == "groups" else times[:-1],
        )
        unknown = np.hypot(spread * np.sqrt(1 - rho**2), errors[-1])
        for level in LEVELS:
            ends = {FORECAST: forecast.interval(level, standard_error=errors[-1])}
            ends[EXACT] = forecast.interval(level, standard_error=0.0)
            ends |= _plug_in(scores[:-1], level)
            oracle = 2 * norm.isf((1 - level) / 2) * unknown
            for way, (low, high) in ends.items():
                score = exact[-1] if way == EXACT else scores[-1]
                found = {"inside": low <= score <= high, "width": (high - low) / oracle}
                rows.append({**part, "way": way, "level": level, **found})
    return rows


def simulate(n_runs: int, quick: bool, n_jobs: int | None = None) -> pd.DataFrame:
    """A row for each score that is drawn, way and level: whether it is inside."""
    cells = [*product(("groups", "time"), SIZES, SPREADS)]
    cells += product(("AR(1)", "slope"), SIZES, [np.inf])
    calls = (
        delayed(_simulate)(*cell, run)
        for cell in (cells[:1] if quick else cells)
        for run in range(n_runs)
    )
    return pd.DataFrame([row for found in Parallel(n_jobs)(calls) for row in found])


def forecast_all(rows: pd.DataFrame) -> pd.DataFrame:
    """Intervals of test eras, a row for each way and level, and whether they hold."""
    tables = []
    plain = rows[(rows["model"] == TUNED) & (rows["candidate"] == 0)]
    rows = pd.concat([plain.assign(model=PLAIN), rows])
    names = ["model", "scenario", "split", "metric"]
    groups: Any = rows.groupby(names, sort=False)
    for key, own in groups:
        cell = dict(zip(names, key, strict=True))
        scenario = (SCENARIOS | FRESH)[cell["scenario"]]
        found = _forecast_split(scenario, cell["metric"], own)
        tables += [{**cell, **row} for row in found]
    return pd.DataFrame(tables)


def _forecast_split(
    scenario: Scenario, metric: str, rows: pd.DataFrame
) -> Iterator[dict]:
    """Forecasts of the best candidate by one metric, greater being better."""
    sign = 1.0 if metric == "score" else -1.0
    rows = rows.assign(value=sign * rows["value"]).sort_values("era")
    trained, test = (rows[rows["part"] == part] for part in (OUT_OF_ERA, TEST))
    table = trained.pivot(index="candidate", columns="era", values="value")
    best = table.index[int(np.argmax(table.mean(axis=1)))]
    trained, test = (x[x["candidate"] == best] for x in (trained, test))
    errors, known = trained["error"].to_numpy(), np.isfinite(trained["error"])
    scores = table.to_numpy().copy()
    scores[:, ~known] = np.nan
    test = test[np.isfinite(test["value"])]
    if known.sum() < 3 or test.empty:
        return
    per_row = np.mean((errors**2 * trained["n_rows"].to_numpy())[known])
    bounds: Any = (None, 0.0) if metric == "loss" else (None, 1.0)
    if metric == "score" and scenario.task == "classification":
        bounds = (0.0, 1.0)
    of_best = scores[table.index.get_loc(best)]
    if np.nanmax(of_best) >= bounds[1]:  # an area of 1, of few rows
        bounds = None
    in_time = scenario.kind == "time"
    eras = trained["era"].to_numpy() if in_time else None
    ways: dict[str, tuple[dict, Any]] = {
        FORECAST: ({}, errors),
        BOUNDED: ({"bounds": bounds}, errors),
        NO_TREND: ({"trend": "none"}, errors),
        NO_ERRORS: ({}, None),
        UNCORRECTED: ({}, errors),
    }
    of_set = {"kind": scenario.kind, "sd": float(np.nanstd(of_best, ddof=1))}

    def check(way: str, mean: float, level: float, era: Any, ends: Any) -> dict:
        low, high = ends
        cell = {"way": way, "era": era.era, "gap": era.value - mean, "level": level}
        found = {"inside": low <= era.value <= high, "width": high - low}
        return {**of_set, **cell, **found}

    for way, (parameters, given) in ways.items():
        of = of_best if way == UNCORRECTED else scores
        forecast = EraScoreForecast(**parameters).fit(of, given, eras)
        for era, level in product(test.itertuples(), LEVELS):
            ahead = int(era.era - trained["era"].max()) if in_time else 1
            error = None if given is None else np.sqrt(per_row / era.n_rows)
            ends = forecast.interval(level, horizon=ahead, standard_error=error)
            yield check(way, forecast.mean_, level, era, ends)
    for level in LEVELS:
        for way, ends in _plug_in(of_best, level).items():
            for era in test.itertuples():
                yield check(way, float(np.nanmean(of_best)), level, era, ends)


draw = bars("way", "model", "level", part=ALL, cell="score", of="inside")


def run(
    data_dir: Path | None,
    n_runs: int,
    quick: bool,
    cache: Path | None = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Measure both parts; `quick` has one size, and a split of two scenarios. See
    `tabulate`.
    """
    check_files(data_dir)
    scenarios = QUICK if quick else SCENARIOS | FRESH
    options: dict[str, Any] = {"quick": quick, "cache": cache, "n_jobs": n_jobs}
    rows = collect(scenarios, data_dir=data_dir, **options)
    return tabulate(simulate(n_runs, quick, n_jobs), forecast_all(rows))


def tabulate(drawn: pd.DataFrame, natural: pd.DataFrame) -> pd.DataFrame:
    """Mean shares inside, in %, widths and gaps, a row for each cell and number. Widths
    of drawn scores are in those of the oracle. Those of natural ones, and how far
    scores are above what was expected, are in standard deviations of the scores in
    training; sets, which are the runs, count the same.
    """
    by = ["part", "cell", "model", "way", "level"]
    sizes = {name: natural[name] / natural["sd"] for name in ("width", "gap")}
    natural = natural.assign(cell=natural["metric"], **sizes)
    of_set = natural.groupby(["kind", "scenario", *by[1:]], sort=False)
    means = of_set[["inside", "width", "gap"]].mean().reset_index()
    parts = [means.assign(part=means[name]) for name in ("kind", "scenario")]
    rows = pd.concat([drawn, means.assign(part=ALL), *parts], ignore_index=True)
    rows["inside"] = 100.0 * rows["inside"].astype(float)
    rows["level"] = [f"{level:.0%}" for level in rows["level"]]
    rows = rows.melt(by, ["inside", "width", "gap"], var_name="of").dropna()
    return summarize(rows, by=[*by, "of"])


def show(frame: pd.DataFrame) -> str:
    """The tables as text: drawn scores, then natural ones, and single sets."""
    is_drawn = frame["model"] == "none"
    is_set = frame["part"].isin([*SCENARIOS, *FRESH])
    drawn = frame[is_drawn].pivot_table(
        "mean", ["part", "cell"], ["of", "level", "way"], sort=False
    )
    natural = frame[~is_drawn & ~is_set].pivot_table(
        "mean", ["cell", "part", "way"], ["of", "level", "model"], sort=False
    )
    of_sets = frame[is_set & (frame["way"] == FORECAST) & (frame["of"] == "inside")]
    sets = of_sets.pivot_table("mean", "part", ["cell", "level", "model"], sort=False)
    tables = (drawn.round(2), natural.round(2), sets.round(0))
    return "\n\n".join(table.to_string() for table in tables)
