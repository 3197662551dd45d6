"""The two synthetic examples of Moneda: a copy of the target that turns into noise.

In the first one all periods have the same support; in the second one the features are
spread more widely in one period than in the other.
"""

from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import minmax_scale
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_params

from sklearn_era.datasets._per_era import check_per_era

_N_TRAINING_PERIODS = 2

# Section 5.3.3: the class is positive where Y is greater.
_THRESHOLD = 0.5


@validate_params(
    {
        "n_samples_per_era": [Interval(Integral, 1, None, closed="left")],
        "n_test_eras": [Interval(Integral, 0, None, closed="left")],
        "has_shift": ["boolean"],
        "shortcut_noise_std": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_moneda_drift(
    *,
    n_samples_per_era: int = 1000,
    n_test_eras: int = 2,
    has_shift: bool = True,
    shortcut_noise_std: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate a feature that is the target in the first period, and noise afterwards.

    A row of period t is drawn by equations 5.5 and 5.6 of [1]_ ::

        X_1 ~ N(0, 1)
        Y   ~ X_1 + N(0, 1)
        X_2 ~ Y + shortcut_noise_std * N(0, 1)    if t = 1
        X_2 ~ N(0, 1)                             otherwise

    and its class is 1 where Y > 0.5, which are 36 % of the rows. Periods 1 and 2 are
    for training; those from 3 on are the holdout. The area under the ROC curve of the
    best model on X_1 alone is 0.836 in every period. X_2 alone has 1 in period 1 and
    1/2 afterwards.

    With ``has_shift=False`` the first line of X_2 holds in every period, section 5.3.5.
    With no noise X_2 then tells the class exactly, whereas the thesis has areas of 0.87
    and, for optimised trees, about 0.90. These fit ``shortcut_noise_std=1``:
    scikit-learn's tree with a minimum impurity decrease of 0.01 has 0.87 there, in
    training and in the holdout, and the best model 0.922.

    The thesis gives neither the number of rows nor that of holdout periods.

    Parameters
    ----------
    n_samples_per_era : int, default=1000
        Number of rows in each period, of the holdout as well.

    n_test_eras : int, default=2
        Number of holdout periods.

    has_shift : bool, default=True
        Whether X_2 is noise from period 2 on.

    shortcut_noise_std : float, default=0.0
        Standard deviation of the noise on X_2 where it is the target. Equation 5.6 has
        none.

    random_state : int, RandomState instance or None, default=None
        Determines random number generation. Pass an int for reproducible output across
        calls.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X_train : ndarray of shape (2 * n_samples_per_era, 2)
            X_1 and X_2 of periods 1 and 2, float64. Rows are grouped by period.
        y_train : ndarray of shape (2 * n_samples_per_era,)
            The class of each training row, 0 or 1, int64.
        eras_train : ndarray of shape (2 * n_samples_per_era,)
            The period of each training row, 1 or 2, int64.
        X_test : ndarray of shape (n_test_eras * n_samples_per_era, 2)
            The features of the holdout, float64.
        y_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The class of each test row, int64.
        eras_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The period of each test row, from 3 on, int64.
        latent_train, latent_test : ndarray
            Y of each row, float64.
        feature_names : list of str
            ``["x1", "x2"]``.

    Raises
    ------
    sklearn.utils._param_validation.InvalidParameterError
        If a parameter is outside its range (a `ValueError`).

    See Also
    --------
    make_moneda_support : Periods that differ in the spread of their features too.

    References
    ----------
    .. [1] L. Moneda, "Domain Generalization, Invariance and the Time Robust Forest",
           master thesis, Universidade de São Paulo, 2021, sections 5.3.3 and 5.3.5.

    Examples
    --------
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn_era.datasets import make_moneda_drift
    >>> data = make_moneda_drift(random_state=0)
    >>> for name, x_train, x_test in zip(
    ...     data.feature_names, data.X_train.T, data.X_test.T, strict=True
    ... ):
    ...     auc_train = roc_auc_score(data.y_train, x_train)
    ...     auc_test = roc_auc_score(data.y_test, x_test)
    ...     print(name, round(auc_train, 2), round(auc_test, 2))
    x1 0.84 0.85
    x2 0.78 0.49
    """
    rng = check_random_state(random_state)
    eras = _periods(n_samples_per_era, n_test_eras)
    x1, latent = _cause_and_target(np.ones(eras.size), rng)
    noise = rng.standard_normal(eras.size)
    is_copy = (eras == 1) | (not has_shift)
    x2 = np.where(is_copy, latent + shortcut_noise_std * noise, noise)
    return _bunch(np.column_stack([x1, x2]), latent, eras)


@validate_params(
    {
        "n_samples_per_era": [Interval(Integral, 1, None, closed="left")],
        "rescale": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_moneda_support(
    *,
    n_samples_per_era: int = 1000,
    variances: Sequence[float] | ArrayLike = (0.1, 1.0),
    variances_test: Sequence[float] | ArrayLike = (0.25, 1.44),
    rescale: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate periods whose features are spread differently.

    A row of period t is drawn by equations 5.7 and 5.8 of [1]_ ::

        X_1 ~ N(0, g(t))
        Y   ~ X_1 + N(0, g(t))
        X_2 ~ Y + N(0, t)    if t = 1
        X_2 ~ N(0, t)        otherwise

    where the second argument of a normal distribution is its variance, and g(1) = 0.1
    and g(2) = 1. The class is 1 where Y > 0.5. A split in the tails of period 2 has no
    row of period 1 on one of its sides: criteria that want rows of every era on both
    sides cannot make it. The thesis' remedy is ``rescale=True``, which needs to know
    the range of a period that is yet to come.

    The thesis says that the supports do not overlap. Drawn by its equations they do:
    that of period 1 lies within that of period 2, of which about a third of the rows
    are outside of it in X_1. It defines g for the two training periods only. The
    holdout periods here go on with t = 3, 4 in X_2, and with the variances given, by
    default the squares of two of the standard deviations in the author's notebook.

    Parameters
    ----------
    n_samples_per_era : int, default=1000
        Number of rows in each period, of the holdout as well.

    variances : array-like of shape (2,), default=(0.1, 1.0)
        g of the two training periods.

    variances_test : array-like of shape (n_test_eras,), default=(0.25, 1.44)
        g of each holdout period. It may be empty.

    rescale : bool, default=False
        Whether each feature is scaled to the range from 0 to 1 within each period, of
        the holdout as well, by the smallest and the largest value there.

    random_state : int, RandomState instance or None, default=None
        Determines random number generation. Pass an int for reproducible output across
        calls.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X_train : ndarray of shape (2 * n_samples_per_era, 2)
            X_1 and X_2 of periods 1 and 2, float64. Rows are grouped by period.
        y_train : ndarray of shape (2 * n_samples_per_era,)
            The class of each training row, 0 or 1, int64.
        eras_train : ndarray of shape (2 * n_samples_per_era,)
            The period of each training row, 1 or 2, int64.
        X_test : ndarray of shape (n_test_eras * n_samples_per_era, 2)
            The features of the holdout, float64.
        y_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The class of each test row, int64.
        eras_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The period of each test row, from 3 on, int64.
        latent_train, latent_test : ndarray
            Y of each row, float64, never rescaled.
        variances_train, variances_test : ndarray of shape (2,) and (n_test_eras,)
            g of each period, float64.
        feature_names : list of str
            ``["x1", "x2"]``.

    Raises
    ------
    ValueError
        If a variance is negative or not finite, or there are not two for training. A
        parameter outside its range is an `InvalidParameterError` of scikit-learn's, a
        `ValueError` too.

    See Also
    --------
    make_moneda_drift : Periods of one support.

    References
    ----------
    .. [1] L. Moneda, "Domain Generalization, Invariance and the Time Robust Forest",
           master thesis, Universidade de São Paulo, 2021, section 5.3.6; notebooks in
           https://github.com/lgmoneda/msc-thesis.

    Examples
    --------
    >>> from sklearn_era.datasets import make_moneda_support
    >>> data = make_moneda_support(random_state=0)
    >>> for period in (1, 2):
    ...     x1 = data.X_train[data.eras_train == period, 0]
    ...     print(period, x1.min().round(1), x1.max().round(1))
    1 -1.0 0.9
    2 -3.0 3.2
    """
    variances_train = check_per_era(variances, "variances")
    if variances_train.size != _N_TRAINING_PERIODS:
        raise ValueError(
            f"variances={variances!r} has numbers for {variances_train.size} periods; "
            "give one for each of the two training periods."
        )
    variances_test = check_per_era(variances_test, "variances_test")
    rng = check_random_state(random_state)
    eras = _periods(n_samples_per_era, variances_test.size)
    spread = np.concatenate([variances_train, variances_test])[eras - 1]
    x1, latent = _cause_and_target(spread, rng)
    noise = np.sqrt(eras) * rng.standard_normal(eras.size)
    X = np.column_stack([x1, np.where(eras == 1, latent + noise, noise)])
    if rescale:
        for period in np.unique(eras):
            X[eras == period] = minmax_scale(X[eras == period])
    return _bunch(
        X,
        latent,
        eras,
        variances_train=variances_train,
        variances_test=variances_test,
    )


def _periods(n_samples_per_era: int, n_test_eras: int) -> NDArray[np.int64]:
    """The period of each row, from 1 on."""
    n_periods = _N_TRAINING_PERIODS + n_test_eras
    return np.repeat(np.arange(1, n_periods + 1, dtype=np.int64), n_samples_per_era)


def _cause_and_target(
    variances: NDArray[np.float64], rng: np.random.RandomState
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw X_1 and Y, equations 5.5 and 5.7, with the variance g of each row."""
    scale = np.sqrt(variances)
    x1 = scale * rng.standard_normal(scale.size)
    return x1, x1 + scale * rng.standard_normal(scale.size)


def _bunch(
    X: NDArray[np.float64],
    latent: NDArray[np.float64],
    eras: NDArray[np.int64],
    **of_eras: NDArray[np.float64],
) -> Bunch:
    """Part the rows into training and holdout."""
    y = (latent > _THRESHOLD).astype(np.int64)
    is_train = eras <= _N_TRAINING_PERIODS
    return Bunch(
        X_train=X[is_train],
        y_train=y[is_train],
        eras_train=eras[is_train],
        X_test=X[~is_train],
        y_test=y[~is_train],
        eras_test=eras[~is_train],
        latent_train=latent[is_train],
        latent_test=latent[~is_train],
        **of_eras,
        feature_names=["x1", "x2"],
    )
