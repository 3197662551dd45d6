"""What a model predicts for the live era, checked on the way.

Features are read by name, in the order of the training, and never filled in or clipped:
a file that lacks some, or holds values that the training cannot have seen, is refused.
Only the columns that the model and its neutralization need are looked at.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.numerai.blend import Blend
from sklearn_era.numerai.config import PredictSection
from sklearn_era.numerai.data import check_parquet, read_ids
from sklearn_era.numerai.eras import (
    columns_missing_values,
    era_runs,
    open_columns,
    read_blocks,
)
from sklearn_era.numerai.errors import DataError, SubmissionError, first_names
from sklearn_era.numerai.metrics.neutralization import neutralize_ranks
from sklearn_era.numerai.store import ModelRecord

if TYPE_CHECKING:
    import pandas as pd

# Of the features in Numerai's data.
_LARGEST_VALUE = 4


def predict_live(
    blend: Blend,
    records: Sequence[ModelRecord],
    live: Path,
    *,
    version: str,
    predict: PredictSection,
    neutralizers: Sequence[str] = (),
) -> "pd.Series[float]":
    """Predict the live era: ranks strictly between 0 and 1, by id, as in the file.

    `records` are those of the blend's parts, and `version` is that of the live data.
    Without `neutralizers`, the model's own features are neutralized by.
    """
    features = blend.features
    by = list(neutralizers or features) if predict.neutralize_proportion else []
    columns_there = check_parquet(live, live=True)
    # Of a feature that several fits read, all have to know the gaps.
    whole = set[str]()
    for record, part in zip(records, blend.parts, strict=True):
        whole |= set(part.features) - set(record.features_with_missing)
        advice = (
            f"Model was trained on {record.version}, feature set "
            f"{record.feature_set!r}, file is {version}: download the live data of "
            "that version, or train the model again."
        )
        _check_has(columns_there, part.features, "model features", advice)
    advice = "Choose another feature set."
    _check_has(columns_there, by, "features to neutralize by", advice)
    for trained in {record.version for record in records} - {version}:
        warnings.warn(
            f"The model was trained on {trained}, and the live data are {version}: "
            "features of the same name may mean something else. Train the model again.",
            UserWarning,
            stacklevel=2,
        )

    names = list(dict.fromkeys([*features, *by]))
    columns = open_columns(live)
    (block,) = read_blocks(columns, live, names, era_runs(columns, live))
    _check_values(block[:, : len(features)], features, whole)
    predictions = blend.predict(block, names)
    for record, prediction in zip(records, predictions, strict=True):
        _check_prediction(prediction, len(block), record.target)
    ranks = blend.combine(predictions)
    if by:
        at = {name: column for column, name in enumerate(names)}
        own = block[:, [at[name] for name in by]]
        proportion = predict.neutralize_proportion
        try:
            ranks = neutralize_ranks(ranks, own, proportion, neutralizer_names=by)
        except ValueError as error:
            raise DataError(
                f"Live predictions cannot be neutralized by this feature set: {error}"
            ) from error
    pandas = import_optional("pandas", extra="numerai")
    index = pandas.Index(read_ids(live), name="id")
    return pandas.Series(ranks, index=index, name="prediction")


def _check_has(
    known: Sequence[str], names: Sequence[str], what: str, advice: str
) -> None:
    columns = set(known)
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise DataError(
            f"Live data lack {len(lacking):,} of {len(names):,} {what} (first: "
            f"{lacking[0]}). {advice}"
        )


def _check_values(
    block: NDArray[Any], features: Sequence[str], whole: set[str]
) -> None:
    """Refuse values that no training has seen; trees would take them all the same."""
    counts = columns_missing_values(block, features)
    missing = [name for name in counts if name in whole]
    if missing:
        raise DataError(
            f"Live data have {sum(counts[name] for name in missing):,} missing values "
            f"in {len(missing):,} features that had none in training "
            f"({first_names(missing)}): download the file again, or train on data that "
            "have some."
        )
    # NaN, where allowed, is neither.
    outside = (block < 0) | (block > _LARGEST_VALUE)
    odd = np.flatnonzero(outside.any(axis=0)).tolist()
    if odd:
        value = block[np.argmax(outside[:, odd[0]]), odd[0]]
        raise DataError(
            f"Live data have {np.count_nonzero(outside):,} values outside 0 to "
            f"{_LARGEST_VALUE} in {len(odd):,} features "
            f"({first_names([features[j] for j in odd])}; {features[odd[0]]} has "
            f"{value!s}): the model was trained on none such. Download the file again."
        )


def _check_prediction(x: NDArray[np.float64], n_rows: int, target: str) -> None:
    if x.shape != (n_rows,):
        problem = f"returned an array of shape {x.shape} for {n_rows:,} rows"
    elif n_bad := np.count_nonzero(~np.isfinite(x)):
        problem = f"predicted {n_bad:,} of {n_rows:,} rows as NaN or infinite"
    elif np.ptp(x) == 0:
        problem = f"learned nothing: all its predictions are {x[0]:.6g}"
    else:
        return
    raise SubmissionError(f"The fit for {target} {problem}. Train the model again.")
