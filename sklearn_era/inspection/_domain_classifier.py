"""How well a classifier tells rows of one set, or of one era, from the others."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.parallel import Parallel, delayed

from sklearn_era._eras import read_eras
from sklearn_era._optional import import_optional
from sklearn_era._tables.columns import as_matrix, check_same_columns, read_columns
from sklearn_era._tables.no_value import no_value_noted, warn_of_no_value
from sklearn_era.ensemble import HistGradientBoostingClassifier

# Most categories that histogram boosting takes; columns of more are taken for numbers.
_MOST_CATEGORIES = 255

_MAX_SEED = np.iinfo(np.int32).max


@validate_params(
    {
        "estimator": [object],
        "categorical_features": ["array-like", str, None],
        "cv": [Interval(Integral, 2, None, closed="left"), "cv_object"],
        "n_repeats": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "as_frame": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def domain_classifier_auc(
    X: Any,
    X_holdout: Any = None,
    *,
    eras: Any = None,
    estimator: Any = None,
    categorical_features: Any = "from_dtype",
    cv: Any = 5,
    n_repeats: int = 0,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    as_frame: bool = False,
) -> Bunch:
    """Measure how far a classifier tells holdout from training rows, or eras apart.

    After [1]_, sections 2.5 and 6.1.2: rows are labelled by the set that they come
    from, not by their target, and a classifier learns the label. Its area under the ROC
    curve, on rows that it has not seen, is the probability that a row of the holdout
    gets a higher score than a training row ::

        AUC = P(score(holdout row) > score(training row)) + P(equal) / 2

    0.5 says that the features are distributed alike; 1 that every row gives its set
    away. With `eras` in place of `X_holdout`, each era in turn is told from all others.

    The AUC is of the features alone. It does not see whether the target goes along with
    them in another way, which is what the split criteria look at. Leave out columns
    that are the date, or count up with it: they tell any two periods apart.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The rows: those of the training set, or of all eras.

    X_holdout : array-like or data frame of shape (n_holdout, n_features), default=None
        The rows to tell from those of X. Either this or `eras`.

    eras : array-like of shape (n_samples,), default=None
        Era of each row of X, at least two.

    estimator : object, default=None
        A classifier with `predict_proba` or `decision_function`, which is cloned. It is
        handed float64 arrays, with categories as codes from 0 and NaN where a value is
        missing. None is a
        :class:`~sklearn_era.ensemble.HistGradientBoostingClassifier` without early
        stopping, to which columns of up to 255 categories are categorical, and the
        codes of others are numbers.

    categorical_features : 'from_dtype', None or array-like of {bool, int, str}, \
default='from_dtype'
        Which features are categorical: by a mask, indices, or names of a frame's
        columns. 'from_dtype' takes a frame's columns of category, string or object
        dtype.

    cv : int, cross-validation generator or iterable, default=5
        An int is the number of folds of a shuffled
        :class:`~sklearn.model_selection.StratifiedKFold`. Every test fold needs rows of
        both sets.

    n_repeats : int, default=0
        How often to permute each feature of the test folds for importances; 0 for none.
        This takes ``n_features * n_repeats`` predictions of each fold.

    n_jobs : int, default=None
        Fits to run in parallel; None is 1, or what a
        :obj:`joblib.parallel_config` context says, and -1 is as many as there are
        cores. The result is the same for all.

    random_state : int, RandomState instance or None, default=None
        Determines folds, the default estimator and permutations. Pass an int for
        reproducible output across calls.

    as_frame : bool, default=False
        Whether to return pandas objects in the Bunch.

    Returns
    -------
    result : Bunch
        With the fields

        auc : float
            The AUC; with `eras`, the mean over eras.
        aucs : ndarray of shape (n_domains,), or Series
            The AUC of each domain, the mean over folds. The domains are the eras, or
            the holdout alone.
        fold_aucs : ndarray of shape (n_domains, n_folds)
            The AUC of each fold.
        domain_labels : ndarray of shape (n_domains,)
            The labels of the eras, sorted, or "holdout".
        feature_names : ndarray of shape (n_features,)
            Names of the columns of X; ``x0``, ``x1``, ... where it has none.
        importances : ndarray of shape (n_domains, n_features), or DataFrame
            With `n_repeats`: how much of the AUC is lost where the feature is permuted
            in the test fold, the mean over folds and repeats. Of two features that tell
            the same, neither may show.

    Raises
    ------
    ValueError
        If both or neither of `X_holdout` and `eras` are given; if tables are empty,
        differ in their columns, or hold columns that are neither numeric nor among the
        categorical ones; if `estimator` is no classifier; or if a set has fewer rows
        than there are folds, or none in a test fold.
    MissingPackageError
        If pandas is not installed, with ``as_frame=True``.

    References
    ----------
    .. [1] L. Moneda, "Domain Generalization, Invariance and the Time Robust Forest",
           Master's thesis, University of São Paulo, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.inspection import domain_classifier_auc
    >>> rng = np.random.default_rng(0)
    >>> X, X_later = rng.normal(size=(500, 3)), rng.normal(size=(200, 3))
    >>> X_later[:, 1] += 1.5
    >>> result = domain_classifier_auc(X, X_later, n_repeats=3, random_state=0)
    >>> round(result.auc, 1)
    0.8
    >>> result.feature_names[result.importances[0].argmax()]
    'x1'
    """
    pandas = import_optional("pandas", extra="cli") if as_frame else None
    if (X_holdout is None) == (eras is None):
        raise ValueError(
            "X_holdout and eras: pass exactly one of them, the rows to tell from those "
            "of X, or the era of each row of X."
        )
    if estimator is not None and not is_classifier(estimator):
        raise ValueError(f"estimator must be a classifier, or None; got {estimator!r}.")
    columns = read_columns(X, categorical_features=categorical_features)
    if eras is None:
        others = read_columns(
            X_holdout, categorical_features=categorical_features, name="X_holdout"
        )
        check_same_columns(columns, others, name="X", other_name="X_holdout")
        rows, n_categories = as_matrix(columns, others)
        labels = np.array(["holdout"])
        domains = np.repeat([-1, 0], [columns[0].values.size, others[0].values.size])
    else:
        encoded = read_eras(eras, columns[0].values)
        if encoded.labels.size < 2:
            raise ValueError(
                f"eras has the one label {encoded.labels[0]!s}, and nothing to tell it "
                "from; pass rows of two eras or more, or X_holdout."
            )
        rows, n_categories = as_matrix(columns)
        labels, domains = encoded.labels, encoded.codes
    rng = check_random_state(random_state)
    if estimator is None:
        estimator = HistGradientBoostingClassifier(
            categorical_features=(n_categories > 0)
            & (n_categories <= _MOST_CATEGORIES),
            early_stopping=False,
            random_state=rng.randint(_MAX_SEED),
        )
    if isinstance(cv, Integral):
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=rng.randint(_MAX_SEED))
    splitter = check_cv(cv, domains, classifier=True)
    jobs = []
    for domain, label in enumerate(labels):
        is_in = (domains == domain).astype(np.intp)
        jobs += [
            (is_in, train, test, rng.randint(_MAX_SEED))
            for train, test in _folds(splitter, rows, is_in, str(label), eras is None)
        ]
    results = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(estimator, rows, *job, n_repeats) for job in jobs
    )
    n_folds = len(jobs) // labels.size
    fold_aucs = np.array([auc for auc, *_ in results]).reshape(-1, n_folds)
    names = np.array([column.name for column in columns], dtype=object)
    name_of = dict(enumerate(names))
    empty = [name_of.get(j, j) for *_, noted in results for j in noted]
    warn_of_no_value(empty, "rows that a classifier is trained on")
    aucs = fold_aucs.mean(axis=1)
    result = Bunch(
        auc=float(aucs.mean()),
        aucs=aucs,
        fold_aucs=fold_aucs,
        domain_labels=labels,
        feature_names=names,
    )
    if n_repeats:
        losses = np.array([loss for _, loss, _ in results])
        result.importances = losses.reshape(labels.size, n_folds, -1).mean(axis=1)
    if pandas is not None:
        index = pandas.Index(labels, name="domain")
        result.aucs = pandas.Series(aucs, index=index, name="auc")
        if n_repeats:
            result.importances = pandas.DataFrame(
                result.importances, index=index, columns=names
            )
    return result


def _folds(
    splitter: Any, rows: NDArray[Any], is_in: NDArray[np.intp], label: str, by_set: bool
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The folds of one domain, with rows of both sides in all of them."""
    if by_set:
        sides = {0: "X", 1: "X_holdout"}
    else:
        sides = {0: f"the eras other than {label}", 1: f"era {label}"}
    if isinstance(splitter, StratifiedKFold):
        for side, what in sides.items():
            count = int((is_in == side).sum())
            if count < splitter.n_splits:
                raise ValueError(
                    f"Of {what} there are {count} row(s), which cannot be in each of "
                    f"{splitter.n_splits} folds; lower cv, or pass more rows."
                )
    folds = list(splitter.split(rows, is_in))
    for fold, (train, test) in enumerate(folds):
        for side, what in sides.items():
            for part, indices in (("training", train), ("test", test)):
                if not np.any(is_in[indices] == side):
                    raise ValueError(
                        f"cv: of {what} there is no row among the {part} rows of fold "
                        f"{fold}, and no AUC of one side; pass a splitter that puts "
                        "rows of both into each part, or the number of folds."
                    )
    return folds


def _fit_and_score(
    estimator: Any,
    rows: NDArray[np.float64],
    is_in: NDArray[np.intp],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    seed: int,
    n_repeats: int,
) -> tuple[float, NDArray[np.float64], list[Any]]:
    """The AUC of a fold, what each feature's permutation takes, and empty columns."""
    scorer = get_scorer("roc_auc")
    with no_value_noted() as empty:
        model = clone(estimator).fit(rows[train], is_in[train])
    auc = float(scorer(model, rows[test], is_in[test]))
    if n_repeats == 0:
        return auc, np.empty(0), empty
    permuted = permutation_importance(
        model,
        rows[test],
        is_in[test],
        scoring=scorer,
        n_repeats=n_repeats,
        random_state=seed,
    )
    return auc, permuted.importances_mean, empty
