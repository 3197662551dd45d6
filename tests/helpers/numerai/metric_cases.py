"""Generated eras, and their scores by numerai-tools, one era at a time."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numerai_tools import scoring


class Case(NamedTuple):
    """Rows of many eras in no order, with ties and missing targets."""

    ids: np.ndarray
    eras: np.ndarray
    predictions: np.ndarray
    meta_model: np.ndarray
    targets: np.ndarray
    features: np.ndarray

    def table(self):
        """The rows by id, without the features."""
        names = ("eras", "predictions", "meta_model", "targets")
        return pd.DataFrame({name: getattr(self, name) for name in names}, self.ids)


def make_case(n_eras, n_rows=(100, 180), n_features=8, missing=0.08, seed=0):
    """Eras of other sizes; in every other one, predictions and meta model have ties.

    Targets are in 0, 0.25, ..., 1, but in every fifth era, where they are any number.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(*n_rows, size=n_eras)
    codes = np.repeat(np.arange(n_eras), sizes)
    n = codes.size
    features = rng.integers(0, 5, size=(n, n_features)).astype(np.int8)
    signal = features[:, 0] - features[:, 1] + rng.normal(0, 3, n)
    coarse = codes % 2 == 0

    def draw(noise):
        values = signal + rng.normal(0, noise, n)
        return np.where(coarse, np.round(values), values)

    targets = np.clip(np.round(signal + rng.normal(0, 4, n)) / 8 + 0.5, 0, 1)
    targets = np.round(targets * 4) / 4
    targets[codes % 5 == 0] += rng.normal(0, 1, n)[codes % 5 == 0]
    for era in range(0, n_eras, 3):
        rows = np.flatnonzero(codes == era)
        targets[rng.choice(rows, int(missing * rows.size), replace=False)] = np.nan
    order = rng.permutation(n)
    labels = np.array([f"{code + 1:04d}" for code in range(n_eras)])
    ids = np.array([f"n{i:015x}" for i in rng.permutation(n)])
    columns = (ids, labels[codes], draw(4), draw(2), targets, features)
    return Case(*(column[order] for column in columns))


def corr(predictions, targets):
    return scoring.numerai_corr(predictions.to_frame("p"), targets.rename("t"))["p"]


def contribution(predictions, meta_model, targets):
    frame = predictions.to_frame("p")
    return scoring.correlation_contribution(frame, meta_model, targets.rename("t"))["p"]


def feature_neutral(predictions, features, targets):
    frame = predictions.sort_index().to_frame("p")
    table, targets = features.loc[frame.index], targets.rename("t")
    return scoring.feature_neutral_corr(frame, table, targets)["p"]


def neutralized(predictions, neutralizers, proportion):
    frame, table = pd.DataFrame({"p": predictions}), pd.DataFrame(neutralizers)
    return scoring.neutralize(frame, table, proportion)["p"].to_numpy()
