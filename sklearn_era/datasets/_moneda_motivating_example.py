"""The motivating example of Moneda: eighteen rows, three periods, two features."""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, validate_params

# (X_1, X_2, Y) of each period's rows: those of table 5.2, and for period 3, which is in
# no table, those of figure 5.1.
_ROWS = {
    1: [(3, 1, 0), (3, 2, 1), (4, 1, 0), (5, 2, 1), (6, 1, 0), (6, 2, 1)],
    2: [(3, 1, 0), (4, 1, 0), (4, 2, 1), (5, 1, 1), (5, 2, 0), (6, 1, 1)],
    3: [(3, 1, 1), (3, 2, 0), (4, 2, 0), (5, 2, 1), (6, 1, 0), (6, 2, 1)],
}
_TRAINING_PERIODS = (1, 2)
_HOLDOUT_PERIODS = (3,)


@validate_params(
    {"n_copies": [Interval(Integral, 1, None, closed="left")]},
    prefer_skip_nested_validation=True,
)
def make_moneda_motivating_example(*, n_copies: int = 1) -> Bunch:
    """Return the small table of a spurious rule and one that lasts.

    The data of [1]_, sections 5.1 to 5.3.2, which are the same at every call. Period 1
    is split exactly by X_2 <= 1, and no other period is; X_1 <= 4 is right in four of
    six rows of each. The pooled gain takes the former rule, a time robust tree the
    latter. Their areas under the ROC curve are

    =========== ============= ============= =============
    rule        periods 1, 2  the thesis    period 3
    =========== ============= ============= =============
    X_1 <= 4    2/3           0.67          2/3
    X_2 <= 1    3/4           0.83          1/2
    =========== ============= ============= =============

    The thesis' 0.83 does not follow from its rows, nor do the pooled Gini impurities of
    its table 5.1; those of each period do. Its table 5.2 leaves (6, 1, 0) of period 1
    out of two of its four splits, but counts it.

    Parameters
    ----------
    n_copies : int, default=1
        How often each row is there. Section 5.3.2 takes 20.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X_train : ndarray of shape (12 * n_copies, 2)
            X_1, from 3 to 6, and X_2, 1 or 2, of periods 1 and 2, float64. Rows are
            grouped by period.
        y_train : ndarray of shape (12 * n_copies,)
            The class of each training row, 0 or 1, int64.
        eras_train : ndarray of shape (12 * n_copies,)
            The period of each training row, 1 or 2, int64.
        X_test : ndarray of shape (6 * n_copies, 2)
            The same features of period 3, the holdout, float64.
        y_test : ndarray of shape (6 * n_copies,)
            The class of each test row, int64.
        eras_test : ndarray of shape (6 * n_copies,)
            The period of each test row, 3, int64.
        feature_names : list of str
            ``["x1", "x2"]``.

    Raises
    ------
    sklearn.utils._param_validation.InvalidParameterError
        If `n_copies` is less than 1 (a `ValueError`).

    References
    ----------
    .. [1] L. Moneda, "Domain Generalization, Invariance and the Time Robust Forest",
           master thesis, Universidade de São Paulo, 2021. The rows of period 3 are also
           in https://github.com/lgmoneda/msc-thesis, in the notebook of the example.

    Examples
    --------
    >>> from sklearn_era.datasets import make_moneda_motivating_example
    >>> data = make_moneda_motivating_example()
    >>> data.X_train[:3]
    array([[3., 1.],
           [3., 2.],
           [4., 1.]])
    >>> data.y_train[:3], data.eras_train[:3]
    (array([0, 1, 0]), array([1, 1, 1]))
    """

    def rows_of(
        periods: tuple[int, ...],
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        rows = np.concatenate(
            [np.tile(_ROWS[period], (n_copies, 1)) for period in periods]
        )
        eras = np.repeat(
            np.array(periods, dtype=np.int64), rows.shape[0] // len(periods)
        )
        return rows[:, :2].astype(np.float64), rows[:, 2].astype(np.int64), eras

    X_train, y_train, eras_train = rows_of(_TRAINING_PERIODS)
    X_test, y_test, eras_test = rows_of(_HOLDOUT_PERIODS)
    return Bunch(
        X_train=X_train,
        y_train=y_train,
        eras_train=eras_train,
        X_test=X_test,
        y_test=y_test,
        eras_test=eras_test,
        feature_names=["x1", "x2"],
    )
