"""A model as a blend of fits, and what it predicts for the live era.

Ranks of the fits are spread as normal variables, averaged, and ranked; a model of one
fit is a blend of one part. The pickle of ``export`` does the same.

Features are read by name, in the order of the training, and never filled in or clipped:
a live file that lacks some, or holds values that the training cannot have seen, is
refused. Only the columns that the model and its neutralization need are looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.numerai.config import Model
from sklearn_era.numerai.data import check_parquet, decoding, open_columns, read_columns
from sklearn_era.numerai.errors import DataError, SubmissionError, first_names, warn
from sklearn_era.numerai.metrics import gaussianize, neutralize_ranks, rank_normalize
from sklearn_era.numerai.store import ModelRecord, load_fit

if TYPE_CHECKING:
    import pandas as pd

# Sums that are equal but for their rounding are ties, on every machine.
DECIMALS = 12

# Of the features in Numerai's data.
_LARGEST_VALUE = 4


@dataclass(frozen=True)
class Part:
    """A fit, the columns that it predicts from, in its order, and its weight."""

    estimator: Any
    features: list[str]
    weight: float = 1.0

    def predict(self, block: NDArray[Any], names: Sequence[str]) -> NDArray[np.float64]:
        """Predict rows, of a block whose columns have these names, in any order."""
        pandas = import_optional("pandas", extra="numerai")
        X = pandas.DataFrame(block, columns=list(names), copy=False)[self.features]
        # An estimator that knows the names checks them; another takes none.
        if not hasattr(self.estimator, "feature_names_in_"):
            X = X.to_numpy()
        return np.asarray(self.estimator.predict(X), dtype=np.float64)


@dataclass(frozen=True)
class Blend:
    """Fits whose ranks are averaged; they may differ in features and targets."""

    parts: Sequence[Part]

    @property
    def features(self) -> list[str]:
        """The columns that any part predicts from, each once."""
        return list(dict.fromkeys(x for part in self.parts for x in part.features))

    @property
    def shares(self) -> list[float]:
        """The parts' weights, as shares of their sum."""
        total = sum(part.weight for part in self.parts)
        return [part.weight / total for part in self.parts]

    def combine(self, predictions: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Return ranks in (0, 1) for the rows of one era: ``rank(x_1)`` of one part,
        else ``rank(sum_k s_k g(rank(x_k)))`` by shares s_k, where g is `gaussianize`.
        """
        if len(predictions) == 1:
            return rank_normalize(predictions[0])
        # Products and sums one after the other: as the pickle does, to the last bit.
        total = np.zeros(predictions[0].size)
        for share, x in zip(self.shares, predictions, strict=True):
            total += share * gaussianize(rank_normalize(x))
        return rank_normalize(total.round(DECIMALS))

    def ranks(self, block: NDArray[Any], names: Sequence[str]) -> NDArray[np.float64]:
        """Ranks in (0, 1) of the rows of one era, of a block with these columns."""
        return self.combine([part.predict(block, names) for part in self.parts])


def load_blend(folder: Path, model: Model) -> tuple[Blend, list[ModelRecord]]:
    """Read the fits of a model from its folder, with their records."""
    fits = [(*load_fit(folder, x.name), x.weight) for x in model.members]
    parts = [Part(fit, record.features, weight) for fit, record, weight in fits]
    return Blend(parts), [record for _, record, _ in fits]


def predict_live(
    blend: Blend,
    records: Sequence[ModelRecord],
    live: Path,
    *,
    version: str,
    neutralizers: Sequence[str] = (),
    proportion: float = 0.0,
) -> "pd.Series[float]":
    """Predict the live era by id: ranks strictly between 0 and 1, neutralized by the
    `neutralizers`, if there are any. `version` is that of the live data.
    """
    for trained in {record.version for record in records} - {version}:
        warn(
            f"The model was trained on {trained}, but the live data are {version}: "
            "features of the same name may differ in meaning. Train the model again."
        )
    check_parquet(live, live=True)
    features = blend.features
    frame = read_columns(live, list(dict.fromkeys([*features, *neutralizers])))
    with decoding(live, "{reason}."):
        open_columns(live).check_numeric([*frame])
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
        told = "Live predictions cannot be neutralized by this feature set: {reason}."
        with decoding(live, told):
            ranks = neutralize_ranks(
                ranks, frame[[*neutralizers]], proportion=proportion
            )
    return frame[[]].assign(prediction=ranks)["prediction"]


def _check_values(live: "pd.DataFrame", records: Sequence[ModelRecord]) -> None:
    """Refuse values that no training has seen; trees would take them all the same."""
    # Of a feature that several fits read, all have to know the gaps.
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
