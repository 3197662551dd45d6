"""A model as a blend of fits: ranks, spread as normal variables, averaged, and ranked.

A model of one fit is a blend of one part. The pickle of ``export`` does the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.numerai.config import Model
from sklearn_era.numerai.metrics import gaussianize, rank_normalize
from sklearn_era.numerai.store import ModelRecord, load_fit

# Sums that are equal but for their rounding are ties, on every machine.
DECIMALS = 12


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

    def predict(
        self, block: NDArray[Any], names: Sequence[str]
    ) -> list[NDArray[np.float64]]:
        """What each part predicts of the rows of a block with these columns."""
        return [part.predict(block, names) for part in self.parts]

    def combine(self, predictions: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Ranks in (0, 1) of the parts' predictions x_k for the rows of one era.

        ``rank(x_1)`` of a single part, of several ``rank(sum_k s_k g(rank(x_k)))`` with
        the shares s_k; ``rank`` is `rank_normalize`, and g is `gaussianize`.
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
        return self.combine(self.predict(block, names))


def load_blend(folder: Path, model: Model) -> tuple[Blend, list[ModelRecord]]:
    """Read the fits of a model from its folder, with their records."""
    parts, records = [], []
    for member in model.members:
        estimator, record = load_fit(folder, member.name)
        parts.append(Part(estimator, record.features, member.weight))
        records.append(record)
    return Blend(parts), records
