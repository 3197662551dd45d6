"""Files that hold a fitted estimator, for another process to predict with.

A file is an archive of `skops <https://skops.readthedocs.io>`_, which stores no code,
with one more member, the metadata. That is read first, and on its own: a file of a
newer format, or of another minor version of scikit-learn, whose fitted attributes it
holds, is refused before any object of it comes into being.
"""

import copy
import json
import os
import tempfile
import warnings
import zipfile
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

import sklearn_era

from ._optional import import_optional
from ._trees.packed import pack_trees, unpack_trees
from .ensemble import (
    EraForestClassifier,
    EraForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

Estimator: TypeAlias = (
    HistGradientBoostingRegressor
    | HistGradientBoostingClassifier
    | EraForestRegressor
    | EraForestClassifier
)

_METADATA_MEMBER = "sklearn_era.json"

# What a file holds: the classes below by name, their parameters and fitted attributes,
# and the packed trees. A change after which files of before would be misread raises the
# number. New parameters do not: where a file lacks them, they have their defaults.
_FORMAT = 1

# All types that a file may hold, but for numbers, containers, NumPy arrays and what
# else skops takes to be safe. Spelled out, since that changes from release to release.
_TRUSTED_TYPES = [
    "sklearn_era.ensemble._forests.estimators.EraForestClassifier",
    "sklearn_era.ensemble._forests.estimators.EraForestRegressor",
    "sklearn_era.ensemble._boosters.estimators.HistGradientBoostingClassifier",
    "sklearn_era.ensemble._boosters.estimators.HistGradientBoostingRegressor",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    *(
        f"sklearn._loss.loss.{name}"
        for name in (
            "AbsoluteError",
            "HalfBinomialLoss",
            "HalfGammaLoss",
            "HalfMultinomialLoss",
            "HalfPoissonLoss",
            "HalfSquaredError",
            "PinballLoss",
        )
    ),
    *(
        f"sklearn._loss.link.{name}"
        for name in (
            "IdentityLink",
            "Interval",
            "LogLink",
            "LogitLink",
            "MultinomialLogit",
        )
    ),
    # The transformer of the columns that are not categorical, where some are.
    "functools.partial",
    "sklearn.utils.validation.check_array",
]

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
    """What a model file says about its estimator.

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
    split_criterion : str or dict of str to float
        The estimator's split criterion, or the weights of a blend.
    versions : dict of str to str
        The versions of sklearn_era, scikit-learn and numpy that wrote the file.
    """

    estimator: str
    feature_names: list[str] | None
    categorical_features: list[str | int]
    target: str | None
    era: str | None
    split_criterion: str | dict[str, float]
    versions: dict[str, str]


def save_model(
    estimator: Estimator,
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    era: str | None = None,
) -> ModelMetadata:
    """Write a fitted estimator to a model file.

    The file appears complete or not at all; one of the same name is replaced.

    Parameters
    ----------
    estimator : HistGradientBoostingRegressor, HistGradientBoostingClassifier, \
            EraForestRegressor or EraForestClassifier
        A fitted estimator of `sklearn_era.ensemble`.

    path : str or path-like
        Where to write, ``model.skops`` for one.

    target : str, default=None
        The name of the column that it predicts.

    era : str, default=None
        The name of the column that held the eras.

    Returns
    -------
    metadata : ModelMetadata
        What was written beside the estimator.

    Raises
    ------
    TypeError
        If `estimator` is not one of `sklearn_era.ensemble`.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ModelFileError
        If it holds an object that a model file cannot, such as a function of the
        user's as its `scoring` or `oob_score`.
    OSError
        If the file cannot be written.
    ImportError
        If skops is not installed.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(
            "estimator must be a HistGradientBoostingRegressor, "
            "HistGradientBoostingClassifier, EraForestRegressor or "
            "EraForestClassifier of sklearn_era.ensemble, got "
            f"{type(estimator).__module__}.{type(estimator).__qualname__}."
        )
    check_is_fitted(estimator)
    skops_io = import_optional("skops.io", extra="cli")

    metadata = _describe(estimator, target=target, era=era)
    # Its trees go into the file packed. What early stopping scored with is of no use
    # after the fit, and is bound to the estimator, a circle that no archive can hold.
    # Callbacks belong to fits, and hold threads and open files.
    treeless = copy.copy(estimator)
    for name in ("_predictors", "_scorer", "_raw_predict", "_skl_callbacks"):
        treeless.__dict__.pop(name, None)
    content = {"estimator": treeless, "trees": pack_trees(estimator._predictors)}

    path = Path(path)
    # In the same folder, so that the replacement at the end is a mere change of name.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".sklearn-era-") as name:
        temporary = Path(name) / path.name
        try:
            skops_io.dump(content, temporary, compression=zipfile.ZIP_DEFLATED)
        except (TypeError, ValueError, RecursionError) as error:
            raise ModelFileError(
                f"This {type(estimator).__name__} cannot be stored: {error}"
            ) from error
        if untrusted := _untrusted_types(temporary):
            raise ModelFileError(
                f"This {type(estimator).__name__} holds {', '.join(untrusted)}, which "
                "a model file cannot: name its `scoring` by a string, set its "
                "`oob_score` to a bool, fit `era_effects` or `era_weighting` to eras "
                "that are text, numbers or NumPy's dates, or pickle the estimator."
            )
        with zipfile.ZipFile(temporary, "a", zipfile.ZIP_DEFLATED) as archive:
            document = {"format": _FORMAT, **asdict(metadata)}
            archive.writestr(_METADATA_MEMBER, json.dumps(document, indent=2))
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    return metadata


def read_metadata(path: str | os.PathLike[str]) -> ModelMetadata:
    """Read what a model file says about its estimator, and nothing else of it.

    Parameters
    ----------
    path : str or path-like
        A file that `save_model` wrote, with any version of sklearn_era.

    Returns
    -------
    metadata : ModelMetadata
        What was written beside the estimator.

    Raises
    ------
    ModelFileError
        If the file is not a model file.
    OSError
        If the file cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read(_METADATA_MEMBER))
        if document.pop("format") != _FORMAT:
            raise ModelFileError(
                f"{path} is a model file of a newer sklearn_era "
                f"({document['versions']['sklearn_era']}); this is sklearn_era "
                f"{sklearn_era.__version__}."
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
    except (ModelFileError, OSError):
        raise
    except Exception as error:
        # What a damaged archive raises depends on where the damage is.
        raise ModelFileError(f"{path} is not a model file of sklearn_era.") from error


def load_model(path: str | os.PathLike[str]) -> tuple[Estimator, ModelMetadata]:
    """Read the estimator of a model file, and what the file says about it.

    Its predictions are those of the estimator that was saved, bit for bit.

    Parameters
    ----------
    path : str or path-like
        A file that `save_model` wrote, with this version of sklearn_era or an older
        one, and with the minor version of scikit-learn that is installed here: its
        fitted attributes are no public format, and those of another version may be read
        without an error and predict nonsense.

    Returns
    -------
    estimator : HistGradientBoostingRegressor, HistGradientBoostingClassifier, \
            EraForestRegressor or EraForestClassifier
        The fitted estimator.
    metadata : ModelMetadata
        What was written beside it.

    Raises
    ------
    ModelFileError
        If the file is not a model file; if it is of a newer format, or of another minor
        version of scikit-learn; if it holds an object of a type that model files do not
        have; or if it is damaged.
    OSError
        If the file cannot be read.
    ImportError
        If skops is not installed.
    """
    metadata = read_metadata(path)
    written = str(metadata.versions.get("scikit-learn"))
    if _minor(written) != _minor(sklearn.__version__):
        raise ModelFileError(
            f"{path} was written with scikit-learn {written}, and this is scikit-learn "
            f"{sklearn.__version__}: fit the model again, or install scikit-learn "
            f"{_minor(written)}."
        )
    skops_io = import_optional("skops.io", extra="cli")
    if untrusted := _untrusted_types(path):
        raise ModelFileError(
            f"{path} holds {', '.join(untrusted)}, which no model file of sklearn_era "
            "does: it was not loaded."
        )
    try:
        with warnings.catch_warnings():
            # As pickles warn of any other version. This one's format is known.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            warnings.filterwarnings("ignore", "Unpickling a", UserWarning)
            content = skops_io.load(path, trusted=_TRUSTED_TYPES)
        estimator = content["estimator"]
        if not isinstance(estimator, Estimator):
            raise ValueError(f"it holds a {type(estimator).__name__}")
        defaults = type(estimator)().get_params(deep=False)
        estimator.__dict__.update({**defaults, **estimator.__dict__})
        is_categorical = estimator._bin_mapper.is_categorical_
        if is_categorical.shape != (estimator.n_features_in_,):
            raise ValueError("its bins are those of another number of features")
        described = _describe(estimator, target=metadata.target, era=metadata.era)
        if replace(described, versions=metadata.versions) != metadata:
            raise ValueError("its metadata describe another model")
        _check_preprocessor(estimator)
        estimator._predictors = unpack_trees(content["trees"], is_categorical)
    except OSError:
        raise
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: {error}.") from error
    return estimator, metadata


def _check_preprocessor(estimator: Estimator) -> None:
    """Raise ValueError if rows to predict have another width than the trees know.

    scikit-learn reads the features of a row without a look at how many there are.
    """
    preprocessor = estimator._preprocessor
    if preprocessor is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names, which this row has not
        row = np.full((1, estimator.n_features_in_), np.nan, dtype=object)
        width = preprocessor.transform(row).shape
    if width != row.shape:
        raise ValueError("it has another number of features than its trees")


def _describe(
    estimator: Estimator, *, target: str | None, era: str | None
) -> ModelMetadata:
    names = getattr(estimator, "feature_names_in_", None)
    is_categorical = estimator.is_categorical_
    if is_categorical is None:
        is_categorical = np.zeros(estimator.n_features_in_, dtype=bool)
    split_criterion = estimator.split_criterion
    if not isinstance(split_criterion, str):
        split_criterion = {name: float(w) for name, w in split_criterion.items()}
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
    """The minor version of a version: 1.9 of 1.9.1."""
    return ".".join(version.split(".")[:2])


def _untrusted_types(path: str | os.PathLike[str]) -> list[str]:
    """Name the types in a skops archive that model files do not have."""
    skops_io = import_optional("skops.io", extra="cli")
    try:
        found = skops_io.get_untrusted_types(file=path)
    except OSError:
        raise
    except Exception as error:
        # The archive's schema is walked, not checked, and may stumble over anything.
        raise ModelFileError(f"{path} is damaged: {error}.") from error
    return sorted(set(found) - set(_TRUSTED_TYPES))
