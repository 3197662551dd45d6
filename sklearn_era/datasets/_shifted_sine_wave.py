"""The shifted sine wave: one feature, and a target that each era moves up or down.

DeLise made it as the simplest regression in which pooled eras hide what holds in each.
"""

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_params


@validate_params(
    {
        "n_eras": [Interval(Integral, 1, None, closed="left")],
        "n_samples_per_era": [Interval(Integral, 1, None, closed="left")],
        "n_test_eras": [Interval(Integral, 0, None, closed="left")],
        "noise_std": [Interval(Real, 0, None, closed="left")],
        "shift_std": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_shifted_sine_wave(
    *,
    n_eras: int = 8,
    n_samples_per_era: int = 64,
    n_test_eras: int = 1,
    noise_std: float = 1.0,
    shift_std: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate a noisy sine wave that stands at another height in each era.

    Row i of era e has one feature and a target ::

        x_i ~ Uniform(0, 2 pi)
        y_i = sin(x_i) + b_e + noise_std * N(0, 1)

    The *shift* b_e is drawn once for each era, from a normal distribution with mean 0
    and standard deviation `shift_std`. The sine is the same in every era; over all eras
    pooled, the shifts add to the noise and the wave is hard to see.

    No model can know the shift of an era that is yet to come. One that knows the sine,
    and takes the mean shift of the training eras for that of the test era, has an
    expected mean squared error of ::

        noise_std**2 + shift_std**2 * (1 + 1 / n_eras)

    on it, which is 2.125 at the defaults. The error of one test era alone says more
    about the shift that was drawn than about the model; compare predictions with
    `signal_test` up to a constant, or average over seeds.

    The defaults are those of [1]_, section 5.1: eight eras of 64 rows, standard normal
    noise, and one more era to test on. The paper calls the shifts random and leaves
    their distribution open; the standard normal one is a choice made here.

    Parameters
    ----------
    n_eras : int, default=8
        Number of eras in the training set.

    n_samples_per_era : int, default=64
        Number of rows in each era, of the test set as well.

    n_test_eras : int, default=1
        Number of eras in the test set, each with a shift of its own.

    noise_std : float, default=1.0
        Standard deviation of the noise on the target.

    shift_std : float, default=1.0
        Standard deviation of the eras' shifts.

    random_state : int, RandomState instance or None, default=None
        Determines random number generation. Pass an int for reproducible output across
        calls.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X_train : ndarray of shape (n_eras * n_samples_per_era, 1)
            The training feature, an angle in radians, float64. Rows are grouped by era.
        y_train : ndarray of shape (n_eras * n_samples_per_era,)
            The target of each training row, float64.
        eras_train : ndarray of shape (n_eras * n_samples_per_era,)
            The era of each training row, from 0 to `n_eras` - 1, int64.
        X_test : ndarray of shape (n_test_eras * n_samples_per_era, 1)
            The test feature, float64.
        y_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The target of each test row, float64.
        eras_test : ndarray of shape (n_test_eras * n_samples_per_era,)
            The era of each test row, counted on from `n_eras`, int64.
        signal_train, signal_test : ndarray
            The sine of each row's feature, float64: the target without shift and noise.
        shifts_train, shifts_test : ndarray of shape (n_eras,) and (n_test_eras,)
            The shift of each era, float64.
        feature_names : list of str
            ``["x"]``.

    Raises
    ------
    sklearn.utils._param_validation.InvalidParameterError
        If a parameter is outside its range (a `ValueError`).

    References
    ----------
    .. [1] T. DeLise, "Era Splitting: Invariant Learning for Decision Trees", 2023,
           arXiv:2309.14496.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.datasets import make_shifted_sine_wave
    >>> data = make_shifted_sine_wave(random_state=0)
    >>> data.X_train.shape, data.X_test.shape
    ((512, 1), (64, 1))
    >>> noise = data.y_train - data.signal_train - data.shifts_train[data.eras_train]
    >>> round(float(np.std(noise)), 1)
    1.0
    """
    rng = check_random_state(random_state)

    def sample(
        n_eras: int,
    ) -> tuple[
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.int64],
    ]:
        shifts = shift_std * rng.standard_normal(n_eras)
        eras = np.repeat(np.arange(n_eras, dtype=np.int64), n_samples_per_era)
        x = rng.uniform(0, 2 * np.pi, size=eras.size)
        signal = np.sin(x)
        y = signal + shifts[eras] + noise_std * rng.standard_normal(eras.size)
        return x[:, np.newaxis], y, signal, shifts, eras

    X_train, y_train, signal_train, shifts_train, eras_train = sample(n_eras)
    X_test, y_test, signal_test, shifts_test, eras_test = sample(n_test_eras)
    return Bunch(
        X_train=X_train,
        y_train=y_train,
        eras_train=eras_train,
        X_test=X_test,
        y_test=y_test,
        eras_test=n_eras + eras_test,
        signal_train=signal_train,
        signal_test=signal_test,
        shifts_train=shifts_train,
        shifts_test=shifts_test,
        feature_names=["x"],
    )
