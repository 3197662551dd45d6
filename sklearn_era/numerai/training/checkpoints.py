"""Checkpoints of a fit: the trees so far, to go on with after the process was killed.

A fit has a folder for its checkpoint::

    trees-000300.skops    the estimator with its first 300 trees
    checkpoint.json       names that file and its sha256, and says which fit it is of

The JSON file is replaced after the estimator's file is complete, and the one before is
removed after that: whenever the process is killed, the JSON file names a file that is
there, complete.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import ModelFileError, load_model, save_model
from sklearn_era.numerai.errors import CheckpointError, DataError
from sklearn_era.numerai.files import file_sha256
from sklearn_era.numerai.training.fit_identity import FitDescription, differences
from sklearn_era.numerai.training.model_store import read_json, write_json

_DOCUMENT = "checkpoint.json"
_FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is there, its file checked.

    Attributes
    ----------
    folder : Path
        Where it lies.
    file : Path
        The model file with the trees.
    n_trees : int
        How many there are.
    fit : FitDescription
        The fit that they are of.
    """

    folder: Path
    file: Path
    n_trees: int
    fit: FitDescription

    def check_is_of(self, fit: FitDescription) -> None:
        """Check that a fit would go on with these trees.

        Parameters
        ----------
        fit : FitDescription
            The fit. Before its data are read, the rest is compared.

        Raises
        ------
        CheckpointError
            If anything differs; the message says what.
        """
        different = differences(self.fit, fit)
        if different:
            raise CheckpointError(
                f"The checkpoint in {self.folder} is of another fit: "
                f"{'; '.join(different)}. Set that back to resume, or train without "
                "resume to start anew."
            )

    def load(self) -> HistGradientBoostingRegressor:
        """The estimator with the trees so far.

        Raises
        ------
        DataError
            If another version of sklearn_era or scikit-learn wrote the file, which
            cannot go on with its trees.
        """
        try:
            estimator, _ = load_model(self.file)
        except ModelFileError as error:
            raise DataError(
                f"The checkpoint cannot be resumed: {error} Or train without resume to "
                "start anew."
            ) from error
        return estimator


def checkpoint_folder(model_dir: Path, name: str) -> Path:
    """The folder for the checkpoint of a model, ``"model"`` or ``"gain"``."""
    return model_dir / f"checkpoint-{name}"


def find_checkpoints(
    model_dir: Path, fits: Mapping[str, FitDescription]
) -> dict[str, Checkpoint]:
    """The checkpoints of some models, before the data are read.

    Parameters
    ----------
    model_dir : Path
        The folder of the models.
    fits : mapping of str to FitDescription
        The fit of each model, as far as it is known.

    Returns
    -------
    found : dict of str to Checkpoint
        Those that are there.

    Raises
    ------
    CheckpointError
        If one is of another fit.
    DataError
        If one is damaged.
    """
    found = {}
    for name, fit in fits.items():
        checkpoint = read_checkpoint(checkpoint_folder(model_dir, name))
        if checkpoint is not None:
            checkpoint.check_is_of(replace(fit, data=checkpoint.fit.data))
            found[name] = checkpoint
    return found


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint of a folder.

    Returns
    -------
    checkpoint : Checkpoint or None
        None if there is none, or it was that of a finished model that has been
        replaced.

    Raises
    ------
    DataError
        If one of its files was damaged or removed.
    """
    document = read_json(folder / _DOCUMENT)
    if document is None:
        return None
    advice = "Train without resume to start anew."
    try:
        if document["format"] != _FORMAT:
            raise DataError(
                f"{folder / _DOCUMENT} is of another version of sklearn_era. {advice}"
            )
        file = folder / document["file"]
        sha256, n_trees = document["sha256"], int(document["n_trees"])
        fit = FitDescription(**document["fit"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{folder / _DOCUMENT} is damaged, or is no checkpoint: {error!r}. {advice}"
        ) from error
    is_own = file.name == document["file"]
    if not is_own and not (file.is_file() and file_sha256(file) == sha256):
        return None
    if not file.is_file():
        raise DataError(f"The checkpoint's file {file} is missing. {advice}")
    if is_own and file_sha256(file) != sha256:
        raise DataError(
            f"The checkpoint's file {file} was changed or damaged (its sha256 differs "
            f"from that in {_DOCUMENT}). {advice}"
        )
    return Checkpoint(folder, file, n_trees, fit)


def write_checkpoint(
    folder: Path,
    estimator: HistGradientBoostingRegressor,
    n_trees: int,
    fit: FitDescription,
) -> None:
    """Write a checkpoint, which replaces the one before it once it is complete.

    Parameters
    ----------
    folder : Path
        The folder of this fit's checkpoint, which is made if it is not there.
    estimator : HistGradientBoostingRegressor
        A copy that is fitted so far.
    n_trees : int
        How many trees it has.
    fit : FitDescription
        The fit that goes on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"trees-{n_trees:06}.skops"
    if file.exists():
        # Of an earlier training, whose checkpoint it is until this one is complete.
        file = folder / f"{file.stem}-{secrets.token_hex(4)}.skops"
    save_model(estimator, file, target=fit.target)
    mark_checkpoint(folder, file, n_trees, fit)


def mark_checkpoint(
    folder: Path, file: Path, n_trees: int, fit: FitDescription
) -> None:
    """Make a model file the checkpoint of a folder; of a finished fit, the model's own.

    Parameters
    ----------
    folder : Path
        The folder of the fit's checkpoint.
    file : Path
        A complete model file, in this folder or in another.
    n_trees : int
        How many trees it has.
    fit : FitDescription
        The fit that they are of.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The long list of features stands last, where it is in nobody's way.
    described = asdict(fit)
    described["features"] = described.pop("features")
    document = {
        "format": _FORMAT,
        "file": os.path.relpath(file, folder),
        "sha256": file_sha256(file),
        "n_trees": n_trees,
        "fit": described,
    }
    write_json(folder / _DOCUMENT, document)
    for other in folder.iterdir():
        # Those before, and what a killed process has left half-written.
        if other.name == _DOCUMENT or other == file:
            continue
        if other.is_dir():
            shutil.rmtree(other, ignore_errors=True)
        else:
            other.unlink(missing_ok=True)


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint, if there is one."""
    # First what makes it one: half removed, it is none.
    (folder / _DOCUMENT).unlink(missing_ok=True)
    if folder.is_dir():
        shutil.rmtree(folder)


class CheckpointWriter:
    """A callback that counts trees, and writes a checkpoint where one is due.

    Parameters
    ----------
    folder : Path
        The folder of this fit's checkpoint.
    fit : FitDescription
        The fit that it follows.
    every : int
        A checkpoint is due each time that so many trees are done, not when all are.
    n_trees : int
        How many a warm start finds done.
    max_iter : int
        How many there will be.
    on_tree : callable
        Called with the number of trees done after each.
    """

    def __init__(
        self,
        folder: Path,
        fit: FitDescription,
        *,
        every: int,
        n_trees: int,
        max_iter: int,
        on_tree: Callable[[int], None],
    ):
        self._folder = folder
        self._fit = fit
        self._every = every
        self._n_trees = n_trees
        self._max_iter = max_iter
        self._on_tree = on_tree

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.task_name == "iteration":
            self._n_trees += 1

    @property
    def on_fit_task_end(self) -> Callable[..., None]:
        """The hook: one that asks for a copy of the estimator only where it is saved.

        scikit-learn takes copies for hooks that name `fitted_estimator`, and looks the
        hook up each time.
        """
        is_due = self._n_trees % self._every == 0 and self._n_trees < self._max_iter
        return self._end_and_save if is_due else self._end

    def _end(self, estimator: Any, context: Any) -> None:
        if context.task_name == "iteration":
            self._on_tree(self._n_trees)

    def _end_and_save(
        self, estimator: Any, context: Any, *, fitted_estimator: Any
    ) -> None:
        if context.task_name == "iteration":
            write_checkpoint(self._folder, fitted_estimator, self._n_trees, self._fit)
            self._on_tree(self._n_trees)


__all__ = [
    "Checkpoint",
    "CheckpointWriter",
    "checkpoint_folder",
    "find_checkpoints",
    "mark_checkpoint",
    "read_checkpoint",
    "remove_checkpoint",
    "write_checkpoint",
]
