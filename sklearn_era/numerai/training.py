"""Training: from Parquet files to a fit and its record, with checkpoints between."""

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_monotonic_cst

from sklearn_era._criterion_table import ERA_EFFECT_NAMES, ERA_PARAMETER_NAMES
from sklearn_era.ensemble import BinnedDataset
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._criteria.parameters import CriterionPlan
from sklearn_era.numerai.checkpoints import Checkpoints, folder_of, read_checkpoint
from sklearn_era.numerai.config import TrainSection
from sklearn_era.numerai.data import check_has, decoding
from sklearn_era.numerai.eras import open_columns, select_eras
from sklearn_era.numerai.errors import ConfigError, DataError, NoModelError
from sklearn_era.numerai.layers import check_keys
from sklearn_era.numerai.store import ModelRecord, differences, read_record, save_fit

# What a training sets itself, and what it leaves out, with the reason.
_OF_EARLY_STOPPING = ["early_stopping", "scoring", "n_iter_no_change", "tol"]
_OF_EARLY_STOPPING += ["validation_fraction", "validation_eras"]
_REFUSED = {
    **dict.fromkeys(_OF_EARLY_STOPPING, "training never stops early; remove it"),
    "random_state": "set random_state in [train] instead",
    "warm_start": "interrupted training always resumes; remove it",
    "verbose": "progress is always shown; remove it",
    "categorical_features": "all features are numbers; remove it",
}

# What the plain model, which knows no eras, does without.
_ERA_PARAMETERS = ("split_criterion", *ERA_PARAMETER_NAMES, *ERA_EFFECT_NAMES)

_File = str | PathLike[str]


def train(
    settings: TrainSection,
    *,
    files: Sequence[_File],
    features: Sequence[str],
    folder: _File,
    name: str = "model",
    model_name: str = "",
    version: str = "",
    restart: bool = False,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> ModelRecord:
    """Train on Numerai's files, and save the fit with its record.

    The files are binned as they are read, a byte a value, and never held. Rows whose
    target is missing are left out. A training that was interrupted goes on from its
    last checkpoint, and makes the model of one that was not, bit for bit.

    Parameters
    ----------
    settings : sklearn_era.numerai.config.TrainSection
        What to learn from and how; its parameters are those of
        :class:`~sklearn_era.ensemble.HistGradientBoostingRegressor` that are set. Its
        `files` and `feature_set` are names for the record.
    files : sequence of path
        Parquet files to train on, none of whose eras is in two of them.
    features : sequence of str
        The columns to train on, in the order in which the model will ask for them.
    folder : path
        Where ``<name>.skops`` and ``<name>.json`` appear once the fit is complete.
    name : str, default="model"
        The name of the fit.
    model_name : str, default=""
        The name of the model at Numerai, for the record.
    version : str, default=""
        The version of the data, ``"v5.3"`` for one, for the record.
    restart : bool, default=False
        Whether to train from the first tree although there is a checkpoint. One of
        another fit, or a damaged one, is not resumed either: a warning says why.
    on_progress : callable, default=None
        Called as ``on_progress(stage, done, total)``: with features of the stage
        ``"reading"``, and with trees of the stage `name`.

    Returns
    -------
    record : ModelRecord
        What the fit was asked for, what its data had, and how far its trees grew.

    Raises
    ------
    ConfigError
        If an argument or a parameter has a bad value, or no era is left.
    DataError
        If a file or column is missing or damaged, or the fit cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_era.numerai import train
    >>> from sklearn_era.numerai.config import TrainSection
    >>> folder, a = tempfile.mkdtemp(), np.arange(2000, dtype=np.int8) % 5
    >>> eras = np.repeat([f"{era:04}" for era in range(1, 21)], 100)
    >>> frame = pd.DataFrame({"era": eras, "a": a, "target_demo_20": a / 4})
    >>> frame.to_parquet(f"{folder}/train.parquet")
    >>> wanted = {"target": "target_demo_20", "files": ["train"], "last_era": "0012"}
    >>> settings = TrainSection(**wanted, parameters={"split_criterion": "era"})
    >>> files = [f"{folder}/train.parquet"]
    >>> record = train(settings, files=files, features=["a"], folder=folder)
    >>> record.n_eras, record.last_era, record.n_rows, record.n_trees
    (12, '0012', 1200, 100)
    """
    folder, paths, features = Path(folder), [Path(file) for file in files], [*features]
    if not paths:
        raise ConfigError("files is empty: pass at least one file to train on.")
    if not 0 < len({*features} - {settings.target}) == len(features):
        raise ConfigError("features must name each column once, and not the target.")
    estimator = make_estimator(settings, features)
    tell = on_progress or (lambda *_: None)
    asked = _request(settings, paths, features, version=version, model_name=model_name)
    selection = select_eras(paths, settings)
    tell("reading", 0, len(features))
    try:
        with decoding(", ".join(asked.files), "Cannot train on {shown}: {reason}."):
            dataset = BinnedDataset.from_parquet(
                paths,
                target=settings.target,
                era="era",
                features=features,
                max_bins=estimator.max_bins,
                random_state=settings.random_state,
                drop_missing_target=True,
                keep_eras=selection.labels,
                on_progress=partial(tell, "reading"),
            )
    except DataError:
        for path in paths:  # says which of them is damaged, if one is
            columns = open_columns(path)
            check_has(path, features, columns.names)
            with decoding(path):
                deque(columns.iter_batches(features), maxlen=0)
        raise
    eras, missing = [*selection.labels], dataset.bin_mapper.missing_values_bin_idx_
    by_name = zip(features, dataset.X_binned.T, strict=True)
    found = {
        "first_era": eras[0],
        "last_era": eras[-1],
        "n_eras": len(eras),
        "n_rows": len(dataset),
        "n_rows_without_target": selection.n_rows_without_target,
        "features_with_missing": [x for x, bins in by_name if (bins == missing).any()],
        "data_fingerprint": fingerprint(dataset),
    }
    record = asked.model_copy(update=found)
    due = range(0, estimator.max_iter, settings.checkpoint_every)
    own = Checkpoints(folder_of(folder, name), record, due, partial(tell, name))
    if not restart:
        estimator = own.resume(estimator)
    estimator.set_callbacks(own)
    try:
        estimator.fit(dataset)
    except ValueError as error:
        raise ConfigError(f"{settings.table_of(error)} {error}") from error
    tell(name, estimator.max_iter, estimator.max_iter)
    estimator.set_callbacks().set_params(warm_start=False)
    record = save_fit(folder, name, estimator, record)
    own.remove()
    return record


def why_train(
    settings: TrainSection,
    folder: Path,
    name: str,
    *,
    files: Sequence[_File],
    features: Sequence[str],
    version: str,
) -> str | None:
    """Why the stored fit is not the one configured, in words; None if it is.

    `files` are paths, or names such as "train", whose rounds play no part.
    """
    wanted = _request(settings, files, features, version=version)
    with suppress(DataError):  # of which the training warns
        checkpoint = read_checkpoint(folder_of(folder, name))
        if checkpoint is not None and not differences(checkpoint.fit, wanted):
            n = checkpoint.n_trees
            return f"interrupted training resumes after tree {n:,}"
    try:
        stored = read_record(folder, name)
    except NoModelError:
        return "not trained yet"
    return "; ".join(differences(stored, wanted)) or None


def gain_settings(settings: TrainSection) -> TrainSection:
    """The same fit by the plain gain, and without the parameters of eras."""
    if CriterionPlan.of(make_estimator(settings, None)).is_plain_gain:
        raise ConfigError(
            "compare_with_gain has nothing to compare: "
            f"{settings.table_of('split_criterion')} split_criterion is already "
            "the gain. Choose another criterion, or set compare_with_gain = false."
        )
    kept = {k: v for k, v in settings.parameters.items() if k not in _ERA_PARAMETERS}
    kept["split_criterion"] = "gain"
    return settings.model_copy(update={"parameters": kept})


def make_estimator(settings: TrainSection, features: Sequence[str] | None) -> Regressor:
    """The estimator of a fit, unfitted, with its parameters checked.

    Where the features are not known yet, what names them is not.
    """
    for name in settings.parameters:
        if name in _REFUSED:
            told = f"{settings.table_of(name)} {name} cannot be set"
            raise ConfigError(f"{told}: {_REFUSED[name]}.")
    known = Regressor().get_params().keys() - _REFUSED.keys()
    check_keys({x: settings.table_of(x) for x in settings.parameters}, sorted(known))
    estimator = Regressor(
        **settings.parameters, early_stopping=False, random_state=settings.random_state
    )
    # What `fit` would check, before there are data.
    try:
        estimator._validate_params()
        CriterionPlan.of(estimator)
        estimator._get_loss(sample_weight=None)
        if features is not None:
            named = clone(estimator)
            named.n_features_in_ = len(features)
            named.feature_names_in_ = np.array(features, dtype=object)
            _check_monotonic_cst(named, named.monotonic_cst)
            named._check_interaction_cst(len(features))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{settings.table_of(error)} {error}") from error
    return estimator


def fingerprint(dataset: BinnedDataset) -> str:
    """The blake2b of all that a fit takes from a data set; nothing is copied."""
    arrays = {"X_binned": dataset.X_binned, "y": dataset.y}
    for i, thresholds in enumerate(dataset.bin_mapper.bin_thresholds_):
        arrays[f"thresholds {i}"] = thresholds
    if dataset.eras is not None:
        arrays["eras"] = dataset.eras.codes
    digest = hashlib.blake2b(digest_size=32)
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        # Flat in the order of memory, and so a view.
        digest.update(array.reshape(-1, order="A").view(np.uint8).data)
    return digest.hexdigest()


def _request(
    settings: TrainSection, files: Sequence[_File], features: Sequence[str], **of: str
) -> ModelRecord:
    """The record as far as it is known before the data are read."""
    asked = settings.model_dump(exclude={"first_era", "last_era"}) | of
    asked["era_bounds"] = settings.first_era or None, settings.last_era or None
    asked["files"] = [Path(file).name for file in files]
    return ModelRecord(**asked, features=list(features), sha256="")
