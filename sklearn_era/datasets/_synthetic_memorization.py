"""Generate the synthetic-memorization data: a spiral behind a shifting shortcut."""

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_params

Array = NDArray[np.float64]

_POSITIVE = [Interval(Integral, 1, None, closed="left")]
_COUNT = [Interval(Integral, 0, None, closed="left")]

# The radii of the spiral's arms before scaling. They start away from the origin, where
# the classes would meet.
_INNER_RADIUS, _OUTER_RADIUS = 0.08, 1.0

# At the defaults one draw in fifty is rejected. With two or three eras all may be, and
# the last one is kept.
_MAX_DRAWS = 200


@validate_params(
    {
        **dict.fromkeys(["n_eras", "n_samples_per_era"], _POSITIVE),
        "n_anchors_per_era": _POSITIVE,
        **dict.fromkeys(["n_test_samples", "n_shortcut_features"], _COUNT),
        "n_rotations": [Interval(Real, 0, None, closed="neither")],
        "radial_noise": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_synthetic_memorization(
    *, n_eras: int = 16, n_samples_per_era: int = 768, n_test_samples: int = 2000,
    n_shortcut_features: int = 16, n_anchors_per_era: int = 3, n_rotations: float = 3.0,
    radial_noise: float = 0.02,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:  # fmt: skip
    """Generate a spiral that holds in every era behind a shortcut that shifts.

    The first two features have the *invariant* signal, two interlaced spiral arms, one
    per class: hard to learn, but true in every era. The other features are a
    *shortcut*: easy to learn, and standard normal noise in the test set. Each era gets
    `n_anchors_per_era` anchors from a pool of `n_eras` standard normal vectors. A row
    of class 0 lies on one of its era's anchors, a row of class 1 on an anchor's mirror
    image. The shortcut thus separates the classes, in each era and in all eras pooled,
    but along any single feature the classes swap sides between eras. The anchors of a
    feature without such a swap are drawn again, up to 200 draws.

    The defaults give the data set of [2]_, section 5.2. With ``n_anchors_per_era=1``,
    the eras are the environments of [1]_.

    Parameters
    ----------
    n_eras : int, default=16
        Number of eras in the training set, and of anchors in the pool.
    n_samples_per_era, n_test_samples : int, default=768 and 2000
        Numbers of training rows in each era, and of test rows.
    n_shortcut_features : int, default=16
        Number of features that carry the shortcut, after the two of the spiral.
    n_anchors_per_era : int, default=3
        Number of anchors dealt to each era, whose rows share them evenly. The deck has
        this many copies of each anchor, so that an era may get an anchor twice.
    n_rotations, radial_noise : float, default=3.0 and 0.02
        Number of turns of a spiral arm, counted from the origin; and the half-width of
        the uniform noise on the radius, relative to the largest radius.
    random_state : int, RandomState instance or None, default=None
        Seed or state of the draws.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X_train : ndarray of shape (n_eras * n_samples_per_era, n_features)
            The training features by era, float64, of mean 0 and variance about 1.
        y_train, eras_train : ndarray of shape (n_eras * n_samples_per_era,)
            Classes, 0 or 1 with equal odds, and eras, from 0, int64.
        X_test, y_test : ndarray of shape (n_test_samples, n_features) and \
(n_test_samples,)
            The test features, float64, and classes, int64.
        shortcut_anchors : ndarray of shape (n_eras, n_anchors_per_era, \
n_shortcut_features)
            The anchors dealt to each era, float64.
        feature_names : list of str
            ``"spiral_x"``, ``"spiral_y"``, then ``"shortcut_0"`` and so on.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    .. [1] G. Parascandolo et al. (2020), Learning explanations that are hard to vary.
       :arxiv:`2009.00329`
    .. [2] T. DeLise (2023), Era Splitting: Invariant Learning for Decision Trees.
       :arxiv:`2309.14496`

    Examples
    --------
    >>> from sklearn_era.datasets import make_synthetic_memorization
    >>> data = make_synthetic_memorization(random_state=0)
    >>> data.X_train.shape, data.X_test.shape
    ((12288, 18), (2000, 18))
    """
    rng = check_random_state(random_state)
    deck = np.repeat(np.arange(n_eras), n_anchors_per_era)
    dealt = rng.permutation(deck).reshape(n_eras, n_anchors_per_era)
    pool = np.empty((n_eras, n_shortcut_features))
    for anchors in pool.T:
        for _ in range(_MAX_DRAWS):
            anchors[:] = rng.standard_normal(n_eras)
            if _is_contradicted(anchors[dealt]):
                break

    y_train = rng.randint(0, 2, size=n_eras * n_samples_per_era, dtype=np.int64)
    eras_train = np.repeat(np.arange(n_eras, dtype=np.int64), n_samples_per_era)
    # The index of each row's anchor among those dealt to its era.
    places = np.arange(n_samples_per_era) % n_anchors_per_era
    places = np.concatenate([rng.permutation(places) for _ in range(n_eras)])
    side = np.where(y_train == 0, 1.0, -1.0)
    shortcut = side[:, np.newaxis] * pool[dealt[eras_train, places]]
    spiral = _spiral(y_train, n_rotations, radial_noise, rng)

    y_test = rng.randint(0, 2, size=n_test_samples, dtype=np.int64)
    spiral_test = _spiral(y_test, n_rotations, radial_noise, rng)
    shortcut_test = rng.standard_normal((n_test_samples, n_shortcut_features))

    names = [f"shortcut_{i}" for i in range(n_shortcut_features)]
    return Bunch(
        X_train=np.hstack([spiral, shortcut]), y_train=y_train, eras_train=eras_train,
        X_test=np.hstack([spiral_test, shortcut_test]), y_test=y_test,
        shortcut_anchors=pool[dealt], feature_names=["spiral_x", "spiral_y", *names],
    )  # fmt: skip


def _is_contradicted(anchors: Array) -> bool:
    """Return whether no split on a shortcut feature separates the classes in the same
    direction in all eras. Each split then has opposite directions in two eras, or all
    rows of some era on one side. `anchors` has the feature's anchors by era.
    """
    cuts = np.unique(np.concatenate([anchors, -anchors]))[:-1]
    is_one_sided, has_0_below, has_1_below = np.zeros((3, cuts.size), dtype=bool)
    # Era by era: memory is that of the cuts, and a few eras usually suffice.
    for values in anchors:
        n_class_0 = np.searchsorted(np.sort(values), cuts, side="right")
        n_class_1 = np.searchsorted(np.sort(-values), cuts, side="right")
        is_one_sided |= np.isin(n_class_0 + n_class_1, [0, 2 * values.size])
        has_0_below |= n_class_0 > n_class_1
        has_1_below |= n_class_1 > n_class_0
        if np.all(is_one_sided | (has_0_below & has_1_below)):
            return True
    return False


def _spiral(
    y: NDArray[np.int64], n_rotations: float, radial_noise: float,
    rng: np.random.RandomState,
) -> Array:  # fmt: skip
    """Return for each row a random point on the spiral arm of its class."""
    radius = rng.uniform(_INNER_RADIUS, _OUTER_RADIUS, size=y.shape)
    angle = 2 * np.pi * n_rotations * radius + np.pi * y
    # After the angle: the noise moves points off their arm, not along it.
    radius = radius + rng.uniform(-radial_noise, radial_noise, size=y.shape)

    # By the expected variance of a coordinate, E[radius²] / 2, not the sample's: so
    # training and test points lie on the same curve.
    squares = _INNER_RADIUS**2 + _INNER_RADIUS * _OUTER_RADIUS + _OUTER_RADIUS**2
    radius /= np.sqrt((squares / 3 + radial_noise**2 / 3) / 2)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
