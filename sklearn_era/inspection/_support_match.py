"""Measure the empirical support match, which is the share of each feature's range that
eras cover; drift of features; and how well a classifier tells two sets of rows apart.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.utils import Bunch, column_or_1d
from sklearn.utils._param_validation import HasMethods, Interval, validate_params

from .._era_arguments import refuse_places
from .._era_columns import names_columns, take_era_column
from .._era_labels import find
from .._eras import check_eras, read_eras
from .._optional import import_optional
from .._scikit_learn import refuse_bools
from .._tables.checks import names_of_columns
from .._tables.columns import Column, check_same_columns, read_columns
from .._tables.target import check_values
from .._typing import ColumnChoice, Estimator, Folds, Table
from .._warnings import listed
from ..criteria import Gain
from ..ensemble import HistGradientBoostingClassifier
from ..ensemble._binning.thresholds import bin_edges
from ._drift import distances, stability_index
from ._features import as_frames


@validate_params(
    {
        "categorical_features": ["array-like", str, None],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "min_samples": [Interval(Integral, 1, None, closed="left")],
        "as_frame": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def support_match(
    X: Table, *, eras: Any, X_holdout: Any = None, reference_eras: Any = None,
    categorical_features: ColumnChoice = "from_dtype", n_bins: int = 10,
    min_samples: int = 1, as_frame: bool = False,
) -> Bunch:  # fmt: skip
    """Measure how far eras cover the same values of features, and drift of features.

    A split that is to hold in every era needs rows of every era on both sides, so eras
    have to cover the same values. After [1]_, section 6.2, a numeric feature is cut at
    its quantiles over all rows, and ::

        match_f = 1/M Σ_e c_fe / B_f

    with M eras, B_f the number of bins with rows, and c_fe the number of bins in which
    era e has at least `min_samples` rows. The bins of a categorical feature are its
    categories, and missing values are a bin of their own. A feature whose bins all eras
    cover has the match 1; a feature that names the era has about 1 / M. With features
    of low match, a model can tell eras apart, which is of no use in a new era. The
    match of the data set is the mean over features.

    The match does not show drift within a range. The population stability index [2]_
    compares p_b, the share of an era's rows in bin b, with q_b, the share of reference
    rows, whose quantiles cut numeric features ::

        PSI = Σ_b (p_b - q_b) log(p_b / q_b)

    A bin without rows of the era or of the reference counts as half a row; categories
    that the reference lacks share a bin. By custom, an index below 0.1 means no drift,
    and an index above 0.25 much drift. Without any drift, the index of n rows and m
    reference rows is about ``(B - 1) (1 / n + 1 / m)``. The distance of Kolmogorov and
    Smirnov is the largest difference between a numeric feature's distribution functions
    in the era and in the reference, without missing values.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The rows: those of the training set.
    eras : array-like of shape (n_samples,), str or list of str
        Era of each row, or the name or names of columns of X, which are then features
        neither of X nor of `X_holdout`.
    X_holdout : array-like or data frame of shape (n_holdout, n_features), default=None
        Rows of another set, such as later rows, to compare with the bins of X.
    reference_eras : array-like, default=None
        Labels of the eras that drift is measured from, such as training eras; None
        takes all eras. A reference era is compared with all other reference eras.
    categorical_features : 'from_dtype', None or array-like of {bool, int, str}, \
default='from_dtype'
        The categorical features, as a mask, indices, or names of a frame's columns;
        'from_dtype' takes a frame's columns of category, string or object dtype.
    n_bins : int, default=10
        Number of quantile bins of a numeric feature; at least 2. If a feature has at
        most this number of distinct values, each has a bin of its own. So has a value
        of more rows than a bin has on average.
    min_samples : int, default=1
        Rows that an era needs in a bin to cover it. If n rows are spread evenly over B
        bins, a bin has no row by chance with probability ``(1 - 1/B)**n``.
    as_frame : bool, default=False
        Whether to return pandas objects in the Bunch.

    Returns
    -------
    result : Bunch
        With ndarrays; or with Series for shape (n_features,):

        mean, match : float, and of shape (n_features,)
            The match of the data set, in (0, 1], and of each feature.
        by_era : ndarray or DataFrame of shape (n_eras, n_features)
            The share c_fe / B_f of bins that each era covers.
        psi, ks : ndarray or DataFrame of shape (n_eras, n_features)
            The population stability index, and the distance of Kolmogorov and Smirnov.
            The distance is NaN for categories; both are NaN without rows to compare.
        n_bins : of shape (n_features,)
            The number B_f of bins with rows.
        era_labels, feature_names : of shape (n_eras,), (n_features,)
            The sorted labels; and the names of columns, else ``x0``, ``x1``, ...
        holdout, holdout_unseen : of shape (n_features,)
            With `X_holdout`: the share of the bins of X with at least `min_samples`
            holdout rows; and the share of holdout rows whose value X does not cover: a
            number out of X's range, another category, or a missing value.
        holdout_psi, holdout_ks : of shape (n_features,)
            With `X_holdout`: `psi` and `ks` of the holdout rows.

    Raises
    ------
    ValueError, MissingPackageError
        If tables are empty, differ in their columns, or hold columns that are neither
        numeric nor categorical; if `eras` does not label the rows, or takes columns out
        of X before those that `categorical_features` counts; if `reference_eras` has
        labels that `eras` lacks; or if pandas is missing with ``as_frame=True``.

    References
    ----------
    .. [1] L. Moneda, "Domain Generalization, Invariance and the Time Robust Forest",
           Master's thesis, University of São Paulo, 2021.
    .. [2] N. Siddiqi, "Credit Risk Scorecards", Wiley, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.inspection import support_match
    >>> day = np.arange(400.0)
    >>> X = np.column_stack([day, day % 50])
    >>> support_match(X, eras=day // 100).match.round(2).tolist()
    [0.3, 1.0]
    >>> late = np.append(day % 50, np.arange(100) % 30)[:, np.newaxis]
    >>> drift = support_match(late, eras=np.arange(500) // 100, reference_eras=[0, 1])
    >>> drift.psi[[1, 4], 0].round(2).tolist(), drift.ks[[1, 4], 0].round(2).tolist()
    ([0.0, 1.36], [0.0, 0.4])
    """
    pandas = import_optional("pandas", extra="cli") if as_frame else None
    refuse_bools({"n_bins": n_bins, "min_samples": min_samples})
    chosen = categorical_features
    refuse_places(None, X, eras, {"categorical_features": [chosen]})
    if X_holdout is not None and names_columns(eras, X):
        known = [*names_of_columns(X_holdout)]
        shared = [x for x in np.atleast_1d(eras).tolist() if x in known]
        X_holdout, _ = take_era_column(X_holdout, shared, X_name="X_holdout")
    X, eras = take_era_column(X, eras)
    columns = read_columns(X, categorical_features=chosen)
    encoded = read_eras(eras, columns[0].values)
    others: list[Column] = []
    if X_holdout is not None:
        name = "X_holdout"
        others = read_columns(X_holdout, categorical_features=chosen, name=name)
        check_same_columns(columns, others, name="X", other_name=name)
    n_eras = encoded.labels.size
    # The holdout is one more set of rows.
    is_reference = np.arange(n_eras + bool(others)) < n_eras
    if reference_eras is not None:
        given = check_eras(
            reference_eras, reference_eras, name="reference_eras", X_name="itself"
        )
        places = find(encoded.labels, given, "reference_eras")
        if -1 in places or not places.size:
            raise ValueError(
                f"reference_eras={reference_eras!r} must be labels that eras has, such "
                f"as {listed(encoded.labels)}."
            )
        is_reference = np.isin(np.arange(is_reference.size), places)
    n_holdout = others[0].values.size if others else 0
    sets = np.append(encoded.codes, np.full(n_holdout, n_eras)).astype(np.intp)
    psi, ks = np.full((2, is_reference.size, len(columns)), np.nan)
    by_era = np.empty((n_eras, len(columns)))
    sizes = np.empty(len(columns), dtype=np.intp)
    holdout, unseen = np.empty(len(columns)), np.empty(len(columns))
    for j, column in enumerate(columns):
        other = others[j].values if others else column.values[:0]
        bins, other_bins, is_unseen = _bins(column, other, n_bins)
        # Bins in which there is no row of X, between two quantiles, do not count.
        filled, codes = np.unique(bins, return_inverse=True)
        sizes[j] = filled.size
        table = np.zeros((n_eras, filled.size), dtype=np.intp)
        np.add.at(table, (encoded.codes, codes), 1)
        by_era[:, j] = (table >= min_samples).sum(axis=1) / filled.size
        values = np.append(column.values, other)
        reference = column._replace(values=values[is_reference[sets]])
        psi[:, j] = stability_index(
            _bins(reference, values, n_bins)[1], sets, is_reference
        )
        if not column.is_categorical:
            ks[:, j] = distances(values, sets, is_reference)
        if others:
            covered = other_bins[np.isin(other_bins, filled)]
            _, counts = np.unique(covered, return_counts=True)
            holdout[j] = (counts >= min_samples).sum() / filled.size
            unseen[j] = is_unseen.mean()
    names = np.array([column.name for column in columns], dtype=object)
    match = by_era.mean(axis=0)
    result = Bunch(
        mean=float(match.mean()), match=match, by_era=by_era, psi=psi[:n_eras],
        ks=ks[:n_eras], n_bins=sizes, era_labels=encoded.labels, feature_names=names,
    )  # fmt: skip
    if others:
        result.update(holdout=holdout, holdout_unseen=unseen)
        result.update(holdout_psi=psi[-1], holdout_ks=ks[-1])
    return result if pandas is None else as_frames(result, pandas)


def _bins(
    column: Column, other: NDArray[Any], n_bins: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Return the bins of a column's values and of `other` values, and a mask of `other`
    values that lie outside the column's range or categories.
    """
    values = column.values
    if column.is_categorical:
        index: dict[Any, int] = {None: -1}
        for value in values:
            index.setdefault(value, len(index))
        bins = np.array([index[value] for value in values], dtype=np.intp)
        other_bins = np.array([index.get(value, -2) for value in other], dtype=np.intp)
        is_unseen = other_bins == -2
    else:
        known = values[~np.isnan(values)]
        edges = bin_edges(known, n_bins, "inverted_cdf")
        bins, other_bins = (
            np.where(np.isnan(x), -1, np.searchsorted(edges, x, side="left"))
            for x in (values, other)
        )
        least, most = np.min(known, initial=np.inf), np.max(known, initial=-np.inf)
        is_unseen = (other < least) | (other > most)
    if not np.any(bins == -1):
        is_unseen = is_unseen | (other_bins == -1)
    return bins, other_bins, is_unseen


@validate_params(
    {
        "is_later": ["array-like"], "estimator": [HasMethods(["fit"]), None],
        "cv": ["cv_object"], "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)  # fmt: skip
def domain_classifier_auc(
    X: Table, is_later: ArrayLike, *, estimator: Estimator | None = None, cv: Folds = 5,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> float:  # fmt: skip
    """Measure how well a classifier tells later rows from others by their features.

    The measure is the area under the ROC curve of the domain classifier of Moneda
    (2021), sections 2.5 and 6.1.2, in rows that it has not seen. At 0.5, features are
    distributed alike in both sets; at 1, each row reveals its set, for example by a
    date, which `X` should not have. Even at 0.5, the target may depend on features in
    another way in the second set.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The rows of both sets.
    is_later : array-like of shape (n_samples,), dtype=bool
        Whether a row is of the second set: later rows, or the rows of an era.
    estimator : object, default=None
        A classifier; None is a
        :class:`~sklearn_era.ensemble.HistGradientBoostingClassifier` by
        ``Gain(splitter="era")``, with the categories of data frames, and without early
        stopping.
    cv : int, cross-validation generator or iterable, default=5
        A number of shuffled folds, with equally many later rows in each, or a splitter.
    n_jobs, random_state :
        The number of fits to run in parallel; and the seed of the folds.

    Returns
    -------
    auc : float
        The mean area over folds.

    Raises
    ------
    ValueError
        If `is_later` does not have two values, or has another length than `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.inspection import domain_classifier_auc
    >>> day, X = np.arange(400), np.random.default_rng(0).normal(size=(400, 2))
    >>> round(domain_classifier_auc(X + day[:, None] / 100, day >= 200), 1)
    0.9
    """
    # As objects, NaN is refused here, and by the name of the argument.
    check_values(np.asarray(is_later, object), are_numbers=False, name="is_later")
    domains = column_or_1d(is_later)
    if (n_domains := len({*domains.tolist()})) != 2:
        raise ValueError(
            f"is_later has {n_domains} distinct value(s); pass True for the rows of "
            "one set and False for those of the other."
        )
    if isinstance(cv, Integral):
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    if estimator is None:
        estimator = HistGradientBoostingClassifier(
            split_criterion=Gain(splitter="era"), early_stopping=False
        )
    options: dict[str, Any] = {"scoring": "roc_auc", "cv": cv, "n_jobs": n_jobs}
    options["error_score"] = "raise"  # the model's own message, not all folds' together
    return float(cross_val_score(estimator, X, domains, **options).mean())
