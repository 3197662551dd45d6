"""How a trained model does in the eras after its own, era by era."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era.metrics import EraScores, aggregate_era_scores
from sklearn_era.numerai.data.dataset import (
    META_MODEL_COLUMN,
    read_column_names,
    read_columns,
    read_ids,
)
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.metrics.scores import correlation_contribution, numerai_corr
from sklearn_era.numerai.validation.eras import (
    MAX_MISSING_SHARE,
    PredictionPlan,
    ScoredEra,
    open_validation,
    predict_eras,
    select_scored_eras,
)

# Of a mean CORR, less two standard errors. Those of good models are from 0.005 to 0.04;
# beyond this, it is likelier that the model has seen the targets.
_SUSPICIOUS_CORR = 0.1

# Of a metric: mean, std, sharpe, max_drawdown and n_eras; None where undefined.
Summary = dict[str, float | int | None]

# The smaller, the better: of these a Sharpe ratio or a drawdown would mean nothing.
_ERRORS = frozenset({"max_feature_exposure"})


@dataclass(frozen=True)
class ValidationResult:
    """Scores of a model in the validation eras.

    Attributes
    ----------
    target : str
        The target that it was scored on.
    scores : dict of str to EraScores
        By metric: "corr"; "mmc", "bmc" and "fnc" as far as they could be computed; and
        "max_feature_exposure". Eras are sorted by their number.
    summary : dict of str to dict
        By metric: "mean", "std" (``ddof=0``), "sharpe" (mean / std, not annualised),
        "max_drawdown" (of the running sum of scores, 0 or more) and "n_eras", the eras
        with a defined score, of which the others are. None where undefined; of
        "max_feature_exposure", which should be small, Sharpe ratio and drawdown are.
    skipped : dict of str to str
        For each metric that is not in `scores`, a sentence that says why.
    notes : list of str
        What is worth knowing of the scores: suspiciously high ones, eras left out.
    exposures : dict of str to float
        For each of the model's features, the mean over eras of the correlation with the
        ranked predictions; NaN where it is constant in all of them. The largest in size
        come first.
    n_rows : int
        Rows that were scored.
    neutralize_proportion : float
        The proportion of the exposure to features that was taken out before scoring.
    """

    target: str
    scores: dict[str, EraScores]
    summary: dict[str, Summary]
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    exposures: dict[str, float] = field(default_factory=dict)
    n_rows: int = 0
    neutralize_proportion: float = 0.0


def validate(
    estimator: Any,
    *,
    validation: Path,
    features: Sequence[str],
    target: str,
    after_era: str | None,
    purge: int,
    meta_model: Path | None = None,
    benchmark_models: Path | None = None,
    benchmark_column: str | None = None,
    fnc_features: Sequence[str] | None = None,
    neutralize_proportion: float = 0.0,
    neutralize_features: Sequence[str] | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> ValidationResult:
    """Score a trained model in each era of the validation file.

    The eras that are scored are those after `after_era` and the `purge` eras that
    follow it, in which the target is known. An era with a target in less than 80 % of
    its rows is left out. Of the others all rows are predicted, ranked and neutralized,
    as in a submission, and those with a target are scored. The file is read an era at a
    time, and features stay int8.

    CORR, FNC, MMC and BMC are those of :mod:`sklearn_era.numerai.metrics`; a feature's
    exposure is its correlation with the ranks of the predictions.

    Parameters
    ----------
    estimator : HistGradientBoostingRegressor
        The trained model.

    validation : Path
        The validation file, or another with numbered eras. The rows of an era have to
        lie together.

    features : sequence of str
        The model's features, in the order of its training.

    target : str
        The target to score on, by its own name.

    after_era : str or None
        The last era that the model was trained on, ``"0574"`` for one. None scores all
        eras of the file, for a model that has seen none of them.

    purge : int
        How many eras after `after_era` to leave out: their targets overlap those of the
        training. Eras count by their numbers, whether or not the file has them all.

    meta_model : Path, default=None
        The file with the meta model's predictions, for MMC.

    benchmark_models : Path, default=None
        The file with the benchmark models' predictions, for BMC.

    benchmark_column : str, default=None
        Which of them.

    fnc_features : sequence of str, default=None
        The features that FNC takes out of the predictions. None leaves FNC out.

    neutralize_proportion : float, default=0.0
        Share of the linear exposure to `neutralize_features` to take out of the
        predictions of each era before scoring, from 0 to 1, as for live predictions.

    neutralize_features : sequence of str, default=None
        None: the model's.

    on_progress : callable, default=None
        ``on_progress(stage, n_done, n_all)``, after each era.

    Returns
    -------
    result : ValidationResult

    Raises
    ------
    ConfigError
        If a number is out of its range, or `after_era` is no era.
    DataError
        If a file is missing or damaged, lacks columns, has no era to score, or has
        missing values where the metrics do not allow any.
    """
    if purge < 0:
        raise ConfigError(f"purge = {purge} must not be negative.")
    if not 0 <= neutralize_proportion <= 1:
        raise ConfigError(
            f"neutralize_proportion = {neutralize_proportion:g} must be from 0 to 1."
        )
    if not features:
        raise ConfigError("features is empty: name the model's features.")
    names = list(features)
    plan = PredictionPlan(
        estimator,
        names,
        fnc_features=list(fnc_features or ()),
        neutralizers=list(neutralize_features or names)
        if neutralize_proportion
        else [],
        proportion=neutralize_proportion,
    )
    notes: list[str] = []
    columns = open_validation(validation, target, plan)
    eras = select_scored_eras(
        columns, validation, target, after_era=after_era, purge=purge, notes=notes
    )

    def on_era(n_done: int, n_all: int) -> None:
        if on_progress is not None:
            on_progress("validation eras", n_done, n_all)

    predicted = list(predict_eras(plan, columns, validation, eras, on_era))
    ranks = [one.ranks for one in predicted]
    exposures = np.array([one.exposures for one in predicted])

    corr = [numerai_corr(x, era.targets) for x, era in zip(ranks, eras, strict=True)]
    scores = {"corr": _by_era(eras, corr)}
    skipped: dict[str, str] = {}
    for metric, path, column, what in (
        ("mmc", meta_model, META_MODEL_COLUMN, "meta model's file"),
        ("bmc", benchmark_models, benchmark_column, "benchmark models' file"),
    ):
        skipped[metric] = _reason_to_skip(path, column, what)
        if not skipped[metric] and path is not None and column is not None:
            found = _contributions(validation, path, column, eras, ranks)
            if found is None:
                skipped[metric] = f"{path} has none of the eras that were scored."
                continue
            scores[metric] = found
            if found.eras.size < len(eras):
                notes.append(
                    f"{metric} is of {found.eras.size} of the {len(eras)} eras: those "
                    f"that {path.name} has."
                )
    if plan.fnc_features:
        scores["fnc"] = _by_era(eras, [one.fnc for one in predicted])
    else:
        skipped["fnc"] = "no features to neutralize by were named."
    # Of NaN alone, `fmax` makes NaN, and does not warn as `nanmax` does.
    largest = np.fmax.reduce(np.abs(exposures), axis=1)
    scores["max_feature_exposure"] = _by_era(eras, largest)
    summary = {metric: summarize(scores[metric], metric) for metric in scores}
    return ValidationResult(
        target=target,
        scores=scores,
        summary=summary,
        skipped={metric: reason for metric, reason in skipped.items() if reason},
        notes=notes + _remarks(scores, summary),
        exposures=_mean_exposures(exposures, names),
        n_rows=sum(era.n_known for era in eras),
        neutralize_proportion=float(neutralize_proportion),
    )


def summarize(scores: EraScores, metric: str = "corr") -> Summary:
    """Sum up the scores of eras.

    Parameters
    ----------
    scores : EraScores
        One score an era, in the order of the eras. NaN is left out.

    metric : str, default="corr"
        What they are scores of; see `ValidationResult`.

    Returns
    -------
    summary : dict
        "mean", "std", "sharpe", "max_drawdown" and "n_eras", as
        :func:`~sklearn_era.metrics.aggregate_era_scores` defines them; None where
        undefined.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.metrics import EraScores
    >>> from sklearn_era.numerai.validation.scoring import summarize
    >>> scores = np.array([0.02, -0.01, 0.05])
    >>> eras, n_rows = np.array(["0001", "0002", "0003"]), np.array([5, 5, 5])
    >>> summary = summarize(EraScores(eras, scores, n_rows))
    >>> summary["n_eras"], round(summary["max_drawdown"], 3)
    (3, 0.01)
    """
    values = scores.scores[~np.isnan(scores.scores)]
    summary: Summary = dict.fromkeys(("mean", "std", "sharpe", "max_drawdown"))
    summary["n_eras"] = int(values.size)
    if values.size == 0:
        return summary
    summary["mean"] = aggregate_era_scores(values, "mean")
    std = summary["std"] = aggregate_era_scores(values, "std")
    if metric not in _ERRORS:
        summary["max_drawdown"] = aggregate_era_scores(values, "max_drawdown")
        if std > 0:
            summary["sharpe"] = aggregate_era_scores(values, "sharpe")
    return summary


def _by_era(
    eras: Sequence[ScoredEra], scores: Any, n_scored: Sequence[int] | None = None
) -> EraScores:
    """Put scores in the order of the labels, which is that of the numbers.

    Of `n_scored` rows, by default those that have a target.
    """
    labels = np.array([era.run.label for era in eras])
    order = np.argsort(labels)
    if n_scored is None:
        n_scored = [era.n_known for era in eras]
    n_samples = np.array(n_scored, dtype=np.intp)
    values = np.asarray(scores, dtype=np.float64)
    return EraScores(labels[order], values[order], n_samples[order])


def _reason_to_skip(path: Path | None, column: str | None, what: str) -> str:
    """Why another model's predictions are not there to compare with; "" if they are."""
    if path is None:
        return f"there is no {what}; download it to have it."
    if column is None:
        return f"no column of {path} was named."
    names = read_column_names(path)
    if column not in names:
        others = [name for name in names if name not in ("id", "era", "data_type")]
        return (
            f"{path} has no column {column!r}; it has "
            f"{', '.join(others[:5])}{', …' if len(others) > 5 else ''}."
        )
    return ""


def _contributions(
    validation: Path,
    path: Path,
    column: str,
    eras: Sequence[ScoredEra],
    ranks: Sequence[NDArray[np.float64]],
) -> EraScores | None:
    """Compute the contribution to another model, matched by id.

    Returns
    -------
    scores : EraScores or None
        Of the eras of which 80 % of the rows are in the file and have a target; None if
        there is none.
    """
    other = read_columns(path, [column])[column]
    if not other.index.is_unique:
        twice = other.index[other.index.duplicated()][0]
        raise DataError(
            f"{path} has the id {twice!r} more than once: remove it, and download it "
            "again."
        )
    if other.dtype.kind not in "fiu":
        raise DataError(f"{path}: column {column!r} holds no numbers.")
    ids = np.asarray(read_ids(validation), dtype=object)
    covered, scores, n_scored = [], [], []
    for era, own in zip(eras, ranks, strict=True):
        rows = ids[era.run.start : era.run.stop]
        values = other.reindex(rows).to_numpy(np.float64, na_value=np.nan)
        if np.isinf(values).any():
            raise DataError(
                f"{path}: column {column!r} is infinite in era {era.run.label}; remove "
                "it, and download it again."
            )
        n_both = int((~(np.isnan(values) | np.isnan(era.targets))).sum())
        if n_both / values.size >= 1 - MAX_MISSING_SHARE:
            covered.append(era)
            scores.append(correlation_contribution(own, values, era.targets))
            n_scored.append(n_both)
    return _by_era(covered, scores, n_scored) if covered else None


def _remarks(scores: dict[str, EraScores], summary: dict[str, Summary]) -> list[str]:
    """What is suspicious in the scores."""
    remarks = []
    mean, std, n_eras = (summary["corr"][x] for x in ("mean", "std", "n_eras"))
    # A few eras may have such a mean by chance.
    if (
        mean is not None
        and std is not None
        and n_eras
        and mean - 2 * std / np.sqrt(n_eras) > _SUSPICIOUS_CORR
    ):
        remarks.append(
            f"The mean CORR is {mean:.3f}, and those of good models are from 0.005 to "
            "0.04: look for a leak. Was the model trained on eras that it is scored "
            "on, or on a feature made of the target?"
        )
    for metric, one in scores.items():
        undefined = one.eras[np.isnan(one.scores)].tolist()
        if undefined:
            remarks.append(
                f"{metric} is undefined in {len(undefined)} of {one.eras.size} eras "
                f"({', '.join(undefined[:5])}{', …' if len(undefined) > 5 else ''}), "
                "where all predictions or all targets are equal or nothing of them is "
                "left."
            )
    return remarks


def _mean_exposures(
    exposures: NDArray[np.float64], names: Sequence[str]
) -> dict[str, float]:
    """Average over eras, and sort by size, NaN last."""
    defined = ~np.isnan(exposures)
    n_eras = defined.sum(axis=0)
    sums = np.where(defined, exposures, 0.0).sum(axis=0)
    means = np.where(n_eras > 0, sums / np.maximum(n_eras, 1), np.nan)
    order = np.argsort(-np.abs(means), kind="stable")
    return {names[j]: float(means[j]) for j in order}


__all__ = ["ValidationResult", "summarize", "validate"]
