"""Train on Parquet files with checkpoints, and save the fit and its record.

Until the fit `name` is complete, the folder ``checkpoint-<name>`` has its checkpoint::

    trees-000300.era    the estimator with its first 300 trees
    checkpoint.json     the name and sha256 of that file, and the record of the fit

A new estimator file is completed first, then the JSON file is replaced, and then the
old estimator file is removed: however the process ends, the JSON file names a complete
estimator file.
"""

import secrets
import shutil
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import field_validator
from sklearn.base import clone
from sklearn.utils.validation import _check_monotonic_cst

from sklearn_era._warnings import refuse_moved
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.ensemble import BinnedDataset
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._criterion_plan import CriterionPlan
from sklearn_era.ensemble._parameter_table import MOVED
from sklearn_era.model_files import ModelFileError, save_model
from sklearn_era.model_selection import EraWalkForwardSplit
from sklearn_era.numerai import data, store
from sklearn_era.numerai.config import TrainSection, check_keys
from sklearn_era.numerai.errors import ConfigError, DataError, NoModelError, warn
from sklearn_era.numerai.files import Record, arrays_digest, file_sha256
from sklearn_era.numerai.out_of_date import differences

_DOCUMENT = "checkpoint.json"

# Parameters that cannot be set, with the reason.
_OF_EARLY_STOPPING = ["early_stopping", "scoring", "n_iter_no_change", "tol"]
_OF_EARLY_STOPPING += ["validation_fraction", "validation_eras"]
_REFUSED = {
    **dict.fromkeys(_OF_EARLY_STOPPING, "training never stops early; remove it"),
    "random_state": "set random_state in [train] instead",
    "warm_start": "interrupted training always resumes; remove it",
    "verbose": "progress is always shown; remove it",
    "categorical_features": "all features are numbers; remove it",
}

# Parameters that the plain model, which ignores eras, drops.
_ERA_PARAMETERS = {"split_criterion", "min_samples_per_era", "min_era_coverage"}
_ERA_PARAMETERS |= {"min_gain_share", "era_weighting", "leaf_shrinkage", "era_effects"}

_N_FOLDS = 3  # of an average
_MOST_VALUES = 20  # of features that have few


@dataclass(frozen=True)
class FitPlan:
    """A fit to be trained: its settings, its data, and the folder to save it in."""

    settings: TrainSection
    files: Sequence[Path]
    features: list[str]
    folder: Path
    name: str = "model"
    model_name: str = ""
    version: str = ""
    purge: int = 0  # weeks, in the folds of an average
    source: str = ""  # of a fit for validation, as in its record

    def record(self) -> store.ModelRecord:
        """Return the fit's record, with defaults for all that the data determine."""
        own = self.settings
        asked = own.model_dump(exclude={"first_era", "last_era", "files"})
        asked["purge_of_folds"] = self.purge
        if own.estimator != "auto":  # these two concern averages only
            asked |= {"purge_of_folds": 0, "time_budget": 0.0}
        return store.ModelRecord(
            **asked, era_bounds=(own.first_era or None, own.last_era or None),
            files=[file.name for file in self.files], features=self.features,
            model_name=self.model_name, version=self.version, sha256="",
            source=self.source,
        )  # fmt: skip

    def why_train(self) -> str | None:
        """Return the reason to train the fit: it is not trained yet, its training was
        interrupted or requested, or it differs from the plan. Return None if there is
        no reason.
        """
        wanted = self.record()
        with suppress(DataError):  # training warns of it
            checkpoint = read_checkpoint(self.folder / f"checkpoint-{self.name}")
            if checkpoint is not None and not differences(checkpoint.fit, wanted):
                return f"interrupted training resumes after tree {checkpoint.n_trees:,}"
        try:
            trained = store.read_record(self.folder, self.name)
        except NoModelError:
            return "not trained yet"
        if store.request_file(self.folder, self.name).exists():
            return "a new training was requested"
        return "; ".join(differences(trained, wanted)) or None


def train(
    plan: FitPlan, *, restart: bool = False,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> store.ModelRecord:  # fmt: skip
    """Train and save a fit; return its record. Resume from the last checkpoint, unless
    `restart`; the trees are bit-identical to trees of an uninterrupted training.
    An average starts anew. `on_progress` is called with the stage "reading" and counts
    of features, then with the fit's name and counts of trees.
    """
    settings, features, name = plan.settings, plan.features, plan.name
    if not features:
        raise ConfigError(f"The feature set {settings.feature_set!r} has no features.")
    if len({*features} - {settings.target}) < len(features):
        raise ConfigError("features must name each column once, and not the target.")
    estimator, asked = make_estimator(settings, features), plan.record()
    eras, n_unlabelled = data.select_eras(plan.files, settings)
    on_progress("reading", 0, len(features))
    found: dict[str, Any] = {"first_era": min(eras), "last_era": max(eras)}
    found |= {"n_eras": len(eras), "n_rows_without_target": n_unlabelled}
    found["values"] = few_values(plan.files, features, eras)
    if settings.estimator == "auto":
        average = make_average(estimator, settings, len(eras), plan.purge)
        X, y, labels = data.read_rows(plan.files, features, settings.target, eras)
        on_progress("reading", len(features), len(features))
        on_progress(name, 0, 1)
        with _naming_table(settings):
            average.fit(X, y, eras=labels)
        on_progress(name, 1, 1)
        digest = arrays_digest({"X": X.to_numpy(), "y": y, "eras": labels})
        found |= {"n_rows": y.size, "data_fingerprint": digest}
        found["features_with_missing"] = X.columns[X.isna().any()].tolist()
        record = asked.model_copy(update=found)
        return store.save_fit(plan.folder, name, average, record)
    dataset = _read_binned(
        plan.files, features, target=settings.target, max_bins=estimator.max_bins,
        random_state=settings.random_state, keep_eras=eras,
        on_progress=partial(on_progress, "reading"),
    )  # fmt: skip
    missing = dataset.bin_mapper.missing_values_bin_idx_
    by_name = zip(features, dataset.X_binned.T, strict=True)
    found |= {
        "n_rows": len(dataset),
        "features_with_missing": [x for x, bins in by_name if (bins == missing).any()],
        "data_fingerprint": fingerprint(dataset),
    }
    record = asked.model_copy(update=found)
    due = range(0, estimator.max_iter, settings.checkpoint_every)
    on_tree = partial(on_progress, name)
    own = Checkpoints(plan.folder / f"checkpoint-{name}", record, due, on_tree)
    if not restart:
        estimator = own.resume(estimator)
    estimator._follower = own
    with _naming_table(settings):
        estimator.fit(dataset)
    on_progress(name, estimator.max_iter, estimator.max_iter)
    estimator.set_params(warm_start=False)
    record = store.save_fit(plan.folder, name, estimator, record)
    (own.folder / _DOCUMENT).unlink(missing_ok=True)  # without it: no checkpoint
    shutil.rmtree(own.folder, ignore_errors=True)
    return record


def few_values(
    files: Sequence[Path], features: list[str], eras: Collection[str]
) -> list[float]:
    """Return the distinct values that all features together have in `eras`; [] if there
    are more than 20 such values.
    """
    # Most values are among those that were seen, which is faster to find than the
    # distinct values of all.
    found, seen = np.empty(0), np.empty(0, np.int8)
    for file in map(data.EraFile, files):
        runs = [run for run in file.runs() if run.label in eras]
        for block in file.blocks(features, runs) if runs else ():
            is_new = block == block  # not NaN
            for value in seen[:_MOST_VALUES].tolist():
                is_new &= block != value
            if is_new.any():
                seen = np.union1d(seen, block[is_new])
                found = np.unique(store.rounded(seen))
            if found.size > _MOST_VALUES:
                return []
    return [float(x) for x in found]


def make_average(plain: Any, fit: TrainSection, n_eras: int, purge: int) -> Any:
    """Return an unfitted average of `plain` and other models. The folds of the average
    test about the last half of the eras. Raise ConfigError for too few eras.
    """
    n_labels, n_weeks = fit.era_groups or n_eras, fit.every_nth_era
    # In eras of the fit: of `every_nth_era` weeks, one is taken.
    gap = -(-(purge + 1) // n_weeks) - 1
    gap = -(-gap // (n_eras // n_labels))
    if n_labels < gap + _N_FOLDS + 1:
        of = "eras" if n_labels == n_eras else f"groups of the {n_eras} eras"
        raise ConfigError(
            f"[train] estimator = 'auto' needs {gap + _N_FOLDS + 1} eras to learn from "
            f"some and leave others out, with a purge of {purge} weeks, and there are "
            f"{n_labels} {of}: use more eras, more era_groups, a lower every_nth_era "
            "or fewer [validate] folds, or set estimator = 'boosting'."
        )
    n_tested = max(1, min(n_labels // (2 * _N_FOLDS), (n_labels - gap) // 4))
    cv = EraWalkForwardSplit(_N_FOLDS, test_size=n_tested, gap=gap)
    budget: Any = {"time_budget": fit.time_budget or None}
    return AutoEraRegressor(plain, cv=cv, verbose=1, era_order="ordered", **budget)


@contextmanager
def _naming_table(settings: TrainSection, errors: Any = ValueError) -> Iterator[None]:
    """Turn `errors` in the block into a ConfigError that names the settings' table."""
    try:
        yield
    except errors as error:
        raise ConfigError(f"{settings.table_of(error)} {error}") from error


def _read_binned(paths: Sequence[Path], features: list[str], **options: Any) -> Any:
    """Return the binned rows that have a target; raise DataError for a damaged file."""
    shown = ", ".join(path.name for path in paths)
    try:
        with data.decoding(shown, "Cannot train on {shown}: {reason}."):
            options |= {"features": features, "era": "era", "drop_missing_target": True}
            return BinnedDataset.from_parquet(paths, **options)
    except DataError:
        for path in paths:  # raises for a damaged file
            file = data.EraFile(path)
            file.check_numeric(features)
            with data.decoding(path):
                deque(file.columns.iter_batches(features), maxlen=0)
        raise


def gain_settings(fits: Sequence[TrainSection]) -> list[TrainSection]:
    found = []
    for fit in fits:
        plan = CriterionPlan.from_estimator(make_estimator(fit, None))
        if fit.estimator == "auto" or not plan.is_plain_gain:
            of_eras = {k for k in fit.parameters if k.split("__")[0] in _ERA_PARAMETERS}
            kept = {k: v for k, v in fit.parameters.items() if k not in of_eras}
            kept["split_criterion"] = "gain"
            fit = fit.model_copy(update={"parameters": kept, "estimator": "boosting"})
        found.append(fit)
    if found == [*fits]:
        raise ConfigError(
            "compare_with_gain has nothing to compare: "
            f"{fits[0].table_of('split_criterion')} split_criterion is already "
            "the gain. Choose another criterion, or set compare_with_gain = false."
        )
    return found


def make_estimator(settings: TrainSection, features: Sequence[str] | None) -> Regressor:
    """Check parameters, and return the unfitted booster. An average of models takes the
    booster as its first member, the plain model.
    """
    for name in filter(_REFUSED.get, settings.parameters):
        text = f"{settings.table_of(name)} {name} cannot be set"
        raise ConfigError(f"{text}: {_REFUSED[name]}.")
    known = Regressor().get_params().keys() - _REFUSED.keys()
    own = {name.split("__")[0]: settings.table_of(name) for name in settings.parameters}
    estimator = Regressor(early_stopping=False, random_state=settings.random_state)
    # The checks of `fit`, before the data are read.
    with _naming_table(settings, (TypeError, ValueError)):
        refuse_moved(MOVED, own, "the estimators")
        check_keys(own, sorted(known))
        estimator.set_params(**settings.parameters)
        estimator._validate_params()
        CriterionPlan.from_estimator(estimator)
        estimator._get_loss(sample_weight=None)
        if features is not None:
            named = clone(estimator)
            named.n_features_in_ = len(features)
            named.feature_names_in_ = np.array(features, dtype=object)
            _check_monotonic_cst(named, named.monotonic_cst)
            named._check_interaction_cst(len(features))
    return estimator


def fingerprint(dataset: BinnedDataset) -> str:
    """Return the blake2b digest of a data set's bins, thresholds, targets and eras."""
    arrays = {"X_binned": dataset.X_binned, "y": dataset.y}
    for i, thresholds in enumerate(dataset.bin_mapper.bin_thresholds_):
        arrays[f"thresholds {i}"] = thresholds
    if dataset.eras is not None:
        arrays["eras"] = dataset.eras.codes
    return arrays_digest(arrays)


class Checkpoint(Record):
    """The record of a checkpoint: its model file, number of trees, and fit."""

    format: int = 2
    file: str
    sha256: str
    n_trees: int
    fit: store.ModelRecord

    @field_validator("fit", mode="before")
    @classmethod
    def _from_format_1(cls, fit: Any) -> Any:
        if isinstance(fit, dict) and "data" in fit:
            return {**fit, **fit["data"], "sha256": ""}
        return fit


def read_checkpoint(folder: Path) -> Checkpoint | None:
    advice = "Delete its folder to train from scratch."
    checkpoint = Checkpoint.read(folder / _DOCUMENT, advice=advice)
    if checkpoint is not None and Path(checkpoint.file).name != checkpoint.file:
        return None  # of format 1: the model is complete, and was to be compared
    return checkpoint


@dataclass(eq=False)
class Checkpoints:
    """Resumes a fit from its checkpoint, and writes checkpoints during the fit."""

    folder: Path
    fit: store.ModelRecord
    due: range  # numbers of trees
    on_tree: Callable[[int, int], None]  # called before each tree
    n_trees: int = 0

    def resume(self, estimator: Any) -> Any:
        """Return the checkpoint's estimator if the checkpoint is of this fit. Otherwise
        return `estimator`, and warn if there is another or a damaged checkpoint.
        """
        try:
            checkpoint = read_checkpoint(self.folder)
            if checkpoint is None:
                return estimator
            different = differences(checkpoint.fit, self.fit)
            reason = f"it belongs to another fit: {'; '.join(different)}"
            if not different:
                path = self.folder / checkpoint.file
                resumed = store.load_estimator(path, checkpoint.sha256)
                self.n_trees = checkpoint.n_trees
                return resumed.set_params(n_jobs=estimator.n_jobs, warm_start=True)
        except DataError as error:
            reason = str(error).rstrip(".")
        text = f"Cannot resume the checkpoint in {self.folder}; training starts over"
        warn(f"{text} ({reason}).")
        return estimator

    def begin_iteration(self, estimator: Any) -> None:
        self.on_tree(self.n_trees, estimator.max_iter)
        self.n_trees += 1

    def end_iteration(self, estimator: Any, fitted: Callable[[], Any]) -> None:
        if self.n_trees in self.due:
            stopped_here = clone(estimator)
            vars(stopped_here).update(fitted())
            self._save(stopped_here)

    def _save(self, fitted_estimator: Any) -> None:
        """Write a checkpoint; once it is complete, remove the previous checkpoint."""
        n_trees, document = self.n_trees, self.folder / _DOCUMENT
        file = self.folder / f"trees-{n_trees:06}.era"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if file.exists():
                # The current checkpoint, of an earlier training: keep it until then.
                file = file.with_stem(f"{file.stem}-{secrets.token_hex(4)}")
            save_model(fitted_estimator, file, target=self.fit.target)
            made: dict[str, Any] = {"file": file.name, "sha256": file_sha256(file)}
            Checkpoint(**made, n_trees=n_trees, fit=self.fit).write(document)
            for other in {*self.folder.iterdir()} - {file, document}:
                # Older checkpoints, and partial files of a killed process.
                if other.is_dir():
                    shutil.rmtree(other, ignore_errors=True)
                else:
                    other.unlink(missing_ok=True)
        except (OSError, ModelFileError, DataError) as error:
            # A failed checkpoint must not end hours of training.
            text = f"The checkpoint of {n_trees} trees in {self.folder} could not be"
            warn(f"{text} written; training continues without it: {error}")
