"""Which candidate of a search to refit, by its worst era."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from sklearn_era._eras import check_eras, encode_eras


def best_worst_era(
    cv_results: Mapping[str, Any],
    *,
    metric: str = "score",
    split_eras: ArrayLike | None = None,
) -> int:
    """Choose the candidate whose worst era is best: Env K-folds Min-Max.

    To be passed as ``refit=best_worst_era`` to a search. Candidate c with test scores
    s_c1, …, s_cK in the K splits, of which greater is better, is chosen by

        argmax_c min_k s_ck

    after [1]_, section 5.3.4. Ties go to the larger mean over k, then to the first
    candidate. Candidates with NaN in any split, which is what a failed fit leaves, or
    with an infinite score are not considered.

    The splits are those of the search's `cv`. With
    :class:`~sklearn.model_selection.LeaveOneGroupOut` and ``groups=eras`` each is an
    era, as in [1]_; with :class:`~sklearn.model_selection.GroupKFold` or
    :class:`EraWalkForwardSplit` it is a few eras pooled.

    Parameters
    ----------
    cv_results : mapping of str to array-like of shape (n_candidates,)
        `cv_results_` of the search, with ``split{k}_test_{metric}`` for each split k.

    metric : str, default="score"
        The metric to choose by. With several (`scoring` a dict or list), bind one of
        their names: ``refit=functools.partial(best_worst_era, metric="r2")``.

    split_eras : array-like of shape (n_splits,), default=None
        The test era of each split, where an era is tested in several, as in repeated
        cross-validation: its scores are averaged before the worst era is taken.
        By default each split is an era of its own.

    Returns
    -------
    best_index : int
        Row of `cv_results`.

    Raises
    ------
    ValueError
        If `cv_results` has no such metric, if all candidates failed, or if `split_eras`
        has another length than there are splits.

    References
    ----------
    .. [1] L. Moneda, "Domain Generalization, Invariance and the Time Robust Forest",
           Master's thesis, University of São Paulo, 2021.

    Examples
    --------
    >>> from sklearn_era.model_selection import best_worst_era
    >>> best_worst_era(
    ...     {"split0_test_score": [0.9, 0.4], "split1_test_score": [0.1, 0.3]}
    ... )
    1

    In a search, with an era a fold:

    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> eras = rng.permutation(np.arange(400) % 4)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X[:, 0] + np.array([2, -2, 2, 2])[eras] * X[:, 1]
    >>> search = GridSearchCV(
    ...     HistGradientBoostingRegressor(max_iter=15, min_samples_leaf=5),
    ...     [
    ...         {"split_criterion": ["gain"]},
    ...         {"split_criterion": ["directional"], "min_gain_share": [0.0]},
    ...     ],
    ...     cv=LeaveOneGroupOut(),
    ...     refit=best_worst_era,
    ... )
    >>> search.fit(X, y, groups=eras, eras=eras).best_params_
    {'min_gain_share': 0.0, 'split_criterion': 'directional'}
    """
    suffix = f"_test_{metric}"
    n_splits = 0
    while f"split{n_splits}{suffix}" in cv_results:
        n_splits += 1
    if n_splits == 0:
        prefix = "split0_test_"
        known = sorted(k.removeprefix(prefix) for k in cv_results if k[:12] == prefix)
        raise ValueError(
            f"metric={metric!r} is not in cv_results; the search has scored "
            f"{', '.join(map(repr, known)) or 'nothing'}. Bind a name with "
            "functools.partial(best_worst_era, metric=...)."
        )
    scores = np.column_stack(
        [np.asarray(cv_results[f"split{k}{suffix}"], float) for k in range(n_splits)]
    )
    if split_eras is not None:
        n_labels = _num_samples(split_eras)
        if n_labels != n_splits:
            raise ValueError(
                f"split_eras has {n_labels} label(s), but the search has {n_splits} "
                "splits; pass the test era of each split."
            )
        scores = _average_by_era(scores, split_eras)
    usable = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if usable.size == 0:
        raise ValueError(
            f"All {scores.shape[0]} candidates of the search have failed (NaN "
            f"or infinite in a split of metric={metric!r}), and none can be refitted. "
            "Pass error_score='raise' to the search to see why."
        )
    scores = scores[usable]
    # Stable, by the last key first: among equals the first candidate stays first.
    order = np.lexsort((-scores.mean(axis=1), -scores.min(axis=1)))
    return int(usable[order[0]])


def _average_by_era(scores: np.ndarray, split_eras: ArrayLike) -> np.ndarray:
    labels = check_eras(split_eras, scores.T, name="split_eras", X_name="the splits")
    codes = encode_eras(labels).codes
    return np.column_stack(
        [scores[:, codes == code].mean(axis=1) for code in np.unique(codes)]
    )
