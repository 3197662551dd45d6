"""A fitted model as a pickle that Numerai's own machines can run.

Numerai's images have LightGBM, scikit-learn and pandas, each in several versions, and
Python from 3.10 to 3.13, but not this package. The pickle therefore holds the trees as
LightGBM's text, and around it calls of public constructors that those versions share.
Neither code nor the state of an object is in it.
"""

import os
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn._loss.link import IdentityLink
from sklearn.base import is_regressor
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklearn_era.interop import to_lightgbm_text
from sklearn_era.numerai.errors import PortableModelError
from sklearn_era.numerai.model_upload.pickle_calls import (
    Call,
    Global,
    Partial,
    dump_calls,
    method,
)

__all__ = ["PortableModel", "write_portable_model"]


@dataclass(frozen=True)
class PortableModel:
    """What was written.

    Attributes
    ----------
    path : pathlib.Path
        The pickle.
    n_features : int
        How many columns of the live data it reads.
    n_trees : int
        How many trees it has.
    text_bytes : int
        The size of LightGBM's text, which is in memory while the pickle is read.
    pickle_bytes : int
        The size of the file.
    """

    path: Path
    n_features: int
    n_trees: int
    text_bytes: int
    pickle_bytes: int


def write_portable_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
) -> PortableModel:
    """Write a fitted regressor as a pickle for Numerai's model upload.

    What is pickled is a function of the live data, a data frame with index ``id``, a
    column ``era`` and the model's features among its columns. It returns a data frame
    with the same index and the column ``prediction``: for each era, the average rank of
    the model's prediction among the n of that era, as ``(rank - 0.5) / n``.

    Within the function LightGBM predicts with one thread, an era at a time, and the
    predictions are those of `model`, bit for bit. A feature or the column ``era`` that
    is missing from the live data raises a ``KeyError`` that names it.

    Parameters
    ----------
    model : HistGradientBoostingRegressor
        A fitted regressor of `sklearn_era.ensemble`, or of scikit-learn, without
        categorical features, and with ``loss`` ``"squared_error"``,
        ``"absolute_error"`` or ``"quantile"``.

    path : str or path-like
        The file to write, ``model.pkl`` for one. It appears complete or not at all; one
        of the same name is replaced.

    feature_names : sequence of str, default=None
        The columns of the features, in the order of fit. Needed if the model was fitted
        to an array, which has no names.

    Returns
    -------
    written : PortableModel
        The path, and sizes.

    Raises
    ------
    PortableModelError
        If the model cannot be expressed: it is another estimator, not fitted, or has
        a log link, categorical features or a feature that LightGBM cannot split alike;
        or if its features have no names, or others than `feature_names`.
    OSError
        If the file cannot be written.

    See Also
    --------
    sklearn_era.numerai.model_upload.check_portable_model : Runs it as Numerai does.

    Notes
    -----
    Ranks of different eras are compared with nothing; the live data are one era.
    Neutralization cannot be expressed. The pickle contains the trees and the names of
    the features in the clear: whoever has it has the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.numerai.model_upload.portable import write_portable_model
    >>> X = np.arange(200.0).reshape(100, 2) % 5
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    >>> names = ["feature_a", "feature_b"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.pkl"
    ...     written = write_portable_model(model, path, feature_names=names)
    >>> written.n_trees
    5
    """
    _refuse_other_models(model)
    names = _names_of_columns(model, feature_names)
    try:
        text = to_lightgbm_text(
            model,
            feature_names=names,
            node_statistics=False,
        ).encode("ascii")
    except ValueError as error:
        raise PortableModelError(f"The model cannot be exported. {error}") from error
    pickled = dump_calls(_live_function(zlib.compress(text), names))
    path = Path(path)
    _write_whole(path, pickled)
    return PortableModel(
        path=path,
        n_features=len(names),
        n_trees=model.n_iter_,
        text_bytes=len(text),
        pickle_bytes=len(pickled),
    )


def _refuse_other_models(model: Any) -> None:
    """Raise a `PortableModelError` for what ranks of raw predictions do not express."""
    name = type(model).__qualname__
    if not isinstance(model, BaseHistGradientBoosting):
        raise PortableModelError(
            f"A {name} cannot be exported, only a HistGradientBoostingRegressor: of a "
            "pipeline or a search, pass the fitted regressor within, if nothing before "
            "it changes the features."
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise PortableModelError(
            f"The {name} is not fitted, and has nothing to export: call fit."
        ) from error
    if not is_regressor(model):
        raise PortableModelError(
            f"A {name} predicts classes, and a submission is one number a row: fit a "
            "HistGradientBoostingRegressor to the target."
        )
    if not isinstance(model._loss.link, IdentityLink):
        raise PortableModelError(
            f"loss={model.loss!r} has a log link, and the exponential of Numerai's "
            "machines may differ from ours in the last digit, hence in ties between "
            "rows: fit with loss='squared_error'."
        )


def _names_of_columns(model: Any, feature_names: Sequence[str] | None) -> list[str]:
    """The columns that the model reads, in its order."""
    fitted = getattr(model, "feature_names_in_", None)
    if feature_names is None:
        if fitted is None:
            raise PortableModelError(
                "The model was fitted to an array, and does not know the names of its "
                f"{model.n_features_in_:,} features: pass feature_names=, the columns "
                "in the order of fit."
            )
        return [str(name) for name in fitted]
    if isinstance(feature_names, str):
        raise PortableModelError(
            f"feature_names={feature_names!r} is one name: pass a list of them."
        )
    names = [str(name) for name in feature_names]
    if len(names) != model.n_features_in_:
        raise PortableModelError(
            f"feature_names has {len(names):,} names, but the model was fitted to "
            f"{model.n_features_in_:,} features: pass a name for each, in the order of "
            "fit."
        )
    if fitted is not None and names != fitted.tolist():
        place = int(np.flatnonzero(np.asarray(names, dtype=object) != fitted)[0])
        raise PortableModelError(
            f"feature_names[{place}] is {names[place]!r}, but the model was fitted to "
            f"{str(fitted[place])!r} there: leave feature_names out."
        )
    return names


def _live_function(compressed_text: bytes, names: list[str]) -> Call:
    """The calls that make the function of the live data.

    Numerai's runner takes a callable of one or two parameters by its signature, and so
    the outermost is a bound method, ``FunctionTransformer.transform(X)``. It reads

        live.groupby("era")[names].apply(
            era -> era.assign(prediction=booster.predict)[["prediction"]]
                   .rank().eval("prediction = (prediction - 0.5) / prediction.size")
        )
    """
    text = Call(
        Global("builtins", "str"),
        (Call(Global("zlib", "decompress"), (compressed_text,)), "ascii"),
    )
    booster = Call(Global("lightgbm", "Booster"), (None, None, None, text))
    # One thread: Numerai's machines have one CPU, and OpenMP may count the host's.
    predict = Partial(method(booster, "predict"), {"num_threads": 1})
    predict_and_rank = _chain(
        _call_method("assign", prediction=predict),
        _take_columns(["prediction"]),
        _call_method("rank"),  # ties have the mean of their ranks
        _call_method(
            "eval",
            "prediction = (prediction - 0.5) / prediction.size",
            engine="python",  # and not numexpr where it happens to be installed
        ),
    )
    # An era at a time, which also bounds the memory for features as floats. Rows of the
    # result are in the order of the frame.
    by_era = _chain(
        _call_method(
            "groupby",
            "era",
            sort=False,
            group_keys=False,
            dropna=False,  # rows without an era are one more
            observed=True,
        ),
        _take_columns(names),
        _call_method("apply", predict_and_rank),
    )
    return method(_transformer(by_era), "transform")


def _call_method(name: str, *arguments: Any, **keywords: Any) -> Call:
    return Call(Global("operator", "methodcaller"), (name, *arguments), keywords)


def _take_columns(names: list[str]) -> Call:
    return Call(Global("operator", "itemgetter"), (names,))


def _transformer(function: Any) -> Call:
    # By default it hands anything over and back as it is.
    return Call(Global("sklearn.preprocessing", "FunctionTransformer"), (function,))


def _chain(*functions: Any) -> Call:
    """A function that calls one after the other, each with what the last returned."""
    steps = [
        (f"step_{index}", _transformer(function))
        for index, function in enumerate(functions)
    ]
    return method(Call(Global("sklearn.pipeline", "Pipeline"), (steps,)), "transform")


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears when it is complete."""
    # In the same folder, so that the replacement at the end is a mere change of name.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".sklearn-era-") as name:
        temporary = Path(name) / path.name
        temporary.write_bytes(content)
        os.replace(temporary, path)
