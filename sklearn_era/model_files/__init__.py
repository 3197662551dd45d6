"""Save fitted estimators in model files, which are safe to read from anybody.

A file is a zip archive of JSON and plain .npy arrays. ``_estimators`` rebuilds and
checks the estimator, ``_values`` its parameters and attributes, ``_trees`` its trees.
"""

import json
import os
import re
import zipfile
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import check_is_fitted

import sklearn_era

from .._era_routing import question_of
from .._files import printable, whole_file
from .._typing import Estimator
from ..ensemble._hist_gradient_boosting import RELEASES
from ._estimators import CLASSES, first_booster
from ._values import ValueReader, ValueWriter

_METADATA_MEMBER = "sklearn_era.json"
_MODEL_MEMBER = "model.json"
_GIVEN = ("target", "era", "groups", "group", "horizon")  # of the metadata

# Raised by changes that would make older files misread. New parameters do not: they
# have their defaults if a file lacks them.
_FORMAT = 2

# Limits of the inflated size: in bytes, and in multiples of the file's size.
_MAX_JSON = 2**26
_MAX_RATIO = 200
# By the attribute or parameter with a value that files cannot hold.
_OF_ERAS = "pass eras as text, numbers, NumPy's dates or pandas' periods"
_REMEDIES = {
    "_preprocessor": "pass categories as text or numbers",
    "_codings": "pass categories as text or numbers",
    "_era_labels": _OF_ERAS, "era_labels_": _OF_ERAS,
    "scoring": "name its `scoring` by a string",
    "cv": "set its `cv` to a number, an EraWalkForwardSplit or an EraSplit",
    "oob_score": "set its `oob_score` to a bool",
}  # fmt: skip

__all__ = [
    "ModelFileError", "ModelMetadata", "load_model", "read_metadata", "save_model",
]  # fmt: skip


class ModelFileError(ValueError):
    """Raised if a model cannot be written, or if a file is not a valid model file."""


@dataclass(frozen=True)
class ModelMetadata:
    """The description of an estimator in its model file.

    Attributes
    ----------
    estimator : str
        The name of the estimator's class.
    feature_names : list of str or None
        The features, in the order of the fit; None if the fit got no column names.
    categorical_features : list of str or list of int
        The categorical features, by name, or by position if `feature_names` is None.
    target, era, groups : str or None
        The names of the columns of the target, of eras and of groups; None if unknown.
        By default, those of eras and groups are the column names in the fit.
    group, horizon : str, int or None
        Whether the model is for "known" or "new" groups, and how far ahead it predicts;
        None if neither the model nor the call of `save_model` sets it.
    split_criterion : str or None
        The name of the split criterion, or the ``repr`` of another criterion; None for
        estimators without one, such as rules, averages and searches.
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
    groups: str | None = None
    group: str | None = None
    horizon: int | str | None = None

    def __post_init__(self) -> None:
        for name in ("target", "era", "groups", "group"):
            if not isinstance(value := getattr(self, name), str | None):
                what = "text" if name == "group" else "the name of a column"
                raise TypeError(f"{name} must be {what}, got {value!r}.")
        if type(self.horizon) not in (int, str, type(None)):
            raise TypeError(f"horizon must be a number or text, got {self.horizon!r}.")


def save_model(
    estimator: Estimator, path: str | os.PathLike[str], *, target: str | None = None,
    era: str | None = None, groups: str | None = None, group: str | None = None,
    horizon: int | str | None = None,
) -> ModelMetadata:  # fmt: skip
    """Write a fitted estimator to a model file, whole or not at all.

    The file gets its name only after `load_model` could read it.

    Parameters
    ----------
    estimator : estimator
        A fitted predictor or transformer of sklearn_era. Estimators and splitters in it
        must also be of sklearn_era. An estimator of `sklearn_era.dask` is stored as the
        local estimator that its `to_local` returns.
    path : str or path-like
        The file to write, such as ``model.era``.
    target, era, groups : str, default=None
        The names of the columns of the target, of eras and of groups, for the metadata.
    group, horizon : str and int or str, default=None
        Whether the model is for 'known' or 'new' groups, and how far ahead it predicts;
        for None, the values of the estimator are stored, if it has any.

    Returns
    -------
    metadata : ModelMetadata
        The stored description of the estimator.

    Raises
    ------
    TypeError, sklearn.exceptions.NotFittedError
        If `estimator` is not one of sklearn_era, or not fitted; if a name is not text.
    ModelFileError
        If `estimator` has a value that a model file cannot hold, such as a function as
        its `scoring` or `oob_score`, or another package's estimator or splitter; if its
        file could not be read; or if it has ``refit=False``, and thus no fitted model.
    OSError
        If the file cannot be written.
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "to_local"):  # a Dask estimator
        estimator = estimator.to_local()
    name = type(estimator).__name__
    if CLASSES.get(name) is not type(estimator):
        raise TypeError(
            f"estimator must be one of sklearn_era ({', '.join(CLASSES)}), got "
            f"{type(estimator).__module__}.{type(estimator).__qualname__}: save it by "
            "joblib."
        )
    if getattr(estimator, "refit", True) is False:
        raise ModelFileError(f"This {name} has refit=False, and so no model to save.")
    given = {"target": target, "era": era, "groups": groups, "group": group}
    metadata = _describe(estimator, **given, horizon=horizon)
    with whole_file(Path(path)) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            document = {"format": _FORMAT, **asdict(metadata)}
            archive.writestr(_METADATA_MEMBER, json.dumps(document, indent=2))
            try:
                model = ValueWriter(archive).encode(estimator)
            except (TypeError, ValueError, RecursionError) as error:
                part = getattr(error, "__notes__", [""])[0]
                remedy = f"{_REMEDIES[part]}, or " if part in _REMEDIES else ""
                raise ModelFileError(
                    f"This {name} holds {error}, which a model file cannot: {remedy}"
                    "pickle the estimator."
                ) from error
            archive.writestr(_MODEL_MEMBER, json.dumps(model, allow_nan=False))
        try:
            load_model(temporary)
        except ModelFileError as error:
            raise ModelFileError(
                f"This {name} cannot be saved, as its file could not be read "
                f"({error.__cause__ or error}): pickle the estimator."
            ) from error
    return metadata


def read_metadata(path: str | os.PathLike[str]) -> ModelMetadata:
    """Read only the description of the estimator in a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `save_model` wrote, in any version with the present file format.

    Returns
    -------
    metadata : ModelMetadata
        The stored description of the estimator.

    Raises
    ------
    ModelFileError, OSError
        If the file is not a model file, has another format, or cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_metadata(archive, path)
    except (ModelFileError, OSError):
        raise
    except Exception as error:
        # Damaged archives raise many types of exceptions.
        raise ModelFileError(f"{path} is not a model file of sklearn_era.") from error


def load_model(path: str | os.PathLike[str]) -> tuple[Any, ModelMetadata]:
    """Read the estimator in a model file, and the estimator's description.

    The predictions are bit-identical to those of the saved estimator. A file, even a
    forged one, cannot run code, nor make compiled code access memory outside arrays.

    Parameters
    ----------
    path : str or path-like
        A file that `save_model` wrote, in this or an older version of sklearn_era, and
        with any release of scikit-learn that this version supports. The release of
        scikit-learn that is installed may be another supported one.

    Returns
    -------
    estimator : estimator
        The fitted estimator.
    metadata : ModelMetadata
        The stored description of the estimator.

    Raises
    ------
    ModelFileError, OSError
        If the file is not a model file, has another format, was written with an
        unsupported scikit-learn, is damaged or forged, or cannot be read.
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
            estimator = ValueReader(archive).decode(_read_json(archive, _MODEL_MEMBER))
        given = {name: getattr(metadata, name) for name in _GIVEN}
        given["versions"] = metadata.versions
        described = replace(_describe(estimator), **given)
        criterion = described.split_criterion
        if _kind(criterion) == _kind(metadata.split_criterion):
            described = replace(described, split_criterion=metadata.split_criterion)
        if described != metadata:
            raise ValueError("its metadata describe another model")
    except OSError:
        raise
    except InvalidParameterError as error:
        raise ModelFileError(
            f"The model of {path} has to be fitted again: {printable(str(error))}"
        ) from error
    except Exception as error:
        reason = printable(str(error))
        raise ModelFileError(f"{path} is damaged: {reason}.") from error
    return estimator, metadata


def _read_metadata(
    archive: zipfile.ZipFile, path: str | PathLike[str]
) -> ModelMetadata:
    """Check and return an archive's metadata; raise ModelFileError if the file would
    inflate too much, or has another format.
    """
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise ValueError("members of the same name")
    if {x.compress_type for x in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
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
    # Files of before lack the last ones.
    names = [x.name for x in fields(ModelMetadata) if x.default or x.name in document]
    metadata = ModelMetadata(**{name: document[name] for name in names})
    if not isinstance(metadata.versions, dict):
        raise TypeError("versions")
    return metadata


def _read_json(archive: zipfile.ZipFile, name: str) -> Any:
    if archive.getinfo(name).file_size > _MAX_JSON:
        raise ValueError(f"{name} is too large")
    return json.loads(archive.read(name), parse_constant=float)


def _describe(estimator: Any, **given: Any) -> ModelMetadata:
    question = question_of(estimator)
    effects: Any = getattr(estimator, "era_effects", None)
    effects = getattr(estimator, "_era_effects", effects)  # by which it predicts
    if getattr(effects, "_estimates", False):
        question["horizon"] = effects.horizon
    if (pair := vars(estimator).get("_pair")) is None:
        question["group"] = None  # which asks of two columns
        if getattr(estimator, "era_order_", "") == "unordered":
            question["horizon"] = None
        if isinstance(column := vars(estimator).get("_era_column"), str):
            question["era"] = column
    elif all(isinstance(x, str) for x in pair[1]):
        at = [*pair[0]].index("ordered")
        question |= {"era": pair[1][at], "groups": pair[1][1 - at]}
    given = question | {k: v for k, v in given.items() if v is not None}
    horizon = given["horizon"]
    if isinstance(horizon, np.integer):
        given["horizon"] = int(horizon)
    elif not isinstance(horizon, int | None):
        given["horizon"] = str(horizon)
    model = first_booster(estimator)
    # An average's own, without those of columns that its members are given beside them.
    names = getattr(estimator, "feature_names_in_", None)
    is_categorical = getattr(model, "is_categorical_", None)
    columns = [] if is_categorical is None else np.flatnonzero(is_categorical).tolist()
    split_criterion = getattr(estimator, "split_criterion", None)
    if isinstance(split_criterion, dict):
        split_criterion = dict(split_criterion)  # the type of mappings in files
    if not isinstance(split_criterion, str | None):
        split_criterion = repr(split_criterion)
    return ModelMetadata(
        estimator=type(estimator).__name__,
        feature_names=None if names is None else [str(name) for name in names],
        categorical_features=[j if names is None else str(names[j]) for j in columns],
        split_criterion=split_criterion,
        **{name: given.get(name) for name in _GIVEN},
        versions={
            "sklearn_era": sklearn_era.__version__,
            "scikit-learn": sklearn.__version__, "numpy": np.__version__,
        },
    )  # fmt: skip


def _kind(criterion: str | None) -> str | None:
    """Return a criterion's name without parameters, whose text depends on settings."""
    return criterion and re.split(r"[({]", criterion)[0]


def _minor(version: str) -> str:
    """Return a version's minor release, such as 1.9 for 1.9.1."""
    return ".".join(version.split(".")[:2])
