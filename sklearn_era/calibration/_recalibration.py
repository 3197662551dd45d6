"""Level and slope of probabilities in each era, and recalibration by them."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import ClassifierMixin
from sklearn.metrics._classification import _validate_binary_probabilistic_prediction
from sklearn.utils import _safe_indexing

from .._era_labels import find
from .._era_routing import score
from .._eras import era_means, read_eras
from .._scikit_learn import check_sample_weight
from ..metrics import EraScores
from ..model_selection._search_scores import prediction
from ._base import DOC, OF_PROBABILITIES, Array, OutOfEra

_N_STEPS = 500  # of the algorithm, and of Newton's within each
_TOLERANCE = 1e-5


class RandomEffects(NamedTuple):
    """Levels and slopes of eras, of centered log-odds, and their distribution."""

    center: float
    mean: Array  # of shape (2,)
    covariance: Array  # of shape (2, 2), between eras
    effects: Array  # of shape (n_eras, 2), shrunk to the mean
    errors: Array  # of shape (n_eras, 2, 2), their covariances

    @classmethod
    def fit(
        cls, y: Array, p: Array, weights: Array, codes: NDArray[Any], n_eras: int
    ) -> Self:
        """Fit by EM, with normal E-steps at modes (Stiratelli, Laird, Ware 1984)."""
        z = _logit(p)
        center = float(np.average(z, weights=weights))
        x = np.stack([np.ones_like(p), z - center])
        mean, covariance = np.array([0.0, 1.0]), np.eye(2) / 4
        effects, errors = np.tile(mean, (n_eras, 1)), np.empty((n_eras, 2, 2))

        def sums(values: Array) -> Array:
            flat = [np.bincount(codes, v, n_eras) for v in values.reshape(-1, p.size)]
            return np.reshape(flat, (*values.shape[:-1], n_eras)).T

        for _ in range(_N_STEPS):
            precision = np.linalg.inv(covariance)
            for _ in range(_N_STEPS):
                now = expit(center + (effects[codes].T * x).sum(axis=0))
                gradient = sums(weights * (y - now) * x) + (mean - effects) @ precision
                curvature = sums(weights * now * (1 - now) * x * x[:, np.newaxis])
                errors = np.linalg.inv(curvature + precision)
                step = np.clip((errors @ gradient[..., np.newaxis])[..., 0], -1, 1)
                effects = effects + step
                if np.abs(step).max() < _TOLERANCE:
                    break
            before, mean = np.append(mean, covariance), effects.mean(axis=0)
            # As in restricted likelihood, where eras are equally large.
            squares = (effects - mean).T @ (effects - mean) / max(1, n_eras - 1)
            covariance = squares + errors.mean(axis=0)
            if np.abs(np.append(mean, covariance) - before).max() < _TOLERANCE:
                break
        return cls(center, mean, covariance, effects, errors)

    def probabilities(self, p: Array, codes: NDArray[Any]) -> Array:
        """Return mean P(y = 1) over effects of eras; -1 is a new one (MacKay 1992)."""
        z = _logit(p) - self.center
        level, slope = np.vstack([self.effects, self.mean])[codes].T
        spread = np.concatenate([self.errors, self.covariance[np.newaxis]])[codes]
        variance = spread[:, 0, 0] + z * (2 * spread[:, 0, 1] + z * spread[:, 1, 1])
        z = self.center + level + slope * z
        return expit(z / np.sqrt(1 + np.pi / 8 * variance))


def _logit(p: Array) -> Array:
    return np.clip(logit(p), -15.0, 15.0)  # of probabilities of 0 and 1


class EraCalibratedClassifier(ClassifierMixin, OutOfEra):
    __doc__ = DOC.format(
        summary="""Recalibrate probabilities by era, and for new eras on average.

    Logistic regression with random effects [1]_ on predictions out of era: with z their
    log-odds and c the mean of z, in era j ::

        logit P(y = 1) = c + level_j + slope_j (z - c)

    with normal levels and slopes. An era that is given to ``predict_proba`` has its
    own, shrunk to the mean the more the fewer rows it has, for a model that has not
    seen it. Other eras get the mean probability over the distribution, nearer to 1/2
    the more eras differ. Of several classes, each is recalibrated against the others.
    For new eras alone, :class:`~sklearn.calibration.CalibratedClassifierCV` in folds of
    whole eras does as well on public data.""",
        task="classifier with `predict_proba`",
        folds=", ordered or not",
        of_axes="",
        attributes="""    effects_ : ndarray of shape (n_classes, n_eras_left_out, 2)
        Levels and slopes of eras; of two classes, those of the second one alone.
    mean_effects_, spread_effects_ : ndarray of shape (n_classes, 2)
        Their means and standard deviations in the distribution over eras.""",
        rest="""
    References
    ----------
    .. [1] R. Stiratelli, N. Laird, J. H. Ware (1984), Random-effects models for serial
       observations with binary response. Biometrics 40, 961-971.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_era.calibration import EraCalibratedClassifier
    >>> rng = np.random.default_rng(0)
    >>> clinics, X = np.repeat(np.arange(20), 50), rng.normal(size=(1000, 1))
    >>> y = X[:, 0] + rng.normal(size=20)[clinics] + rng.logistic(size=1000) > 0
    >>> model = EraCalibratedClassifier(LogisticRegression(), era_order="unordered")
    >>> model.fit(X, y, eras=clinics).predict_proba([[1.0]], eras=[7]).round(2)
    array([[0.17, 0.83]])
    """,
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = OF_PROBABILITIES
    score = score
    _walks_forward = False  # models of few eras are further off than the one of all

    def _learn(self, codes: Any, folds: Any, y: Any, weights: Any, found: Any) -> None:
        n_eras, n_classes = self.era_labels_.size, self.classes_.size
        if n_classes < 2:
            raise ValueError("y has one class: pass rows of two classes or more.")
        self._folds_of_eras = np.zeros(n_eras, int)
        np.maximum.at(self._folds_of_eras, codes, folds)
        self._calibrators = {
            i: RandomEffects.fit(
                1.0 * (y == self.classes_[i]), found[:, i], weights, codes, n_eras
            )
            for i in range(n_classes == 2, n_classes)
        }
        fits = self._calibrators.values()
        self.effects_ = np.array([one.effects for one in fits])
        self.mean_effects_ = np.array([one.mean for one in fits])
        self.spread_effects_ = np.sqrt([np.diagonal(one.covariance) for one in fits])

    predict_proba = prediction("predict_proba", "probabilities in given or new eras")

    def _ask(self, method: str, X: Any, eras: Any) -> NDArray[Any]:
        p = self._respond(self.estimator_, X, eras)
        codes = np.full(p.shape[0], -1)
        if eras is not None:
            given = read_eras(eras, X)
            eras = given.decode()
            codes = find(self.era_labels_, given.labels)[given.codes]
        for fold, model in enumerate(self.estimators_):
            own = np.flatnonzero((codes >= 0) & (self._folds_of_eras[codes] == fold))
            if own.size:
                rows = (_safe_indexing(x, own) for x in (X, eras))
                p[own] = self._respond(model, *rows)
        fits = self._calibrators.items()
        found = np.array([one.probabilities(p[:, i], codes) for i, one in fits])
        p = np.vstack([1 - found, found]) if len(found) == 1 else found
        p = (p / p.sum(axis=0)).T
        return p if method == "predict_proba" else self.classes_[p.argmax(axis=1)]


class _Calibration(EraScores):
    typical: dict[str, float]
    spread: dict[str, float]


def era_calibration(
    y_true: ArrayLike, y_prob: ArrayLike, *, eras: Any, pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> _Calibration:  # fmt: skip
    """Estimate level and slope of probabilities in each era, and their spread.

    The level is positive where log-odds are too low, at their mean: calibration in the
    large. The slope is below 1 where they are too extreme [1]_. Both are shrunk to
    their means, as in :class:`EraCalibratedClassifier`.

    Parameters
    ----------
    y_true, y_prob, eras : array-like of shape (n_samples,)
        True classes, of two; probabilities of the positive class, by a model that has
        not seen the eras; and the eras of rows.
    pos_label : int, float, bool or str, default=None
        The positive class; None is the larger label, and text needs one.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts; eras without weight are left out.

    Returns
    -------
    calibration : EraScores
        The ``level`` and ``slope`` of each era with ``level_error`` and
        ``slope_error``, and the means ``observed`` and ``predicted``. The dicts
        `typical` and `spread` have the mean and the standard deviation of the levels
        and slopes that eras are drawn from.

    Raises
    ------
    ValueError
        If lengths differ, probabilities are none, or classes are not two.

    References
    ----------
    .. [1] B. Van Calster et al. (2016), A calibration hierarchy for risk models was
       defined. Journal of Clinical Epidemiology 74, 167-176.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.calibration import era_calibration
    >>> rng = np.random.default_rng(0)
    >>> p, clinics = rng.uniform(size=4000), np.repeat(["a", "b", "c", "d"], 1000)
    >>> y = rng.uniform(size=4000) < np.where(clinics == "a", p / 2, p)
    >>> found = era_calibration(y, p, eras=clinics)
    >>> round(found["a"]["level"], 1), round(found["b"]["level"], 1)
    (-1.2, 0.1)
    """
    both, p = _validate_binary_probabilistic_prediction(
        y_true, y_prob, sample_weight, pos_label
    )
    weights = check_sample_weight(sample_weight, p)
    rows = np.flatnonzero(weights)
    encoded = read_eras(eras, p, X_name="y_true").take(rows)
    is_pos, p = (x[rows, 1].astype(np.float64) for x in (both, p))
    if is_pos.min() == is_pos.max():
        raise ValueError("y_true must hold pos_label and another class: it has one.")
    weights, codes = weights[rows], encoded.codes
    found = RandomEffects.fit(is_pos, p, weights, codes, encoded.labels.size)
    errors = np.sqrt(np.diagonal(found.errors, axis1=1, axis2=2))
    means = era_means(codes, weights, np.stack([is_pos, p]))
    names = ["level", "slope", "level_error", "slope_error", "observed", "predicted"]
    table = dict(zip(names, [*found.effects.T, *errors.T, *means], strict=True))
    calibration = _Calibration(
        encoded.labels, table, encoded.counts, directions=dict.fromkeys(names)
    )
    spread = np.sqrt(np.diagonal(found.covariance))
    calibration.typical = dict(zip(names, found.mean.tolist(), strict=False))
    calibration.spread = dict(zip(names, spread.tolist(), strict=False))
    return calibration
