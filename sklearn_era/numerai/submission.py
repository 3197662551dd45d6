"""The file that Numerai takes: an id and a prediction a row, checked before it goes."""

import hashlib
import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_era._optional import import_optional
from sklearn_era._tables.columns import list_columns
from sklearn_era.numerai.data import decoding, read_column_names, read_columns
from sklearn_era.numerai.errors import SubmissionError
from sklearn_era.numerai.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("prediction", "probability")
# What pandas calls a first column without a header: an index that was written.
_UNNAMED = "Unnamed: 0"
_PARQUET = b"PAR1"
# Numerai takes what rounding puts beyond 0 or 1.
_ROUNDING = 1e-8


def make_submission(ids: ArrayLike, predictions: ArrayLike) -> "pd.DataFrame":
    """Columns ``id`` and ``prediction``, text and float64, by position."""
    pandas = import_optional("pandas", extra="numerai")
    labels = [str(label) for label in np.asarray(ids, dtype=object)]
    values = np.asarray(predictions, dtype=np.float64)
    return pandas.DataFrame({"id": labels, "prediction": values})


def submission_csv(frame: "pd.DataFrame") -> bytes:
    """A submission as CSV, with all digits: the bytes depend on the frame alone."""
    return frame.to_csv(index=False, lineterminator="\n").encode()


def write_submission(frame: "pd.DataFrame", path: Path) -> str:
    """Write a submission as CSV, whole or not at all; return the file's sha256."""
    content = submission_csv(frame)
    write_whole(path, content)
    return hashlib.sha256(content).hexdigest()


def read_predictions(path: Path) -> "pd.DataFrame":
    """Read the predictions of any model, from CSV or Parquet.

    Ids are a column ``id`` or the index, predictions a column ``prediction`` or
    ``probability``; other columns are left out. They are not ranked or changed.
    """
    with decoding(path):
        content = path.read_bytes()
        if path.suffix == ".parquet" and not content.startswith(_PARQUET):
            raise ValueError("Parquet magic bytes not found at its start")
    if not content.startswith(_PARQUET):
        return parse_predictions(content, str(path))
    name = _only(read_column_names(path), _COLUMNS, str(path))
    return _submission(read_columns(path, [name])[name], str(path))


def parse_predictions(content: bytes, shown: str) -> "pd.DataFrame":
    """Read predictions from the bytes of a CSV file, which errors call `shown`."""
    pandas = import_optional("pandas", extra="numerai")
    with decoding(shown, "{shown} cannot be read as CSV: {reason}."):
        # As text: an id is one, whatever it says, and a number keeps every digit.
        frame = pandas.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    if "id" not in frame:
        frame = frame.rename(columns={_UNNAMED: "id"})
    frame = frame.set_index(_only(frame, ("id",), shown))
    return _submission(frame[_only(frame, _COLUMNS, shown)].replace("", "nan"), shown)


def _only(columns: Iterable[str], wanted: Sequence[str], shown: str) -> str:
    """The one of the wanted columns that there is."""
    names = list(columns)
    found = [name for name in wanted if name in names]
    if len(found) != 1:
        told = f"{shown} must have a column {' or '.join(map(repr, wanted))}"
        raise SubmissionError(
            f"{told}, but has {'both' if found else list_columns(names)}."
        )
    return found[0]


def _submission(column: Any, shown: str) -> "pd.DataFrame":
    """A submission, once it is sure that its predictions are numbers."""
    try:
        return make_submission(column.index, column.to_numpy(dtype=np.float64))
    except (TypeError, ValueError):
        told = f"{shown}: column {column.name!r} is not numeric."
        raise SubmissionError(told) from None


def check_submission(frame: "pd.DataFrame", live_ids: Sequence[str]) -> None:
    """Check a submission by Numerai's rules, then by numerai-tools, as Numerai does."""
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
            raise SubmissionError(
                f"{wrong.sum():,} of {len(wrong):,} {problem}. The first is "
                f"{labels[wrong].iloc[0]!r}."
            )
    others = int((~ids.isin(live)).sum())
    if others:
        warnings.warn(
            f"{others:,} ids of the submission are not live, and Numerai ignores them.",
            UserWarning,
            stacklevel=2,
        )
    try:
        tools.validate_submission_numerai(live, frame)
    except AssertionError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise SubmissionError(f"numerai-tools rejects it: {reason}.") from None
