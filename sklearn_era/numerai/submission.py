"""Submission files: an id and a prediction per row, checked before the upload."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sklearn_era._optional import import_optional
from sklearn_era._tables.columns import list_columns
from sklearn_era.numerai.data import decoding, read_column_names, read_columns
from sklearn_era.numerai.errors import SubmissionError, warn

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("prediction", "probability")
_ROUNDING = 1e-8  # beyond 0 or 1, which Numerai accepts


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
    """Read a column ``prediction`` or ``probability`` from CSV or Parquet, with ids in
    the column ``id`` or the index. Nothing is ranked or changed.
    """
    with decoding(path):
        content = path.read_bytes()
        is_parquet = content.startswith(b"PAR1")
        if path.suffix == ".parquet" and not is_parquet:
            raise ValueError("Parquet magic bytes not found at its start")
    if not is_parquet:
        return parse_predictions(content, str(path))
    name = _only(read_column_names(path), _COLUMNS, str(path))
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
