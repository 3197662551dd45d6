"""The eras of the validation file that are scored, and their predictions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_era._tables.parquet import ParquetColumns
from sklearn_era.numerai.data.dataset import era_number
from sklearn_era.numerai.data.feature_blocks import (
    EraRun,
    columns_missing_values,
    era_runs,
    open_columns,
    predict_block,
    read_blocks,
)
from sklearn_era.numerai.errors import (
    ConfigError,
    DataError,
    NothingToValidateError,
)
from sklearn_era.numerai.metrics.feature_exposure import feature_exposures
from sklearn_era.numerai.metrics.neutralization import neutralize_ranks
from sklearn_era.numerai.metrics.ranks import rank_normalize
from sklearn_era.numerai.metrics.scores import feature_neutral_corr

# The largest share of an era's rows without a target, or without the other model's
# prediction, as in Numerai's own scores.
MAX_MISSING_SHARE = 0.2


@dataclass(frozen=True)
class ScoredEra:
    """An era with known targets.

    Attributes
    ----------
    run : EraRun
        Its label, and where it lies in the file.
    targets : ndarray of shape (n_rows,), dtype=float64
        The targets of its rows; NaN where not known.
    """

    run: EraRun
    targets: NDArray[np.float64]

    @property
    def n_known(self) -> int:
        """How many of its rows have a target."""
        return int(np.count_nonzero(~np.isnan(self.targets)))


class EraPrediction(NamedTuple):
    """What a model makes of an era.

    Attributes
    ----------
    ranks : ndarray of shape (n_rows,), dtype=float64
        The ranks of the predictions of all rows of the era, those without a target too,
        as a submission has them; neutralized if that was asked for.
    fnc : float
        The feature neutral correlation; NaN where it is undefined or was not asked for.
    exposures : ndarray of shape (n_features,), dtype=float64
        The correlation of the ranks with each feature of the model.
    """

    ranks: NDArray[np.float64]
    fnc: float
    exposures: NDArray[np.float64]


@dataclass(frozen=True)
class PredictionPlan:
    """How the rows of each era are predicted, and what else is computed of them.

    Attributes
    ----------
    estimator : object
        The trained model.
    features : list of str
        Its features.
    fnc_features, neutralizers : list of str
        Those that FNC, and those that the neutralization takes out; empty for neither.
    proportion : float
        Of the neutralization.
    """

    estimator: Any
    features: list[str]
    fnc_features: list[str]
    neutralizers: list[str]
    proportion: float

    @property
    def columns(self) -> list[str]:
        """All columns that are read, the model's features first."""
        names = [*self.features, *self.fnc_features, *self.neutralizers]
        return list(dict.fromkeys(names))


def open_validation(path: Path, target: str, plan: PredictionPlan) -> ParquetColumns:
    """Open the file, once it is sure that it has the columns.

    Raises
    ------
    DataError
        If it is missing or damaged, or lacks columns.
    """
    columns = open_columns(path)
    known = set(columns.names)
    if target not in known:
        raise DataError(
            f"{path} has no column {target!r}, the target: is it of another version of "
            "the data?"
        )
    for what, names in (
        ("model features", plan.features),
        ("features for FNC", plan.fnc_features),
        ("features to neutralize by", plan.neutralizers),
    ):
        missing = [name for name in names if name not in known]
        if missing:
            raise DataError(
                f"{path} lacks {len(missing):,} of {len(names):,} {what} (first: "
                f"{missing[0]}): is it of another version of the data?"
            )
    return columns


def select_scored_eras(
    columns: ParquetColumns,
    path: Path,
    target: str,
    *,
    after_era: str | None,
    purge: int,
    notes: list[str],
) -> list[ScoredEra]:
    """Find the eras after the training and its purge whose targets are known.

    Parameters
    ----------
    columns : ParquetColumns
        The file.
    path : Path
        Its path.
    target : str
        The column of the target.
    after_era : str or None
        The last era of the training; None for all eras.
    purge : int
        How many eras after it to leave out.
    notes : list of str
        Gets a sentence where an era is left out that lacks some of its targets.

    Returns
    -------
    eras : list of ScoredEra
        In the order of the file, one at least.

    Raises
    ------
    ConfigError
        If `after_era` is no era.
    DataError
        If an era has no number, or none is left.
    """
    last_seen = None if after_era is None else era_number(after_era)
    if after_era is not None and last_seen is None:
        raise ConfigError(
            f"after_era = {after_era!r} is no era: write its number, such as '0574'."
        )
    try:
        targets = columns.read_numbers(target, "target")
    except ValueError as error:
        raise DataError(f"{path}: target {target!r} is not numeric.") from error
    if np.isinf(targets).any():
        raise DataError(
            f"{path}: target {target!r} is infinite in "
            f"{np.count_nonzero(np.isinf(targets)):,} rows; download it again."
        )
    runs = era_runs(columns, path)
    eras, too_few, n_later = [], [], 0
    for run in runs:
        number = era_number(run.label)
        if number is None:
            raise DataError(
                f"{path}: the era {run.label!r} is no number of four digits; is it a "
                "live file, which has no targets?"
            )
        if last_seen is not None and number <= last_seen + purge:
            continue
        n_later += 1
        era = ScoredEra(run, targets[run.start : run.stop])
        if era.n_known == 0:
            continue
        if era.n_known / era.targets.size < 1 - MAX_MISSING_SHARE:
            too_few.append(run.label)
            continue
        eras.append(era)
    if not eras:
        numbers = sorted(run.label for run in runs)
        after = f" after {after_era} and {purge} purged ones" if after_era else ""
        missing = f"; of {n_later} no rows, or too few, have it" if n_later else ""
        raise NothingToValidateError(
            f"{path} has no era{after} in which {target!r} is known{missing}. Its eras "
            f"are {numbers[0]} to {numbers[-1]}: train on earlier eras, or download a "
            "newer file."
        )
    if too_few:
        shown = ", ".join(too_few[:5]) + (", …" if len(too_few) > 5 else "")
        notes.append(
            f"{len(too_few)} eras were left out, as less than "
            f"{1 - MAX_MISSING_SHARE:.0%} of their rows have the target: {shown}."
        )
    return eras


def predict_eras(
    plan: PredictionPlan,
    columns: ParquetColumns,
    path: Path,
    eras: Sequence[ScoredEra],
    on_era: Callable[[int, int], None],
) -> Iterator[EraPrediction]:
    """Predict one era after the other; only one is in memory at a time.

    Raises
    ------
    DataError
        If the file is damaged, or features are missing or cannot be neutralized by.
    """
    names = plan.columns
    at = {name: j for j, name in enumerate(names)}
    fnc_at = [at[name] for name in plan.fnc_features]
    neutralizers_at = [at[name] for name in plan.neutralizers]
    blocks = read_blocks(columns, path, names, [era.run for era in eras])
    for i, (era, block) in enumerate(zip(eras, blocks, strict=True)):
        own = block[:, : len(plan.features)]
        linear = [*plan.fnc_features, *plan.neutralizers]
        _refuse_missing(block[:, [*fnc_at, *neutralizers_at]], linear, era, path)
        predictions = predict_block(plan.estimator, own, plan.features)
        ranks = rank_normalize(predictions)
        if plan.neutralizers and np.ptp(predictions) > 0:
            try:
                ranks = neutralize_ranks(
                    ranks, block[:, neutralizers_at], plan.proportion
                )
            except ValueError as error:
                raise DataError(f"{path}, era {era.run.label}: {error}") from error
        fnc = np.nan
        if plan.fnc_features:
            score = feature_neutral_corr(ranks, era.targets, block[:, fnc_at])
            assert isinstance(score, float)  # of one era
            fnc = score
        yield EraPrediction(ranks, fnc, _exposures(ranks, own))
        on_era(i + 1, len(eras))


def _refuse_missing(
    block: NDArray[Any], names: Sequence[str], era: ScoredEra, path: Path
) -> None:
    missing = columns_missing_values(block, names)
    if missing:
        first = next(iter(missing))
        raise DataError(
            f"{path}, era {era.run.label}: {sum(missing.values()):,} values of "
            f"{len(missing):,} features to neutralize by are missing (first: {first}). "
            "Choose others; linear regression knows no missing values."
        )


def _exposures(ranks: NDArray[np.float64], block: NDArray[Any]) -> NDArray[np.float64]:
    """Correlate with each feature; NaN for those that miss values in the era."""
    whole = np.ones(block.shape[1], dtype=bool)
    if block.dtype.kind == "f":
        whole = ~np.isnan(block).any(axis=0)
    exposures = np.full(block.shape[1], np.nan)
    if whole.any():
        used = block if whole.all() else block[:, whole]
        exposures[whole] = feature_exposures(ranks, used)
    return exposures


__all__ = [
    "MAX_MISSING_SHARE",
    "EraPrediction",
    "PredictionPlan",
    "ScoredEra",
    "open_validation",
    "predict_eras",
    "select_scored_eras",
]
