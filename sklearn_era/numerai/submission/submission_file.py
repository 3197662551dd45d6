"""The file that Numerai takes: an id and a prediction a row, checked before it goes."""

import hashlib
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_era._optional import import_optional
from sklearn_era.numerai.errors import DataError, SubmissionError
from sklearn_era.numerai.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

_PREDICTIONS = ("prediction", "probability")
# Numerai takes what rounding puts beyond 0 or 1.
_ROUNDING = 1e-8


def make_submission(ids: ArrayLike, predictions: ArrayLike) -> "pd.DataFrame":
    """Put ids and predictions into the form that Numerai takes.

    Parameters
    ----------
    ids : array-like of shape (n_rows,)
        The ids.

    predictions : array-like of shape (n_rows,)
        A prediction each, by position. The index of a pandas Series, if it is not a
        mere count of rows, must be `ids`.

    Returns
    -------
    frame : DataFrame of shape (n_rows, 2)
        Columns ``id``, text, and ``prediction``, float64.

    Raises
    ------
    SubmissionError
        If they do not go together.
    """
    pd = import_optional("pandas", extra="numerai")
    labels = [str(label) for label in np.asarray(ids, dtype=object)]
    values = np.asarray(predictions, dtype=np.float64)
    if values.shape != (len(labels),):
        raise SubmissionError(
            f"There are {len(labels):,} ids, and predictions of shape {values.shape}: "
            "one a row is needed."
        )
    index = getattr(predictions, "index", None)
    if isinstance(index, pd.Index) and not isinstance(index, pd.RangeIndex):
        differ = [
            own
            for own, label in zip(map(str, index), labels, strict=True)
            if own != label
        ]
        if differ:
            raise SubmissionError(
                f"The index of the predictions is not ids: {len(differ):,} of "
                f"{len(labels):,} rows differ (first: {differ[0]!r})."
            )
    return pd.DataFrame({"id": labels, "prediction": values})


def check_submission(frame: "pd.DataFrame", live_ids: Sequence[str]) -> None:
    """Check a submission by the rules of Numerai, and by Numerai's own program.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, 2)
        Columns ``id`` and ``prediction``, or ``probability``, in this order.

    live_ids : sequence of str
        The ids of the live file, each of which needs a prediction.

    Raises
    ------
    SubmissionError
        If a rule is broken, that of the columns first, then those of the ids and of
        the values.

    Warns
    -----
    UserWarning
        If there are other ids, which Numerai ignores.

    Notes
    -----
    The second check is ``submissions.validate_submission_numerai`` of numerai-tools,
    which Numerai's servers run.
    """
    tools = import_optional("numerai_tools.submissions", extra="numerai")
    pd = import_optional("pandas", extra="numerai")
    columns = [str(column) for column in frame.columns]
    if len(columns) != 2 or columns[0] != "id" or columns[1] not in _PREDICTIONS:
        raise SubmissionError(
            "The columns of a submission are 'id' and 'prediction', in this order; "
            f"these are {', '.join(map(repr, columns))}."
            + (" The ids are its index: reset_index()." if _has_id_index(frame) else "")
        )
    live = pd.Index([str(label) for label in live_ids])
    if not len(live):
        raise SubmissionError("live_ids is empty: there is nothing to predict.")
    _check_ids(frame["id"], live)
    try:
        values = frame[columns[1]].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise SubmissionError(f"Column {columns[1]!r} is not of numbers.") from None
    _check_values(values, frame["id"].tolist())
    beyond = np.flatnonzero((values < -_ROUNDING) | (values > 1 + _ROUNDING))
    if beyond.size:
        raise SubmissionError(
            f"{beyond.size:,} of {values.size:,} predictions are not between 0 and 1 "
            f"(first: {values[beyond[0]]:g} for {frame['id'].iloc[beyond[0]]}): rank "
            "them."
        )
    try:
        tools.validate_submission_numerai(pd.Series(live), frame.reset_index(drop=True))
    except AssertionError as error:
        raise SubmissionError(
            "numerai-tools refuses the submission: "
            f"{' '.join(str(error).split()).rstrip('.')}."
        ) from None


def write_submission(frame: "pd.DataFrame", path: Path) -> str:
    """Write a submission as CSV, which appears complete or not at all.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, 2)
        Columns ``id`` and ``prediction``.

    path : Path
        Where to write; a file there is replaced.

    Returns
    -------
    sha256 : str
        The digest of the file, 64 hexadecimal digits. Numbers are written with all
        their digits, and lines end in a line feed, so that it depends on `frame` alone.

    Raises
    ------
    DataError
        If it cannot be written.
    """
    content = frame.to_csv(index=False, lineterminator="\n").encode()
    try:
        write_atomically(Path(path), content)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error
    return hashlib.sha256(content).hexdigest()


def read_submission(path: Path) -> "pd.DataFrame":
    """Read a submission, unchecked.

    Parameters
    ----------
    path : Path
        A CSV file.

    Returns
    -------
    frame : DataFrame
        Its columns, the ids as texts; predictions are those that were written.

    Raises
    ------
    DataError
        If it is no CSV file.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    return parse_submission(content, str(path))


def parse_submission(content: bytes, shown: str) -> "pd.DataFrame":
    """Read a submission from its bytes; `shown` is what errors call it."""
    pd = import_optional("pandas", extra="numerai")
    version = tuple(map(int, pd.__version__.split(".")[:2]))
    try:
        return pd.read_csv(
            io.BytesIO(content),
            dtype={"id": str},
            # An id is a text, whatever it says.
            keep_default_na=False,
            na_values={name: ["", "nan", "NaN"] for name in _PREDICTIONS},
            # The default from pandas 3.1 on.
            **({"float_precision": "round_trip"} if version < (3, 1) else {}),
        )
    except (ValueError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{shown} cannot be read as CSV: {reason}.") from error


def _has_id_index(frame: "pd.DataFrame") -> bool:
    return frame.index.name == "id" and "id" not in frame.columns


def _check_ids(ids: Any, live: "pd.Index[str]") -> None:
    if ids.isna().any() or (ids == "").any():
        count = int((ids.isna() | (ids == "")).sum())
        raise SubmissionError(f"{count:,} rows have no id.")
    own = ids.astype(str)
    if own.duplicated().any():
        twice = own[own.duplicated()]
        raise SubmissionError(
            f"{len(twice):,} ids are there more than once (first: {twice.iloc[0]})."
        )
    missing = live[~live.isin(own)]
    if len(missing):
        raise SubmissionError(
            f"{len(missing):,} of {len(live):,} live ids have no prediction (first: "
            f"{missing[0]}): predict from the live file of the current round."
        )
    others = int((~own.isin(live)).sum())
    if others:
        warnings.warn(
            f"{others:,} ids of the submission are not live, and Numerai ignores them.",
            UserWarning,
            stacklevel=3,
        )


def _check_values(
    values: NDArray[np.float64], ids: Sequence[str] | None = None
) -> None:
    if not values.size:
        raise SubmissionError("There are no predictions.")
    odd = np.flatnonzero(~np.isfinite(values))
    if odd.size:
        where = f"row {odd[0]}" if ids is None else ids[odd[0]]
        raise SubmissionError(
            f"{odd.size:,} of {values.size:,} predictions are not finite (first: "
            f"{where})."
        )
    if np.ptp(values) == 0:
        raise SubmissionError(
            f"All predictions are equal ({values.flat[0]:g}); the model learned "
            "nothing or features are constant."
        )


__all__ = [
    "check_submission",
    "make_submission",
    "parse_submission",
    "read_submission",
    "write_submission",
]
