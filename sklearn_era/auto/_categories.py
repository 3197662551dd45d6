"""Give members columns of categories: as they are, as codes, or encoded by targets."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import _safe_indexing

from .._scikit_learn import check_categorical_features
from .._tables import columns as tables
from .._tables.checks import is_data_frame
from ..ensemble._binning import read_columns
from ..preprocessing import EraTargetEncoder
from ._candidates import PLAIN, is_pair, quick
from ._other_packages import PEERS, limits_of, package_of

# Columns are encoded where the largest has more categories, and where there are enough
# eras; more classes would make too many columns.
_LEAST_CATEGORIES, _LEAST_ERAS, _MOST_CLASSES = 20, 6, 10


class Columns(NamedTuple):
    """X in the forms that members take. The user's own models take `X`, as it was
    passed. The plain model, boosters of other packages and the user's models that find
    categories by the dtypes of columns take `native`, in which text is categorical. All
    other members take `native` and, if there is an `encoder`, the encoded columns. In
    folds, the plain and the default members take `coded`, which has numbers for the
    categories of the columns `places`, as text would be encoded in each fold anew.
    """

    X: Any
    native: Any
    names_given: set[str]
    names_native: set[str]
    coded: Any = None  # if there are categories
    places: Sequence[int] = ()
    encoder: EraTargetEncoder | None = None

    def of(self, name: str) -> Any:
        """Return X in the form that a member takes, without the encoded columns."""
        return self.X if name in self.names_given else self.native

    def in_folds(self, name: str, model: BaseEstimator) -> tuple[Any, Any]:
        """Return (model, X) to fit a member in folds: a default booster has fewer trees
        there.
        """
        if name != PLAIN and name in self.names_given | self.names_native:
            return model, self.of(name)
        model = model if name == PLAIN else quick(model)
        if self.coded is None:
            return model, self.native
        return clone(model).set_params(categorical_features=self.places), self.coded

    def is_encoded(self, name: str) -> bool:
        """Return whether a member also takes the encoded columns."""
        others = self.names_given | self.names_native
        return self.encoder is not None and name not in others


def encode(
    columns: Columns, rows: Any, train: NDArray[Any], test: NDArray[Any] | None = None
) -> Any:
    """Return (encoder, encoded, ...): an encoder fitted to the rows `train`, the
    encoded columns of these rows and, if `test` is given, of the rows `test`, by their
    codes. Return None if `columns` has no encoder.
    """
    if columns.encoder is None:
        return None
    y, weights, eras = rows.y, rows.sample_weight, rows.encoded.codes
    weights = None if weights is None else weights[train]
    encoder = clone(columns.encoder)
    X = columns.native if test is None else columns.coded
    known = {"eras": eras[train], "sample_weight": weights}
    values = encoder.fit_transform(_safe_indexing(X, train), y[train], **known)
    found = [np.asarray(values)]
    if test is not None:
        new = encoder.transform(_safe_indexing(X, test), eras=eras[test])
        found.append(np.asarray(new))
    encoder.era_labels_ = rows.encoded.labels[encoder.era_labels_]
    return encoder, *found


def columns_of(
    plain: BaseEstimator, members: str | Sequence[Any], rows: Any, are_ordered: bool,
    wanted: Any,
) -> tuple[Any, Columns]:  # fmt: skip
    """Return (plain, columns): the plain model, whose `categorical_features` become
    indices if they are a mask, and the `Columns` of members. These have an encoder if
    some member uses it, and if `wanted` is True or, for "auto", it is worth its time.
    """
    X, given = tables.as_frame(rows.X), plain.categorical_features
    is_frame, from_dtype = is_data_frame(X), isinstance(given, str)
    if not from_dtype and given is not None and np.asarray(given).dtype == bool:
        given = np.flatnonzero(given).tolist()
        plain = clone(plain).set_params(categorical_features=given)
    native = text_as_categories(X) if from_dtype and is_frame else rows.X
    pairs = dict(filter(is_pair, members))
    read = {x for x, y in pairs.items() if package_of(y) in PEERS or _reads_dtypes(y)}
    columns = Columns(rows.X, native, {*pairs} - read, {PLAIN, *PEERS} | read)
    takes_encoded = isinstance(members, str) or any(
        isinstance(x, str) and x not in {PLAIN, *PEERS} for x in members
    )
    if from_dtype:  # as boosters: numbers of dtype object are no categories
        mask = check_categorical_features(native, "from_dtype") if is_frame else None
        given = [] if mask is None else np.flatnonzero(mask)
    if limits_of(plain) or given is None or np.size(given) == 0:
        return plain, columns  # limits may name columns, and codes have no names
    coded, places = _codes_of(plain, native)
    columns = columns._replace(coded=coded, places=places)
    n_classes, kind = 0, "continuous"
    if is_classifier(plain):
        n_classes = np.unique(rows.y).size
        kind = "binary" if n_classes < 3 else "multiclass"
    is_worth_it = (
        are_ordered
        and rows.encoded.labels.size >= _LEAST_ERAS
        and n_classes <= _MOST_CLASSES
        and np.nanmax(coded[:, places], initial=0) >= _LEAST_CATEGORIES
    )
    if takes_encoded and wanted and (is_worth_it or wanted is True):
        encoder = EraTargetEncoder(
            categorical_features=places, target_type=kind, count=True,
            era_order="ordered" if are_ordered else "unordered",
        )  # fmt: skip
        columns = columns._replace(encoder=encoder)
    return plain, columns


def _codes_of(plain: BaseEstimator, X: Any) -> tuple[NDArray[np.float64], list[int]]:
    """Return (codes, places): X as numbers, categories in the order of the plain
    model's codes, and the indices of the columns of categories.
    """
    probe = clone(plain)
    codes, _ = read_columns.encode(probe, X, reset=True)
    is_number = ~probe.is_categorical_
    codes[:, np.argsort(is_number, kind="stable")] = codes.copy()
    return codes, np.flatnonzero(~is_number).tolist()


def _reads_dtypes(model: BaseEstimator) -> bool:
    """Return whether a model, or its inner `regressor` or `estimator`, finds categories
    by the dtypes of columns, as boosters and forests do.
    """
    inner = getattr(model, "regressor", getattr(model, "estimator", None))
    reads = str(getattr(model, "categorical_features", None)) == "from_dtype"
    return reads or (inner is not None and _reads_dtypes(inner))


def text_as_categories(X: Any) -> Any:
    """Return a copy of a data frame in which columns of text are categorical. A column
    that mixes text and numbers is left as it is, and boosters raise an error for it.
    """
    made: dict[Any, Any] = {}
    for j, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        if tables.holds_text(dtype) and str(dtype)[:4].lower() not in ("cate", "enum"):
            values = tables.as_categories(_safe_indexing(X, j, axis=1), name)
            kinds = {isinstance(x, str) for x in values if x is not None}
            if kinds == {True}:
                made[name] = values
    if made and hasattr(type(X), "hstack"):
        polars: Any = narwhals.get_native_namespace(X)
        return X.with_columns(
            polars.Series(name, values.tolist(), dtype=polars.Categorical)
            for name, values in made.items()
        )
    X = X.copy(deep=False) if made else X
    for name, values in made.items():  # objects: text's types have other missing values
        X[name] = values
    return X.astype(dict.fromkeys(made, "category")) if made else X


def beside(X: Any, encoder: Any, values: Any) -> Any:
    """Return a table of X's columns, ordered as in the encoder's fit, and of the
    encoded `values` as further columns after them.
    """
    X = tables.as_frame(X)
    if not is_data_frame(X):
        return np.column_stack([X, values])
    names = getattr(encoder, "feature_names_in_", None)
    X = X if names is None else X[[*names]]
    made = list(encoder.get_feature_names_out())
    while {*made} & {*X.columns}:
        made = [f"{name}_" for name in made]
    if hasattr(type(X), "hstack"):  # polars
        return X.hstack(type(X)(dict(zip(made, values.T, strict=True))))
    X = X.copy(deep=False)
    if names is None:  # all columns have numbers
        X.columns = range(X.shape[1])
        made = [*range(X.shape[1], X.shape[1] + len(made))]
    for name, column in zip(made, values.T, strict=True):
        X[name] = column
    return X
