"""Scores of models and of others' predictions, era by era, in one table."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.metrics import EraScores, aggregate_era_scores
from sklearn_era.numerai import metrics
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.data import (
    META_MODEL_COLUMN,
    read_column_names,
    read_columns,
    read_ids,
)
from sklearn_era.numerai.eras import EraRun
from sklearn_era.numerai.errors import DataError, first_names
from sklearn_era.numerai.metrics.scores import MAX_MISSING_SHARE

EXAMPLE = "example predictions"
# Of an era's rows, those with a target and predictions: with fewer, it is not scored.
MIN_SHARE = 1 - MAX_MISSING_SHARE

# Of a mean CORR, less two standard errors: beyond, a model has likely seen the targets.
_SUSPICIOUS_CORR = 0.1
# The metrics, and why one is not there, if for nothing else.
_EXPOSURE = "max_feature_exposure"
_NO_PREDICTIONS = "there are no predictions to compare with in the eras scored."
_METRICS = {
    "corr": "",
    "mmc": _NO_PREDICTIONS,
    "bmc": _NO_PREDICTIONS,
    "fnc": "[validate] fnc_feature_set is ''.",
    _EXPOSURE: "it is of models that were trained here.",
}
# A row of others' predictions that has fewer of the eras would cut the table short.
_MIN_COVERAGE = 0.25

Way = Literal["hold-out", "walk-forward"]
# Of a metric: mean, std, sharpe, max_drawdown and n_eras; None where undefined.
Summary = dict[str, float | int | None]


class ScoredEra(NamedTuple):
    """An era of a file, and for each of its rows the target and others' predictions."""

    run: EraRun
    targets: NDArray[np.float64]
    others: dict[str, NDArray[np.float64]]


class Fold(NamedTuple):
    """Eras scored by the same fits, and the last era that these were trained on."""

    last_trained: str
    first: str
    last: str

    def has(self, era: str) -> bool:
        return self.first <= era <= self.last


@dataclass(frozen=True)
class ValidationResult:
    """A row of the table: `scores` by metric and `n_rows` are of the row's own eras,
    and `summary` is of those that all rows have.

    `skipped` says why a metric is not there, `notes` what is worth knowing; `exposures`
    are mean correlations with features, the largest in size first.
    """

    target: str
    way: Way
    folds: list[Fold]
    scores: dict[str, EraScores]
    summary: dict[str, Summary]
    skipped: dict[str, str]
    notes: list[str]
    exposures: dict[str, float]
    n_rows: int
    neutralize_proportion: float


class OtherModels:
    """Predictions of the meta model, a benchmark model and the example, as far as here.

    `columns` has them by the metric or the row of the table that they are for, and
    `skipped` why others are not there.
    """

    def __init__(self, workspace: Workspace, benchmark: str) -> None:
        self.columns: dict[str, Any] = {}
        self.skipped: dict[str, str] = {}
        for use, name, column in (
            ("mmc", "meta_model", META_MODEL_COLUMN),
            ("bmc", "validation_benchmark_models", benchmark),
            (EXAMPLE, "validation_example_preds", "prediction"),
        ):
            path = workspace.newest(name)
            if not column:
                self.skipped[use] = "[validate] benchmark is ''."
            elif path is None:
                self.skipped[use] = f"there is no {name} file; download it."
            elif column not in (known := read_column_names(path)):
                others = [x for x in known if x not in ("id", "era", "data_type")]
                self.skipped[use] = (
                    f"{path} has no column {column!r}; it has {first_names(others)}."
                )
            else:
                self.columns[use] = _read_predictions(path, column)

    def of_rows(self, path: Path) -> dict[str, NDArray[np.float64]]:
        """Their predictions for the rows of a file, matched by id; NaN where none."""
        pandas = import_optional("pandas", extra="numerai")
        ids = pandas.Index(read_ids(path) if self.columns else [])
        return {
            use: values.reindex(ids).to_numpy(np.float64, na_value=np.nan)
            for use, values in self.columns.items()
        }


def _read_predictions(path: Path, column: str) -> Any:
    values = read_columns(path, [column])[column]
    twice, problem = values.index[values.index.duplicated()], ""
    if twice.size:
        problem = f"the id {twice[0]!r} is there more than once"
    elif values.dtype.kind not in "fiu":
        problem = f"column {column!r} is not numeric"
    elif n_infinite := int(np.isinf(values).sum()):
        problem = f"column {column!r} is infinite in {n_infinite:,} rows"
    if problem:
        raise DataError(f"{path}: {problem}; remove it, and download it again.")
    return values


class Row:
    """A row of the table: by metric and era, a score and the number of rows scored."""

    def __init__(self) -> None:
        self.scores: dict[str, dict[str, tuple[float, int]]] = {"corr": {}}
        self._exposures: list[NDArray[np.float64]] = []

    @property
    def eras(self) -> set[str]:
        return set(self.scores["corr"])

    def add(
        self, era: ScoredEra, predictions: NDArray[np.float64], linear: NDArray[Any]
    ) -> None:
        """Score an era, if 80 % of its rows have all that it takes; FNC by `linear`."""
        n_rows, has = era.targets.size, ~np.isnan(predictions)
        x, y, label = predictions[has], era.targets[has], era.run.label
        n = np.count_nonzero(~np.isnan(y))
        if n / n_rows < MIN_SHARE:
            return
        self._put("corr", label, metrics.numerai_corr(x, y), n)
        for metric in sorted({"mmc", "bmc"} & era.others.keys()):
            other = era.others[metric][has]
            n_both = np.count_nonzero(~np.isnan(other + y))
            if n_both / n_rows >= MIN_SHARE:
                score = metrics.correlation_contribution(x, other, y)
                self._put(metric, label, score, n_both)
        if linear.size:
            linear = linear if has.all() else linear[has]
            self._put("fnc", label, metrics.feature_neutral_corr(x, y, linear), n)

    def add_exposures(
        self, label: str, ranks: NDArray[np.float64], block: NDArray[Any]
    ) -> None:
        """Correlate with each feature; NaN for those that miss values in the era."""
        exposures = np.full(block.shape[1], np.nan)
        whole = ~np.isnan(block).any(axis=0)
        if whole.any():
            used = block if whole.all() else block[:, whole]
            exposures[whole] = metrics.feature_exposures(ranks, used)
        self._exposures.append(exposures)
        # Of NaN alone, `fmax` makes NaN, and does not warn as `nanmax` does.
        largest = np.fmax.reduce(np.abs(exposures))
        self._put(_EXPOSURE, label, largest, self.scores["corr"][label][1])

    def _put(self, metric: str, label: str, score: Any, n: Any) -> None:
        self.scores.setdefault(metric, {})[label] = float(score), int(n)

    def mean_exposures(self, features: Sequence[str]) -> dict[str, float]:
        """Mean exposures over eras, the largest in size first, NaN last."""
        if not self._exposures:
            return {}
        exposures = np.array(self._exposures)
        n_eras = (~np.isnan(exposures)).sum(axis=0)
        means = np.nansum(exposures, axis=0) / np.where(n_eras, n_eras, np.nan)
        order = np.argsort(-np.abs(means), kind="stable")
        return {features[j]: float(means[j]) for j in order}


def make_results(
    rows: dict[str, Row],
    *,
    skipped: Mapping[str, str],
    notes: list[str],
    features: Sequence[str],
    **common: Any,
) -> dict[str, ValidationResult]:
    """The table: the model's row first, whose eras count, and which gets the notes."""
    model = rows["model"]
    eras, n_eras = model.eras, len(model.eras)
    for name, row in list(rows.items()):
        if len(row.eras) < _MIN_COVERAGE * n_eras:
            del rows[name]
            notes.append(
                f"{name} is not in the table: predictions are here for {len(row.eras)} "
                f"of the {n_eras} eras."
            )
    shared = set.intersection(*(row.eras for row in rows.values()))
    if len(shared) < n_eras:
        mean = summarize(_era_scores(model.scores["corr"]))["mean"]
        shown = "undefined" if mean is None else f"{mean:.4f}"
        notes.append(
            f"The summaries are of the {len(shared)} of {n_eras} eras that all rows "
            f"have. Over all {n_eras} eras, the model's mean CORR is {shown}."
        )
    for metric in ("mmc", "bmc"):
        if (n := len(model.scores.get(metric, eras))) < n_eras:
            notes.append(
                f"{metric.upper()} covers {n} of the {n_eras} eras: those for which "
                "predictions to compare with are here."
            )
    results = {}
    for name, row in rows.items():
        of = {metric: row.scores[metric] for metric in _METRICS if metric in row.scores}
        scores = {metric: _era_scores(by_era) for metric, by_era in of.items()}
        exposures = row.mean_exposures(features)
        remarks = _remarks(scores, of_model=bool(exposures))
        results[name] = ValidationResult(
            scores=scores,
            summary={x: summarize(_era_scores(of[x], shared), x) for x in of},
            skipped={x: skipped.get(x, _METRICS[x]) for x in _METRICS if x not in of},
            notes=[*notes, *remarks] if name == "model" else remarks,
            exposures=exposures,
            n_rows=int(scores["corr"].n_samples.sum()),
            **common,
        )
    return results


def summarize(scores: EraScores, metric: str = "corr") -> Summary:
    """Mean, std (ddof=0), Sharpe ratio, drawdown and number of the defined scores."""
    values = scores.scores[~np.isnan(scores.scores)]
    summary: Summary = dict.fromkeys(("mean", "std", "sharpe", "max_drawdown"))
    # The smaller, the better: a Sharpe ratio or a drawdown would mean nothing.
    for name in ("mean", "std") if metric == _EXPOSURE else summary:
        with suppress(ValueError):  # of no scores, or a Sharpe ratio of equal ones
            summary[name] = aggregate_era_scores(values, name)
    return summary | {"n_eras": values.size}


def _era_scores(
    of: Mapping[str, tuple[float, int]], eras: set[str] | None = None
) -> EraScores:
    """Scores in the order of the labels, which is that of the eras' numbers."""
    labels = sorted(of if eras is None else eras & of.keys())
    values = np.array([of[label] for label in labels], dtype=float).reshape(-1, 2)
    return EraScores(np.array(labels), values[:, 0], values[:, 1].astype(np.intp))


def _remarks(scores: Mapping[str, EraScores], *, of_model: bool) -> list[str]:
    """What is worth knowing of the scores; others' are not suspected of a leak."""
    remarks = []
    for metric, one in scores.items():
        undefined = one.eras[np.isnan(one.scores)].tolist()
        if undefined:
            remarks.append(
                f"{metric} is undefined in {len(undefined)} of {one.eras.size} eras "
                f"({first_names(undefined)}), where all predictions or all targets are "
                "equal, or nothing is left of them."
            )
    corr = scores["corr"].scores[~np.isnan(scores["corr"].scores)]
    # A few eras may have such a mean by chance.
    if of_model and corr.size:
        mean, error = corr.mean(), corr.std() / corr.size**0.5
        if mean - 2 * error > _SUSPICIOUS_CORR:
            remarks.append(
                f"The mean CORR is {mean:.3f}, and those of good models are from 0.005 "
                "to 0.04: look for a leak, such as a feature made of the target."
            )
    return remarks
