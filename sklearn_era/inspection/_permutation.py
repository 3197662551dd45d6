"""Measure importances of features by permutations, in eras left out of the fits."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring
from sklearn.utils import Bunch, _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, validate_params

from .._era_axes import with_order
from .._eras import EncodedEras
from .._optional import import_optional
from .._scikit_learn import check_sample_weight
from .._tables.checks import names_of_columns
from .._typing import Eras, Estimator, Folds, Scoring
from ..model_selection._out_of_era import check_rows
from ..model_selection._search_rule import mean_and_safe_error, mean_over_folds
from ..model_selection._search_scores import EraMean, ScorerByEra, warn_of_undefined
from ._features import as_frames
from ._stability import CONSTRAINTS
from ._turning import measure_in_folds, with_column

Array = NDArray[np.float64]
_OTHERS = {"estimator": [HasMethods(["fit"])], "scoring": [str, callable, None]}


@validate_params(CONSTRAINTS | _OTHERS, prefer_skip_nested_validation=True)
def era_permutation_importance(
    estimator: Estimator, X: Any, y: Any, *, eras: Eras, sample_weight: Any = None,
    cv: Folds = 5, scoring: Scoring = None, n_repeats: int = 5, era_order: str = "auto",
    n_jobs: int | None = None, verbose: int = 0,
    random_state: int | np.random.RandomState | None = None, as_frame: bool = False,
) -> Bunch:  # fmt: skip
    """Measure how far the score falls, in eras left out, if a feature is permuted.

    Models are fitted in folds of whole eras. In each era left out, one feature at a
    time is permuted among the era's rows. The importance is the score less the mean
    score after permutations [1]_. As values stay within their era, differences between
    the levels of eras do not count.

    Parameters
    ----------
    estimator : object
        Any estimator; its ``fit`` gets the eras if it takes eras.
    X, y, eras, sample_weight, cv :
        Rows, and folds of whole eras, as in `era_stability`.
    scoring : str, callable or None, default=None
        A scorer, as :func:`sklearn.metrics.check_scoring` takes it, or one of
        `make_era_scorer`. None is the ``score`` of the estimator.
    n_repeats : int, default=5
        Permutations of each feature.
    era_order, n_jobs, verbose, random_state, as_frame :
        As in `era_stability`.

    Returns
    -------
    result : Bunch
        With fields as in `era_stability`: `importances` of shape (n_eras, n_features),
        NaN in eras without a test or score; `mean_importance` over eras and its
        standard error `importance_error`, of shape (n_features,); `era_labels`;
        `feature_names`.

    Raises
    ------
    ValueError, MissingPackageError
        As `era_stability`, or if `X` is sparse, or a fold has no era with a score.

    References
    ----------
    .. [1] L. Breiman (2001), Random Forests. Machine Learning 45, 5-32.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_era.inspection import era_permutation_importance
    >>> rng = np.random.default_rng(0)
    >>> eras, X = np.repeat(np.arange(6), 200), rng.normal(size=(1200, 1))
    >>> y = np.where(eras < 4, 1, -1) * X[:, 0]
    >>> result = era_permutation_importance(Ridge(), X, y, eras=eras)
    >>> (result.importances[:, 0] < 0).tolist()
    [False, False, False, False, True, True]
    """
    pandas = import_optional("pandas", extra="cli") if as_frame else None
    if issparse(X):
        raise ValueError("X is sparse, and its columns are permuted; pass X.toarray().")
    name = "era_permutation_importance"
    X, y, eras, encoded, are_ordered = check_rows(
        X, y, eras, era_order, name, estimator=estimator
    )
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, X)
    estimator = with_order(estimator, "ordered" if are_ordered else "unordered")
    scorer = check_scoring(estimator, scoring)
    scorer = ScorerByEra(scorer, encoded, of_number=True)
    measure = partial(_falls_in_fold, X, y, encoded, sample_weight, scorer, n_repeats)
    rng = check_random_state(random_state)
    folds, found = measure_in_folds(
        measure, estimator, X, y, encoded, sample_weight,
        cv=cv, n_jobs=n_jobs, rng=rng, name=name, verbose=verbose,
    )  # fmt: skip
    falls = np.stack(found, axis=1)
    tested = np.unique(encoded.codes[np.concatenate([test for _, test in folds])])
    scores = EraMean(tested, mean_over_folds(falls)[:, tested].sum(axis=0))
    warn_of_undefined([scores], encoded.labels, scoring)
    mean, error = mean_and_safe_error(falls, are_ordered)
    names = [*names_of_columns(X)] or [f"x{j}" for j in range(falls.shape[0])]
    result = Bunch(
        importances=mean_over_folds(falls).T, mean_importance=mean,
        importance_error=error, era_labels=encoded.labels,
        feature_names=np.array(names, dtype=object),
    )  # fmt: skip
    return result if pandas is None else as_frames(result, pandas)


def _falls_in_fold(
    X: Any, y: Any, eras: EncodedEras, weights: Array | None, scorer: ScorerByEra,
    n_repeats: int, model: BaseEstimator, train: NDArray[Any], test: Any, seed: int,
) -> Array:  # fmt: skip
    """Return by how much each era's score falls if a feature is permuted within eras,
    as an array of shape (n_features, n_eras); NaN in eras that the fold does not test.
    """
    rng, codes = np.random.default_rng(seed), eras.codes[test]
    rows = _safe_indexing(X, test)
    options = {} if weights is None else {"sample_weight": weights[test]}

    def score(rows: Any) -> Array:
        found = np.full(eras.labels.size, np.nan)
        scores = scorer(model, rows, y[test], era_codes=codes, **options)
        found[scores.codes] = scores.scores
        return found

    base, falls = score(rows), np.zeros((np.shape(X)[1], eras.labels.size))
    by_era, source = np.argsort(codes, kind="stable"), np.empty(test.size, dtype=int)
    for j in range(falls.shape[0]):
        for _ in range(n_repeats):
            source[by_era] = np.lexsort((rng.random(test.size), codes))
            permuted = with_column(rows, j, _safe_indexing(rows, source))
            falls[j] += (base - score(permuted)) / n_repeats
    return falls
