"""Whether the score of the next era is where `EraScoreForecast` expects it.

The protocol, which was written before anything was measured. Scores are predicted of
eras that nothing was fitted to, as intervals of 80 and 95 %; the goal is that 75 to
85 % and 92 to 98 % of them have the score.

Simulated eras: M = 5, 10, 30 scores of means that are normal with the standard
deviation `spread`, measured with errors whose squares are gamma around 1, or without
errors; one more is predicted. As groups without an order, and as eras in time of which
the forecast has to find out that they are independent; further, in time, an AR(1) of
rho = 0.7 and a slope of a third of the spread an era, without errors. The share inside
is to be within two points of the nominal one. Widths are in those of the oracle, who
knows m, the spread and, of an AR(1) or a slope, these.

Natural eras: all sets and splits of natural_eras that defaults were chosen on, or fresh.
Everything is nested: the scores are those of the training eras, out of era by the folds
of `EraSearchCV`, and the eras predicted are the test eras, scored with a model of all
training eras. Models are the plain booster; the best of six by the mean over eras of
the score in question, each score corrected for it; and AutoEra. Scores are R² or the
area under the ROC curve, as the task is, of eras with at least 30 rows, and 5 of each
class; and mean squared errors or log losses. Sampling errors are by the jackknife; that
of a test era is taken from its number of rows. Sets count the same, however many eras
they have. Two variants are measured, with and without `bounds`, and that without is the
default. Beside them stand the forecast without a trend, without sampling errors, and
the mean ± 1.96 sd / sqrt(M) and mean ± 1.96 sd of those who do without one.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from experiments._natural_eras_controls import TunedByEras, losses, predict
from experiments._natural_eras_data import Scenario, Task
from experiments._natural_eras_measure import _adapt, score_rows, splits, thinned
from experiments.common import COLORS, ExperimentError, seed_of
from experiments.natural_eras import DATA_FILES, FRESH, MODELS, SCENARIOS, booster
from sklearn_era.metrics import EraScoreForecast, era_standard_errors

TITLE = "Scores of the next era inside their intervals, in %"
# Of simulated forecasts, in hundreds.
N_RUNS = 20

LEVELS = (0.8, 0.95)
SIZES = (5, 10, 30)
SPREADS = (0.0, 0.5, 1.0, 4.0, np.inf)
FORECAST = "forecast"
OF_MEAN, OF_ERAS = "mean ± z sd / sqrt(M)", "mean ± z sd"
BOUNDED, NO_TREND = "forecast, with bounds", "forecast, trend='none'"
NO_ERRORS, UNCORRECTED = "forecast, no errors", "forecast, choice not corrected"
PLAIN, TUNED, AUTO = "plain", "tuned", "AutoEra"
# The plain model first.
GRID = [
    {"max_leaf_nodes": leaves, "learning_rate": rate}
    for rate in (0.1, 0.05)
    for leaves in (31, 15, 8)
]
OUT_OF_ERA, TEST = "out of era", "test"
METRICS = ("score", "loss")
_COLUMNS = ["scenario", "split", "model", "candidate", "part", "metric", "era", "n_rows",
            "value", "error"]  # fmt: skip

Values = NDArray[np.float64]


def _plug_in(scores: Values, level: float) -> dict[str, tuple[float, float]]:
    """Intervals of those who take the spread, or the mean's error, for known."""
    scores = scores[np.isfinite(scores)]
    mean, half = scores.mean(), norm.isf((1 - level) / 2) * scores.std(ddof=1)
    error = half / np.sqrt(scores.size)
    return {
        OF_MEAN: (mean - error, mean + error),
        OF_ERAS: (mean - half, mean + half),
    }


def _simulate(kind: str, n_eras: int, spread: float, seed: int) -> Iterator[dict]:
    """Draw a hundred times, and say which intervals have the last score."""
    rng = np.random.default_rng(seed)
    times = np.arange(n_eras + 1)
    rho, slope = {"AR(1)": (0.7, 0.0), "slope": (0.0, 1 / 3)}.get(kind, (0.0, 0.0))
    has_errors = np.isfinite(spread)
    for _ in range(100):
        errors = np.sqrt(rng.gamma(4, 1 / 4, n_eras + 1)) * has_errors
        effects = rng.normal(size=n_eras + 1)
        for era in times[1:]:
            effects[era] *= np.sqrt(1 - rho**2)
            effects[era] += rho * effects[era - 1]
        scores = (spread if has_errors else 1.0) * effects + slope * times
        known_to_oracle = np.hypot(
            (spread if has_errors else 1.0) * np.sqrt(1 - rho**2), errors[-1]
        )
        scores += errors * rng.normal(size=n_eras + 1)
        labels = None if kind == "groups" else times[:-1]
        given = errors[:-1] if has_errors else None
        forecast = EraScoreForecast().fit(scores[:-1], given, labels)
        for level in LEVELS:
            ends = {FORECAST: forecast.interval(level, standard_error=errors[-1])}
            ends |= _plug_in(scores[:-1], level)
            oracle = 2 * norm.isf((1 - level) / 2) * known_to_oracle
            for way, (low, high) in ends.items():
                yield {
                    "part": kind, "n_eras": n_eras, "spread": spread, "way": way,
                    "level": level, "inside": low <= scores[-1] <= high,
                    "width": (high - low) / oracle,
                }  # fmt: skip


def simulate(n_runs: int, n_jobs: int | None = None) -> pd.DataFrame:
    """Shares inside and mean widths, a row for each cell, way and level."""
    cells = [(k, m, s) for k in ("groups", "time") for m in SIZES for s in SPREADS]
    cells += [(kind, m, np.inf) for kind in ("AR(1)", "slope") for m in SIZES]
    calls = (
        delayed(lambda *x: list(_simulate(*x)))(
            *cell, seed_of("next era", *map(str, cell), i)
        )
        for cell in cells
        for i in range(n_runs)
    )
    rows = pd.DataFrame([row for found in Parallel(n_jobs)(calls) for row in found])
    by = ["part", "n_eras", "spread", "way", "level"]
    table = rows.groupby(by, sort=False)[["inside", "width"]].mean().reset_index()
    return table.assign(inside=100 * table["inside"])


def _score(task: Task, metric: str, y: Values, p: Values) -> float:
    is_score = metric == "score"
    return score_rows(task, y, p) if is_score else float(losses(task, y, p).mean())


def _by_era(
    task: Task, y: Values, p: Values, eras: NDArray, with_errors: bool, **cell: Any
) -> Iterator[dict]:
    """Scores of the eras by each metric, and the errors if they are wanted."""
    for metric in METRICS:

        def score(y: Values, p: Values, metric: str = metric) -> float:
            return _score(task, metric, y, p)

        labels, n_rows = np.unique(eras, return_counts=True)
        values = [score(y[eras == era], p[eras == era]) for era in labels]
        errors = np.full(labels.size, np.nan)
        if with_errors:
            errors = era_standard_errors(y, p, eras=eras, metric=score)
        for row in zip(labels, n_rows, values, errors, strict=True):
            named = zip(("era", "n_rows", "value", "error"), row, strict=True)
            yield {**cell, "metric": metric, **dict(named)}


class _Split:
    """A split of a scenario: rows to train on, in folds of whole eras, and to test."""

    def __init__(self, name: str, scenario: Scenario, split: int, data_dir: Any,
                 quick: bool) -> None:  # fmt: skip
        self.X, self.y, self.eras, self.categories = scenario.load(data_dir)
        self.task, self.is_of_groups = scenario.task, scenario.kind == "groups"
        train, self.test = list(splits(scenario, self.eras))[split]
        self.seed = seed_of("natural eras", name, split, 0)
        most = 1_000 if quick else scenario.most_rows
        self.train = thinned(train, self.eras, most, self.seed)
        self.labels = self.eras.astype(str) if self.is_of_groups else self.eras
        labels = self.labels[self.train]
        folds = TunedByEras(self.task, None, {})._folds(labels)
        self.folds = [
            (self.train[fitted], self.train[left_out])
            for fitted, left_out in folds.split(labels, groups=labels)
        ]
        self.out = np.concatenate([left_out for _, left_out in self.folds])
        self.cell = {"scenario": name, "split": split}

    def fit(self, model: Any, rows: Any) -> Any:
        labels = self.labels[rows]
        _adapt(model, labels, self.is_of_groups, self.categories)
        return model.fit(self.X[rows], self.y[rows], eras=labels)

    def scores(
        self, p: Values, rows: Any, with_errors: bool, **cell: Any
    ) -> list[dict]:
        y, eras = self.y[rows], self.eras[rows]
        return [*_by_era(self.task, y, p, eras, with_errors, **self.cell, **cell)]

    def of_fitted(self, fitted: Any, p: Values, **cell: Any) -> list[dict]:
        """Scores of what was predicted out of era, and of the test eras."""
        of_test = predict(self.task, fitted, self.X[self.test])
        return [
            *self.scores(p, self.out, True, part=OUT_OF_ERA, **cell),
            *self.scores(of_test, self.test, True, part=TEST, **cell),
        ]

    def of_auto(self) -> list[dict]:
        model = self.fit(MODELS["AutoEra"](self.task, self.seed), self.train)
        left = model._left_out
        codes = np.unique(self.eras[self.out], return_inverse=True)[1]
        np.testing.assert_array_equal(left["codes"], codes)
        parts = left["predicted"].items()
        p = np.sum([model.weights_[x] * each[-1] for x, each in parts], axis=0)
        if self.task == "classification":  # of the class that the row has
            p = np.where(self.y[self.out] == 1, p, 1 - p)
        return self.of_fitted(model, p, model=AUTO, candidate=0)

    def of_grid(self) -> list[dict]:
        """Scores of all candidates out of era, and of the best ones in test eras."""
        tables, found, best = [], [], {0}
        for parameters in GRID:
            model = booster(**parameters)(self.task, self.seed)
            parts = [
                predict(self.task, self.fit(model, fitted), self.X[left_out])
                for fitted, left_out in self.folds
            ]
            tables.append(np.concatenate(parts))
        for number, p in enumerate(tables):
            cell = {"model": TUNED, "candidate": number, "part": OUT_OF_ERA}
            found.append(self.scores(p, self.out, False, **cell))
        for metric, sign in {"score": 1, "loss": -1}.items():
            means = [
                np.nanmean([sign * x["value"] for x in rows if x["metric"] == metric])
                for rows in found
            ]
            best.add(int(np.argmax(means)))
        for number in best:
            model = booster(**GRID[number])(self.task, self.seed)
            cell = {"model": TUNED, "candidate": number}
            found[number] = self.of_fitted(
                self.fit(model, self.train), tables[number], **cell
            )
        return [row for rows in found for row in rows]


def _measure(
    auto: bool, name: str, scenario: Scenario, split: int, data_dir: Path | None,
    quick: bool, cache: Path | None,
) -> list[dict] | str:  # fmt: skip
    """Scores by era, which are added to the cache, or why there are none."""
    try:
        rows = _Split(name, scenario, split, data_dir, quick)
    except ExperimentError as error:
        return f"{name} is left out. {error}"
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # as natural_eras does
        found = rows.of_auto() if auto else rows.of_grid()
    if cache is not None:
        frame = pd.DataFrame(found)[_COLUMNS]
        frame.to_csv(cache, mode="a", header=False, index=False)
    return found


def collect(
    scenarios: dict[str, Scenario],
    *,
    data_dir: Path | None,
    quick: bool = False,
    cache: Path | None = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Scores by era of all models; those in the cache are not measured again."""
    known = pd.DataFrame(columns=_COLUMNS)
    if cache is not None:
        if not cache.is_file():
            known.to_csv(cache, index=False)
        known = pd.read_csv(cache)
    done = {
        *zip(known["scenario"], known["split"], known["model"] == AUTO, strict=True)
    }
    calls = (
        delayed(_measure)(auto, name, scenario, split, data_dir, quick, cache)
        for auto in (False, True)
        for name, scenario in scenarios.items()
        for split in range(1 if quick else scenario.n_splits)
        if (name, split, auto) not in done
    )
    parts = [known]
    for found in Parallel(n_jobs)(calls):
        if isinstance(found, str):
            warnings.warn(found, stacklevel=1)
        else:
            parts.append(pd.DataFrame(found)[_COLUMNS])
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def forecast_all(rows: pd.DataFrame) -> pd.DataFrame:
    """Intervals of test eras, a row for each way and level, and whether they hold."""
    tables = []
    grid = rows[rows["model"] == TUNED]
    parts = {PLAIN: grid[grid["candidate"] == 0], TUNED: grid}
    parts[AUTO] = rows[rows["model"] == AUTO]
    for model, part in parts.items():
        for (name, split, metric), own in part.groupby(["scenario", "split", "metric"]):
            scenario = (SCENARIOS | FRESH)[name]
            cell = {"scenario": name, "split": split, "model": model, "metric": metric}
            tables += [
                {**cell, **row} for row in _forecast_split(scenario, metric, own)
            ]
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
    bounds = (None, 0.0) if metric == "loss" else (None, 1.0)
    if metric == "score" and scenario.task == "classification":
        bounds = (0.0, 1.0)
    in_time = scenario.kind == "time"
    eras = trained["era"].to_numpy() if in_time else None
    ways: dict[str, tuple[dict, Any]] = {
        FORECAST: ({}, errors), BOUNDED: ({"bounds": bounds}, errors),
        NO_TREND: ({"trend": "none"}, errors), NO_ERRORS: ({}, None),
        UNCORRECTED: ({}, errors),
    }  # fmt: skip
    of_best = scores[table.index.get_loc(best)]
    for way, (parameters, given) in ways.items():
        of = of_best if way == UNCORRECTED else scores
        forecast = EraScoreForecast(**parameters).fit(of, given, eras)
        for era in test.itertuples():
            options = {
                "horizon": int(era.era - trained["era"].max()) if in_time else 1,
                "standard_error": None
                if given is None
                else np.sqrt(per_row / era.n_rows),
            }
            cell = {"way": way, "era": era.era, "kind": scenario.kind}
            cell["gap"] = era.value - forecast.mean_
            cell["sd"] = float(np.nanstd(of_best, ddof=1))
            for level in LEVELS:
                low, high = forecast.interval(level, **options)
                inside = low <= era.value <= high
                yield {**cell, "level": level, "inside": inside, "width": high - low}
    for level in LEVELS:
        for way, (low, high) in _plug_in(of_best, level).items():
            for era in test.itertuples():
                yield {
                    "way": way, "era": era.era, "kind": scenario.kind, "level": level,
                    "inside": low <= era.value <= high, "width": high - low,
                    "sd": float(np.nanstd(of_best, ddof=1)),
                    "gap": era.value - float(np.nanmean(of_best)),
                }  # fmt: skip
