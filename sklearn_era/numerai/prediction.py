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
from sklearn_era.numerai.eras import era_runs, open_columns, read_blocks
from sklearn_era.numerai.errors import DataError, SubmissionError, first_names
from sklearn_era.numerai.metrics import neutralize_ranks
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
    for trained in {record.version for record in records} - {version}:
        warnings.warn(
            f"The model was trained on {trained}, but the live data are {version}: "
            "features of the same name may differ in meaning. Train the model again.",
            UserWarning,
            stacklevel=2,
        )
    check_parquet(live, live=True)
    features = blend.features
    by = list(neutralizers or features) if predict.neutralize_proportion else []
    names = list(dict.fromkeys([*features, *by]))
    columns = open_columns(live)
    (block,) = read_blocks(columns, live, names, era_runs(columns, live))
    # Of a feature that several fits read, all have to know the gaps.
    whole = set[str]()
    for record in records:
        whole |= set(record.features) - set(record.features_with_missing)
    _check_values(block[:, : len(features)], features, whole)
    predictions = blend.predict(block, names)
    for record, x in zip(records, predictions, strict=True):
        if not 0 < np.ptp(x) < np.inf:
            raise SubmissionError(
                f"The fit for {record.target} learned nothing: its predictions range "
                f"from {x.min():.6g} to {x.max():.6g}. Train the model again."
            )
    pandas = import_optional("pandas", extra="numerai")
    ranks = blend.combine(predictions)
    if by:
        own = pandas.DataFrame(block, columns=names, copy=False)[by].to_numpy()
        proportion = predict.neutralize_proportion
        try:
            ranks = neutralize_ranks(ranks, own, proportion, neutralizer_names=by)
        except ValueError as error:
            raise DataError(
                f"Live predictions cannot be neutralized by this feature set: {error}"
            ) from error
    index = pandas.Index(read_ids(live), name="id")
    return pandas.Series(ranks, index=index, name="prediction")


def _check_values(
    block: NDArray[Any], features: Sequence[str], whole: set[str]
) -> None:
    """Refuse values that no training has seen; trees would take them all the same."""
    odd = np.isnan(block) & [name in whole for name in features]
    odd |= (block < 0) | (block > _LARGEST_VALUE)
    found = np.flatnonzero(odd.any(axis=0)).tolist()
    if found:
        names, first = [features[j] for j in found], found[0]
        raise DataError(
            f"Live data have {odd.sum():,} values that training never had, in "
            f"{len(found):,} features ({first_names(names)}; {names[0]} has "
            f"{block[odd[:, first], first][0]!s}): values must be from 0 to "
            f"{_LARGEST_VALUE}, and missing only where training had missing values. "
            "Download the file again, or train on data with such values."
        )
