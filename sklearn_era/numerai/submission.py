"""The file that Numerai takes: an id and a prediction a row, checked before it goes."""

import hashlib
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_era._optional import import_optional
from sklearn_era.numerai.data import read_column_names, read_columns
from sklearn_era.numerai.errors import DataError, SubmissionError, first_names
from sklearn_era.numerai.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("prediction", "probability")
# What pandas calls a first column without a header: an index that was written.
_UNNAMED = "Unnamed: 0"
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
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if not content.startswith(b"PAR1"):
        return parse_predictions(content, str(path))
    name = _predictions_of(read_column_names(path), str(path))
    frame = read_columns(path, [name])
    return _submission(frame.index, frame[name], str(path))


def parse_predictions(content: bytes, shown: str) -> "pd.DataFrame":
    """Read predictions from the bytes of a CSV file, which errors call `shown`."""
    pandas = import_optional("pandas", extra="numerai")
    version = tuple(map(int, pandas.__version__.split(".")[:2]))
    try:
        frame = pandas.read_csv(
            io.BytesIO(content),
            # An id is a text, whatever it says.
            dtype={"id": str, _UNNAMED: str},
            keep_default_na=False,
            na_values={name: ["", "nan", "NaN"] for name in _COLUMNS},
            # The default from pandas 3.1 on.
            **({"float_precision": "round_trip"} if version < (3, 1) else {}),
        )
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{shown} cannot be read as CSV: {reason}.") from error
    columns = [str(name) for name in frame.columns]
    ids = "id" if "id" in columns else columns[0]
    if ids not in ("id", _UNNAMED):
        has = first_names([repr(name) for name in columns])
        raise SubmissionError(f"{shown} must have a column 'id', and has {has}.")
    return _submission(frame[ids], frame[_predictions_of(columns, shown)], shown)


def _predictions_of(columns: Sequence[str], shown: str) -> str:
    """The name of the only column that can hold predictions."""
    found = [name for name in _COLUMNS if name in columns]
    if len(found) != 1:
        has = "both" if found else first_names([repr(name) for name in columns])
        raise SubmissionError(
            f"{shown} must have a column 'prediction' or 'probability', and has {has}."
        )
    return found[0]


def _submission(ids: ArrayLike, column: Any, shown: str) -> "pd.DataFrame":
    """A submission, once it is sure that its predictions are numbers."""
    try:
        return make_submission(ids, column.to_numpy(dtype=np.float64))
    except (TypeError, ValueError):
        raise SubmissionError(
            f"{shown}: column {column.name!r} does not hold numbers."
        ) from None


def check_submission(frame: "pd.DataFrame", live_ids: Sequence[str]) -> None:
    """Check a submission by Numerai's rules, then by numerai-tools, as Numerai does."""
    tools = import_optional("numerai_tools.submissions", extra="numerai")
    pandas = import_optional("pandas", extra="numerai")
    live = pandas.Series(list(live_ids), dtype=str)
    ids, values = frame["id"], frame["prediction"]
    beyond = (values < -_ROUNDING) | (values > 1 + _ROUNDING)
    missing = "live ids have no prediction: predict the live file of this very round"
    scale = (
        f"predictions are not between 0 and 1 (all are from {values.min():g} to "
        f"{values.max():g}): rank them, in pandas by predictions.rank(pct=True)"
    )
    for labels, wrong, problem in (
        (ids, ids.isna() | (ids == ""), "rows have no id"),
        (ids, ids.duplicated(), "ids are there more than once"),
        (live, ~live.isin(ids), missing),
        (ids, ~np.isfinite(values), "predictions are not finite"),
        (ids, beyond, scale),
    ):
        if wrong.any():
            raise SubmissionError(
                f"{wrong.sum():,} of {len(wrong):,} {problem}. The first is "
                f"{labels[wrong].iloc[0]!r}."
            )
    if np.ptp(values) == 0:
        raise SubmissionError(
            f"All predictions are equal ({values.iloc[0]:g}): the model learned "
            "nothing, or features are constant."
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
        raise SubmissionError(f"numerai-tools refuses it: {reason}.") from None
