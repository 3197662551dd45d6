"""Scores of models trained on ever older data, which show whether old eras help."""

import time
import warnings
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils._param_validation import StrOptions, validate_params
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from .._era_routing import takes
from .._eras import TIME_ONLY, EncodedEras, check_eras, check_order, read_eras
from .._scikit_learn import check_sample_weight
from .._tables.no_value import no_value_noted, warn_of_no_value
from ._fit_arguments import check_target, fit_arguments, name_in_fit, with_order
from ._search_scores import asks_for_eras


@validate_params(
    {
        "test_eras": ["array-like", None],
        "n_train_eras": ["array-like", None],
        "era_order": [StrOptions({"auto", "ordered"})],
        "scoring": [str, callable, None],
        "sample_weight": ["array-like", None],
        "sample_weight_test": ["array-like", None],
        "n_jobs": [Integral, None],
        "return_estimator": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def reverse_learning_curve(
    estimator: Any, X: Any, y: Any, *, eras: Any, test_eras: ArrayLike | None = None,
    X_test: Any = None, y_test: Any = None, eras_test: Any = None,
    n_train_eras: ArrayLike | None = None, era_order: str = "auto", scoring: Any = None,
    sample_weight: ArrayLike | None = None,
    sample_weight_test: ArrayLike | None = None, n_jobs: int | None = None,
    return_estimator: bool = False,
) -> Bunch:  # fmt: skip
    """Train on the latest era, on the latest two, and so on, and score on a fixed set.

    After [1]_, section 6.1.3. A learning curve adds rows at random; this one adds older
    and older eras ::

        score_k = score(model fitted to the k latest training eras, test set)

    A curve rises where old data still help to predict the test set, and falls where
    they mislead the model: then try a shorter window, or a criterion that asks for
    splits that hold in all eras.

    Eras are taken in the order of their labels. An estimator whose `fit` takes eras is
    handed those of its rows: directly, as the last step of a
    :class:`~sklearn.pipeline.Pipeline`, inside a search or a
    :class:`~sklearn.compose.TransformedTargetRegressor`, or by metadata routing.
    (Its warning that there is a single era, at the first point, is not passed on.)

    Parameters
    ----------
    estimator : object
        Any regressor or classifier. It is cloned, and not fitted itself.
    X : array-like of shape (n_samples, n_features)
        The training rows, and those of `test_eras`, if given.
    y, eras : array-like of shape (n_samples,)
        Their targets and eras, in labels that sort by time.
    test_eras : array-like of shape (n_test_eras,), default=None
        Labels of the eras to score on, all of them after those to train on. Either this
        or `X_test` and `y_test`.
    X_test, y_test : array-like of shape (n_test, n_features) and (n_test,)
        Rows to score on, and their targets.
    eras_test : array-like of shape (n_test,), default=None
        Era of each row of `X_test`; needed for a `scoring` that asks for eras.
    n_train_eras : array-like of shape (n_points,), dtype=int, default=None
        How many eras to train on, for each point of the curve. None is every number
        from 1 on; with hundreds of eras, pass some.
    era_order : {'auto', 'ordered'}, default='auto'
        As of :class:`EraWalkForwardSplit`.
    scoring : str, callable or None, default=None
        A scorer, as `sklearn.metrics.check_scoring` takes it. None is the ``score`` of
        the estimator. Greater is better. One that asks for eras, as those of
        :func:`~sklearn_era.metrics.make_era_scorer`, is handed those of the test set.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows of X, for `fit`, and with `test_eras` for the score.
    sample_weight_test : array-like of shape (n_test,), default=None
        Weights of the rows of `X_test`, for the score.
    n_jobs : int, default=None
        Fits to run in parallel; -1 is as many as there are cores.
    return_estimator : bool, default=False
        Whether to return the fitted models.

    Returns
    -------
    result : Bunch
        With the fields

        n_train_eras, n_samples : ndarray of shape (n_points,), dtype=intp
            Eras trained on, ascending, and their rows.
        oldest_eras : ndarray of shape (n_points,)
            Label of the oldest era trained on.
        scores, fit_times : ndarray of shape (n_points,), dtype=float64
            Score on the test set, in the scorer's unit; seconds that the fit took.
        score_name, passes_eras : str, bool
            The name of `scoring`; and whether `fit` was handed eras.
        estimators : list of length n_points
            The models, with `return_estimator`.

    Raises
    ------
    ValueError
        If the test set is given twice, in part, or not at all; if `test_eras` are
        unknown, or not after all others; if `n_train_eras` holds numbers that there are
        no eras for; if `fit` or `scoring` takes no weights and there are some; if
        `scoring` asks for eras and the test set has none; or if a fit or a score fails,
        in which case the message names the eras that were trained on.

    Warns
    -----
    UserWarning
        If labels are numbered texts, and their order is not that of the numbers; if
        columns have no value in the rows of a fit.

    See Also
    --------
    ReverseLearningCurveDisplay : Draws it.
    sklearn.model_selection.learning_curve : Adds rows in any order.

    References
    ----------
    .. [1] L. Moneda, "Domain Generalization, Invariance and the Time Robust Forest",
           Master's thesis, University of São Paulo, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn_era.model_selection import reverse_learning_curve
    >>> rng = np.random.default_rng(0)
    >>> years = np.repeat([2018, 2019, 2020, 2021, 2022], 100)
    >>> X = rng.normal(size=(500, 1))
    >>> y = np.where(years < 2020, -1, 1) * X[:, 0]  # an old regime, and a new one
    >>> curve = reverse_learning_curve(
    ...     LinearRegression(), X, y, eras=years, test_eras=[2022]
    ... )
    >>> curve.oldest_eras
    array([2021, 2020, 2019, 2018])
    >>> bool(curve.scores[1] > 0.99 > curve.scores[2] > curve.scores[3])
    True
    """
    encoded = read_eras(eras, X)
    check_order(
        encoded, era_order, "reverse_learning_curve", "learning_curve", remedy=TIME_ONLY
    )
    check_target(y, X)
    weights = _weights(sample_weight, X, "sample_weight")
    train_codes, test = _test_set(
        encoded, X, y, test_eras, X_test, y_test, eras_test, weights, sample_weight_test
    )
    counts = _check_n_train_eras(n_train_eras, train_codes.size)
    estimator = with_order(estimator, "ordered")
    arguments = fit_arguments(estimator, encoded.decode(), weights)
    scorer, of_score = check_scoring(estimator, scoring), {}
    if asks_for_eras(scorer):
        if test.eras is None:
            raise ValueError(
                f"eras_test is missing: scoring={scoring!r} asks for eras, so pass the "
                "era of each row of X_test."
            )
        of_score["eras"] = test.eras
    if test.weights is not None:
        if not takes(scorer, "sample_weight"):
            raise ValueError(
                f"scoring={scoring!r} takes no sample_weight, and the test set has "
                "weights; give it such a parameter, or leave the weights of the test "
                "set out: pass X_test and y_test in place of test_eras."
            )
        of_score["sample_weight"] = test.weights
    firsts = train_codes[train_codes.size - counts]
    rows = [
        np.flatnonzero(np.isin(encoded.codes, train_codes[train_codes.size - count :]))
        for count in counts
    ]
    results = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(
            estimator, _safe_indexing(X, of_point), _safe_indexing(y, of_point),
            {name: values[of_point] for name, values in arguments.items()},
            scorer, test.X, test.y, of_score,
            f"the latest {count} training era(s), from {oldest!s} on",
        )
        for of_point, count, oldest in zip(
            rows, counts, encoded.labels[firsts], strict=True
        )
    )  # fmt: skip
    models, scores, fit_times, empty = zip(*results, strict=True)
    warn_of_no_value(list(chain(*empty)), "rows that a fit is trained on")
    result = Bunch(
        n_train_eras=counts,
        oldest_eras=encoded.labels[firsts],
        n_samples=np.array([of_point.size for of_point in rows], dtype=np.intp),
        scores=np.array(scores, dtype=np.float64),
        fit_times=np.array(fit_times, dtype=np.float64),
        score_name=scoring if isinstance(scoring, str) else "score",
        passes_eras=name_in_fit(estimator, "eras") is not None,
    )
    if return_estimator:
        result.estimators = list(models)
    return result


def _weights(weights: Any, X: Any, name: str) -> NDArray[Any] | None:
    if weights is None:
        return None
    if _num_samples(weights) != _num_samples(X):
        raise ValueError(
            f"{name} has {_num_samples(weights)} values, but there are "
            f"{_num_samples(X)} rows; pass one a row."
        )
    return check_sample_weight(weights, np.empty((_num_samples(X), 1)))


def _test_set(
    encoded: EncodedEras, X: Any, y: Any, test_eras: Any, X_test: Any, y_test: Any,
    eras_test: Any, weights: NDArray[Any] | None, sample_weight_test: Any,
) -> tuple[NDArray[np.intp], Bunch]:  # fmt: skip
    """Return the codes of the eras to train on, and the test set."""
    beside = {
        "X_test": X_test, "y_test": y_test, "eras_test": eras_test,
        "sample_weight_test": sample_weight_test,
    }  # fmt: skip
    given = [name for name, value in beside.items() if value is not None]
    if test_eras is None:
        if X_test is None or y_test is None:
            raise ValueError(
                "test_eras, X_test, y_test: pass the labels of the eras to score on, "
                f"or both X_test and y_test; got {' and '.join(given) or 'none'}."
            )
        if _num_samples(X_test) != _num_samples(y_test) or not _num_samples(X_test):
            raise ValueError(
                f"X_test has {_num_samples(X_test)} rows, and y_test "
                f"{_num_samples(y_test)}; pass the same rows in both, and at least one."
            )
        if eras_test is not None:
            eras_test = check_eras(eras_test, X_test, name="eras_test", X_name="X_test")
        weights = _weights(sample_weight_test, X_test, "sample_weight_test")
        every = np.arange(encoded.labels.size)
        return every, Bunch(X=X_test, y=y_test, eras=eras_test, weights=weights)
    if given:
        raise ValueError(
            f"test_eras names eras of X to score on, and {' and '.join(given)} came "
            "with it; pass one or the other."
        )
    wanted = check_eras(test_eras, test_eras, name="test_eras", X_name="itself")
    if wanted.size == 0:
        raise ValueError("test_eras is empty; name the eras to score on.")
    if encoded.labels.dtype.kind == "M" and wanted.dtype.kind == "O":
        # Python's and pandas' dates, or text; NumPy compares its own in any unit.
        try:
            wanted = np.array(wanted.tolist(), dtype="datetime64")
        except ValueError as error:
            raise ValueError(
                f"test_eras: eras holds dates, and these are none: {error}"
            ) from error
    is_test = np.isin(encoded.labels, wanted)
    unknown = wanted[~np.isin(wanted, encoded.labels)]
    if unknown.size:
        # Text in quotes: "2020" is not 2020.
        label, first, last = (
            repr(str(x)) if isinstance(x, str) else str(x)
            for x in (unknown[0], *encoded.labels[[0, -1]])
        )
        raise ValueError(
            f"test_eras: eras has no label {label}; its labels go from {first} to "
            f"{last}."
        )
    train_codes = np.flatnonzero(~is_test)
    if train_codes.size == 0:
        raise ValueError(
            "test_eras names all eras, and none is left to train on; name fewer."
        )
    last, first = encoded.labels[[train_codes[-1], np.argmax(is_test)]]
    if train_codes[-1] > np.argmax(is_test):
        raise ValueError(
            f"test_eras: era {first!s} is to be scored on, but is not after era "
            f"{last!s}, which is trained on; name the latest eras, or pass other rows "
            "as X_test and y_test."
        )
    rows = np.flatnonzero(is_test[encoded.codes])
    return train_codes, Bunch(
        X=_safe_indexing(X, rows),
        y=_safe_indexing(y, rows),
        eras=encoded.labels[encoded.codes[rows]],
        weights=None if weights is None else weights[rows],
    )


def _check_n_train_eras(n_train_eras: Any, n_eras: int) -> NDArray[np.intp]:
    if n_train_eras is None:
        return np.arange(1, n_eras + 1)
    counts = np.asarray(n_train_eras)
    if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu":
        raise ValueError(
            "n_train_eras must be a list of integers, such as [1, 2, 5, 10]; got "
            f"{n_train_eras!r}."
        )
    wrong = counts[(counts < 1) | (counts > n_eras)]
    if wrong.size:
        raise ValueError(
            f"n_train_eras: {wrong[0]} is not a number of eras to train on, of which "
            f"there are {n_eras}; pass numbers from 1 to {n_eras}."
        )
    return np.unique(counts).astype(np.intp)


def _fit_and_score(
    estimator: Any, X: Any, y: Any, arguments: dict[str, Any], scorer: Any, X_test: Any,
    y_test: Any, score_arguments: dict[str, Any], what: str,
) -> tuple[Any, float, float, list[Any]]:  # fmt: skip
    """Return the model, its score, seconds of the fit, and empty columns."""
    start = time.perf_counter()
    try:
        with no_value_noted() as empty:
            # The first point of the curve has one era, as it should.
            warnings.filterwarnings("ignore", message="eras holds the single era")
            model = clone(estimator).fit(X, y, **arguments)
    except ValueError as error:
        raise ValueError(f"The fit to {what}, failed: {error}") from error
    fit_time = time.perf_counter() - start
    try:
        score = scorer(model, X_test, y_test, **score_arguments)
    except ValueError as error:
        raise ValueError(
            f"The model fitted to {what}, cannot be scored on the test set: {error}"
        ) from error
    if np.ndim(score) or np.asarray(score).dtype.kind not in "iuf":
        raise ValueError(f"scoring must return one number; got {score!r}.")
    return model, float(score), fit_time, empty
