"""The two synthetic tasks of Liao, Wu and Yan: stable and environmental features.

Half of the features say the same about the target in every era. The others say more in
one training era, less in the other one, and least or the opposite in the test era.
"""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_params

from sklearn_era.datasets._per_era import check_per_era

_FEATURES = [Interval(Integral, 1, None, closed="left")]


@validate_params(
    {
        "n_features": _FEATURES,
        "n_samples_per_era": [Interval(Integral, 1, None, closed="left")],
        "flip_probability": [Interval(Real, 0, 1, closed="both")],
        "noise_std": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_liao_classification(
    *,
    n_features: int = 10,
    n_samples_per_era: int = 1000,
    flip_probability: float = 0.3,
    shortcut_flip_probabilities: Sequence[float] | ArrayLike = (0.1, 0.4),
    shortcut_flip_probabilities_test: Sequence[float] | ArrayLike = (0.7,),
    noise_std: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate noisy copies of a label, half of them turned round by the test era.

    A row of era e has a label of equal odds and 2 d features, equation 23 of [1]_ ::

        Y   = Bern(0.5)
        X_1 = |Y 1_d - C_1| + N_1,    C_1 ~ Bern_d(0.3)
        X_2 = |Y 1_d - C_2| + N_2,    C_2 ~ Bern_d(U_e)

    where d is `n_features`, C flips each copy of the label by itself, and the noises
    N are normal with mean 0 and standard deviation `noise_std`, independent in each
    feature. X_1 is *invariant*: it tells the label as well in every era. X_2 is the
    *shortcut*. With U_1 = 0.1, U_2 = 0.4 and, in the test era, U_3 = 0.7, it says more
    than X_1 in one training era, and names the other label in the test era.

    The paper takes d from 2, 5, 10 and 20. It does not give the number of rows.

    Parameters
    ----------
    n_features : int, default=10
        Number d of invariant features, and of shortcut features.

    n_samples_per_era : int, default=1000
        Number of rows in each era, of the test set as well.

    flip_probability : float, default=0.3
        How often an invariant feature is a copy of the other label.

    shortcut_flip_probabilities : array-like of shape (n_eras,), default=(0.1, 0.4)
        U_e of each training era: how often a shortcut feature is a copy of the other
        label.

    shortcut_flip_probabilities_test : array-like of shape (n_test_eras,), \
default=(0.7,)
        The same of each test era. It may be empty.

    noise_std : float, default=1.0
        Standard deviation of the noise on each feature.

    random_state : int, RandomState instance or None, default=None
        Determines random number generation. Pass an int for reproducible output across
        calls.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X_train : ndarray of shape (n_eras * n_samples_per_era, 2 * n_features)
            The training features, float64, dimensionless, invariant ones first. Rows
            are grouped by era.
        y_train : ndarray of shape (n_eras * n_samples_per_era,)
            The label of each training row, 0 or 1, int64.
        eras_train : ndarray of shape (n_eras * n_samples_per_era,)
            The era of each training row, counted from 1 as in the paper, int64.
        X_test : ndarray of shape (n_test_eras * n_samples_per_era, 2 * n_features)
            The test features, float64.
        y_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The label of each test row, int64.
        eras_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The era of each test row, counted on, int64.
        shortcut_flip_probabilities_train, shortcut_flip_probabilities_test : ndarray \
of shape (n_eras,) and (n_test_eras,)
            U of each era, float64.
        feature_names : list of str
            ``"invariant_0"`` and so on, then ``"shortcut_0"`` and so on.

    Raises
    ------
    ValueError
        If a probability is not from 0 to 1, or no training era has one. A parameter
        outside its range is an `InvalidParameterError` of scikit-learn's, a
        `ValueError` too.

    See Also
    --------
    make_liao_regression : The same idea with a continuous target.

    References
    ----------
    .. [1] Y. Liao, Q. Wu and X. Yan, "Invariant Random Forest: Tree-Based Model
           Solution for OOD Generalization", 2024, arXiv:2312.04273.

    Examples
    --------
    >>> from sklearn_era.datasets import make_liao_classification
    >>> data = make_liao_classification(n_features=5, random_state=0)
    >>> data.X_train.shape, data.X_test.shape
    ((2000, 10), (1000, 10))

    The mean over the invariant features guesses the label equally well in the test era.
    That over the shortcut features is the better guess in training, and misleads then:

    >>> for part in ("train", "test"):
    ...     X, y = data[f"X_{part}"], data[f"y_{part}"]
    ...     for block in (X[:, :5], X[:, 5:]):
    ...         print(part, round(((block.mean(axis=1) > 0.5) == y).mean(), 2))
    train 0.65
    train 0.7
    test 0.65
    test 0.34
    """
    flips_train = check_per_era(
        shortcut_flip_probabilities,
        "shortcut_flip_probabilities",
        largest=1.0,
        n_least=1,
    )
    flips_test = check_per_era(
        shortcut_flip_probabilities_test,
        "shortcut_flip_probabilities_test",
        largest=1.0,
    )
    rng = check_random_state(random_state)

    def sample(
        flips: NDArray[np.float64], first_era: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        places = np.repeat(np.arange(flips.size), n_samples_per_era)
        shape = (places.size, n_features)
        y = rng.randint(0, 2, size=places.size, dtype=np.int64)
        probabilities = np.hstack(
            [
                np.full(shape, flip_probability),
                np.broadcast_to(flips[places, np.newaxis], shape),
            ]
        )
        is_flipped = rng.uniform(size=probabilities.shape) < probabilities
        X = np.abs(y[:, np.newaxis] - is_flipped)
        return (
            X + noise_std * rng.standard_normal(X.shape),
            y,
            (first_era + places).astype(np.int64),
        )

    return _bunch(
        sample(flips_train, 1),
        sample(flips_test, 1 + flips_train.size),
        n_invariant=n_features,
        n_shortcut=n_features,
        shortcut_flip_probabilities_train=flips_train,
        shortcut_flip_probabilities_test=flips_test,
    )


@validate_params(
    {
        "n_features": _FEATURES,
        "n_shortcut_features": _FEATURES,
        "n_samples_per_era": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_liao_regression(
    *,
    n_features: int = 10,
    n_shortcut_features: int = 1,
    n_samples_per_era: int = 1000,
    shortcut_noise: Sequence[float] | ArrayLike = (0.1, 2.0),
    shortcut_noise_test: Sequence[float] | ArrayLike = (5.0,),
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate causes of a target, and an effect of it that an era makes noisy.

    A row of era e is drawn by equation 24 of [1]_ ::

        X_1 ~ N(0, I_d)
        Y   = 1_d' X_1 + N,    N ~ N(0, d)
        X_2 = Y + N_e,         N_e ~ N(0, sigma_e**2 d)

    where d is `n_features`, and the second argument of a normal distribution is its
    variance. X_1 is *invariant*: it explains half of the target's variance of 2 d, in
    every era. X_2 is the *shortcut*. With sigma_1 = 0.1, sigma_2 = 2 and, in the test
    era, sigma_3 = 5, it is nearly the target in one training era and nearly noise in
    the test era.

    The paper leaves two things to the reader. Is X_2 one feature or d? Equation 23,
    where it is d, multiplies Y by a vector of ones, and this one does not: X_2 is read
    as one feature. Is d a variance? It is that of the sum of d independent standard
    normal variables, and sigma is squared beside it: it is read as one. These readings
    also come nearest to the paper's table 2. There the mean squared error of least
    squares is 2.10, 1.78, 1.49 and 1.35 times that of a random forest, for d of 2, 5,
    10 and 20. Measured on these data, with 1000 rows an era, it is 1.93, 1.82, 1.61
    and 1.38 times; with d shortcut features, 2.02, 1.61, 1.40 and 1.01 times, and with
    d as a standard deviation about 6 times and more. For d features pass
    ``n_shortcut_features=d``. The number of rows is not in the paper either.

    Parameters
    ----------
    n_features : int, default=10
        Number d of invariant features. The paper takes 2, 5, 10 and 20.

    n_shortcut_features : int, default=1
        Number of shortcut features, each with a noise of its own.

    n_samples_per_era : int, default=1000
        Number of rows in each era, of the test set as well.

    shortcut_noise : array-like of shape (n_eras,), default=(0.1, 2.0)
        sigma_e of each training era: the standard deviation of the shortcut's noise,
        in units of the target's own noise.

    shortcut_noise_test : array-like of shape (n_test_eras,), default=(5.0,)
        The same of each test era. It may be empty.

    random_state : int, RandomState instance or None, default=None
        Determines random number generation. Pass an int for reproducible output across
        calls.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X_train : ndarray of shape (n_eras * n_samples_per_era, n_features + \
n_shortcut_features)
            The training features, float64, invariant ones first, of variance 1.
            Shortcut features have the target's unit. Rows are grouped by era.
        y_train : ndarray of shape (n_eras * n_samples_per_era,)
            The target of each training row, float64, with mean 0 and variance 2 d.
        eras_train : ndarray of shape (n_eras * n_samples_per_era,)
            The era of each training row, counted from 1 as in the paper, int64.
        X_test : ndarray of shape (n_test_eras * n_samples_per_era, n_features + \
n_shortcut_features)
            The test features, float64.
        y_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The target of each test row, float64.
        eras_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The era of each test row, counted on, int64.
        shortcut_noise_train, shortcut_noise_test : ndarray of shape (n_eras,) and \
(n_test_eras,)
            sigma of each era, float64.
        feature_names : list of str
            ``"invariant_0"`` and so on, then ``"shortcut_0"`` and so on.

    Raises
    ------
    ValueError
        If a sigma is negative or not finite, or no training era has one. A parameter
        outside its range is an `InvalidParameterError` of scikit-learn's, a
        `ValueError` too.

    See Also
    --------
    make_liao_classification : The same idea with labels.

    References
    ----------
    .. [1] Y. Liao, Q. Wu and X. Yan, "Invariant Random Forest: Tree-Based Model
           Solution for OOD Generalization", 2024, arXiv:2312.04273.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.datasets import make_liao_regression
    >>> data = make_liao_regression(n_features=2, random_state=0)
    >>> data.feature_names
    ['invariant_0', 'invariant_1', 'shortcut_0']

    The best prediction from the causes is their sum; its error is d in every era:

    >>> float(np.mean((data.X_test[:, :2].sum(axis=1) - data.y_test) ** 2).round(1))
    2.0
    """
    noise_train = check_per_era(shortcut_noise, "shortcut_noise", n_least=1)
    noise_test = check_per_era(shortcut_noise_test, "shortcut_noise_test")
    rng = check_random_state(random_state)

    def sample(
        sigmas: NDArray[np.float64], first_era: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        places = np.repeat(np.arange(sigmas.size), n_samples_per_era)
        invariant = rng.standard_normal((places.size, n_features))
        y = invariant.sum(axis=1)
        y += np.sqrt(n_features) * rng.standard_normal(places.size)
        shortcut = rng.standard_normal((places.size, n_shortcut_features))
        shortcut *= np.sqrt(n_features) * sigmas[places, np.newaxis]
        shortcut += y[:, np.newaxis]
        return (
            np.hstack([invariant, shortcut]),
            y,
            (first_era + places).astype(np.int64),
        )

    return _bunch(
        sample(noise_train, 1),
        sample(noise_test, 1 + noise_train.size),
        n_invariant=n_features,
        n_shortcut=n_shortcut_features,
        shortcut_noise_train=noise_train,
        shortcut_noise_test=noise_test,
    )


def _bunch(
    train: tuple[NDArray[Any], ...],
    test: tuple[NDArray[Any], ...],
    *,
    n_invariant: int,
    n_shortcut: int,
    **of_eras: NDArray[np.float64],
) -> Bunch:
    """Name the features, the target and the eras of both parts."""
    parts = {
        f"{key}_{part}": values
        for part, arrays in (("train", train), ("test", test))
        for key, values in zip(("X", "y", "eras"), arrays, strict=True)
    }
    return Bunch(
        **parts,
        **of_eras,
        feature_names=[f"invariant_{index}" for index in range(n_invariant)]
        + [f"shortcut_{index}" for index in range(n_shortcut)],
    )
