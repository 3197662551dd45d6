"""Checkpoints of a fit: the trees so far, to go on with after the process was killed.

The fit called `name` has the folder ``checkpoint-<name>`` until it is complete::

    trees-000300.skops    the estimator with its first 300 trees
    checkpoint.json       names that file and its sha256, and says which fit it is of

The JSON file is replaced once the estimator's is complete, and then the one before is
removed: whenever the process is killed, it names a file that is there, complete.
"""

import secrets
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import field_validator

from sklearn_era.model_files import ModelFileError, save_model
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import Record, file_sha256
from sklearn_era.numerai.store import ModelRecord, differences, load_estimator

_DOCUMENT = "checkpoint.json"


class Checkpoint(Record):
    """A checkpoint: its model file, how many trees it has, and the fit they are of."""

    format: int = 2
    file: str
    sha256: str
    n_trees: int
    fit: ModelRecord

    @field_validator("fit", mode="before")
    @classmethod
    def _from_format_1(cls, fit: Any) -> Any:
        if isinstance(fit, dict) and "data" in fit:
            return {**fit, **fit["data"], "sha256": ""}
        return fit


def folder_of(folder: Path, name: str) -> Path:
    """The folder for the checkpoint of the fit of a name."""
    return folder / f"checkpoint-{name}"


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint of a folder, None if there is none."""
    advice = "Delete its folder to train from scratch."
    checkpoint = Checkpoint.read(folder / _DOCUMENT, advice=advice)
    if checkpoint is not None and Path(checkpoint.file).name != checkpoint.file:
        return None  # of format 1: the model is complete, and was to be compared
    return checkpoint


@dataclass(eq=False)
class Checkpoints:
    """What a fit goes on from, and the callback of the fit that writes the next ones.

    They are of the numbers of trees that are `due`; `on_tree` is told before each tree.
    """

    folder: Path
    fit: ModelRecord
    due: range
    on_tree: Callable[[int, int], None]
    n_trees: int = 0

    def resume(self, estimator: Any) -> Any:
        """The estimator to go on with: the checkpoint's, if it is of this fit."""
        try:
            checkpoint = read_checkpoint(self.folder)
            if checkpoint is None:
                return estimator
            different = differences(checkpoint.fit, self.fit)
            reason = f"it belongs to another fit: {'; '.join(different)}"
            if not different:
                path = self.folder / checkpoint.file
                resumed = load_estimator(path, checkpoint.sha256)
                self.n_trees = checkpoint.n_trees
                return resumed.set_params(n_jobs=estimator.n_jobs, warm_start=True)
        except DataError as error:
            reason = str(error).rstrip(".")
        told = f"Cannot resume the checkpoint in {self.folder}; training starts over"
        warnings.warn(f"{told} ({reason}).", stacklevel=3)
        return estimator

    def remove(self) -> None:
        """Remove the checkpoint, if there is one; first what makes it one."""
        (self.folder / _DOCUMENT).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.task_name == "iteration":
            self.on_tree(self.n_trees, estimator.max_iter)
            self.n_trees += 1

    @property
    def on_fit_task_end(self) -> Callable[..., None]:
        """The hook, looked up each time: naming `fitted_estimator` costs a copy."""
        return self._save if self.n_trees in self.due else self.setup

    def _save(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> None:
        """Write a checkpoint, which replaces the one before it once it is complete."""
        n_trees, document = self.n_trees, self.folder / _DOCUMENT
        file = self.folder / f"trees-{n_trees:06}.skops"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if file.exists():
                # An earlier training's, and its checkpoint until this one is complete.
                file = file.with_stem(f"{file.stem}-{secrets.token_hex(4)}")
            save_model(fitted_estimator, file, target=self.fit.target)
            made: dict[str, Any] = {"file": file.name, "sha256": file_sha256(file)}
            Checkpoint(**made, n_trees=n_trees, fit=self.fit).write(document)
            for other in {*self.folder.iterdir()} - {file, document}:
                # Those before, and what a killed process has left half-written.
                if other.is_dir():
                    shutil.rmtree(other, ignore_errors=True)
                else:
                    other.unlink(missing_ok=True)
        except (OSError, ModelFileError, DataError) as error:
            # Hours of training are not to be lost for want of a checkpoint.
            warnings.warn(
                f"The checkpoint of {n_trees} trees in {self.folder} could not be "
                f"written; training continues without it: {error}",
                stacklevel=2,
            )
