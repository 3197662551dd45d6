"""Rows of the training, to show how far its eras agree on a model's splits."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sklearn_era.numerai.data.dataset import era_number
from sklearn_era.numerai.data.feature_blocks import (
    EraRun,
    era_runs,
    open_columns,
    read_blocks,
)
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.validation.report import TrainingSample

N_ERAS = 24


def read_training_sample(
    files: Path | Sequence[Path],
    features: Sequence[str],
    target: str,
    *,
    first_era: str,
    last_era: str,
    every_nth_era: int = 1,
    n_eras: int = N_ERAS,
) -> TrainingSample:
    """Read eras of a training, at even distances between two of them.

    Parameters
    ----------
    files : path, or sequence of path
        The files of the training.
    features : sequence of str
        The model's features, in its order.
    target : str
        The model's target. Rows without it are left out.
    first_era, last_era : str
        The first and the last era that the model was trained on.
    every_nth_era : int, default=1
        As in the training: of the eras from the first on, every n-th was trained on.
    n_eras : int, default=24
        The number of eras to read, or all if there are fewer. They are in memory as
        long as the sample is: a byte a value.

    Returns
    -------
    sample : TrainingSample
        In the order of the eras.

    Raises
    ------
    DataError
        If a file is missing or damaged, or none has a row of these eras with a target.
    """
    paths = [files] if isinstance(files, Path) else list(files)
    first, last = era_number(first_era), era_number(last_era)
    if first is None or last is None:
        raise DataError(f"{first_era!r} to {last_era!r} are no numbered eras.")
    columns = [open_columns(path) for path in paths]
    within: list[tuple[int, int, EraRun]] = []  # number, file and rows of each era
    for i, (one, path) in enumerate(zip(columns, paths, strict=True)):
        for run in era_runs(one, path):
            number = era_number(run.label)
            if number is not None and first <= number <= last:
                within.append((number, i, run))
    shown = ", ".join(map(str, paths))
    if not within:
        raise DataError(f"{shown} has no era from {first_era!r} to {last_era!r}.")
    trained = sorted(within, key=lambda era: era[0])[::every_nth_era]
    chosen = np.linspace(0, len(trained) - 1, min(n_eras, len(trained))).round()
    eras = [trained[i] for i in chosen.astype(int)]
    read: dict[int, TrainingSample] = {}
    for i in sorted({i for _, i, _ in eras}):
        runs = sorted((run for _, j, run in eras if j == i), key=lambda run: run.start)
        blocks = read_blocks(columns[i], paths[i], features, runs)
        y = columns[i].read_numbers(target, "target")
        for run, X in zip(runs, blocks, strict=True):
            own = y[run.start : run.stop]
            known = ~np.isnan(own)
            labels = np.full(np.count_nonzero(known), run.label)
            number = era_number(run.label)
            assert number is not None  # of those chosen
            read[number] = TrainingSample(X[known], labels, own[known])
    if not any(sample.y.size for sample in read.values()):
        raise DataError(f"{shown} has no {target} in eras {first_era} to {last_era}.")
    in_order = [read[number] for number, _, _ in eras]
    X, labels, y = (np.concatenate(parts) for parts in zip(*in_order, strict=True))
    return TrainingSample(X, labels, y)


__all__ = ["read_training_sample"]
