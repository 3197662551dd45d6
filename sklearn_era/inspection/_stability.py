"""Find features whose effect changes sign between eras; score models without them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control
from sklearn import config_context
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Bunch, _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, validate_params

from .._era_axes import with_order
from .._optional import import_optional
from .._progress import Progress
from .._scikit_learn import check_sample_weight
from .._tables.columns import read_columns, to_numbers
from .._tables.no_value import no_value_noted
from .._tables.target import are_classes
from .._typing import Eras, Estimator, Folds, Scoring, Table
from ..ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from ..model_selection import EraSearchCV
from ..model_selection._out_of_era import check_rows
from ..model_selection._search_rule import mean_and_safe_error, mean_over_folds
from ._features import as_frames
from ._turning import MAX_SEED, find_turning, measure_features

_MOST_PRICED = 10  # features, those of the smallest p-values

CONSTRAINTS = EraSearchCV._parameter_constraints | {
    "estimator": [HasMethods(["fit", "predict"]), None],
    "cv": [Interval(Integral, 2, None, closed="left"), "cv_object"],
    "alpha": [Interval(Real, 0, 1, closed="neither")],
    "n_repeats": [Interval(Integral, 1, None, closed="left")],
    "price": ["boolean"], "random_state": ["random_state"], "as_frame": ["boolean"],
}  # fmt: skip


@validate_params(CONSTRAINTS, prefer_skip_nested_validation=True)
def era_stability(
    X: Table, y: ArrayLike, *, eras: Eras, estimator: Estimator | None = None,
    sample_weight: ArrayLike | None = None, cv: Folds = 5, scoring: Scoring = None,
    alpha: float = 0.1, n_repeats: int = 2, price: bool = True, era_order: str = "auto",
    n_jobs: int | None = None, verbose: int = 0,
    random_state: int | np.random.RandomState | None = None, as_frame: bool = False,
) -> Bunch:  # fmt: skip
    """Find features whose effect has one sign in some eras, and the opposite in others.

    In eras left out, each feature in turn gets values of random training rows.
    Residuals are targets less the mean prediction over such draws. An effect in an era
    is the slope of residuals on a score of the feature: each of ten quantiles, each of
    at most ten values, or each category, has a score. Scores are learnt from every
    other block of an era's rows, effects are measured in the blocks between, and vice
    versa. As neighbouring rows may share noise, errors for independent rows [3]_ are
    multiplied by a factor, which is estimated from the effects of values shifted along
    an era's rows.

    A feature *turns* if effects of both signs are too large for chance [1]_. With Q the
    sum of squares of negative effects, each divided by its standard error, K the number
    of effects of at most one standard error, as larger effects are left out [4]_, and Φ
    the normal distribution function, the p-value of the hypothesis that all effects are
    at least 0 is ::

        p = sum_{h=1}^K Binomial(h; K, 1 / (2 Φ(1))) P(chi2_h > Q)

    The feature's p-value is the larger of this one and the p-value of the hypothesis
    that all effects are at most 0.
    Ordered eras are also tested in blocks of 2, 4 and so on neighbours, down to two
    blocks, as blocks may show effects that noise hides in single eras; the p-value is
    then the smallest one times the number of tests. Eras are taken for independent,
    given their effects. The null hypothesis is that no two effects have opposite signs:
    an effect that is merely larger in some eras, or 0, does not turn; an effect that
    varies about 0 at random does turn. Features are found at a false discovery rate of
    `alpha` [2]_, if p-values are not negatively related.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The rows; rows of an era that follow each other in time must be in this order.
    y, eras : array-like of shape (n_samples,)
        Targets and eras of the rows. `eras` may be the name of a column, which then is
        no feature. Eras of fewer than 20 rows have no effects.
    estimator : object, default=None
        A regressor, or a classifier with ``predict_proba``, whose ``fit`` gets the eras
        if it takes eras. None is the package's booster of 100 trees: a classifier if
        targets are names, booleans or two whole numbers, else a regressor.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of rows. No fold has rows of eras without weight.
    cv : int or splitter, default=5
        Folds of whole eras; a splitter gets the eras as `groups`. Eras that are never
        tested have no effects; rows that are tested several times count once.
    scoring : str, callable or None, default=None
        The score for `price`, as in `EraSearchCV`.
    alpha, n_repeats : float, default=0.1, and int, default=2
        The false discovery rate; and the number of draws of each feature's values.
    price : bool, default=True
        Whether to measure how scores change without the features that turn.
    era_order, n_jobs :
        As in `EraSearchCV`.
    verbose : int, default=0
        1 prints a line for each step, and the time left, with a bar if rich is
        installed and the output is a terminal.
    random_state : int, RandomState instance or None, default=None
        Determines draws and the default estimator.
    as_frame : bool, default=False
        Whether to return pandas objects in the Bunch.

    Returns
    -------
    result : Bunch
        With ndarrays, or DataFrames (n_eras, n_features) and Series (n_features,):

        effects, errors : of shape (n_eras, n_features)
            The change of the target, or of a probability, per standard deviation of the
            feature's score, positive if it has the sign of all eras together, NaN if
            the era has no effect; and standard errors.
        importances : of shape (n_eras, n_features)
            Rises of the squared error or log loss with random values of the feature.
        mean_importance, importance_error : of shape (n_features,)
            The mean over eras, and its standard error, as in `EraSearchCV`.
        p_value, q_value, turns, n_merged : of shape (n_features,)
            The p-value above; the smallest `alpha` that finds the feature; whether this
            is at most the given `alpha`; and about how many eras are in a block of the
            test with the smallest p-value.
        price : dict of str to list, or DataFrame
            A row for each of the ten features that turn most (by p-value), and one for
            all features that turn. `dropped` has the names of the features. `known` and
            `new` are the mean gains of score without these features, in rows left out
            of known eras, and in eras left out (later eras if eras are ordered);
            `known_error` and `new_error` are the standard errors of these means.
        era_order : {'ordered', 'unordered'}
            Whether eras were taken in the order of their labels, as time.
        era_labels, feature_names : of shape (n_eras,), (n_features,)
            The sorted labels; and the names of columns, else ``x0``, ``x1``, ...

    Raises
    ------
    ValueError, MissingPackageError
        If there is only one era, lengths differ, a classifier has no ``predict_proba``,
        a column holds neither numbers nor categories, or pandas is missing.

    References
    ----------
    .. [1] M. Gail, R. Simon (1985), Testing for qualitative interactions between
       treatment effects and patient subsets. Biometrics 41, 361-372.
    .. [2] Y. Benjamini, Y. Hochberg (1995), Controlling the false discovery rate.
       Journal of the Royal Statistical Society B 57, 289-300.
    .. [3] H. White (1980), A heteroskedasticity-consistent covariance matrix estimator.
       Econometrica 48, 817-838.
    .. [4] Q. Zhao, D. S. Small, W. Su (2019), Multiple testing when many p-values are
       uniformly conservative, with application to testing qualitative interaction in
       educational interventions. Journal of the American Statistical Association 114,
       1291-1304.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.inspection import era_stability
    >>> rng = np.random.default_rng(0)
    >>> eras, X = np.repeat(np.arange(8), 200), rng.normal(size=(1600, 3))
    >>> y = X[:, 0] + np.where(eras < 5, 1, -1) * X[:, 1] + rng.normal(size=1600)
    >>> result = era_stability(X, y, eras=eras, price=False, random_state=0)
    >>> result.turns.tolist()
    [False, True, False]
    """
    pandas = import_optional("pandas", extra="cli") if as_frame else None
    name = "era_stability"
    X, y, eras, encoded, are_ordered = check_rows(
        X, y, eras, era_order, name, estimator=estimator
    )
    columns, rng = read_columns(X), check_random_state(random_state)
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, X)
    if estimator is None:
        booster: Any = HistGradientBoostingClassifier
        if not are_classes(y):
            booster, y = HistGradientBoostingRegressor, to_numbers(y)
        estimator = booster(early_stopping=False, random_state=rng.randint(MAX_SEED))
    elif is_classifier(estimator) and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"estimator: {type(estimator).__name__} is a classifier without "
            "predict_proba, which residuals need; pass one that has it."
        )
    order = "ordered" if are_ordered else "unordered"
    estimator = with_order(estimator, order)
    measured = measure_features(
        estimator, X, y, encoded, sample_weight, n_repeats,
        cv=cv, n_jobs=n_jobs, rng=rng, name=name, verbose=verbose,
    )  # fmt: skip
    found = find_turning(columns, encoded, measured, are_ordered, rng)
    mean, error = mean_and_safe_error(measured.importances, are_ordered)
    q_values = false_discovery_control(found["p_value"])
    result = Bunch(
        **found, importances=mean_over_folds(measured.importances).T,
        mean_importance=mean, importance_error=error, q_value=q_values,
        turns=q_values <= alpha, era_labels=encoded.labels, era_order=order,
        feature_names=np.array([column.name for column in columns], dtype=object),
    )  # fmt: skip
    if price:
        walks = are_ordered and encoded.labels.size > 2  # training on one or more
        order = "ordered" if walks else "unordered"
        options = {"scoring": scoring, "n_jobs": n_jobs, "era_order": order}
        params = {"eras": eras, "sample_weight": sample_weight}
        # Of columns without a value the first fits have warned.
        with no_value_noted(), Progress(name, verbose, "scores") as progress:
            result.price = _prices(estimator, X, y, params, result, options, progress)
    return result if pandas is None else as_frames(result, pandas)


def _prices(
    estimator: BaseEstimator, X: Table, y: ArrayLike, params: Mapping[str, Any],
    result: Bunch, options: Any, progress: Progress,
) -> dict[str, list[Any]]:  # fmt: skip
    """Return the `price` of `era_stability`: how much the score gains, in known and in
    new eras, if features that turn (their effect changes sign between eras) are left
    out, one by one and all together.
    """
    turning, features = np.flatnonzero(result.turns), np.arange(result.turns.size)
    ranked = turning[np.argsort(result.p_value[turning], kind="stable")]
    sets = [[j] for j in ranked[:_MOST_PRICED].tolist()]
    sets += [turning.tolist()] if turning.size > 1 else []
    sets = [each for each in sets if len(each) < features.size]
    price = {"dropped": [", ".join(map(str, result.feature_names[s])) for s in sets]}
    if not sets:
        return price | {k: [] for k in ("known", "known_error", "new", "new_error")}
    columns = [np.setdiff1d(features, each).tolist() for each in ([], *sets)]
    every, *kept = [{"indices": indices, "axis": 1} for indices in columns]
    model = make_pipeline(FunctionTransformer(_safe_indexing, kw_args=every), estimator)
    grid = {"functiontransformer__kw_args": kept}
    progress.expect(2)
    for name, cv in {"known": KFold(3, shuffle=True, random_state=0), "new": 3}.items():
        search = EraSearchCV(model, grid, cv=cv, refit=False, **options)
        with config_context(enable_metadata_routing=False):
            found = search.fit(X, y, **params).cv_results_
        price[name] = found["mean_difference"][1:].tolist()
        price[f"{name}_error"] = found["se_difference"][1:].tolist()
        progress.step(1, f"in {name} eras, without features that turn")
    return price
