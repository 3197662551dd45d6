"""Save and load fits, and predict the live era with blends of fits.

The files of a fit are ``<name>.era``, the estimator, and ``<name>.json``, its readable
record. Live features are never imputed or clipped: a live file is refused if it lacks
a feature, or has values that the training data did not have.
"""

import json
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
from numpy.typing import NDArray
from pydantic import Field, field_validator

from sklearn_era._files import make_folder, put_in_place
from sklearn_era._warnings import listed
from sklearn_era.model_files import ModelFileError, load_model, save_model
from sklearn_era.numerai import data
from sklearn_era.numerai.config import Model
from sklearn_era.numerai.errors import DataError, NoModelError, SubmissionError, warn
from sklearn_era.numerai.files import Record, file_sha256, plain, utc_now
from sklearn_era.numerai.metrics import gaussianize, neutralize_ranks, rank_normalize

DECIMALS = 12  # sums that differ by rounding only are ties on every machine
_LARGEST_VALUE = 4  # of Numerai's features
_ADVICE = "Restore it from a backup, or delete it to train again."


class ModelRecord(Record):
    """The record of a fit: its settings, its data and its result."""

    model_name: str = ""
    version: str = ""
    feature_set: str = ""
    target: str
    files: list[str] = Field(default_factory=list)
    era_bounds: tuple[str | None, str | None] = (None, None)  # as requested
    every_nth_era: int = 1
    era_offset: int = 0
    era_groups: int = 0
    random_state: int = 0
    estimator: str = "boosting"
    time_budget: float = 0.0
    purge_of_folds: int = 0  # in weeks, of an average
    parameters: dict[str, Any]
    first_era: str = ""  # trained, as the next one
    last_era: str = ""
    n_eras: int = 0
    n_rows: int = 0
    n_rows_without_target: int = 0
    features_with_missing: list[str] = Field(default_factory=list)
    data_fingerprint: str = ""  # a digest of rows, targets and eras
    source: str = ""  # of a fit for validation: a digest of where its rows are from
    values: list[float] = Field(default_factory=list)  # of all features, if few
    n_trees: int = 0  # before the fit; so are the next two
    n_trees_with_splits: int = 0
    last_tree_with_splits: int = 0
    weights: dict[str, float] = Field(default_factory=dict)  # of an average
    sha256: str
    created: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    features: list[str]  # last, as it is long

    @field_validator("parameters", mode="before")
    @classmethod
    def _as_json_has_them(cls, parameters: Any) -> Any:
        return json.loads(json.dumps(parameters, default=plain))


def save_fit(folder: Path, name: str, fit: Any, record: ModelRecord) -> ModelRecord:
    """Write a fit and its record, both or neither; return the completed record."""
    path, waiting = folder / f"{name}.era", folder / f"{name}.new.era"
    document = folder / f"{name}.json"
    make_folder(folder)
    # Temporary, of a killed process; others may be of a process that exports the model.
    for left in [*folder.glob(f".sklearn-era-*/{name}.*")]:
        shutil.rmtree(left.parent, ignore_errors=True)
    if waiting.exists():
        before = ModelRecord.read(document, advice=_ADVICE)
        if before is not None and before.sha256 == file_sha256(waiting):
            put_in_place(waiting, path)  # the last step of a killed run
    models = getattr(fit, "members_", {"": fit}).values()
    trees = [tree for x in models for (tree,) in getattr(x, "_predictors", ())]
    grown = [i for i, tree in enumerate(trees, 1) if len(tree.nodes) > 1]
    result: dict[str, Any] = {
        "weights": getattr(fit, "weights_", {}),
        "n_trees": len(trees),
        "n_trees_with_splits": len(grown),
        "last_tree_with_splits": max(grown, default=0),
    }
    versions = {"python": platform.python_version(), "platform": sys.platform}
    versions["pyarrow"] = pyarrow.__version__
    try:
        saved = save_model(fit, waiting, target=record.target, era="era")
        result |= {"sha256": file_sha256(waiting), "created": utc_now()}
        result["versions"] = versions | saved.versions
        record = record.model_copy(update=result)
        # From here on the record describes the waiting file; `load_fit` handles that.
        record.write(document)
        request_file(folder, name).unlink(missing_ok=True)
        put_in_place(waiting, path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error
    return record


def request_file(folder: Path, name: str) -> Path:
    """Return the path of the empty file that requests to train a fit again."""
    return folder / f"{name}.retrain"


def load_fit(folder: Path, name: str) -> tuple[Any, ModelRecord]:
    """Return a fit and its record; raise DataError if they do not belong together."""
    record = read_record(folder, name)
    path, waiting = folder / f"{name}.era", folder / f"{name}.new.era"
    # A process killed between the last two steps of `save_fit` left the model waiting.
    if waiting.is_file() and file_sha256(waiting) == record.sha256:
        path = waiting
    return load_estimator(path, record.sha256, " Train again with --restart."), record


def load_estimator(path: Path, sha256: str, advice: str = "") -> Any:
    """Return the model in a file; raise DataError if the file's sha256 differs."""
    try:
        if file_sha256(path) != sha256:
            raise DataError(f"{path} was changed or damaged: sha256 differs.{advice}")
        return load_model(path)[0]
    except ModelFileError as error:
        raise DataError(str(error)) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.{advice}") from error


def read_record(folder: Path, name: str) -> ModelRecord:
    """Return the record of a fit; raise NoModelError if there is none."""
    record = ModelRecord.read(folder / f"{name}.json", advice=_ADVICE)
    if record is None:
        text = "run 'sklearn-era numerai train'"
        raise NoModelError(f"{folder} has no fit {name!r}: {text}.")
    return record


@dataclass(frozen=True)
class WeightedFit:
    """A fit, the names of its features in order, and its weight in a blend."""

    estimator: Any
    features: list[str]
    weight: float = 1.0

    def predict(self, rows: pd.DataFrame) -> NDArray[np.float64]:
        """Return the fit's predictions for rows that have the columns `features`."""
        predictions = self.estimator.predict(rows[self.features])
        return np.asarray(predictions, dtype=np.float64)


@dataclass(frozen=True)
class Blend:
    """A weighted average of fits' ranks. Fits may differ in features and targets."""

    fits: Sequence[WeightedFit]

    @property
    def features(self) -> list[str]:
        """Return the features of all fits, each once."""
        return list(dict.fromkeys(x for part in self.fits for x in part.features))

    @property
    def shares(self) -> list[float]:
        """Return the weights of the fits, normalised to the sum 1."""
        total = sum(part.weight for part in self.fits)
        return [part.weight / total for part in self.fits]

    def combine(self, predictions: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Return the ranks of an era's rows. Rank by the predictions of the only fit
        or, if there are several, by the weighted mean of their gaussianized ranks.
        """
        if len(predictions) == 1:
            return rank_normalize(predictions[0])
        # In the pickle's order of products and sums, so that bits agree.
        total = np.zeros(predictions[0].size)
        for share, x in zip(self.shares, predictions, strict=True):
            total += share * gaussianize(rank_normalize(x))
        return rank_normalize(total.round(DECIMALS))

    def ranks(self, rows: pd.DataFrame) -> NDArray[np.float64]:
        """Return ranks in (0, 1) of an era's rows, by the fits' predictions."""
        return self.combine([part.predict(rows) for part in self.fits])


def load_blend(folder: Path, model: Model) -> tuple[Blend, list[ModelRecord]]:
    fits = [(*load_fit(folder, x.name), x.weight) for x in model.members]
    parts = [WeightedFit(fit, record.features, weight) for fit, record, weight in fits]
    return Blend(parts), [record for _, record, _ in fits]


def predict_live(
    blend: Blend, records: Sequence[ModelRecord], live: Path, version: str,
    neutralizers: Sequence[str] = (), proportion: float = 0.0,
) -> "pd.Series[float]":  # fmt: skip
    """Return the ranks of the live era's rows by id, neutralized by the columns
    `neutralizers`, if any. Raise DataError for values that training never had, and
    SubmissionError if a fit predicts the same value for all rows.
    """
    for trained in {record.version for record in records} - {version}:
        warn(
            f"The model was trained on {trained}, but the live data are {version}: "
            "features of the same name may differ in meaning. Train the model again."
        )
    data.check_parquet(live, live=True)
    features = blend.features
    frame = data.read_columns(live, list(dict.fromkeys([*features, *neutralizers])))
    data.EraFile(live).check_numeric([*frame])
    rows = frame[features]
    _check_values(rows, records)
    check_scale(rows, records, live)
    predictions = [part.predict(rows) for part in blend.fits]
    if (rows == rows.iloc[0]).all(axis=None):
        raise DataError(
            f"All {len(features):,} features that the model uses are constant in "
            f"{live}: download the file again."
        )
    for record, x in zip(records, predictions, strict=True):
        if not 0 < np.ptp(x) < np.inf:
            raise SubmissionError(
                f"The fit for {record.target} learned nothing: its predictions range "
                f"from {x.min():.6g} to {x.max():.6g}. Train the model again."
            )
    ranks = blend.combine(predictions)
    if neutralizers:
        text = "Live predictions cannot be neutralized by this feature set: {reason}."
        with data.decoding(live, text):
            by = frame[[*neutralizers]]
            ranks = neutralize_ranks(ranks, by, proportion=proportion)
    return frame[[]].assign(prediction=ranks)["prediction"]


def _check_values(live: pd.DataFrame, records: Sequence[ModelRecord]) -> None:
    """Raise DataError if a value is missing in a feature that had no missing values in
    training, or is outside of 0 to 4 in a feature whose values in training are not
    recorded. Trees would accept such values.
    """
    # A missing value is known if all fits with the feature had missing values.
    known = ({*x.features} - {*x.features_with_missing} for x in records)
    odd = live.isna() & live.columns.isin(set[str]().union(*known))
    unknown = set[str]().union(*(x.features for x in records if not x.values))
    odd |= ((live < 0) | (live > _LARGEST_VALUE)) & live.columns.isin(unknown)
    if names := live.columns[odd.any()].tolist():
        first = live.loc[odd[names[0]], names[0]].iloc[0]
        raise DataError(
            f"Live data have {odd.to_numpy().sum():,} values that training never had, "
            f"in {len(names):,} features ({listed(names)}; {names[0]} has "
            f"{first!s}): outside of 0 to {_LARGEST_VALUE}, or missing. Download the "
            "file again, or train on data with such values."
        )


def check_scale(
    frame: pd.DataFrame, records: Sequence[ModelRecord], path: Path
) -> None:
    """Raise DataError if a feature seems to have another scale than in training: if the
    features had few distinct values in training, and now one has another value.
    """
    for record in records:
        if not record.values:
            continue
        own = frame[[x for x in record.features if x in frame]]
        # The distinct values first: there are few, unless the scale is another.
        found = np.unique(rounded(own.to_numpy()))
        known = rounded(np.array(record.values))
        odd = found[~np.isin(found, known) & ~np.isnan(found)]
        if odd.size:
            has = (rounded(own.to_numpy()) == odd[0]).any(axis=0)
            raise DataError(
                f"{path}: feature {own.columns[has][0]!r} has the value {odd[0]:g}, "
                "but the features that the model learned from have the values "
                f"{listed(record.values, 20)}: use files of the same scale."
            )


def rounded(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers and booleans as they are, and floats as doubles with six
    decimals, in which float32 and float64 agree.
    """
    return values if values.dtype.kind in "biu" else values.astype(float).round(6)
