"""Generate data like Numerai's, with five bins, and weak signals that may not last."""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_params

N_FEATURE_BINS = 5

_POSITIVE = [Interval(Integral, 1, None, closed="left")]
_COUNT = [Interval(Integral, 0, None, closed="left")]

# The target's five values, and their cumulative shares of an era, as in Numerai's.
TARGET_VALUES = np.array([0.0, 0.25, 0.5, 0.75, 1.0], dtype=np.float32)
_TARGET_EDGES = np.cumsum([0.05, 0.20, 0.50, 0.20])

# The standard deviation of a uniform draw from 0 to 4.
_FEATURE_STD = np.sqrt(2.0)

# Effects in standard deviations of the noise, and the correlation of targets' noises.
_STABLE_EFFECT, _UNSTABLE_EFFECT, _TARGET_CORRELATION = 0.045, 0.18, 0.8

# The shares of training, fading and live eras in which an unstable effect holds, and in
# which it is reversed; in the others there is none.
_HOLDS_AND_REVERSED = np.array([[0.3, 0.1], [0.2, 0.2], [0.1, 0.3]])


@validate_params(
    {
        **dict.fromkeys(["n_eras", "n_features", "n_targets"], _POSITIVE),
        **dict.fromkeys(["n_fading_eras", "n_live_eras"], _COUNT),
        **dict.fromkeys(["n_stable", "n_unstable"], _COUNT),
        "rows_per_era": [Interval(Integral, N_FEATURE_BINS, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_numerai_like(
    n_eras: int = 140, rows_per_era: int = 400, n_features: int = 60, *,
    n_fading_eras: int = 40, n_live_eras: int = 20, n_stable: int = 6,
    n_unstable: int = 12, n_targets: int = 1,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:  # fmt: skip
    """Generate eras of binned features, with effects that hold and others that break.

    In each era every feature has the values 0 to 4 equally often, in random order. With
    the standardised feature x_ij = (X_ij - 2) / sqrt(2), row i of era e has the latent
    return of target t ::

        r_it = sum_j b_je x_ij + sqrt(0.8) u_i + sqrt(0.2) v_it

    where u and v are standard normal. The effect b_je is 0.045 s_j for a stable
    feature, 0.18 s_j h_je for an unstable feature and 0 for all others, with a random
    sign s_j = ±1 per feature. The state h is drawn for each feature and era: 1 (the
    effect *holds*) in 30 % of training, 20 % of fading and 10 % of live eras, -1 (it is
    *reversed*) in 10 %, 20 % and 30 % of these eras, and else 0.

    The target is the rank of r_it within the era, cut into 0, 0.25, 0.5, 0.75 and 1 for
    5, 20, 50, 20 and 5 % of the rows. At the defaults an unstable feature's mean effect
    is 0.036 in training eras, close to a stable feature's 0.045, so that the pooled
    gain takes both, and -0.036 in live eras.

    Parameters
    ----------
    n_eras, rows_per_era : int, default=140 and 400
        Number of eras before the live eras, including the fading eras; and number of
        rows in each era, at least 5.
    n_features : int, default=60
        Number of features. Stable and unstable ones are drawn at random.
    n_fading_eras, n_live_eras : int, default=40 and 20
        Number of eras, just before the live eras, in which an unstable effect is
        reversed as often as it holds; and of live eras, in which reversals prevail.
    n_stable, n_unstable : int, default=6 and 12
        Number of features with a stable and with an unstable effect.
    n_targets : int, default=1
        Number of targets, all with the same effects.
    random_state : int, RandomState instance or None, default=None
        Seed or state of the draws.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        X, y : ndarray of shape (n_eras * rows_per_era, n_features) or (..., n_targets)
            Features, int8 from 0 to 4, and targets, float32 from 0 to 1, by era.
        eras : ndarray of shape (n_eras * rows_per_era,), dtype=int64
            The era of each row, from 1 to `n_eras`.
        X_live, y_live, eras_live : ndarray
            The same for the live eras, numbered from ``n_eras + 1``.
        effects : ndarray of shape (n_eras + n_live_eras, n_features), dtype=float64
            The effect b of each feature in each era.
        stable_features, unstable_features : ndarray of shape (n_stable,) and \
(n_unstable,), dtype=int64
            The columns of these features, ascending.

    Raises
    ------
    ValueError
        If a parameter is outside its range, if there are more stable and unstable
        features than `n_features`, or more fading eras than `n_eras`.

    Notes
    -----
    The data demonstrate ``Directional(min_agreement=...)``: its advantage over
    ``"gain"`` here is no evidence about other data. ``split_criterion="era"`` ignores
    directions, and prefers unstable features even more than the pooled gain does.

    Examples
    --------
    >>> from sklearn_era.datasets import make_numerai_like
    >>> data = make_numerai_like(12, 100, 8, n_fading_eras=4, n_live_eras=2,
    ...                          n_stable=2, n_unstable=2, random_state=0)
    >>> data.X.shape, data.y.shape, data.X_live.shape
    ((1200, 8), (1200, 1), (200, 8))
    >>> data.stable_features, data.unstable_features
    (array([2, 6]), array([1, 7]))
    """
    if n_stable + n_unstable > n_features:
        raise ValueError(
            f"n_stable={n_stable} and n_unstable={n_unstable} are more features than "
            f"n_features={n_features}; raise n_features or lower the others."
        )
    if n_fading_eras > n_eras:
        raise ValueError(
            f"n_fading_eras={n_fading_eras} are more eras than n_eras={n_eras}; raise "
            "n_eras or lower n_fading_eras."
        )
    rng = check_random_state(random_state)
    order = rng.permutation(n_features)
    stable = np.sort(order[:n_stable])
    unstable = np.sort(order[n_stable : n_stable + n_unstable])
    signs = rng.choice([-1.0, 1.0], size=n_features)

    n_all = n_eras + n_live_eras
    of_kinds = [n_eras - n_fading_eras, n_fading_eras, n_live_eras]
    holds, is_reversed = np.repeat(_HOLDS_AND_REVERSED, of_kinds, axis=0).T[..., None]
    draws = rng.uniform(size=(n_all, n_unstable))
    states = 1.0 * (draws < holds) - (draws >= 1 - is_reversed)
    effects = np.zeros((n_all, n_features))
    effects[:, stable] = _STABLE_EFFECT * signs[stable]
    effects[:, unstable] = _UNSTABLE_EFFECT * signs[unstable] * states

    shape = (n_all, rows_per_era, n_targets)
    X = _deal_bins(n_all, rows_per_era, n_features, rng)
    acting = np.concatenate([stable, unstable])
    scaled = (X[:, :, acting] - 2.0) / _FEATURE_STD
    signal = np.einsum("erj,ej->er", scaled, effects[:, acting])
    shared = np.sqrt(_TARGET_CORRELATION) * rng.standard_normal(shape[:2])
    own = np.sqrt(1 - _TARGET_CORRELATION) * rng.standard_normal(shape)
    latent = signal[:, :, np.newaxis] + shared[:, :, np.newaxis] + own
    ranks = latent.argsort(axis=1).argsort(axis=1)
    y = TARGET_VALUES[np.searchsorted(_TARGET_EDGES, (ranks + 0.5) / rows_per_era)]

    eras = np.repeat(np.arange(1, n_all + 1, dtype=np.int64), rows_per_era)
    n_rows = n_eras * rows_per_era
    X, y = X.reshape(-1, n_features), y.reshape(-1, n_targets)
    return Bunch(
        X=X[:n_rows], y=y[:n_rows], eras=eras[:n_rows], X_live=X[n_rows:],
        y_live=y[n_rows:], eras_live=eras[n_rows:], effects=effects,
        stable_features=stable, unstable_features=unstable,
    )  # fmt: skip


def _deal_bins(
    n_eras: int, n_rows: int, n_features: int, rng: np.random.RandomState
) -> NDArray[np.int8]:
    """Draw features by era, row and column; 0 to 4 are equally common in each era."""
    X = np.empty((n_eras, n_rows, n_features), dtype=np.int8)
    for era in X:  # one era at a time: the draws are eight times as large
        places = rng.uniform(size=era.shape).argsort(axis=0, kind="stable")
        era[:] = places * N_FEATURE_BINS // n_rows
    return X
