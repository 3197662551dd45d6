"""Training: from Parquet files to a model and its record, with checkpoints between."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sklearn_era.ensemble import BinnedDataset, HistGradientBoostingRegressor
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.targets import check_target, horizon_of, purge_of
from sklearn_era.numerai.training.arguments import (
    check_features,
    check_files,
    check_numbers,
)
from sklearn_era.numerai.training.checkpoints import (
    Checkpoint,
    CheckpointWriter,
    checkpoint_folder,
    find_checkpoints,
    mark_checkpoint,
    remove_checkpoint,
)
from sklearn_era.numerai.training.era_selection import (
    ERA_COLUMN,
    EraSelection,
    select_eras,
)
from sklearn_era.numerai.training.estimator_parameters import (
    blame_parameter,
    gain_parameters,
    make_estimator,
)
from sklearn_era.numerai.training.fit_identity import (
    FitDescription,
    describe_parameters,
    fingerprint,
)
from sklearn_era.numerai.training.model_store import (
    ModelRecord,
    model_file,
    read_record,
    remove_trained,
    save_trained,
    write_record,
)

MODEL, GAIN = "model", "gain"


def train(
    *,
    model_dir: str | os.PathLike[str],
    model_name: str,
    version: str,
    files: Sequence[str | os.PathLike[str]],
    features: Sequence[str],
    feature_set: str,
    target: str,
    purge: int | None = None,
    every_nth_era: int = 1,
    era_groups: int = 0,
    first_era: str | None = None,
    last_era: str | None = None,
    parameters: Mapping[str, Any],
    random_state: int = 0,
    checkpoint_every: int = 100,
    resume: bool = False,
    compare_with_gain: bool = False,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, ModelRecord]:
    """Train a model on Numerai's files, and save it with its record.

    The files are binned as they are read, a byte a value, and never held. Rows whose
    target is missing are left out.

    Parameters
    ----------
    model_dir : str or path
        The folder for the model, its record, and checkpoints. A model that is there
        stays until the new one is complete; a plain model for comparison
        (``"gain"``) that is there goes with it.
    model_name : str
        The name of the model at Numerai, for the record.
    version : str
        The version of the data, ``"v5.3"`` for one, for the record.
    files : sequence of path
        Parquet files to train on, none of whose eras is in two of them.
    features : sequence of str
        The columns to train on, in the order in which the model will ask for them.
    feature_set : str
        The name of this set, for the record.
    target : str
        The column to learn, by its full name; the alias ``"target"`` is refused.
    purge : int, default=None
        How many eras validation is to leave out after the last of training, for the
        record: no era is left out here. By default, what the target's horizon asks for.
    every_nth_era : int, default=1
        Train on the first era within the bounds, and on every n-th after it.
    era_groups : int, default=0
        What the split criterion compares as eras: so many groups of consecutive eras,
        of nearly equal numbers of eras; 0 for the eras themselves.
    first_era, last_era : str, default=None
        The first and the last era to train on, as ``"0157"``; by default, of the files.
    parameters : mapping of str to object
        Parameters of :class:`~sklearn_era.ensemble.HistGradientBoostingRegressor`;
        those not named are at their defaults.
    random_state : int, default=0
        The seed of all that is drawn: features, and the rows that bins are made from.
    checkpoint_every : int, default=100
        How many trees there are between checkpoints.
    resume : bool, default=False
        Whether to go on from the last checkpoint. The model is that of a training
        without a break, bit for bit. Where there is none, a warning says so, and the
        training starts anew.
    compare_with_gain : bool, default=False
        Whether to train a second model, ``"gain"``, on the same data with the same
        parameters, but ``split_criterion="gain"`` and no parameters of eras.
    on_progress : callable, default=None
        Called as ``on_progress(stage, done, total)``: with features of the stage
        ``"reading"``, and with trees of the stages ``"model"`` and ``"gain"``.

    Returns
    -------
    records : dict of str to ModelRecord
        Of ``"model"``, and of ``"gain"`` if that was trained.

    Raises
    ------
    ConfigError
        If an argument or one of `parameters` has a bad value, before data are read; if
        the checkpoint to resume is of another fit (the message says what differs); or
        if no era is left.
    DataError
        If a file or a column is missing or damaged, no row has a target, or the
        checkpoint to resume is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_era.numerai.training import load_trained
    >>> from sklearn_era.numerai.training import train
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 5, size=(2000, 3), dtype=np.int8)
    >>> frame = pd.DataFrame(X, columns=["feature_a", "feature_b", "feature_c"])
    >>> frame["era"] = np.repeat([f"{i:04}" for i in range(1, 21)], 100)
    >>> frame["target_demo_20"] = (X[:, 0] / 4).astype(np.float32)
    >>> folder = tempfile.mkdtemp()
    >>> frame.to_parquet(f"{folder}/train.parquet")
    >>> records = train(
    ...     model_dir=f"{folder}/model",
    ...     model_name="demo",
    ...     version="v5.3",
    ...     files=[f"{folder}/train.parquet"],
    ...     features=["feature_a", "feature_b", "feature_c"],
    ...     feature_set="small",
    ...     target="target_demo_20",
    ...     parameters={"split_criterion": "directional", "max_iter": 10},
    ... )
    >>> records["model"].n_eras, records["model"].last_era, records["model"].purge
    (20, '0020', 8)
    >>> model, record = load_trained(f"{folder}/model")
    >>> model.n_iter_
    10
    """
    model_dir, files = Path(model_dir), check_files(files)
    check_numbers(
        every_nth_era=(every_nth_era, 1),
        era_groups=(era_groups, 0),
        checkpoint_every=(checkpoint_every, 1),
        purge=(0 if purge is None else purge, 0),
        random_state=(random_state, 0),
    )
    target = check_target(target)
    features = check_features(features, target)
    make = partial(make_estimator, features=features, random_state=random_state)
    settings = {MODEL: dict(parameters)}
    estimators = {MODEL: make(parameters)}
    if compare_with_gain:
        settings[GAIN] = gain_parameters(parameters, estimators[MODEL])
        estimators[GAIN] = make(settings[GAIN])
    record = ModelRecord(
        model_name=model_name,
        version=version,
        feature_set=feature_set,
        features=features,
        target=target,
        horizon=_horizon(target, purge),
        purge=purge_of(target, purge),
        first_era="",
        last_era="",
        n_eras=0,
        n_rows=0,
        every_nth_era=every_nth_era,
        era_groups=era_groups,
        parameters=dict(parameters),
        random_state=random_state,
        era_bounds=[first_era, last_era],
        files=[file.name for file in files],
    )
    fits = {
        name: FitDescription(describe_parameters(estimator), target, features)
        for name, estimator in estimators.items()
    }
    checkpoints = find_checkpoints(model_dir, fits) if resume else {}
    if resume and MODEL not in checkpoints:
        checkpoints = {}  # what is there of the other went with an earlier model
        warnings.warn(
            f"There is no checkpoint in {model_dir}: the training starts anew.",
            UserWarning,
            stacklevel=2,
        )
    with _blaming_files(files):
        selection = select_eras(
            files,
            target=target,
            first_era=first_era,
            last_era=last_era,
            every_nth_era=every_nth_era,
            era_groups=era_groups,
        )
        dataset = _read(
            files,
            selection,
            estimators[MODEL],
            features=features,
            target=target,
            on_progress=on_progress,
        )
    record = _record_data(record, selection, dataset)
    data = {
        key: getattr(record, key)
        for key in (
            "version",
            "first_era",
            "last_era",
            "n_eras",
            "every_nth_era",
            "era_groups",
            "n_rows",
        )
    }
    fits = {
        name: replace(fit, data=data, data_fingerprint=record.data_fingerprint)
        for name, fit in fits.items()
    }
    for name, checkpoint in checkpoints.items():
        checkpoint.check_is_of(fits[name])
    records = {
        name: _fit_and_save(
            name,
            estimator,
            dataset,
            replace(record, parameters=settings[name]),
            fits[name],
            model_dir=model_dir,
            checkpoint=checkpoints.get(name),
            checkpoint_every=checkpoint_every,
            later=list(estimators)[i + 1 :],
            on_progress=on_progress,
        )
        for i, (name, estimator) in enumerate(estimators.items())
    }
    for name in (GAIN, MODEL):  # the first model's says that it is complete
        remove_checkpoint(checkpoint_folder(model_dir, name))
    return records


def _fit_and_save(
    name: str,
    estimator: HistGradientBoostingRegressor,
    dataset: BinnedDataset,
    record: ModelRecord,
    fit: FitDescription,
    *,
    model_dir: Path,
    checkpoint: Checkpoint | None,
    checkpoint_every: int,
    later: list[str],
    on_progress: Callable[[str, int, int], None] | None,
) -> ModelRecord:
    """Fit one model, or go on with it, and save it."""
    max_iter = estimator.max_iter

    def report(n_trees: int) -> None:
        if on_progress is not None:
            on_progress(name, n_trees, max_iter)

    n_trees = 0 if checkpoint is None else checkpoint.n_trees
    report(n_trees)
    folder = checkpoint_folder(model_dir, name)
    if n_trees == max_iter:
        # It was complete, and what follows was not. What trees do not depend on, such
        # as the purge, may have changed.
        saved = read_record(model_dir, name)
        record = replace(
            record,
            sha256=saved.sha256,
            created=saved.created,
            versions=saved.versions,
        )
        write_record(model_dir, record, name)
        return record
    if checkpoint is None:
        if name == MODEL:
            # Of another training, if there is one, whether or not this one compares.
            remove_checkpoint(checkpoint_folder(model_dir, GAIN))
    else:
        n_jobs = estimator.n_jobs
        estimator = checkpoint.load().set_params(n_jobs=n_jobs, warm_start=True)
    writer = CheckpointWriter(
        folder,
        fit,
        every=checkpoint_every,
        n_trees=n_trees,
        max_iter=max_iter,
        on_tree=report,
    )
    estimator.set_callbacks(writer)
    try:
        estimator.fit(dataset)
    except ValueError as error:
        raise blame_parameter(error) from error
    estimator.set_callbacks().set_params(warm_start=False)
    if name == MODEL:
        remove_trained(model_dir, GAIN)  # that of another model
    record = save_trained(model_dir, estimator, record, name)
    if later:
        mark_checkpoint(folder, model_file(model_dir, name), max_iter, fit)
    return record


def _read(
    files: list[Path],
    selection: EraSelection,
    estimator: HistGradientBoostingRegressor,
    *,
    features: list[str],
    target: str,
    on_progress: Callable[[str, int, int], None] | None,
) -> BinnedDataset:
    def report(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress("reading", done, total)

    report(0, len(features))
    return BinnedDataset.from_parquet(
        files,
        target=target,
        era=ERA_COLUMN,
        features=features,
        max_bins=estimator.max_bins,
        random_state=estimator.random_state,
        drop_missing_target=True,
        keep_eras=selection.labels,
        on_progress=report,
    )


def _record_data(
    record: ModelRecord, selection: EraSelection, dataset: BinnedDataset
) -> ModelRecord:
    """The record with what is known once the data are read."""
    missing = dataset.bin_mapper.missing_values_bin_idx_
    return replace(
        record,
        first_era=selection.first,
        last_era=selection.last,
        n_eras=len(selection.labels),
        n_rows=len(dataset),
        n_rows_without_target=selection.n_rows_without_target,
        features_with_missing=[
            name
            for name, column in zip(record.features, dataset.X_binned.T, strict=True)
            if (column == missing).any()
        ],
        data_fingerprint=fingerprint(dataset),
    )


def _horizon(target: str, purge: int | None) -> int | None:
    """Business days that the target looks ahead, unknown only where nobody needs it."""
    try:
        return horizon_of(target)
    except ConfigError:
        if purge is None:
            raise
        return None


@contextmanager
def _blaming_files(files: list[Path]) -> Iterator[None]:
    """Raise errors about data, of whatever library, as a `DataError`."""
    try:
        yield
    except (ValueError, OSError) as error:
        names = ", ".join(file.name for file in files)
        raise DataError(
            f"Cannot train on {names}: {' '.join(str(error).split())}"
        ) from error


__all__ = ["train"]
