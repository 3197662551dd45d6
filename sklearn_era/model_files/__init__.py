"""Files that hold a fitted estimator, for another process to predict with.

A file is a zip archive of JSON and plain .npy arrays, of which ``_estimators`` makes
the estimator anew, ``_values`` its parameters and attributes, and ``_trees`` its trees,
each checked. The metadata are a member of their own, read first: a file of another
format, or of a scikit-learn that is not supported, is refused before all else.
"""

import json
import os
import tempfile
import zipfile
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

import sklearn_era

from .._files import printable, put_in_place
from ..ensemble._hist_gradient_boosting import RELEASES
from ._estimators import CLASSES, first_booster
from ._values import ValueReader, ValueWriter

_METADATA_MEMBER = "sklearn_era.json"
_MODEL_MEMBER = "model.json"

# A change after which files of before would be misread raises the number. New
# parameters do not: where a file lacks them, they have their defaults.
_FORMAT = 2

# What a file may inflate to, in bytes and in multiples of its own size.
_MAX_JSON = 2**26
_MAX_RATIO = 200
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

__all__ = [
    "ModelFileError",
    "ModelMetadata",
    "load_model",
    "read_metadata",
    "save_model",
]


class ModelFileError(ValueError):
    """A model file cannot be written, or a file cannot be read as one."""


@dataclass(frozen=True)
class ModelMetadata:
    """The description of an estimator in its model file.

    Attributes
    ----------
    estimator : str
        The name of the estimator's class.
    feature_names : list of str or None
        The columns to predict from, in the order of the fit; None where the training
        data had no column names.
    categorical_features : list of str or list of int
        The categorical ones among them, by name, or by position where they have none.
    target : str or None
        The column that is predicted, if it was named.
    era : str or None
        The column that held the eras, if it was named.
    split_criterion : str or None
        The estimator's split criterion, as Python would write it; None of rules, and of
        what averages or chooses models.
    versions : dict of str to str
        The versions of sklearn_era, scikit-learn and numpy that wrote the file.
    """

    estimator: str
    feature_names: list[str] | None
    categorical_features: list[str | int]
    target: str | None
    era: str | None
    split_criterion: str | None
    versions: dict[str, str]


def save_model(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    era: str | None = None,
) -> ModelMetadata:
    """Write a fitted estimator to a model file.

    The file appears complete or not at all; one of the same name is replaced.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of `sklearn_era.ensemble`, `sklearn_era.rules` or
        `sklearn_era.model_selection`, whose inner estimators are such, too. One of
        `sklearn_era.dask` is stored as what its `to_local` returns.

    path : str or path-like
        Where to write, ``model.era`` for one.

    target : str, default=None
        The name of the column that it predicts.

    era : str, default=None
        The name of the column that held the eras.

    Returns
    -------
    metadata : ModelMetadata
        The description that is stored beside the estimator.

    Raises
    ------
    TypeError
        If `estimator` is not one of sklearn_era.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ModelFileError
        If it holds an object that a model file cannot, such as a function of the
        user's as its `scoring` or `oob_score`, or another package's estimator or
        splitter.
    OSError
        If the file cannot be written.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must be a fitted estimator, got {estimator!r}.")
    check_is_fitted(estimator)
    if hasattr(estimator, "to_local"):  # of a Dask cluster
        estimator = estimator.to_local()
    name = type(estimator).__name__
    if CLASSES.get(name) is not type(estimator):
        raise TypeError(
            f"estimator must be one of sklearn_era ({', '.join(CLASSES)}), got "
            f"{type(estimator).__module__}.{type(estimator).__qualname__}."
        )
    if getattr(estimator, "refit", True) is False:
        raise ModelFileError(f"This {name} has refit=False, and so no model to save.")
    metadata = _describe(estimator, target=target, era=era)
    path = Path(path)
    # In the same folder, so that the replacement at the end is a mere change of name.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".sklearn-era-") as folder:
        temporary = Path(folder) / path.name
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            document = {"format": _FORMAT, **asdict(metadata)}
            archive.writestr(_METADATA_MEMBER, json.dumps(document, indent=2))
            try:
                model = ValueWriter(archive).encode(estimator)
            except (TypeError, ValueError, RecursionError) as error:
                raise ModelFileError(
                    f"This {name} holds {error}, which a model file cannot: name its "
                    "`scoring` by a string, set its `cv` to a number or an "
                    "EraWalkForwardSplit and its `oob_score` to a bool, fit "
                    "`era_effects` or `era_weighting` to eras that are text, "
                    "numbers or NumPy's dates, or pickle the estimator."
                ) from error
            archive.writestr(_MODEL_MEMBER, json.dumps(model, allow_nan=False))
        put_in_place(temporary, path)
    return metadata


def read_metadata(path: str | os.PathLike[str]) -> ModelMetadata:
    """Read the description of the estimator in a model file, and nothing else of it.

    Parameters
    ----------
    path : str or path-like
        A file that `save_model` wrote, with any version of sklearn_era.

    Returns
    -------
    metadata : ModelMetadata
        The description that is stored beside the estimator.

    Raises
    ------
    ModelFileError
        If the file is not a model file.
    OSError
        If the file cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_metadata(archive, path)
    except (ModelFileError, OSError):
        raise
    except Exception as error:
        # The exceptions of a damaged archive depend on where the damage is.
        raise ModelFileError(f"{path} is not a model file of sklearn_era.") from error


def load_model(path: str | os.PathLike[str]) -> tuple[Any, ModelMetadata]:
    """Read the estimator of a model file, and its description.

    Its predictions are those of the estimator that was saved, bit for bit. A file
    cannot run code, nor make compiled code read or write beyond its arrays, whoever
    wrote it.

    Parameters
    ----------
    path : str or path-like
        A file that `save_model` wrote, with this version of sklearn_era or an older
        one, and with any release of scikit-learn that this version works with. The
        scikit-learn that is installed here may be another one of them.

    Returns
    -------
    estimator : estimator
        The fitted estimator.
    metadata : ModelMetadata
        The description that was stored beside it.

    Raises
    ------
    ModelFileError
        If the file is not a model file; if it is of another format, or of a
        scikit-learn that is not supported; or if it is damaged or forged.
    OSError
        If the file cannot be read.
    """
    metadata = read_metadata(path)
    written = printable(str(metadata.versions.get("scikit-learn")))
    if _minor(written) not in map(_minor, RELEASES):
        raise ModelFileError(
            f"{path} was written with scikit-learn {written}, and this version of "
            f"sklearn_era works with {', '.join(RELEASES)}: fit the model again, or "
            "install a version that works with both."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            model = _read_json(archive, _MODEL_MEMBER)
            ((kind, (name, *_)),) = model.items()
            if kind != "estimator" or name != metadata.estimator:
                raise ValueError("its metadata describe another model")
            estimator = ValueReader(archive).decode(model)
        described = _describe(estimator, target=metadata.target, era=metadata.era)
        if replace(described, versions=metadata.versions) != metadata:
            raise ValueError("its metadata describe another model")
    except OSError:
        raise
    except Exception as error:
        reason = printable(str(error))
        raise ModelFileError(f"{path} is damaged: {reason}.") from error
    return estimator, metadata


def _read_metadata(archive: zipfile.ZipFile, path: Any) -> ModelMetadata:
    """Read the metadata, having looked at what the archive may inflate to."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise ValueError("members of the same name")
    if any(member.compress_type not in _COMPRESSIONS for member in members):
        raise ValueError("another compression")
    size = sum(member.file_size for member in members)
    if size > _MAX_JSON + _MAX_RATIO * os.path.getsize(path):
        raise ModelFileError(
            f"{path} would inflate to {size:,} bytes, more than a model file of its "
            "size: it was not read."
        )
    document = _read_json(archive, _METADATA_MEMBER)
    if document.pop("format") != _FORMAT:
        raise ModelFileError(
            f"{path} has the format of another sklearn_era "
            f"({printable(str(document['versions']['sklearn_era']))}); this is "
            f"{sklearn_era.__version__}: install the other, or fit the model again."
        )
    known = {field.name for field in fields(ModelMetadata)}
    metadata = ModelMetadata(
        **{name: value for name, value in document.items() if name in known}
    )
    if not isinstance(metadata.versions, dict):
        raise TypeError("versions")
    if {type(metadata.target), type(metadata.era)} - {str, type(None)}:
        raise TypeError("names of columns")
    return metadata


def _read_json(archive: zipfile.ZipFile, name: str) -> Any:
    if archive.getinfo(name).file_size > _MAX_JSON:
        raise ValueError(f"{name} is too large")
    return json.loads(archive.read(name), parse_constant=float)


def _describe(estimator: Any, *, target: str | None, era: str | None) -> ModelMetadata:
    model = first_booster(estimator)
    names = getattr(model, "feature_names_in_", None)
    is_categorical = model.is_categorical_
    if is_categorical is None:
        is_categorical = np.zeros(model.n_features_in_, dtype=bool)
    split_criterion = getattr(estimator, "split_criterion", None)
    if isinstance(split_criterion, dict):
        split_criterion = dict(split_criterion)  # as files have mappings
    if not isinstance(split_criterion, str | None):
        split_criterion = repr(split_criterion)
    return ModelMetadata(
        estimator=type(estimator).__name__,
        feature_names=None if names is None else [str(name) for name in names],
        categorical_features=[
            int(feature) if names is None else str(names[feature])
            for feature in np.flatnonzero(is_categorical)
        ],
        target=target,
        era=era,
        split_criterion=split_criterion,
        versions=_versions(),
    )


def _versions() -> dict[str, str]:
    return {
        "sklearn_era": sklearn_era.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }


def _minor(version: str) -> str:
    """Return 1.9 for 1.9.1."""
    return ".".join(version.split(".")[:2])
