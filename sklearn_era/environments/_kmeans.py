"""Clusters of rows as eras."""

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from sklearn_era._scikit_learn import check_sample_weight
from sklearn_era.environments._numeric import check_numbers, number_by_size


@validate_params(
    {
        "n_eras": [Interval(Integral, 2, None, closed="left")],
        "sample_weight": ["array-like", None],
        "missing": [StrOptions({"raise", "median"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def kmeans_partition(
    X: Any,
    n_eras: int,
    *,
    sample_weight: ArrayLike | None = None,
    missing: str = "raise",
    n_init: int = 10,
    max_iter: int = 300,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """Make eras of clusters: rows that are alike in their features.

    Columns are brought to mean 0 and standard deviation 1, and the rows are parted by
    :class:`sklearn.cluster.KMeans`, which looks for the labels e and centres c with the
    least ::

        Σ_i w_i ||z_i - c_e(i)||²,    z_ij = (x_ij - mean_j) / std_j

    Weights count in means and standard deviations as well. A column that is constant is
    0 after that, and without effect.

    Clusters differ in size, and each lies in a region of its own. A split on a feature
    that parts the clusters has whole eras on one side, and an era criterion leaves it
    alone with ``min_era_coverage=1.0``. Pass columns that describe the
    circumstances (the weather, the site, the state of the market), and leave out those
    that the model is to split on, or take another `min_era_coverage`.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Numbers, in any units.

    n_eras : int
        Number of clusters; at least 2.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative. Rows without weight get the label of the
        nearest centre.

    missing : {'raise', 'median'}, default='raise'
        What to do about missing values: refuse them, or take the median of the column
        (:class:`sklearn.impute.SimpleImputer`).

    n_init : int, default=10
        Number of starts, of which the best is kept.

    max_iter : int, default=300
        Most iterations of each.

    random_state : int, RandomState instance or None, default=None
        Determines the starts. Pass an int for reproducible output across calls.

    Returns
    -------
    labels : ndarray of shape (n_samples,), dtype=intp
        The era of each row, from 0, the one of most rows, to ``n_eras - 1``.

    Raises
    ------
    ValueError
        If columns hold categories, infinity or, with ``missing="raise"``, missing
        values; if weights are negative or of another length; or if there are fewer
        distinct rows than eras.

    Examples
    --------
    >>> from sklearn_era.environments import kmeans_partition
    >>> kmeans_partition([[0], [1], [90], [91], [92]], 2, random_state=0)
    array([1, 1, 0, 0, 0])
    """
    values = check_numbers(X, missing)
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(
            sample_weight,
            values,
            ensure_non_negative=True,
            allow_all_zero_weights=False,
        )
    standardised = StandardScaler().fit_transform(values, sample_weight=weights)
    means = KMeans(
        n_eras if n_eras <= len(values) else len(values),
        n_init=n_init,
        max_iter=max_iter,
        random_state=random_state,
    )
    with warnings.catch_warnings():
        # Of clusters that coincide, which is an error here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = means.fit_predict(standardised, sample_weight=weights)
    n_found = np.unique(labels).size
    if n_found < n_eras:
        raise ValueError(
            f"X: k-means has found rows for {n_found} of n_eras={n_eras} clusters, "
            "since X has too few distinct rows; lower n_eras, or pass more columns."
        )
    return number_by_size(labels.astype(np.intp), n_eras)
