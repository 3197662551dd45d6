"""The shortcut-classification data set: weak evidence that lasts, strong that does not.

Most eras let a model read the class off a few features. Some eras mix the classes up
there, some say nothing, and the test eras all mix them up. It is the coloured digits of
Arjovsky et al. in tabular form, for any number of classes.
"""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import ndtr
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval

from sklearn_era.datasets._common import by_part, checked


@checked(
    {
        "positive": "n_eras n_samples_per_era n_invariant_per_class",
        "counts": "n_misleading_eras n_silent_eras n_test_eras n_shortcut_per_class",
        "amounts": "invariant_strength shortcut_strength",
    },
    n_classes=Interval(Integral, 2, None, closed="left"),
)
def make_shortcut_classification(
    *,
    n_classes: int = 2,
    n_eras: int = 16,
    n_misleading_eras: int = 2,
    n_silent_eras: int = 4,
    n_test_eras: int = 4,
    n_samples_per_era: int = 500,
    n_invariant_per_class: int = 3,
    n_shortcut_per_class: int = 1,
    invariant_strength: float = 1.0,
    shortcut_strength: float = 3.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate classes with a shortcut that misleads in some eras and in the test set.

    Every class has *invariant* features and *shortcut* features of its own. Those of
    class c are normally distributed with standard deviation 1 and mean ::

        strength * ([named == c] - 1 / n_classes)

    where for an invariant feature `named` is the row's class y, and the strength is
    `invariant_strength`, in every era. For a shortcut feature both depend on the era::

        named = (y + shift of the era) % n_classes

    - In a *faithful* era the shift is 0: the shortcut names the class, and at the
      defaults says more than the invariant features do. So are most training eras.
    - In a *misleading* era the shift is from 1 to ``n_classes - 1``: the shortcut names
      another class. With two classes its direction turns round. Shifts are dealt in
      turn, so that with ``n_misleading_eras >= n_classes - 1`` each is dealt.
    - In a *silent* era the strength is 0: the shortcut is noise.

    All test eras are misleading. There a model that relies on the shortcut is worse
    than guessing, and one that ignores it scores up to `invariant_accuracy`. As the
    classes have equal odds, the shortcut features are distributed alike in faithful and
    misleading eras: by themselves they do not tell the one from the other.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.

    n_eras : int, default=16
        Number of eras in the training set. Those that are neither misleading nor
        silent are faithful; which ones are what is drawn at random.

    n_misleading_eras : int, default=2
        Number of training eras whose shortcut names another class.

    n_silent_eras : int, default=4
        Number of training eras whose shortcut is noise.

    n_test_eras : int, default=4
        Number of eras in the test set.

    n_samples_per_era : int, default=500
        Number of rows in each era, of the test set as well.

    n_invariant_per_class : int, default=3
        Number of invariant features of each class.

    n_shortcut_per_class : int, default=1
        Number of shortcut features of each class.

    invariant_strength : float, default=1.0
        Distance between the two means that an invariant feature can have, in standard
        deviations.

    shortcut_strength : float, default=3.0
        The same of the shortcut features, in eras that are not silent.

    random_state : int, RandomState instance or None, default=None
        Determines random number generation. Pass an int for reproducible output across
        calls.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X_train : ndarray of shape (n_eras * n_samples_per_era, n_features)
            The training features, float64, dimensionless, where ``n_features =
            n_classes * (n_invariant_per_class + n_shortcut_per_class)``. The invariant
            features come first, then the shortcut features, each grouped by class. Rows
            are grouped by era.
        y_train, eras_train : ndarray of shape (n_eras * n_samples_per_era,)
            The class, from 0 to `n_classes` - 1 with equal odds, and the era, from 0 to
            `n_eras` - 1, of each training row, int64.
        X_test, y_test, eras_test : ndarrays
            The same of the ``n_test_eras * n_samples_per_era`` test rows, whose eras
            are counted on from `n_eras`.
        shortcut_strengths_train, shortcut_strengths_test : ndarray of shape \
(n_eras,) and (n_test_eras,)
            The strength of the shortcut in each era, float64.
        shortcut_shifts_train, shortcut_shifts_test : ndarray of shape (n_eras,) and \
(n_test_eras,)
            The shift of the shortcut in each era, int64; 0 in silent eras.
        invariant_accuracy : float
            The expected accuracy of the best classifier on the invariant features.
        feature_names : list of str
            ``"invariant_0_0"`` (class, then number) and so on, then ``"shortcut_0_0"``
            and so on.

    Raises
    ------
    ValueError
        If there are more misleading and silent eras than eras. A parameter outside its
        range is an `InvalidParameterError` of scikit-learn's, a `ValueError` too.

    Notes
    -----
    The best classifier on the invariant features adds up those of each class, and the
    largest sum wins. Against each other class the true one starts ahead by s = strength
    * sqrt(n_invariant_per_class) standard deviations of a sum. So `invariant_accuracy`
    is the probability that it stays ahead of all of them, where φ and Φ are the density
    and the distribution function of the standard normal distribution::

        ∫ φ(z) Φ(z + s)^(n_classes - 1) dz

    An era's gain does not know directions: the shortcut gains as much in a misleading
    era as in a faithful one, and more than the invariant features. What exposes it to
    ``split_criterion="era"`` are the silent eras, and those only with a negative
    `boltzmann_alpha`. Once the invariant features are used up, all that remains gains
    next to nothing in its worst era, and the shortcut, which is noise in four eras and
    not in sixteen, is again the best of it; `l2_regularization` about as large as the
    sum of an era's hessians makes such gains negative. To
    ``split_criterion="directional"`` the misleading and the silent eras both expose it.
    Small nodes hide that from it too, so trees of many leaves need a
    `min_agreement` near 1.

    References
    ----------
    .. [1] M. Arjovsky, L. Bottou, I. Gulrajani and D. Lopez-Paz, "Invariant Risk
           Minimization", 2019, arXiv:1907.02893.

    Examples
    --------
    >>> from sklearn_era.datasets import make_shortcut_classification
    >>> from sklearn_era.ensemble import HistGradientBoostingClassifier
    >>> data = make_shortcut_classification(n_classes=3, random_state=0)
    >>> data.X_train.shape, data.X_test.shape
    ((8000, 12), (2000, 12))
    >>> data.shortcut_shifts_test
    array([1, 2, 1, 2])
    >>> round(data.invariant_accuracy, 3)
    0.817
    >>> est = HistGradientBoostingClassifier(
    ...     split_criterion="directional",
    ...     min_era_coverage=1.0,
    ...     min_gain_share=0.0,
    ...     max_iter=30,
    ...     max_leaf_nodes=8,
    ...     early_stopping=False,
    ... ).fit(data.X_train, data.y_train, eras=data.eras_train)
    >>> bool(est.score(data.X_test, data.y_test) > 0.75)
    True
    """
    n_faithful_eras = n_eras - n_misleading_eras - n_silent_eras
    if n_faithful_eras < 0:
        raise ValueError(
            f"n_misleading_eras={n_misleading_eras} and n_silent_eras={n_silent_eras} "
            f"are more eras than n_eras={n_eras}; raise n_eras or lower the others."
        )
    rng = check_random_state(random_state)

    # Faithful eras first, then misleading, then silent ones; shuffled together.
    strengths = np.repeat(
        [shortcut_strength, 0.0], [n_eras - n_silent_eras, n_silent_eras]
    )
    shifts = np.zeros(n_eras, dtype=np.int64)
    shifts[n_faithful_eras : n_eras - n_silent_eras] = _misleading_shifts(
        n_misleading_eras, n_classes
    )
    order = rng.permutation(n_eras)
    strengths, shifts = strengths[order], shifts[order]

    strengths_test = np.full(n_test_eras, shortcut_strength, dtype=np.float64)
    shifts_test = _misleading_shifts(n_test_eras, n_classes)

    def sample(
        strengths: NDArray[np.float64], shifts: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        eras = np.repeat(np.arange(shifts.size, dtype=np.int64), n_samples_per_era)
        y = rng.randint(0, n_classes, size=eras.size, dtype=np.int64)
        named = (y + shifts[eras]) % n_classes
        invariant = invariant_strength * _contrasts(y, n_classes)
        shortcut = strengths[eras, np.newaxis] * _contrasts(named, n_classes)
        X = np.hstack(
            [
                np.repeat(invariant, n_invariant_per_class, axis=1),
                np.repeat(shortcut, n_shortcut_per_class, axis=1),
            ]
        )
        X += rng.standard_normal(X.shape)
        return X, y, eras

    parts = by_part(
        train=sample(strengths, shifts), test=sample(strengths_test, shifts_test)
    )
    parts["eras_test"] += n_eras
    return Bunch(
        **parts,
        shortcut_strengths_train=strengths,
        shortcut_strengths_test=strengths_test,
        shortcut_shifts_train=shifts,
        shortcut_shifts_test=shifts_test,
        invariant_accuracy=_best_accuracy(
            n_classes, invariant_strength * np.sqrt(n_invariant_per_class)
        ),
        feature_names=[
            f"{kind}_{label}_{index}"
            for kind, n_features in (
                ("invariant", n_invariant_per_class),
                ("shortcut", n_shortcut_per_class),
            )
            for label in range(n_classes)
            for index in range(n_features)
        ],
    )


def _misleading_shifts(n_eras: int, n_classes: int) -> NDArray[np.int64]:
    """Deal the shifts 1 to n_classes - 1 to the eras, in turn."""
    return 1 + np.arange(n_eras, dtype=np.int64) % (n_classes - 1)


def _contrasts(named: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """The mean of each class's features at strength 1, centred over the classes."""
    return np.eye(n_classes)[named] - 1 / n_classes


def _best_accuracy(n_classes: int, lead: float) -> float:
    """Return how often a normal score plus `lead` beats those of all other classes."""

    def density(score: float) -> float:
        normal = np.exp(-0.5 * score**2) / np.sqrt(2 * np.pi)
        return float(normal * ndtr(score + lead) ** (n_classes - 1))

    # Beyond ten standard deviations nothing is left; a finite interval keeps the
    # quadrature from overlooking the bump.
    return float(quad(density, -10, 10)[0])
