"""Blends of fits, their predictions for the live era, and submission files.

Ranks of the fits are gaussianized, averaged, and ranked again, as the pickle of
``export`` does. Features are never imputed or clipped: live files that lack some, or
have values that no training had, are refused.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era._tables.columns import list_columns
from sklearn_era.numerai import data
from sklearn_era.numerai.config import Model
from sklearn_era.numerai.data import decoding, read_columns
from sklearn_era.numerai.errors import DataError, SubmissionError, first_names, warn
from sklearn_era.numerai.metrics import gaussianize, neutralize_ranks, rank_normalize
from sklearn_era.numerai.store import ModelRecord, load_fit

if TYPE_CHECKING:
    import pandas as pd

DECIMALS = 12  # sums that differ by rounding only are ties on every machine
_LARGEST_VALUE = 4  # of Numerai's features
_COLUMNS = ("prediction", "probability")  # of a submission
_ROUNDING = 1e-8  # beyond 0 or 1, which Numerai accepts


@dataclass(frozen=True)
class Part:
    """A fit, its features in order, and its weight."""

    estimator: Any
    features: list[str]
    weight: float = 1.0

    def predict(self, block: NDArray[Any], names: Sequence[str]) -> NDArray[np.float64]:
        """Predict the rows of a block; `names` are its columns, in any order."""
        pandas = import_optional("pandas", extra="numerai")
        X = pandas.DataFrame(block, columns=list(names), copy=False)[self.features]
        # An estimator fitted without names would warn of them.
        if not hasattr(self.estimator, "feature_names_in_"):
            X = X.to_numpy()
        return np.asarray(self.estimator.predict(X), dtype=np.float64)


@dataclass(frozen=True)
class Blend:
    """A weighted average of the ranks of fits with any features and targets."""

    parts: Sequence[Part]

    @property
    def features(self) -> list[str]:
        """The features of all parts, each once."""
        return list(dict.fromkeys(x for part in self.parts for x in part.features))

    @property
    def shares(self) -> list[float]:
        """The parts' weights, normalised."""
        total = sum(part.weight for part in self.parts)
        return [part.weight / total for part in self.parts]

    def combine(self, predictions: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Ranks of an era's rows: of one part, or of mean gaussianized ranks."""
        if len(predictions) == 1:
            return rank_normalize(predictions[0])
        # In the pickle's order of products and sums, so that bits agree.
        total = np.zeros(predictions[0].size)
        for share, x in zip(self.shares, predictions, strict=True):
            total += share * gaussianize(rank_normalize(x))
        return rank_normalize(total.round(DECIMALS))

    def ranks(self, block: NDArray[Any], names: Sequence[str]) -> NDArray[np.float64]:
        """Ranks in (0, 1) of the rows of one era; `names` are the block's columns."""
        return self.combine([part.predict(block, names) for part in self.parts])


def load_blend(folder: Path, model: Model) -> tuple[Blend, list[ModelRecord]]:
    fits = [(*load_fit(folder, x.name), x.weight) for x in model.members]
    parts = [Part(fit, record.features, weight) for fit, record, weight in fits]
    return Blend(parts), [record for _, record, _ in fits]


def predict_live(
    blend: Blend, records: Sequence[ModelRecord], live: Path, *, version: str,
    neutralizers: Sequence[str] = (), proportion: float = 0.0,
) -> "pd.Series[float]":  # fmt: skip
    """Predict the live era, of `version`: ranks by id, neutralized if asked."""
    for trained in {record.version for record in records} - {version}:
        warn(
            f"The model was trained on {trained}, but the live data are {version}: "
            "features of the same name may differ in meaning. Train the model again."
        )
    data.check_parquet(live, live=True)
    features = blend.features
    frame = read_columns(live, list(dict.fromkeys([*features, *neutralizers])))
    with decoding(live, "{reason}."):
        data.open_columns(live).check_numeric([*frame])
    _check_values(frame[features], records)
    block = frame[features].to_numpy()
    predictions = [part.predict(block, features) for part in blend.parts]
    for record, x in zip(records, predictions, strict=True):
        if not 0 < np.ptp(x) < np.inf:
            raise SubmissionError(
                f"The fit for {record.target} learned nothing: its predictions range "
                f"from {x.min():.6g} to {x.max():.6g}. Train the model again."
            )
    ranks = blend.combine(predictions)
    if neutralizers:
        text = "Live predictions cannot be neutralized by this feature set: {reason}."
        with decoding(live, text):
            by = frame[[*neutralizers]]
            ranks = neutralize_ranks(ranks, by, proportion=proportion)
    return frame[[]].assign(prediction=ranks)["prediction"]


def _check_values(live: "pd.DataFrame", records: Sequence[ModelRecord]) -> None:
    """Refuse values that training never had; trees would accept them silently."""
    # A missing value is known if all fits with the feature had missing values.
    known = ({*x.features} - {*x.features_with_missing} for x in records)
    odd = live.isna() & live.columns.isin(set[str]().union(*known))
    odd |= (live < 0) | (live > _LARGEST_VALUE)
    if names := live.columns[odd.any()].tolist():
        first = live.loc[odd[names[0]], names[0]].iloc[0]
        raise DataError(
            f"Live data have {odd.to_numpy().sum():,} values that training never had, "
            f"in {len(names):,} features ({first_names(names)}; {names[0]} has "
            f"{first!s}): values must be from 0 to {_LARGEST_VALUE}, and missing only "
            "where training had missing values. Download the file again, or train on "
            "data with such values."
        )


def make_submission(predictions: "pd.Series[Any]", shown: str = "") -> "pd.DataFrame":
    """Make the columns ``id`` (text) and ``prediction`` (float64) from a series."""
    try:
        values = predictions.astype(np.float64)
    except (TypeError, ValueError):
        text = f"{shown}: column {predictions.name!r} is not numeric."
        raise SubmissionError(text) from None
    return values.rename(str).rename_axis("id").reset_index(name="prediction")


def submission_csv(frame: "pd.DataFrame") -> bytes:
    """A submission as CSV with all digits; its bytes depend on the frame alone."""
    return frame.to_csv(index=False, lineterminator="\n").encode()


def read_predictions(path: Path) -> "pd.DataFrame":
    """Read predictions with ids, of a column or the index, from CSV or Parquet."""
    with decoding(path):
        content = path.read_bytes()
        is_parquet = content.startswith(b"PAR1")
        if path.suffix == ".parquet" and not is_parquet:
            raise ValueError("Parquet magic bytes not found at its start")
    if not is_parquet:
        return parse_predictions(content, str(path))
    name = _only(data.read_column_names(path), _COLUMNS, str(path))
    return make_submission(read_columns(path, [name])[name], str(path))


def parse_predictions(content: bytes, shown: str) -> "pd.DataFrame":
    """Read predictions from the bytes of a CSV file; errors name it `shown`."""
    pandas = import_optional("pandas", extra="numerai")
    with decoding(shown, "{shown} cannot be read as CSV: {reason}."):
        # As text: ids stay as they are, and numbers keep every digit.
        frame = pandas.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    if "id" not in frame:  # pandas' name of an index that was written
        frame = frame.rename(columns={"Unnamed: 0": "id"})
    frame = frame.set_index(_only([*frame], ["id"], shown))
    column = frame[_only([*frame], _COLUMNS, shown)]
    return make_submission(column.replace("", "nan"), shown)


def _only(names: Sequence[str], wanted: Sequence[str], shown: str) -> str:
    """The one wanted column that exists; SubmissionError if none or several do."""
    found = [name for name in wanted if name in names]
    if len(found) != 1:
        text = f"{shown} must have a column {' or '.join(map(repr, wanted))}, but has"
        raise SubmissionError(f"{text} {'both' if found else list_columns(names)}.")
    return found[0]


def check_submission(frame: "pd.DataFrame", live_ids: Sequence[str]) -> None:
    """Check a submission by Numerai's rules, then by numerai-tools."""
    tools = import_optional("numerai_tools.submissions", extra="numerai")
    pandas = import_optional("pandas", extra="numerai")
    live = pandas.Series(list(live_ids), dtype=str)
    ids, values = frame["id"], frame["prediction"]
    low, high = values.min(), values.max()
    for labels, wrong, problem in (
        (ids, ids.isna() | (ids == ""), "rows have no id"),
        (ids, ids.duplicated(), "ids are duplicates"),
        (live, ~live.isin(ids), "live ids have no prediction: predict the live file of "
        "this round"),
        (ids, ~np.isfinite(values), "predictions are not finite"),
        (ids, ~values.between(-_ROUNDING, 1 + _ROUNDING), "predictions are not between "
        f"0 and 1 (they range from {low:g} to {high:g}): rank them, for example with "
        "predictions.rank(pct=True)"),
        (ids, (values == low) & (low == high), f"predictions are equal ({low:g}): the "
        "model learned nothing, or its features are constant"),
    ):  # fmt: skip
        if wrong.any():
            text = f"{wrong.sum():,} of {len(wrong):,} {problem}"
            raise SubmissionError(f"{text}. The first is {labels[wrong].iloc[0]!r}.")
    if others := int((~ids.isin(live)).sum()):
        warn(f"{others:,} ids of the submission are not live: Numerai ignores them.")
    try:
        tools.validate_submission_numerai(live, frame)
    except AssertionError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise SubmissionError(f"numerai-tools rejects it: {reason}.") from None
