"""Score models and Numerai's published predictions by era, and tabulate the scores."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_era._warnings import listed
from sklearn_era.metrics import EraScoreForecast, EraScores
from sklearn_era.metrics._aggregation import aggregate
from sklearn_era.numerai import data, metrics
from sklearn_era.numerai.config import Workspace, horizon_of
from sklearn_era.numerai.errors import DataError

EXAMPLE = "example predictions"
MIN_SHARE = 1 - metrics.MAX_MISSING_SHARE  # of an era's rows, else no score
_SUSPICIOUS_CORR = 0.1  # a mean that exceeds it by two standard errors suggests a leak
# The metrics, and the default reason why one is missing.
_EXPOSURE = "max_feature_exposure"
_NO_PREDICTIONS = "there are no predictions to compare with in the scored eras."
_METRICS = {
    "corr": "",
    "mmc": _NO_PREDICTIONS,
    "bmc": _NO_PREDICTIONS,
    "fnc": "[validate] fnc_feature_set is ''.",
    _EXPOSURE: "it needs a model that was trained here.",
}
# The file of each use of others' predictions.
FILES = {
    "mmc": "meta_model", "bmc": "validation_benchmark_models",
    EXAMPLE: "validation_example_preds",
}  # fmt: skip
_LEAST_APART = 5  # eras without overlap for a forecast of a coming round
_MIN_COVERAGE = 0.25  # of the eras: summaries are over common ones

Way = Literal["hold-out", "walk-forward"]
# Mean, std, sharpe, max_drawdown and n_eras of a metric; None where undefined.
Summary = dict[str, float | int | None]


class ScoredEra(NamedTuple):
    """An era of a file: the targets of its rows, and other models' predictions."""

    run: data.EraRun
    targets: NDArray[np.float64]
    others: dict[str, NDArray[np.float64]]


class Fold(NamedTuple):
    """The eras `first` to `last`, scored by fits to the eras until `last_trained`."""

    last_trained: str
    first: str
    last: str

    def has(self, era: str) -> bool:
        return self.first <= era <= self.last


@dataclass(frozen=True)
class ValidationResult:
    """A row of the table, with its scores, notes and exposures."""

    target: str
    way: Way
    folds: list[Fold]
    scores: dict[str, EraScores]  # by metric, on the row's own eras
    summary: dict[str, Summary]  # on the eras that all rows have
    skipped: dict[str, str]  # reasons for missing metrics
    notes: list[str]
    exposures: dict[str, float]  # mean correlations with features, largest first
    n_rows: int  # in the row's own eras
    neutralize_proportion: float


def name_of_row(model_name: str, rows: Iterable[str]) -> str:
    """Return `model_name`, extended by " (model)" if another row has the same name."""
    return f"{model_name} (model)" if model_name in {*rows} - {"model"} else model_name


def read_others(
    workspace: Workspace, benchmark: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return (found, skipped), two dicts with keys of `FILES`: other models'
    predictions as Series by id, and the reasons why predictions are missing.
    """
    found, skipped = {}, {}
    columns = data.META_MODEL_COLUMN, benchmark, "prediction"
    for (use, name), column in zip(FILES.items(), columns, strict=True):
        path = workspace.newest(name)
        if not column:
            skipped[use] = "[validate] benchmark is ''."
        elif path is None:
            skipped[use] = f"there is no {name} file; download it."
        elif column not in (known := data.read_column_names(path)):
            others = [x for x in known if x not in ("id", "era", "data_type")]
            text = f"{path} has no column {column!r}; it has {listed(others)}."
            skipped[use] = text
        else:
            ids = data.read_columns(path, []).index
            if not ids.is_unique:
                raise DataError(f"{path} has duplicate ids: download it again.")
            found[use] = pd.Series(data.EraFile(path).read_numbers(column), index=ids)
    return found, skipped


def early_ends(eras: Mapping[str, ScoredEra]) -> list[str]:
    """Return a note on each file of predictions that ends before the last of `eras`."""
    notes, last = [], max(eras, default="")
    for use in eras[last].others if last else ():
        known = [x for x, era in eras.items() if not np.isnan(era.others[use]).all()]
        if known and (end := max(known)) < last:
            notes.append(
                f"{FILES[use]} ends with era {end}, before {last}: 'sklearn-era "
                f"numerai download --refresh {FILES[use]}' may have later eras."
            )
    return notes


class Row:
    """Collects one row of the table: scores of eras by metric, and exposures."""

    def __init__(self) -> None:
        # By metric: era, score and number of scored rows.
        self.scores: dict[str, list[tuple[str, float, int]]] = {x: [] for x in _METRICS}
        self._exposures: list[pd.Series[float]] = []

    def add(
        self, era: ScoredEra, predictions: NDArray[np.float64], linear: pd.DataFrame,
        features: pd.DataFrame | None,
    ) -> None:  # fmt: skip
        """Add an era's score by each metric whose inputs are known in at least 80 % of
        the era's rows. FNC is neutral to the columns of `linear`; exposures are
        correlations with the columns of `features`, if given.
        """
        has = ~np.isnan(predictions)
        x, y = predictions[has], era.targets[has]
        calls: dict[str, Any] = {"corr": (metrics.numerai_corr, y, x)}
        for metric in {"mmc", "bmc"} & era.others.keys():
            other = era.others[metric][has]
            calls[metric] = metrics.correlation_contribution, y, x, other
        if linear.size:
            fnc = partial(metrics.feature_neutral_corr, features=linear[has])
            calls["fnc"] = fnc, y, x
        if features is not None:
            whole = features.dropna(axis=1)  # exposures to the others are NaN
            found = pd.Series(np.nan, features.columns)
            if whole.size:
                found[whole.columns] = metrics.feature_exposures(predictions, whole)
            self._exposures.append(found)
            calls[_EXPOSURE] = lambda _: found.abs().max(), y
        for metric, (score, *given) in calls.items():
            n = int(np.count_nonzero(~np.isnan(sum(given))))
            if n / era.targets.size >= MIN_SHARE:
                self.scores[metric].append((era.run.label, float(score(*given)), n))

    def mean_exposures(self) -> dict[str, float]:
        """Return each feature's mean exposure, the largest first by absolute value."""
        means = pd.DataFrame(self._exposures).mean()
        by_size = means.sort_values(key=abs, ascending=False, kind="stable")
        return {str(feature): float(mean) for feature, mean in by_size.items()}


def make_results(
    rows: dict[str, Row], *, skipped: Mapping[str, str], notes: list[str], **common: Any
) -> dict[str, ValidationResult]:
    """Return the results by name of row, without rows that are scored in few of the
    eras. Append notes on the whole table to `notes`, which are the notes of the model's
    row. All rows have the fields `common`.
    """
    table: dict[str, dict[str, EraScores]] = {}
    n_eras = len(rows["model"].scores["corr"])
    for name, row in rows.items():
        n = sum(not np.isnan(score) for _, score, _ in row.scores["corr"])
        if name != "model" and n < _MIN_COVERAGE * n_eras:
            notes.append(f"{name} is left out: it covers {n} of the {n_eras} eras.")
            continue
        # Labels sort as the eras' numbers.
        table[name] = {}
        for metric, scored in row.scores.items():
            if scored:
                parts = map(np.array, zip(*sorted(scored), strict=True))
                greater = {metric: metric != _EXPOSURE}
                table[name][metric] = EraScores(*parts, directions=greater)
    model = table["model"]
    # A score that is undefined in one row would make means of different eras.
    shared = {metric: _in_all(table.values(), metric) for metric in _METRICS}
    shared = {metric: eras & shared["corr"] for metric, eras in shared.items()}
    if len(shared["corr"]) < n_eras:
        mean = summarize(model["corr"].scores)["mean"]
        shown = "undefined" if mean is None else f"{mean:.4f}"
        notes.append(
            f"The summaries cover the {len(shared['corr'])} of {n_eras} eras in which "
            f"all rows have a CORR. Over all {n_eras} eras, the model's mean CORR is "
            f"{shown}."
        )
    for metric in ("mmc", "bmc"):
        if metric in model and (n := model[metric].eras.size) < n_eras:
            notes.append(f"{metric.upper()} covers {n} of the {n_eras} eras.")
    results = {}
    for name, scores in table.items():
        exposures = rows[name].mean_exposures()
        remarks = _remarks(scores, of_model=bool(exposures))
        if exposures:
            remarks += coming_round(scores["corr"].scores, common["target"])
        absent = {x: why for x, why in _METRICS.items() if x not in scores}
        on_shared = {
            x: y.scores[np.isin(y.eras, [*shared[x]])] for x, y in scores.items()
        }
        results[name] = ValidationResult(
            scores=scores, exposures=exposures,
            summary={x: summarize(own, x) for x, own in on_shared.items()},
            skipped={x: skipped.get(x, why) for x, why in absent.items()},
            notes=[*notes, *remarks] if name == "model" else remarks,
            n_rows=int(scores["corr"].n_samples.sum()), **common,
        )  # fmt: skip
    return results


def _in_all(rows: Iterable[Mapping[str, EraScores]], metric: str) -> set[str]:
    """Return the eras whose score is known in all rows that have the metric."""
    found = (row[metric] for row in rows if metric in row)
    known = [{*x.eras[~np.isnan(x.scores)].tolist()} for x in found]
    return set.intersection(*known) if known else set()


def summarize(scores: NDArray[np.float64], metric: str = "corr") -> Summary:
    """Return mean, std (ddof=0), Sharpe ratio, drawdown, and number of known scores."""
    scores = scores[~np.isnan(scores)]
    summary: Summary = dict.fromkeys(("mean", "std", "sharpe", "max_drawdown"))
    # Sharpe ratio and drawdown make no sense for an error.
    for name in ("mean", "std") if metric == _EXPOSURE else [*summary]:
        with suppress(ValueError):  # the Sharpe ratio of equal scores
            if scores.size:
                summary[name] = aggregate(scores, np.arange(scores.size), name)
    return summary | {"n_eras": scores.size}


def coming_round(corr: NDArray[np.float64], target: str) -> list[str]:
    """Return a list with a note on the expected CORR of a coming round; [] if there are
    too few eras. The note averages forecasts without trend; each forecast is made from
    eras whose targets do not overlap.
    """
    step = -(-(horizon_of(target) or 20) // 5)
    parts = [x[np.isfinite(x)] for x in (corr[i::step] for i in range(step))]
    n_eras = min(part.size for part in parts)
    if n_eras < _LEAST_APART:
        return []
    fits = [EraScoreForecast(trend="none").fit(part) for part in parts]
    found = [(x.mean_, *x.interval(), x.probability_above(0.0)) for x in fits]
    mean, low, high, above = np.mean(found, axis=0)
    return [
        f"Expected CORR of a coming round: {mean:.4f} (80 % interval {low:.4f} to "
        f"{high:.4f}; above 0 with {above:.0%}), unless rounds drift away. Targets of "
        f"neighbouring eras overlap, so it is the mean of {step} forecasts, each by "
        f"every {step}th era, {n_eras} or more."
    ]


def _remarks(scores: Mapping[str, EraScores], *, of_model: bool) -> list[str]:
    """Return notes on undefined scores and, for a model, on a suspected leak."""
    remarks = []
    for metric, one in scores.items():
        undefined = one.eras[np.isnan(one.scores)].tolist()
        if undefined:
            remarks.append(
                f"{metric} is undefined in {len(undefined)} of {one.eras.size} eras "
                f"({listed(undefined)}), where all predictions or all targets are "
                "equal, or neutralization leaves nothing."
            )
    corr = scores["corr"].scores[~np.isnan(scores["corr"].scores)]
    # Few eras may have such a mean by chance.
    if of_model and corr.size:
        mean, error = corr.mean(), corr.std() / corr.size**0.5
        if mean - 2 * error > _SUSPICIOUS_CORR:
            remarks.append(
                f"The mean CORR is {mean:.3f}, but good models have 0.005 to 0.04: "
                "look for a leak, like a feature computed from the target."
            )
    return remarks
