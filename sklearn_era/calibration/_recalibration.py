"""Recalibrate probabilities by levels and slopes of eras."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing

from .._era_labels import find
from .._era_routing import score
from .._eras import read_eras
from .._parameter_object import with_parameters
from ..model_selection._search_scores import prediction
from ._base import DOC, Array, OutOfEra, model_with

_N_STEPS = 500  # of Newton's method
_N_MOVES = 25  # of the distribution; more only where classes do not overlap
_TOLERANCE = 1e-5
# The precision of a normal prior of the mean level and slope about 0 and 1, for classes
# that do not overlap.
_PRIOR = np.diag([0.25, 1.0])
_LEAST = 1e-4  # standard deviation between eras, whose inverse has to be finite


class RandomEffects(NamedTuple):
    """Levels and slopes of eras, in centered log-odds, and their distribution."""

    center: float
    mean: Array  # of shape (2,)
    covariance: Array  # of shape (2, 2), between eras
    effects: Array  # of shape (n_eras, 2), shrunk to the mean
    errors: Array  # of shape (n_eras, 2, 2), covariances of `effects` given the mean

    @classmethod
    def fit(
        cls, y: Array, p: Array, weights: Array, codes: NDArray[Any], n_eras: int
    ) -> Self:
        """Estimate levels and slopes of eras, and their distribution. The result is
        that of an EM algorithm whose E-step approximates each era's posterior by a
        normal distribution about its mode (Stiratelli, Laird, Ware 1984). Each move
        goes to the point at which EM would end if the eras' log-likelihoods were
        quadratic, as they nearly are about modes.
        """
        return cls.fit_with_errors(y, p, weights, codes, n_eras)[0]

    @classmethod
    def fit_with_errors(
        cls, y: Array, p: Array, weights: Array, codes: NDArray[Any], n_eras: int
    ) -> tuple[Self, Array]:
        """Return the result of `fit`, and the covariances of `effects` if the mean, to
        which they are shrunk, is uncertain, too (Henderson 1975).
        """
        z = log_odds(p)
        center = float(np.average(z, weights=weights))
        x = np.stack([np.ones_like(p), z - center])
        given = y, x, center, weights, codes
        try:
            *found, converges = _estimate(given, n_eras, np.zeros((2, 2)))
        except np.linalg.LinAlgError:  # too far away
            converges = False
        if not converges:  # classes do not overlap, and the mean runs to infinity
            *found, _ = _estimate(given, n_eras, _PRIOR)
        effects, errors, of_both = found
        mean = effects.mean(axis=0)
        squares = (effects - mean).T @ (effects - mean) / max(1, n_eras - 1)
        covariance = squares + errors.mean(axis=0)
        return cls(center, mean, covariance, effects, errors), of_both

    def probabilities(self, p: Array, codes: NDArray[Any]) -> Array:
        """Return P(y = 1) of each row, averaged over the distribution of the effects of
        the row's era (MacKay 1992). In `codes` of eras, -1 stands for a new era.
        """
        z = log_odds(p) - self.center
        level, slope = np.vstack([self.effects, self.mean])[codes].T
        spread = np.concatenate([self.errors, self.covariance[np.newaxis]])[codes]
        variance = spread[:, 0, 0] + z * (2 * spread[:, 0, 1] + z * spread[:, 1, 1])
        z = self.center + level + slope * z
        return expit(z / np.sqrt(1 + np.pi / 8 * variance))


def log_odds(p: Array) -> Array:
    return np.clip(logit(p), -15.0, 15.0)  # of probabilities of 0 and 1


def _times(matrices: Any, vectors: Any) -> Array:
    return (matrices @ vectors[..., np.newaxis])[..., 0]


def _estimate(
    given: tuple[Any, ...], n_eras: int, prior: Array
) -> tuple[Array, Array, Array, bool]:
    """Return four results: the effects of eras; their covariances, given the mean and
    with the error of the mean; and whether they converge. `prior` is the precision of
    mean effects about 0 and 1.
    """
    y, x, center, weights, codes = given
    typical, largest = np.array([0.0, 1.0]), np.abs(x).max(axis=1)
    mean, root = typical, np.eye(2) / 2  # Cholesky factor
    effects, errors = np.tile(mean, (n_eras, 1)), np.empty((n_eras, 2, 2))
    for _ in range(_N_MOVES):
        inverse = np.linalg.inv(root)
        precision = inverse.T @ inverse
        effects, errors = modes(y, x, center, weights, codes, effects, mean, precision)
        gradients, curvatures = _derivatives(y, x, center, weights, codes, effects)
        gradients += _times(curvatures, effects - mean)
        before, pull = root, prior @ (typical - mean)
        step, root = _distribution(gradients, curvatures, root, prior, pull)
        if prior.any():
            root = root.clip(-1, 1)
        size = max(np.abs(step) @ largest, 1e-9)
        mean = mean + step * np.log1p(size) / size  # as in Newton's method below
        moved = max(np.abs(step).max(), np.abs(root - before).max())
        if moved < _TOLERANCE / 10:
            break
    of_mean = errors @ precision  # the share of the mean in each era's effects
    known = (curvatures @ of_mean).sum(axis=0) + prior  # of the mean, a precision
    variance = np.linalg.pinv(known, hermitian=True)
    of_both = errors + of_mean @ variance @ of_mean.transpose(0, 2, 1)
    return effects, errors, of_both, bool(moved < _TOLERANCE / 10)


def _distribution(
    gradients: Array, curvatures: Array, root: Array, prior: Array, pull: Array
) -> tuple[Array, Array]:
    """Return the step of the mean, and the Cholesky factor of the covariance, at which
    EM stands still if each era's log-likelihood is quadratic, with the given
    `gradients` and `curvatures` at the mean. Start at the factor `root`. `prior` and
    `pull` are the precision of the mean's prior, and its gradient.
    """
    n_eras, lower = len(gradients), np.tril_indices(2)
    # As in restricted likelihood, where eras are equally large.
    share, step = n_eras / max(1, n_eras - 1), np.zeros(2)
    # The search starts with steps of the size 1: near the spread, or its error.
    known = np.diagonal(curvatures.mean(axis=0)).clip(1e-8)
    unit = np.maximum(np.diagonal(root), known**-0.5)[lower[0]]

    def loss(entries: Array) -> tuple[float, Array]:
        """Return minus the log-likelihood per era, with the prior of the mean, at the
        factor made of `entries`, and its gradient. Set `step` to the best step.
        """
        nonlocal step
        root = np.zeros((2, 2))
        root[lower] = unit * entries
        own = curvatures @ root
        inverse = np.linalg.inv(np.eye(2) + root.T @ own)
        shrunken = own @ inverse
        weights = (curvatures - shrunken @ own.transpose(0, 2, 1)).sum(axis=0) + prior
        left = (gradients - _times(shrunken, gradients @ root)).sum(axis=0) + pull
        step = np.linalg.lstsq(weights, left, rcond=1e-10)[0]
        moved = gradients - curvatures @ step
        scaled = _times(inverse, moved @ root)
        total, toward = curvatures.sum(axis=0) + prior, gradients.sum(axis=0) + pull
        squares = step @ (total @ step - 2 * toward)
        squares -= (moved @ root * scaled).sum()
        value = share * squares - np.log(np.linalg.det(inverse)).sum()
        slope = shrunken.sum(axis=0)
        slope -= share * (moved - _times(own, scaled)).T @ scaled
        return value / 2 / n_eras, unit * slope[lower] / n_eras

    with np.errstate(all="ignore"):
        # Far away, rounding would make up likelihoods.
        found = minimize(
            loss, root[lower] / unit, jac=True, bounds=[(-10, 10)] * 3,
            options={"gtol": 1e-7, "ftol": 1e-15},
        )  # fmt: skip
        loss(found.x)
    root = np.zeros((2, 2))
    root[lower] = unit * found.x
    root *= np.where(np.diagonal(root) < 0, -1, 1)
    np.fill_diagonal(root, np.diagonal(root).clip(_LEAST))
    return step, root


def _derivatives(
    y: Array, x: Array, offset: Any, weights: Array, codes: NDArray[Any], effects: Array
) -> tuple[Array, Array]:
    """Return, for each era, the gradient and the negative Hessian matrix of the era's
    log-likelihood, with respect to its `effects`: the coefficients of x in log-odds.
    """
    n_eras, n = effects.shape
    gradients, curvatures = np.empty((n_eras, n)), np.empty((n_eras, n, n))
    now = expit(offset + sum(effects[codes, i] * x[i] for i in range(n)))
    slopes, bends = weights * (y - now), weights * now * (1 - now)
    for i in range(n):
        gradients[:, i] = np.bincount(codes, slopes * x[i], n_eras)
        bend = bends * x[i]
        for j in range(i + 1):
            curvatures[:, i, j] = np.bincount(codes, bend * x[j], n_eras)
            curvatures[:, j, i] = curvatures[:, i, j]
    return gradients, curvatures


def modes(
    y: Array, x: Array, offset: Any, weights: Array, codes: NDArray[Any],
    effects: Array, mean: Any, precision: Any,
) -> tuple[Array, Array]:  # fmt: skip
    """Return, for each era, the most likely effects of x on log-odds under a normal
    prior (a `precision` of 0 is no prior), and the effects' covariances. Newton's
    method starts at `effects`.
    """
    n_eras, n = effects.shape
    largest = np.zeros((n, n_eras))
    for i in range(n):
        np.maximum.at(largest[i], codes, np.abs(x[i]))
    offset, codes = np.broadcast_to(offset, codes.shape), codes.astype(np.intp)
    found, errors = effects.copy(), np.empty((n_eras, n, n))
    own = np.arange(n_eras)
    for _ in range(_N_STEPS):
        effects = found[own]
        gradients, curvatures = _derivatives(y, x, offset, weights, codes, effects)
        errors[own] = inverse = np.linalg.inv(curvatures + precision)
        step = _times(inverse, gradients + (mean - effects) @ precision)
        # Shortened so that the likelihood rises (Sun, Tran-Dinh 2019).
        size = np.maximum((np.abs(step) * largest.T[own]).sum(1, keepdims=True), 1e-9)
        step = step * np.log1p(size) / size
        found[own] += step
        length = np.abs(step).max(axis=1)
        if length.max() < _TOLERANCE:
            break
        is_moving = length >= _TOLERANCE**2
        if 2 * np.count_nonzero(is_moving) < own.size:  # go on without the others
            rows = np.flatnonzero(is_moving[codes])
            codes = (np.cumsum(is_moving) - 1)[codes[rows]]
            y, x, offset, weights = y[rows], x[:, rows], offset[rows], weights[rows]
            own = own[is_moving]
    return found, errors


@with_parameters
class EraCalibratedClassifier(ClassifierMixin, OutOfEra):
    __doc__ = DOC.format(
        summary="""Recalibrate probabilities by era, and for new eras on average.

    It fits a logistic regression with random effects [1]_ to predictions for eras left
    out. With z the log-odds of a prediction and c the mean of z, in era j ::

        logit P(y = 1) = c + level_j + slope_j (z - c)

    with normal levels and slopes. If the eras passed to ``predict_proba`` are known,
    their rows get the era's own level and slope, which are the nearer to the mean, the
    fewer rows the era had in the fit. Predictions for these rows are by the model that
    was fitted without the era. Rows of other eras get the mean probability over the
    distribution of eras, which is the nearer to 1/2, the more eras differ. If there are
    more than two classes, each is recalibrated against the others.
    For new eras alone, :class:`~sklearn.calibration.CalibratedClassifierCV` in folds of
    whole eras does as well on public data.""",
        task="classifier with `predict_proba`",
        folds=", whether eras are ordered or not",
        more="",
        attributes="""    effects_ : ndarray of shape (n_classes, n_eras_left_out, 2)
        Levels and slopes of eras; if there are two classes, for the second one alone.
    mean_effects_, spread_effects_ : ndarray of shape (n_classes, 2)
        Means and standard deviations of levels and slopes over eras.""",
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
    estimator: Any = model_with("predict_proba")
    score = score
    _hands_eras_on = False  # alone: it uses them itself
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
