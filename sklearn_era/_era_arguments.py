"""Check how eras are passed to ``fit``, and refuse arguments of other packages."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import replace
from functools import wraps
from inspect import signature, unwrap
from itertools import chain
from numbers import Integral
from threading import get_ident
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator

from ._era_columns import names_columns
from ._eras import EncodedEras, encode_eras, read_eras
from ._fit_attributes import NAME_BEFORE
from ._label_columns import label_columns
from ._tables.checks import names_of_columns
from ._tables.columns import list_columns
from ._typing import Eras, Table
from ._warnings import did_you_mean, warn_user

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Thread of each running fit, by the id of its estimator. Two fits of one estimator
# would write to the same memory.
_FITTING: dict[int, int] = {}

# Arguments of other packages' fits, and ours that do it: the first one that `fit` or
# the constructor has.
_FOREIGN = {
    "eval_set": "X_val cv oob_score", "validation_data": "X_val cv oob_score",
    "eval_sample_weight": "sample_weight_val", "eval_group": "eras_val",
    "sample_weight_eval_set": "sample_weight_val", "eval_metric": "scoring",
    "early_stopping_rounds": "n_iter_no_change", "init_model": "warm_start",
    "xgb_model": "warm_start", "categorical_feature": "categorical_features",
    "cat_features": "categorical_features", "group": "eras", "groups": "eras",
    "era": "eras", "weight": "sample_weight", "weights": "sample_weight",
    "verbose": "verbose", "callbacks": "set_callbacks",
}  # fmt: skip

# Parameters that may name columns by their places, here and in other packages.
_PER_COLUMN = {"feature_penalty", "monotonic_cst"}
_BY_PLACE = _PER_COLUMN | {
    "cat_features", "categorical_feature", "categorical_features", "interaction_cst",
    "neutralizers", "relative", "transformers",
}  # fmt: skip


def suggest_eras_keyword(sample_weight: ArrayLike | None, error: Exception) -> None:
    """If a fit may have raised `error` because labels of eras were passed as
    `sample_weight`, raise a ValueError that suggests `eras=`.
    """
    if sample_weight is None:
        return
    reason, are_labels = None, True
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
        distinct = np.unique(weights[np.isfinite(weights)])
        are_labels = 1 < distinct.size < weights.size and not (distinct % 1).any()
    except (TypeError, ValueError) as failure:
        reason = str(failure)
    if reason == str(error):
        raise ValueError(
            f"sample_weight is not numeric: {error}. If it holds the labels of eras, "
            "pass them by name, as fit(X, y, eras=...)."
        ) from error
    if are_labels and "needs eras: " in str(error):
        raise ValueError(
            f"{error} If sample_weight, the third argument, holds these labels, pass "
            "it as eras=."
        ) from error


def refuse_places(
    model: Any, X: Any, eras: Any, grid: Mapping[str, Any] | None = None
) -> None:
    """Raise ValueError if a parameter of the model, or a value in `grid`, refers to
    columns of X by their indices, and these indices would change once the columns that
    `eras` names are taken out of X.
    """
    if not names_columns(eras, X):
        return
    columns = [*names_of_columns(X)]
    n, taken = len(columns), [x for x in np.atleast_1d(eras).tolist() if x in columns]
    at = sorted(map(columns.index, taken))
    values = chain(_values_of(model), _values_in([grid or {}]))
    for name, value in values if at else ():
        places = _places_in(name.rpartition("__")[2], value, n)
        if any(x >= at[0] if x >= 0 else x + n <= at[-1] for x in places):
            raise ValueError(
                f"{name}={value!r} counts columns of X, and eras={eras!r} takes "
                f"{list_columns(taken)} out of them: name columns in it, or pass X "
                "without eras and one label a row."
            )


def _values_of(model: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each parameter of a model and, if the value is a
    model or a grid, of each parameter in it. Skip frozen models, and models that are
    fitted to some of the columns.
    """
    is_known = isinstance(model, type | FrozenEstimator)
    if is_known or not hasattr(model, "get_params"):
        return
    for name, value in model.get_params(deep=False).items():
        yield f"{path}{name}", value
        if name in ("param_grid", "param_distributions"):
            yield from _values_in([value] if isinstance(value, Mapping) else value)
        elif name not in _BY_PLACE and isinstance(value, list | tuple):
            for x in value:  # models, or pairs of a name and a model
                is_pair = isinstance(x, tuple) and len(x) == 2
                key, x = x if is_pair else (name, x)
                yield from _values_of(x, f"{path}{key}__")
        elif name not in _BY_PLACE:
            yield from _values_of(value, f"{path}{name}__")


def _values_in(grids: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the name and each value of every parameter in `grids`. If a value is a
    model, yield the names and values of the model's parameters, too.
    """
    for name, values in chain.from_iterable(grid.items() for grid in grids):
        for value in values if isinstance(values, Iterable) else ():
            yield name, value
            yield from _values_of(value, f"{name}__")


def _places_in(parameter: str, value: Any, n_columns: int) -> list[int]:
    """Return the indices of columns in the value of a parameter. If the value has an
    entry for each column of X, return the indices of all columns.
    """
    if parameter not in _BY_PLACE or not isinstance(value, Collection):
        return []
    # Of an array without dimensions, scikit-learn takes the number.
    value = np.atleast_1d(value) if isinstance(value, np.ndarray) else value
    if parameter == "transformers":  # of a ColumnTransformer
        return [x for *_, one in value for x in _places_chosen(one, n_columns)]
    if parameter == "interaction_cst":
        given: Any = chain(*(x for x in value if isinstance(x, Iterable)))
    elif hasattr(value, "keys"):
        given = value.keys()
    elif parameter in _PER_COLUMN or np.asarray(value).dtype == bool:
        given = range(n_columns if len(value) == n_columns else 0)
    else:
        given = value
    return [int(x) for x in given if isinstance(x, Integral)]


def _places_chosen(chosen: Any, n_columns: int) -> list[int]:
    """Return the indices in `chosen`, the columns that a ColumnTransformer takes."""
    if isinstance(chosen, slice):
        is_named = isinstance(chosen.start, str) or isinstance(chosen.stop, str)
        return [] if is_named else [*range(*chosen.indices(n_columns))]
    chosen = [chosen] if isinstance(chosen, Integral) else chosen
    return _places_in("categorical_features", chosen, n_columns)


def _refuse_foreign(model: Any, known: Any, given: Any) -> None:
    """Raise TypeError for an argument that `fit` lacks. If another package has an
    argument of this name, the message gives the name in this package.
    """
    if any(x.kind is x.VAR_KEYWORD for x in known.values()):
        return
    for name in (x for x in given if x not in known):
        ours = _FOREIGN.get(name, "").split()
        found = [x for x in ours if x in known or hasattr(model, x)]
        hint = did_you_mean(name, known)
        if found and found[0] in known:
            also = " and y_val=..." if found[0] == "X_val" else ""
            hint = f" Pass {found[0]}=...{also} here."
        elif found:
            hint = f" Use {found[0]} of the estimator here."
        what = f"{type(model).__name__}.fit got an unexpected keyword argument"
        raise TypeError(f"{what} {name!r}.{hint}")


def eras_by_name(fit: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a ``fit`` to check how eras are passed, and to store in the model the
    names of the columns that hold eras. The decorated ``fit`` raises TypeError for
    unknown arguments and, if it takes no weights, for a third positional argument. If
    it takes weights, it warns if the third positional argument may hold labels of eras.
    """
    unwrap(fit).__qualname__ = "fit"  # for Python's errors about arguments
    known = signature(fit).parameters
    takes_weights = [*known.values()][3].kind.value < 2

    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        _refuse_foreign(args[0], known, kwargs)
        if len(args) > 3 and not takes_weights:
            raise TypeError(
                f"{type(args[0]).__name__}.fit takes X and y by position: pass labels "
                "by name, as fit(X, y, eras=...)."
            )
        if len(args) > 3 and kwargs.get("eras") is None:
            weights = np.asarray(args[3])
            # Whole-numbered floats are more often weights than labels.
            are_labels = weights.ndim == 1 and weights.dtype.kind in "iuUSO"
            if are_labels and 2 < len({*weights.tolist()}) < weights.size:
                warn_user(
                    "The third argument of fit is sample_weight, and holds whole "
                    "numbers: pass labels of eras by name, as eras=..., and weights "
                    "as sample_weight=...."
                )
        model, eras = args[0], kwargs.get("eras")
        X = args[1] if len(args) > 1 else kwargs.get("X")
        new_name = eras if names_columns(eras, X) else None
        refuse_places(model, X, new_name)
        vars(model)[NAME_BEFORE] = vars(model).pop("_era_column", None)
        is_fitted = False
        try:
            fitted = fit(*args, **kwargs)
            is_fitted = True  # no call that an interrupt could part from the fit
            return fitted
        finally:
            # Gone where an interrupted fit keeps its iterations.
            before = vars(model).pop(NAME_BEFORE, new_name)
            if (name := new_name if is_fitted else before) is not None:
                model._era_column = name  # type: ignore[attr-defined]

    @wraps(fit)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        model, thread = args[0], get_ident()
        try:
            if _FITTING.setdefault(id(model), thread) != thread:
                raise RuntimeError(
                    f"This {type(model).__name__} is being fitted in another thread: "
                    "fit a clone of it in each thread, by sklearn.base.clone."
                )
            return checked(*args, **kwargs)
        finally:
            if _FITTING.get(id(model)) == thread:
                _FITTING.pop(id(model))

    return call


def warn_of_row_order(
    eras: Eras | None, X: Table, name: str = "eras", X_name: str = "X"
) -> bool:
    """Warn if the index of labels has the values of X's index in another order. Labels
    belong to rows by position, and their index is ignored. Return whether it warned.
    """
    index: Any = getattr(eras, "index", None)
    rows: Any = getattr(X, "index", None)
    if (
        not (hasattr(index, "equals") and hasattr(rows, "get_indexer"))
        or index.equals(rows)
        or len(index) != len(rows)
        or index.dtype != rows.dtype
        or not (index.is_unique and rows.is_unique)
    ):
        return False
    step = max(1, len(index) // 1000)  # a lookup of millions would take seconds
    some = index[::step]
    is_other = bool((rows.get_indexer(some) >= 0).all())
    if is_other:
        warn_user(
            f"{name} has the index of {X_name} in another order, and labels belong to "
            f"rows by their place, as those of y do: pass {name}.loc[{X_name}.index]."
        )
    return is_other


def encode_groups(
    eras: Eras, X: Any, X_name: str
) -> tuple[dict[Any, EncodedEras], EncodedEras]:
    """Return (columns, groups). A group is all rows with the same labels in all
    columns: `groups` encodes the group of each row, and `columns` is a dict that has,
    for each column, the encoded label of each group.
    """
    columns = {
        "era" if key is None else key: read_eras(labels, X, name=text, X_name=X_name)
        for key, text, labels in label_columns(eras)
    }
    sizes = [max(1, column.labels.size) for column in columns.values()]
    codes = [column.codes for column in columns.values()]
    groups = encode_eras(np.ravel_multi_index(codes, sizes))
    places = zip(columns, np.unravel_index(groups.labels, sizes), strict=True)
    for key, own in places:
        columns[key] = replace(columns[key], codes=own.astype(np.int32))
    return columns, groups
