"""Make arguments of fits, folds of whole eras, and predictions of eras left out."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params as rows_of_params
from sklearn.utils.validation import _num_samples, has_fit_parameter

from .._era_arguments import refuse_places, warn_of_row_order
from .._era_axes import TIME_FIRST, read_known, read_one
from .._era_columns import take_era_column
from .._era_labels import label_texts
from .._era_routing import (
    ask,
    eras_for_prediction,
    of_all_classes,
    prepares_by_era,
    routed,
    takes,
    with_requests,
)
from .._eras import EncodedEras
from .._progress import QUIET, Progress
from .._tables.checks import check_collected
from .._tables.no_value import no_value_noted, warn_of_no_value
from .._tables.target import check_values
from .._typing import Duration, Eras, Folds, Table
from .._warnings import listed
from ._times_and_groups import EraSplit, is_duration, is_same, steps_of, times_first
from ._walk_forward import EraWalkForwardSplit

NOT_TESTED = (
    "cv: sample_weight is 0 in all rows that a fold tests; pass folds that test eras "
    "with weight."
)
# A fold has fewer eras than there are, and its model is not the user's; of others
# scikit-learn warns in vain, as a fit will complain of infinite targets.
_IGNORED = (
    "eras holds the single era", "Trees end early|.*decides few splits",
    "X has columns of more than", "X: column .* has more than",
    "The groups parameter is ignored by", "invalid value encountered in cast",
)  # fmt: skip


def name_in_fit(
    estimator: BaseEstimator, argument: str, *, needs_request: bool = True
) -> str | None:
    """Return the name under which an estimator's `fit` takes an argument, such as
    "step__eras" for a pipeline. Return None if `fit` does not take the argument or,
    with routing and if it `needs_request`, does not request it.
    """
    is_routed = get_config()["enable_metadata_routing"]
    if needs_request and (is_routed or prepares_by_era(estimator, in_fit=True)):
        requests = get_routing_for_object(with_requests(estimator))
        return argument if requests.consumes("fit", [argument]) else None
    if has_fit_parameter(estimator, argument):
        return argument
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        if last in (None, "passthrough"):
            return None
        inner = name_in_fit(last, argument, needs_request=needs_request)
        return None if inner is None else f"{step}__{inner}"
    # `regressor` is that of a TransformedTargetRegressor.
    inner = getattr(estimator, "estimator", getattr(estimator, "regressor", None))
    if inner is None or not takes(estimator.fit, argument):
        return None
    return name_in_fit(inner, argument, needs_request=needs_request)


def no_weights(estimator: BaseEstimator, remedy: str) -> str:
    """Return text for an error: a fit takes no weights, or does not request weights."""
    who = f"the fit of {type(estimator).__name__}"
    if name_in_fit(estimator, "sample_weight", needs_request=False) is None:
        return f"{who} takes no weights; {remedy}."
    of = " of the last step, and False of others" * isinstance(estimator, Pipeline)
    return (
        f"{who} does not request sample_weight: set_fit_request(sample_weight=True){of}"
        f", with metadata routing enabled, or {remedy}."
    )


def fit_arguments(
    estimator: BaseEstimator, eras: NDArray[Any], sample_weight: NDArray[Any] | None
) -> dict[str, NDArray[Any]]:
    """Return keyword arguments of a fit: eras if the fit takes eras, and weights if
    they are given. Raise ValueError for weights that the fit does not take or request.
    """
    arguments = {}
    if (eras_name := name_in_fit(estimator, "eras")) is not None:
        arguments[eras_name] = eras
    if sample_weight is not None:
        weight_name = name_in_fit(estimator, "sample_weight")
        if weight_name is None:
            why = no_weights(estimator, "leave sample_weight out")
            raise ValueError(f"sample_weight: {why}")
        arguments[weight_name] = sample_weight
    return arguments


@contextmanager
def quiet_folds(n_jobs: int | None) -> Iterator[list[Any]]:
    """Hide warnings on folds; yield a list that gets the names of empty columns."""
    with no_value_noted() as empty:
        for message in _IGNORED:
            warnings.filterwarnings("ignore", message=message)
        if effective_n_jobs(n_jobs) > 1:  # it cannot be noted there
            warnings.filterwarnings("ignore", "X: column", UserWarning, "joblib")
        yield empty


@contextmanager
def folds_warned_once(
    n_jobs: int | None, rows: str = "rows that some fold trains on", names: Any = ()
) -> Iterator[None]:
    """Hide warnings on folds in the block; after it, warn once of columns that have no
    value in some fold: those of `rows`. Columns known by number get their `names`.
    """
    with quiet_folds(n_jobs) as empty:
        yield
    by_number = dict(enumerate(names))
    warn_of_no_value([by_number.get(x, x) for x in empty], rows)


def check_target(y: ArrayLike, X: Table, estimator: Any = None) -> None:
    """Raise ValueError if X is a lazy frame; if y is None, differs from X in length, or
    has missing values; or, for a regressor, if y has values that are not numbers.
    """
    check_collected(X)
    if y is None:
        raise ValueError("The fit requires y to be passed, but the target y is None.")
    if _num_samples(y) != _num_samples(X):
        raise ValueError(
            f"y has {_num_samples(y)} rows, but X has {_num_samples(X)}; pass the same "
            "rows in both."
        )
    check_values(y, are_numbers=estimator is not None and is_regressor(estimator))


def check_divisible(X: Table, name: str) -> None:
    """Raise TypeError for a BinnedDataset, and ValueError for a lazy frame."""
    check_collected(X)
    if hasattr(X, "X_binned"):
        raise TypeError(
            f"{name} fits to some of the rows, and a BinnedDataset cannot be split or "
            "indexed: pass X, y and eras."
        )


def check_rows(
    X: Any, y: Any, eras: Any, era_order: Any, name: str, *, axes: bool = False,
    estimator: Any = None,
) -> tuple[Any, NDArray[Any], Any, EncodedEras, bool]:  # fmt: skip
    """Return (X, y, labels, eras, are_ordered): X without columns of eras, y as a
    vector, the era label of each row, the encoded eras, and whether eras are ordered.
    With `axes`, two columns of eras are times and groups. Raise ValueError if a
    parameter of the estimator has indices of columns that change as columns of eras are
    left out of X.
    """
    check_target(y, X, estimator)
    refuse_places(estimator, X, eras)
    X, y, eras = take_rows(X, y, eras, name)
    y = column_or_1d(y, warn=True)
    read = read_known if axes else read_one
    return X, y, *read(eras, X, era_order, name)


def take_rows(X: Any, y: Any, eras: Any, name: str) -> tuple[Any, Any, Any]:
    """Return (X, y, eras), where X has no columns of eras; make X and y indexable."""
    X, eras = take_era_column(X, eras)
    X, y = indexable(X, y)
    warn_of_row_order(eras, X)
    if eras is None:
        raise ValueError(f"{name} needs eras: pass eras=... with one label a row.")
    return X, y, eras


def check_enough(
    eras: EncodedEras, are_ordered: bool, name: str, kind: str = "label(s)"
) -> None:
    """Raise ValueError if there are too few eras both to train on and to test on."""
    n_eras = eras.labels.size
    if n_eras < 2 + are_ordered:
        raise ValueError(
            f"eras holds {n_eras} {kind} (n_samples={eras.codes.size}), and {name} "
            "tests on eras that a model has not seen: pass the labels of three or more,"
            " or of two with era_order='unordered'."
        )


def folds_of_eras(
    cv: Any, eras: EncodedEras, are_ordered: bool, *, gap: int = 0,
    horizon: Duration = 1, group: str = "new", tests_half: bool = False,
) -> Any:  # fmt: skip
    """Return `cv` folds of eras (5 if `cv` is None): a splitter that takes codes of
    eras or, for ordered eras with groups or a duration as `horizon`, a list of pairs of
    rows. With `tests_half`, folds of ordered eras test only the last half of the eras,
    or the last quarter if they test new groups.
    """
    n_folds, n_eras = 5 if cv is None else int(cv), eras.labels.size
    if not are_ordered:
        return GroupKFold(min(n_folds, n_eras))
    n_folds = min(n_folds, n_eras - 1)
    if eras.groups is not None and group == "new":
        known = label_texts(eras.groups.labels)
        if len(known) < 2:
            raise ValueError(
                f"eras holds the single group {known[0]}, and group='new' leaves groups"
                " out: pass group='known', or the times alone."
            )
        n_folds = min(n_folds, len(known))
    n_tested = max(1, n_eras // (2 * n_folds)) if tests_half else None
    is_timed = is_duration(horizon)
    if eras.groups is None and not is_timed:
        gap += steps_of(horizon, eras.labels) - 1
        return EraWalkForwardSplit(n_folds, test_size=n_tested, gap=gap)
    times: Any = eras.decode() if is_timed else eras.codes
    asked: dict[str, Any] = {"gap": gap, "horizon": horizon}
    if eras.groups is None:
        asked |= {"test_size": n_tested, "era_order": "ordered"}
        return list(EraSplit(n_folds, **asked).split(times, groups=times))
    n_blocks, n_of_groups = n_folds, 1
    if group == "new":
        # All groups are left out in turn, in one block, at the cost of as many fits:
        # few groups in each of several blocks have a larger error.
        n_blocks, n_of_groups = 1, n_folds
        n_tested = max(1, n_eras // (4 if tests_half else 2))
    asked |= {"test_size": n_tested, "group": group, "era_order": TIME_FIRST}
    splitter = EraSplit(n_blocks, n_of_groups, **asked)
    return list(splitter.split(times, groups=(times, eras.groups.codes)))


def check_folds(model: BaseEstimator, eras: EncodedEras, are_ordered: bool) -> None:
    """Raise ValueError if folds would ignore the gap, horizon or group of a model."""
    is_number = model.cv is None or isinstance(model.cv, Integral)
    for name, default in (("gap", 0), ("horizon", 1), ("group", "new")):
        value = getattr(model, name, default)
        if is_same(value, default):
            continue
        if not (is_number and are_ordered):
            raise ValueError(
                f"{name}={value!r} is for ordered eras and cv as a number of folds; "
                f"leave it out, or give the splitter that is passed as cv a {name}."
            )
        if name == "group" and eras.groups is None:
            raise ValueError(
                f"group={value!r} is for two columns of eras, times and groups, and "
                "there is one: leave it out, or pass eras=[..., ...]."
            )


def split_eras(
    cv: Any, X: Any, y: Any, eras: EncodedEras, are_ordered: bool, name: str, *,
    groups: Any = None, rows: NDArray[np.intp] | None = None, **folds: Any,
) -> list[Any]:  # fmt: skip
    """Return a list of folds, by the splitter `cv` or, if it is a number or None, by
    `folds_of_eras` with the keywords `folds`. Folds have only the given `rows`, whose
    eras have weight; a splitter's fold that tests none of these rows is left out.
    """
    if rows is None:
        rows = np.arange(eras.codes.size)
    if cv is None or isinstance(cv, Integral):
        known = eras.take(rows)
        kind = "label(s)" if rows.size == eras.codes.size else "era(s) with weight"
        check_enough(known, are_ordered, name, kind)
        cv = check_cv(folds_of_eras(cv, known, are_ordered, **folds))
        split = cv.split(known.codes, groups=known.codes)
        return [tuple(rows[x] for x in fold) for fold in split]
    cv = check_cv(cv, y)
    if eras.groups is not None:  # the model knows which column is time
        cv = times_first(cv)
    groups = groups_for(cv, eras, eras.codes if groups is None else groups)
    params = {"groups": groups} if takes(cv.split, "groups") else {}
    try:
        given = list(cv.split(X, y, **params))
    except ValueError as error:  # of a splitter's argument, whose labels are eras here
        raise ValueError(re.sub(r"\Agroups has", "eras has", str(error))) from error
    every = np.arange(eras.codes.size)  # folds may be masks, or count from the end
    given = [
        tuple(_safe_indexing(every, [*x] if isinstance(x, range) else x) for x in fold)
        for fold in given
    ]
    if rows.size == every.size:
        return given
    kept = [tuple(x[np.isin(x, rows)] for x in fold) for fold in given]
    kept = [fold for fold in kept if fold[1].size]
    if not kept:
        raise ValueError(NOT_TESTED)
    return kept


def groups_for(cv: Folds, eras: EncodedEras, groups: ArrayLike | None) -> Any:
    """Return the groups to pass to the splitter `cv`: `groups` or, for an `EraSplit`,
    the labels of eras, which are several columns if eras have several, times first.
    """
    if not isinstance(cv, EraSplit):
        return groups
    if eras.groups is not None:
        return eras.decode(), eras.groups.decode()
    if eras.columns is not None:
        return dict(enumerate(eras.columns))
    if not isinstance(eras.labels[0], tuple):
        return eras.decode()
    columns = zip(*eras.labels, strict=True)
    return tuple(np.fromiter(x, dtype=object)[eras.codes] for x in columns)


def fit_rows(
    model: BaseEstimator, X: Table, y: ArrayLike, params: dict[str, Any],
    rows: NDArray[Any] | None = None, follower: Any = None,
) -> Any:  # fmt: skip
    """Return a copy of a model, fitted to `rows` (by default all). The arguments
    `params` of the fit are for all rows; arguments with a value per row are cut to
    `rows`. A `follower` is called before and after each of a booster's iterations.
    """
    params = rows_of_params(X, params, indices=rows)
    fitted = with_requests(clone(model))
    if follower is not None:
        fitted._follower = follower
    with routed(fitted):
        fitted.fit(*(_safe_indexing(x, rows) for x in (X, y)), **params)
    return fitted


def fit_folds(
    model: BaseEstimator, X: Table, y: ArrayLike, eras: EncodedEras,
    folds: Sequence[Any], params: dict[str, Any], n_jobs: int | None,
    progress: Progress = QUIET,
) -> list[Any]:  # fmt: skip
    """Return a list of copies of a model, each fitted to a fold's training rows."""
    names = names_of(folds, eras)
    fitted = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fit_fold)(model, X, y, params, train, name)
        for name, (train, _) in zip(names, folds, strict=True)
    )
    return [*progress.of(fitted, names)]


def _fit_fold(
    model: BaseEstimator, X: Table, y: ArrayLike, params: dict[str, Any],
    train: NDArray[Any], name: str,
) -> Any:  # fmt: skip
    """Return a copy of a model fitted to the rows `train`. Errors name the fold, and
    keep their type if they hold only a message.
    """
    try:
        return fit_rows(model, X, y, params, train)
    except Exception as error:  # any, of a model that was passed
        message = f"The fit fails in {name}: {error}"
        if [*map(type, error.args)] != [str]:
            raise ValueError(message) from error
        error.args = (message,)
        raise


def names_of(folds: Sequence[Any], eras: EncodedEras) -> list[str]:
    """Return a text for each fold: its number, its training eras and its test eras."""
    texts = [[listed(eras.take(x).labels) for x in fold] for fold in folds]
    return [
        f"fold {number} of {len(folds)}, to eras {train} (tests {test})"
        for number, (train, test) in enumerate(texts, 1)
    ]


def respond(
    model: BaseEstimator, X: Table, classes: NDArray[Any] | None = None,
    eras: Eras | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Return predictions or, given classes, the probability of each class, which is 0
    for a class that the model has not seen.
    """
    eras = eras_for_prediction(model, eras)
    if classes is None:
        return np.asarray(ask(model, "predict", X, eras), dtype=np.float64)
    return of_all_classes(ask(model, "predict_proba", X, eras), model.classes_, classes)


def take_attributes(
    estimator: BaseEstimator, model: BaseEstimator,
    names: Sequence[str] = ("n_features_in_", "feature_names_in_", "classes_"),
) -> None:  # fmt: skip
    """Copy attributes of a model to `estimator`; delete those that the model lacks."""
    for name in names:
        vars(estimator).pop(name, None)
        if hasattr(model, name):
            setattr(estimator, name, getattr(model, name))
