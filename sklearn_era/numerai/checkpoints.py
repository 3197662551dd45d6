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
from sklearn_era.numerai.store import ModelRecord

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


def read(folder: Path) -> Checkpoint | None:
    """The checkpoint of a folder, None if there is none."""
    advice = "Remove its folder to train from the start."
    checkpoint = Checkpoint.read(folder / _DOCUMENT, advice=advice)
    if checkpoint is not None and Path(checkpoint.file).name != checkpoint.file:
        return None  # of format 1: the model is complete, and was to be compared
    return checkpoint


def remove(folder: Path) -> None:
    """Remove a checkpoint, if there is one; first what makes it one."""
    (folder / _DOCUMENT).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(eq=False)
class Writer:
    """A callback that counts trees, and writes a checkpoint of each number that is due.

    A warm start finds `n_trees` done. `on_tree` is told of these and all after each.
    """

    folder: Path
    fit: ModelRecord
    due: range
    n_trees: int
    on_tree: Callable[[int, int], None]

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.task_name == "iteration":
            self.n_trees += 1

    @property
    def on_fit_task_end(self) -> Callable[..., None]:
        """The hook, looked up each time: naming `fitted_estimator` costs a copy."""
        return self._save if self.n_trees in self.due else self._tell

    def _tell(self, estimator: Any, context: Any) -> None:
        if context.task_name == "iteration":
            self.on_tree(self.n_trees, estimator.max_iter)

    def _save(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> None:
        try:
            self._write(fitted_estimator)
        except (OSError, ModelFileError, DataError) as error:
            # Hours of training are not to be lost for want of a checkpoint.
            warnings.warn(
                f"The checkpoint of {self.n_trees} trees in {self.folder} could not be "
                f"written, and the training goes on without it: {error}",
                stacklevel=2,
            )
        self._tell(estimator, context)

    def _write(self, estimator: Any) -> None:
        """Write a checkpoint, which replaces the one before it once it is complete."""
        folder, n = self.folder, self.n_trees
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"trees-{n:06}.skops"
        if file.exists():
            # Of an earlier training, whose checkpoint it is until this one is complete.
            file = folder / f"{file.stem}-{secrets.token_hex(4)}.skops"
        save_model(estimator, file, target=self.fit.target)
        sha256 = file_sha256(file)
        checkpoint = Checkpoint(file=file.name, sha256=sha256, n_trees=n, fit=self.fit)
        checkpoint.write(folder / _DOCUMENT)
        for other in folder.iterdir():
            # Those before, and what a killed process has left half-written.
            if other.is_dir():
                shutil.rmtree(other, ignore_errors=True)
            elif other.name not in (_DOCUMENT, file.name):
                other.unlink(missing_ok=True)
