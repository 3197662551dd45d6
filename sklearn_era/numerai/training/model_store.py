"""A trained model in its folder: the model file, and a record of how it came about.

``model.skops`` is the model and ``model.json`` the record, which people can read;
``gain.skops`` and ``gain.json`` are those of the plain model that was trained for
comparison, if one was.
"""

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import sklearn_era
from sklearn_era._optional import import_optional
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import ModelFileError, load_model, save_model
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import file_sha256, write_atomically

_FORMAT = 1


@dataclass(frozen=True)
class ModelRecord:
    """How a model came about: all that prediction, validation and people ask for.

    Attributes
    ----------
    model_name : str
        The name of the model at Numerai.
    version : str
        The version of the data, ``"v5.3"`` for one.
    feature_set : str
        The name of the set that the features are.
    features : list of str
        The columns to predict from, in this order.
    target : str
        The column that was trained on.
    horizon : int or None
        Business days that the target looks ahead; None where its name does not say.
    purge : int
        How many eras after `last_era` validation has to leave out.
    first_era, last_era : str
        Labels of the first and the last era that was trained on.
    n_eras : int
        The number of eras of the files that were trained on.
    n_rows : int
        The number of rows that were trained on.
    every_nth_era : int
        1 if all eras were, n if every n-th was taken.
    era_groups : int
        How many groups of consecutive eras were the eras of the fit; 0 if the eras
        themselves were.
    parameters : dict
        The parameters of the estimator that were set.
    n_rows_without_target : int
        Rows of these eras that were left out, as they have no target (yet).
    features_with_missing : list of str
        The features that had missing values in training.
    random_state : int
        The seed of all that is drawn.
    era_bounds : list of str or None
        The first and the last era that were asked for, None for those of the files.
    files : list of str
        The names of the files that were read.
    data_fingerprint : str
        blake2b of the binned rows, targets and eras, as 64 hexadecimal digits.
    sha256 : str
        That of the model file. Set by `save_trained`.
    created : str
        When the model was saved, in UTC (ISO 8601). Set by `save_trained`.
    versions : dict of str to str
        Of Python and the packages that trained the model. Set by `save_trained`.
    """

    model_name: str
    version: str
    feature_set: str
    features: list[str]
    target: str
    horizon: int | None
    purge: int
    first_era: str
    last_era: str
    n_eras: int
    n_rows: int
    every_nth_era: int
    era_groups: int
    parameters: dict[str, Any]
    n_rows_without_target: int = 0
    features_with_missing: list[str] = field(default_factory=list)
    random_state: int = 0
    era_bounds: list[str | None] = field(default_factory=lambda: [None, None])
    files: list[str] = field(default_factory=list)
    data_fingerprint: str = ""
    sha256: str = ""
    created: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def save_trained(
    model_dir: str | os.PathLike[str],
    estimator: HistGradientBoostingRegressor,
    record: ModelRecord,
    name: str = "model",
) -> ModelRecord:
    """Write a model and its record into a folder, both or neither.

    Whenever the process may be killed, `load_trained` finds the old model or the new
    one, with its own record.

    Parameters
    ----------
    model_dir : str or path
        The folder, which is made if it is not there.
    estimator : HistGradientBoostingRegressor
        The fitted model.
    record : ModelRecord
        How it came about.
    name : str, default="model"
        The files' name without a suffix; ``"gain"`` for the plain model.

    Returns
    -------
    record : ModelRecord
        The same with `sha256`, `created` and `versions`, as it was written.
    """
    folder = Path(model_dir)
    folder.mkdir(parents=True, exist_ok=True)
    waiting = _waiting_file(folder, name)
    save_model(estimator, waiting, target=record.target, era="era")
    record = replace(
        record,
        sha256=file_sha256(waiting),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_versions(),
    )
    # From here on the record is that of the file that waits; `load_trained` knows.
    write_record(folder, record, name)
    os.replace(waiting, model_file(folder, name))
    return record


def load_trained(
    model_dir: str | os.PathLike[str], name: str = "model"
) -> tuple[HistGradientBoostingRegressor, ModelRecord]:
    """Read a model and its record, having checked that they belong together.

    Parameters
    ----------
    model_dir : str or path
        The folder that `save_trained` wrote into.
    name : str, default="model"
        The files' name without a suffix.

    Returns
    -------
    estimator : HistGradientBoostingRegressor
        The fitted model.
    record : ModelRecord
        How it came about.

    Raises
    ------
    DataError
        If one of the files is missing or damaged, if the model is not the one of the
        record, or if another version of sklearn_era or scikit-learn wrote it.
    """
    folder = Path(model_dir)
    record = read_record(folder, name)
    path = model_file(folder, name)
    waiting = _waiting_file(folder, name)
    # A process that was killed between its last two steps left the model waiting.
    candidates = [file for file in (path, waiting) if file.is_file()]
    if not candidates:
        raise DataError(
            f"{path} is missing, though its record {record_file(folder, name).name} is "
            "there: train the model again."
        )
    found = [file for file in candidates if file_sha256(file) == record.sha256]
    if not found:
        raise DataError(
            f"{path} is not the model that {record_file(folder, name).name} describes "
            "(its sha256 differs): the file was changed or replaced. Train the model "
            "again."
        )
    try:
        estimator, _ = load_model(found[0])
    except ModelFileError as error:
        raise DataError(str(error)) from error
    if not isinstance(estimator, HistGradientBoostingRegressor):
        raise DataError(
            f"{path} holds a {type(estimator).__name__}, not a regressor: train the "
            "model again."
        )
    return estimator, record


def read_record(model_dir: str | os.PathLike[str], name: str = "model") -> ModelRecord:
    """Read the record of a model, without the model.

    Raises
    ------
    DataError
        If there is none, or it is damaged.
    """
    path = record_file(Path(model_dir), name)
    document = read_json(path)
    if document is None:
        raise DataError(
            f"{path.parent} has no trained model {name!r}: train it first "
            "('sklearn-era numerai train')."
        )
    if document.get("format") != _FORMAT:
        raise DataError(
            f"{path} has format {document.get('format')!r}, and this version of "
            f"sklearn_era reads format {_FORMAT}: train the model again, or install "
            "the version that wrote it."
        )
    names = {item.name for item in fields(ModelRecord)}
    given = {key: value for key, value in document.items() if key != "format"}
    if given.keys() != names:
        odd = sorted(given.keys() ^ names)
        raise DataError(
            f"{path} is no record of a model: {odd[0]!r} is "
            f"{'missing' if odd[0] in names else 'unknown'}. Train the model again."
        )
    return ModelRecord(**given)


def write_record(model_dir: Path, record: ModelRecord, name: str) -> None:
    """Write the record of a model file that is there."""
    document = {"format": _FORMAT, **asdict(record)}
    # The long list of features stands last, where it is in nobody's way.
    document["features"] = document.pop("features")
    write_json(record_file(model_dir, name), document)


def remove_trained(model_dir: str | os.PathLike[str], name: str) -> None:
    """Remove a model and its record, if they are there."""
    folder = Path(model_dir)
    for path in (
        record_file(folder, name),
        model_file(folder, name),
        _waiting_file(folder, name),
    ):
        path.unlink(missing_ok=True)


def model_file(model_dir: Path, name: str) -> Path:
    """The model file of a name."""
    return model_dir / f"{name}.skops"


def record_file(model_dir: Path, name: str) -> Path:
    """The record of a name."""
    return model_dir / f"{name}.json"


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON file that appears complete or not at all."""
    text = json.dumps(document, indent=2, default=plain) + "\n"
    write_atomically(path, text.encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object; None if there is no such file.

    Raises
    ------
    DataError
        If the file holds something else.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(
            f"{path} is damaged, it is no JSON ({error}): remove it, and train the "
            "model again."
        ) from error
    if not isinstance(document, dict):
        raise DataError(
            f"{path} holds no JSON object: remove it, and train the model again."
        )
    return document


def _waiting_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.new.skops"


def plain(value: Any) -> Any:
    """What JSON has for NumPy's numbers and arrays."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} of type {type(value).__name__} is nothing for JSON.")


def _versions() -> dict[str, str]:
    pyarrow = import_optional("pyarrow", extra="numerai")
    return {
        "python": platform.python_version(),
        "sklearn_era": sklearn_era.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "pyarrow": pyarrow.__version__,
        "platform": sys.platform,
    }


__all__ = [
    "ModelRecord",
    "load_trained",
    "read_record",
    "save_trained",
]
