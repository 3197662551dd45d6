"""Export portable models: pickles that Numerai's machines can run.

Numerai's images have LightGBM, scikit-learn and pandas, each in several versions, and
Python 3.10 to 3.13, but not this package. The pickle therefore holds trees as
LightGBM's text, and calls of public functions that all these versions have. It holds
neither code nor the state of an object.
"""

import os
import pickle
import pkgutil
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter, methodcaller
from pathlib import Path
from typing import Any

from sklearn._loss.link import IdentityLink

from sklearn_era._warnings import listed
from sklearn_era.interop import to_lightgbm_text
from sklearn_era.numerai import errors
from sklearn_era.numerai.api import CREATED, GRANT, Numerai, Query
from sklearn_era.numerai.config import Model
from sklearn_era.numerai.data import decoding
from sklearn_era.numerai.errors import DataError, ExportError
from sklearn_era.numerai.export_check import PortableCheck, check_portable_model
from sklearn_era.numerai.files import Record, file_sha256, utc_now, write_whole
from sklearn_era.numerai.http import SITE, redact
from sklearn_era.numerai.store import DECIMALS, Blend, ModelRecord, WeightedFit

PORTABLE = "portable.pkl"  # in a model's folder
_PAUSE = 15.0  # most seconds between two polls
_CHOICES = [{"id": str, "name": str, "default": bool | None}]
_TRIGGERS = [{"statuses": [{"description": str | None}]}]
_STATUS = [{"validationStatus": str | None, "triggers": _TRIGGERS}]
_FILE = "$filename: String! $modelId: ID"

IMAGES = Query("Listing the container images", "computePickleDockerImages", _CHOICES)
VERSIONS = Query("Listing the data versions", "computePickleDataVersions", _CHOICES)
STORE = Query("Uploading the model", f"computePickleUploadAuth({_FILE})", GRANT)
_MAKE = f"{_FILE} $tournament: Int! $dataVersionId: ID $dockerImageId: ID"
_MAKE = f"createComputePickleUpload({_MAKE} $source: String)"
CREATE = Query("Uploading the model", _MAKE, CREATED, kind="mutation")
_ASSIGN = "assignPickleToModel($pickleId: ID $modelId: String)"
ASSIGN = Query("Assigning the uploaded model", _ASSIGN, Any, kind="mutation")
VALIDATION = Query("Looking up the upload", "computePickles($id: ID)", _STATUS)


class ExportRecord(Record):
    """The record ``portable.pkl.json`` of the fits in a checked ``portable.pkl``."""

    sha256: str
    model_sha256: list[str]
    weights: list[float]
    created: str = ""


def write_portable_model(
    model: Any, path: str | os.PathLike[str], *,
    feature_names: Sequence[str] | None = None,
) -> None:  # fmt: skip
    r"""Write a fitted regressor as a pickle for Numerai.

    The pickle is a function of the live data, a data frame with index ``id``, column
    ``era`` and the features. It returns a data frame with the same index and the column
    ``prediction``: the rank :math:`(\operatorname{rank}(x_i) - 1/2) / n` of the model's
    predictions x among the n rows of each era, with average ranks for ties. LightGBM
    predicts on one thread; x is bit-identical to the predictions of `model`. A missing
    column raises a ``KeyError`` with its name. The pickle cannot neutralize; its trees
    and feature names are readable. ``sklearn-era numerai export`` exports blends.

    Parameters
    ----------
    model : HistGradientBoostingRegressor
        A fitted regressor of `sklearn_era.ensemble` or of scikit-learn, without
        categorical features, and with ``loss`` ``"squared_error"``,
        ``"absolute_error"`` or ``"quantile"``.
    path : str or path-like
        The file to write or replace, atomically.
    feature_names : sequence of str, default=None
        The columns in the order of the fit, for a model fitted to an array.

    Raises
    ------
    ExportError
        If `model` is not one of these regressors or is not fitted; if it has a log
        link, categorical features or splits that LightGBM cannot make; or if
        `feature_names` are missing, or are not the columns of its fit.
    DataError
        If the file cannot be written.

    See Also
    --------
    sklearn_era.numerai.check_portable_model : Run the pickle as Numerai does.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.numerai import write_portable_model
    >>> X = np.arange(200.0).reshape(100, 2) % 5
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    >>> path = f"{tempfile.mkdtemp()}/model.pkl"
    >>> write_portable_model(model, path, feature_names=["feature_a", "feature_b"])
    """
    names: Any = feature_names
    if names is None:
        names = [*getattr(model, "feature_names_in_", ())]
    write_blend(Blend([WeightedFit(model, names)]), Path(path))


def write_blend(blend: Blend, path: Path) -> None:
    """Write a blend as a pickle, which gives rows the ranks of `Blend.combine`."""
    write_whole(path, pickle.dumps(_live_function(blend), protocol=4))


def why_not_portable(model: Model) -> str:
    """Return the reason why a pickle cannot hold a model; "" if it can."""
    if any(member.train.estimator == "auto" for member in model.members):
        return (
            f"estimator = 'auto' of {model.name!r} cannot be exported, as a portable "
            "model holds trees alone: submit its predictions with 'sklearn-era numerai "
            "run', or set estimator = 'boosting'."
        )
    if model.predict.neutralize_proportion:
        return (
            "A portable model cannot neutralize its predictions: set "
            "neutralize_proportion = 0 to export the model."
        )
    return ""


def export_model(
    blend: Blend, records: Sequence[ModelRecord], path: Path, live: Path,
    python: str | None = None,
) -> PortableCheck:  # fmt: skip
    """Test a blend's pickle, write it and its record, and return the test's results."""
    # In a temporary folder, since a killed process leaves its draft behind.
    with tempfile.TemporaryDirectory(prefix="sklearn-era-") as folder:
        draft = Path(folder) / path.name
        write_blend(blend, draft)
        check = check_portable_model(draft, live, python=python)
        write_whole(path, draft.read_bytes())
    ExportRecord(
        sha256=file_sha256(path), model_sha256=[record.sha256 for record in records],
        weights=[fit.weight for fit in blend.fits], created=utc_now(),
    ).write(Path(f"{path}.json"))  # fmt: skip
    return check


def export_is_current(
    path: Path, fits: list[ModelRecord], weights: list[float]
) -> bool:
    """Return whether the pickle at `path` is checked and has these fits and weights."""
    with suppress(DataError):  # a damaged record is replaced
        made = ExportRecord.read(Path(f"{path}.json"), advice="")
        if made is not None and path.is_file():
            now = [fit.sha256 for fit in fits], weights, file_sha256(path)
            return now == (made.model_sha256, made.weights, made.sha256)
    return False


def upload_pickle(
    client: Numerai, model_name: str, path: Path, *, image: str | None = None,
    data_version: str | None = None, wait: float = 1800.0, assign: bool = False,
    on_step: Callable[[str], None] = lambda text: None,
) -> str:  # fmt: skip
    """Upload a pickle for a model, wait at most `wait` seconds for the end of Numerai's
    validation, and return the status of the validation. If `assign`, a valid pickle
    makes the model's submissions from then on. Raise UploadError for an invalid pickle.
    """
    model_id = client.model_id(model_name)
    run_by = _choose(client.ask(IMAGES), image, "image")
    data = _choose(client.ask(VERSIONS), data_version, "data version")
    with decoding(path):
        content = path.read_bytes()
    name = client.store(content, path.name, model_id, STORE)
    given = name, model_id, data and data.id, run_by and run_by.id
    # Without retries: a second call would be another upload.
    upload_id = client.ask(CREATE, *given, retry=False).id
    where = run_by.name if run_by else "the default image"
    on_step(f"Uploaded {path.name} as {upload_id}; it will run in {where}.")
    end, last, pause = time.monotonic() + wait, "", 1.0
    while True:
        if not (listed := client.ask(VALIDATION, upload_id)):
            text = f"{VALIDATION.step}: Numerai does not list {upload_id}."
            raise errors.ApiError(text)
        status = listed[0].validationStatus or "unknown"
        notes = [y.description for x in listed[0].triggers for y in x.statuses]
        text = ": ".join([status, *[redact(x) for x in notes if x][-1:]])
        if status == "success":
            break
        if status in ("error", "failed"):
            what = f"upload {upload_id} of {path.name}"
            raise errors.UploadError(f"Numerai could not validate {what} ({text}).")
        if (left := end - time.monotonic()) <= 0:
            on_step(f"Numerai has not validated it yet ({text}): check {SITE}.")
            return status
        if status != last:
            on_step(f"Numerai's validation: {status}.")
        time.sleep(min(pause, left))
        last, pause = status, min(2 * pause, _PAUSE)
    on_step("Numerai has validated it.")
    if assign:
        client.ask(ASSIGN, upload_id, model_id)
        on_step(f"It now makes the submissions of {model_name}.")
    return status


def _choose(entries: Sequence[Any], name: str | None, what: str) -> Any:
    """Return the entry with the name or id `name`. If `name` is None, return the
    default entry, or None without a default. Raise ConfigError for an unknown name.
    """
    for entry in entries:
        if entry.default if name is None else name in (entry.name, entry.id):
            return entry
    if name is not None:
        known = ", ".join(entry.name for entry in entries) or "none"
        raise errors.ConfigError(f"Numerai has no {what} {name!r}; it offers {known}.")


class _Call:
    """Stands for a function call in a pickle: unpickling makes the call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __call__(self, *arguments: Any) -> "_Call":
        return _Call(self, *arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.arguments


def _public(name: str) -> _Call:
    """Return a call that imports "module:name" when it is unpickled, and not before."""
    return _Call(pkgutil.resolve_name, name)


def _live_function(blend: Blend) -> _Call:
    """Return the call that makes the pickle's function. The function ranks the rows of
    each era: by the predictions of the blend's only fit or, if there are several fits,
    by the weighted sum of their gaussianized ranks.
    """
    predictors = {f"fit_{k}": _predictor(part) for k, part in enumerate(blend.fits)}
    fits = list(predictors)
    steps = [methodcaller("assign", **predictors), itemgetter(fits), *_rank(fits)]
    last = fits[0]
    if len(fits) > 1:
        # In the order of `Blend.combine`.
        terms = [f"{s!r} * {fit}" for s, fit in zip(blend.shares, fits, strict=True)]
        total = methodcaller("eval", f"total = {' + '.join(terms)}", engine="python")
        steps += [_public("scipy.special:ndtri"), total, itemgetter([last := "total"])]
        steps += [methodcaller("round", DECIMALS), *_rank([last])]
    # Era by era, which bounds the memory for features as floats. Rows keep their order;
    # those without an era are another group.
    options = {"sort": False, "group_keys": False, "dropna": False, "observed": True}
    steps.append(methodcaller("rename", columns={last: "prediction"}))
    grouped = methodcaller("groupby", "era", **options), itemgetter(blend.features)
    by_era = _chain(*grouped, methodcaller("apply", _chain(*steps)))
    # Numerai's runner wants one or two parameters: this bound method has one, X.
    return _Call(getattr, _transformer(by_era), "transform")


def _predictor(part: WeightedFit) -> _Call:
    """Return the call that makes a function which predicts a frame's rows by one fit.
    Raise ExportError if the fit cannot be exported.
    """
    model, names = part.estimator, part.features
    try:
        given: Any = {"feature_names": names or None, "node_statistics": False}
        text = to_lightgbm_text(model, **given)
        if not isinstance(model._loss.link, IdentityLink):
            raise ValueError(
                f"loss={model.loss!r} has a link function, whose last digit may "
                "differ at Numerai; fit a regressor with loss='squared_error'."
            )
        if not names:
            raise ValueError(
                "it was fitted without feature names; pass feature_names with its "
                f"{model.n_features_in_:,} columns, in the order of fit."
            )
        fitted = [*getattr(model, "feature_names_in_", names)]
        if fitted != [*names]:
            raise ValueError(
                "feature_names are not the columns that it was fitted to, in that "
                f"order ({listed(fitted)}); leave feature_names out."
            )
    except (TypeError, ValueError) as error:
        raise ExportError(f"The model cannot be exported: {error}") from error
    unzipped = _Call(str, _Call(zlib.decompress, zlib.compress(text.encode())), "ascii")
    booster = _public("lightgbm:Booster")(None, None, None, unzipped)
    # One thread: Numerai's machines have one CPU, but OpenMP may count the host's.
    predict: Any = _Call(getattr, booster, "predict")
    return _chain(itemgetter([*names]), partial(predict, num_threads=1))


def _rank(columns: Sequence[str]) -> list[Any]:
    """Return steps that rank columns; equal values have the average of their ranks."""
    lines = "\n".join(f"{name} = ({name} - 0.5) / {name}.size" for name in columns)
    # Not by numexpr, where it is installed.
    return [methodcaller("rank"), methodcaller("eval", lines, engine="python")]


def _transformer(function: Any) -> _Call:
    # By default it neither validates nor converts.
    return _public("sklearn.preprocessing:FunctionTransformer")(function)


def _chain(*functions: Any) -> _Call:
    """Return the call that composes functions; the first function is applied first."""
    steps = [(f"step_{k}", _transformer(x)) for k, x in enumerate(functions)]
    return _Call(getattr, _public("sklearn.pipeline:Pipeline")(steps), "transform")
