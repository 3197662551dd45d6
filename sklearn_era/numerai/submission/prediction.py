"""What a trained model predicts for the live era, checked on the way."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.numerai.data.dataset import check_parquet, read_ids
from sklearn_era.numerai.data.feature_blocks import (
    columns_missing_values,
    era_runs,
    open_columns,
    predict_block,
    read_blocks,
)
from sklearn_era.numerai.errors import ConfigError, DataError, SubmissionError
from sklearn_era.numerai.metrics.neutralization import neutralize_ranks
from sklearn_era.numerai.metrics.ranks import rank_normalize
from sklearn_era.numerai.training.model_store import ModelRecord

if TYPE_CHECKING:
    import pandas as pd

# Of the features in Numerai's data.
_LARGEST_VALUE = 4


def predict_live(
    estimator: Any,
    record: ModelRecord,
    live: Path,
    *,
    version: str | None = None,
    neutralize_proportion: float = 0.0,
    neutralize_features: Sequence[str] | None = None,
) -> "pd.Series[float]":
    r"""Predict the live era.

    .. math:: r_i = (\operatorname{rank}(x_i) - 1/2) / n

    of the n predictions x; or of :math:`g(r) - c N b`, the gaussianized ranks of which
    the share c of what features explain linearly is taken out
    (:func:`~sklearn_era.numerai.metrics.neutralize`).

    Features are read by name, in the order of the training, and none is filled in: a
    file that lacks some, or holds values that the training cannot have seen, is
    refused.

    Parameters
    ----------
    estimator : HistGradientBoostingRegressor
        The trained model.

    record : ModelRecord
        Its record.

    live : Path
        The live file, of one era, with the ids as the index or as a column ``id``.

    version : str, default=None
        The version of the data that the file is of, for messages. A warning says so if
        it is not the one of the record.

    neutralize_proportion : float, default=0.0
        c, from 0 (nothing is taken out) to 1.

    neutralize_features : sequence of str, default=None
        The columns N of the live file. None: the model's features.

    Returns
    -------
    predictions : Series of shape (n_rows,), dtype=float64
        The ranks, strictly between 0 and 1. Named "prediction", with the ids as its
        index, named "id", in the order of the file.

    Raises
    ------
    ConfigError
        If `neutralize_proportion` is not from 0 to 1.
    DataError
        If the file is missing or damaged, lacks features, has missing values where the
        training had none, or values outside 0 to 4; or if features to neutralize by are
        missing or explain the predictions fully.
    SubmissionError
        If predictions are not finite, or all equal.

    Warns
    -----
    UserWarning
        If `version` is another one than the model was trained on.
    """
    if not 0 <= neutralize_proportion <= 1:
        raise ConfigError(
            f"neutralize_proportion = {neutralize_proportion:g} must be from 0 to 1."
        )
    features = list(record.features)
    neutralizers: list[str] = []
    if neutralize_proportion:
        neutralizers = list(neutralize_features or features)
    summary = check_parquet(live, live=True)
    known = set(summary.columns)
    _check_features(features, known, record, version)
    lacking = [name for name in neutralizers if name not in known]
    if lacking:
        raise DataError(
            f"Live data lack {len(lacking):,} of {len(neutralizers):,} features to "
            f"neutralize by (first: {lacking[0]}): choose another feature set."
        )
    if version is not None and version != record.version:
        warnings.warn(
            f"The model was trained on {record.version}, and the live data are "
            f"{version}: features of the same name may mean something else. Train the "
            "model again.",
            UserWarning,
            stacklevel=2,
        )

    names = list(dict.fromkeys([*features, *neutralizers]))
    columns = open_columns(live)
    (block,) = read_blocks(columns, live, names, era_runs(columns, live))
    own = block[:, : len(features)]
    _check_values(own, features, allow_missing=set(record.features_with_missing))
    predictions = predict_block(estimator, own, features)
    _check_predictions(predictions, summary.n_rows)
    ranks = rank_normalize(predictions)
    if neutralizers:
        at = [names.index(name) for name in neutralizers]
        ranks = _neutralize(ranks, block[:, at], neutralizers, neutralize_proportion)
    pandas = import_optional("pandas", extra="numerai")
    index = pandas.Index(read_ids(live), name="id")
    return pandas.Series(ranks, index=index, name="prediction")


def _check_features(
    features: Sequence[str], known: set[str], record: ModelRecord, version: str | None
) -> None:
    lacking = [name for name in features if name not in known]
    if not lacking:
        return
    file = f", file is {version}" if version is not None else ""
    raise DataError(
        f"Live data lack {len(lacking):,} of {len(features):,} model features (first: "
        f"{lacking[0]}). Model was trained on {record.version}, feature set "
        f"{record.feature_set!r}{file}: download the live data of that version, or "
        "train the model again."
    )


def _check_values(
    block: NDArray[Any], features: Sequence[str], *, allow_missing: set[str]
) -> None:
    """Refuse values that the model cannot have seen.

    Trees would send them somewhere, without a word.
    """
    missing = {
        name: count
        for name, count in columns_missing_values(block, features).items()
        if name not in allow_missing
    }
    if missing:
        raise DataError(
            f"Live data have {sum(missing.values()):,} missing values in "
            f"{len(missing):,} features ({_first_names(missing)}), which had none in "
            "training: download the file again, or train on data that have some."
        )
    # NaN, where allowed, is neither.
    outside = (block < 0) | (block > _LARGEST_VALUE)
    counts = outside.sum(axis=0)
    if not counts.any():
        return
    columns = {features[j]: int(counts[j]) for j in np.flatnonzero(counts).tolist()}
    j = int(np.argmax(counts > 0))
    value = block[int(np.argmax(outside[:, j])), j]
    raise DataError(
        f"Live data have {counts.sum():,} values outside 0 to {_LARGEST_VALUE} in "
        f"{len(columns):,} features ({_first_names(columns)}; {features[j]} has "
        f"{value!s}): the model knows none such. Download the file again."
    )


def _first_names(names: dict[str, int], most: int = 3) -> str:
    shown = ", ".join(list(names)[:most])
    return f"{shown}, …" if len(names) > most else shown


def _check_predictions(predictions: NDArray[np.float64], n_rows: int) -> None:
    if predictions.shape != (n_rows,):
        raise SubmissionError(
            f"The model returned an array of shape {predictions.shape} for {n_rows:,} "
            "rows: it is no regressor of one target."
        )
    n_bad = int(np.count_nonzero(~np.isfinite(predictions)))
    if n_bad:
        raise SubmissionError(
            f"{n_bad:,} of {n_rows:,} predictions are NaN or infinite: the model is "
            "damaged; train it again."
        )
    if predictions.min() == predictions.max():
        raise SubmissionError(
            f"All predictions are equal ({predictions[0]:.6g}); the model learned "
            "nothing, or features are constant."
        )


def _neutralize(
    ranks: NDArray[np.float64],
    block: NDArray[Any],
    neutralizers: Sequence[str],
    proportion: float,
) -> NDArray[np.float64]:
    missing = columns_missing_values(block, neutralizers)
    if missing:
        raise DataError(
            f"Live data have {sum(missing.values()):,} missing values in "
            f"{len(missing):,} features to neutralize by ({_first_names(missing)}): "
            "choose another feature set; linear regression knows no missing values."
        )
    try:
        return neutralize_ranks(
            ranks, block, proportion, neutralizer_names=neutralizers
        )
    except ValueError as error:
        raise DataError(f"Live predictions cannot be neutralized: {error}") from error


__all__ = ["predict_live"]
