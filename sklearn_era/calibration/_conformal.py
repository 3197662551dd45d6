"""Make prediction intervals and sets from residuals in eras left out of the fits."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import check_is_fitted

from .._era_labels import kind_of, missing_rows
from .._era_routing import score, take_eras_to_predict, with_eras
from .._parameter_object import parameter, with_parameters
from .._scikit_learn import check_sample_weight
from .._warnings import warn_user
from ..model_selection._search_scores import prediction
from ..model_selection._times_and_groups import OF_AXES
from ._base import DOC, Array, OutOfEra, model_with

_SHARE = Interval(Real, 0, 1, closed="neither")
_LEVELS = {"level": [_SHARE], "share_of_eras": [_SHARE, None]}
_ROUNDING = 1e-9  # of sums of masses
_DIGITS = 16 * np.finfo(float).eps  # in which equal scores may differ
_N_HALVINGS = 66  # to the last digit
_Atoms = list[tuple[Array, Array]]  # scores of each model, and sums of their masses

_FOLDS = """, and
        of ordered eras by :class:`~sklearn_era.model_selection.EraWalkForwardSplit`,
        which leaves out the later five sixths"""
_AXES = """
    horizon, group :
        As in :class:`~sklearn_era.model_selection.EraSearchCV`."""
_POWER = """
    power : float, default=0
        The scale of residuals is the prediction to the power `power` / 2, as is the
        standard deviation of a Tweedie distribution. 0 gives intervals of one width; 1
        is for counts, 2 for amounts whose errors are proportional to them, and a value
        between 1 and 2 for counts that vary more than by chance. Predictions must be
        above 0 unless `power` is 0."""
_SCORES = """    conformity_scores_ : ndarray of shape (n_rows_left_out,)
        The scores, one fold after another."""
_NOTES = """
    Notes
    -----
    All eras weigh the same, and the new era counts as one more era, with an infinite
    score [1]_. If new eras are exchangeable with the M eras left out, a random row of a
    new era is covered with the probability `level`. With `share_of_eras`, that share of
    new eras has `level` or more of its rows covered [2]_, if eras have equally many
    rows. Both are exact for a :class:`~sklearn.frozen.FrozenEstimator` that was fitted
    to eras other than these M. With models of folds, a coverage of 1 - 2a is proven for
    the level 1 - a [1]_, approximately [3]_. For finite intervals, and for sets without
    some class, a level or share is at most M / (M + 1). Nothing is guaranteed under
    drift.

    References
    ----------
    .. [1] Y. Lee, R. F. Barber, R. Willett (2023), Distribution-free inference with
       hierarchical data. :arxiv:`2306.06342`. Before: Dunn et al. :arxiv:`1809.07441`
    .. [2] J. C. Duchi, S. Gupta, K. Jiang, P. Sur (2024), Predictive inference in
       multi-environment scenarios. :arxiv:`2403.16336`
    .. [3] R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani (2021), Predictive
       inference with the jackknife+. :arxiv:`1905.02928`

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shops, X = np.repeat(np.arange(20), 30), rng.normal(size=(600, 1))"""


def coverage_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, classes: ArrayLike | None = None,
    sample_weight: Any = None,
) -> float:  # fmt: skip
    """Return the share of targets that lie in their intervals, or in their sets.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True targets or classes.
    y_pred : array-like of shape (n_samples, 2) or (n_samples, n_classes)
        Both ends of each interval, inclusive; or, with `classes`, a mask of each set.
    classes, sample_weight : array-like of shape (n_classes,) and (n_samples,), or None
        Class labels of the columns of `y_pred`, if it holds sets; and weights of rows.

    Returns
    -------
    coverage : float
        From 0 to 1. The function can be the metric of
        :func:`~sklearn_era.metrics.era_scores`.

    Raises
    ------
    ValueError
        If `y_pred` has the wrong shape, holds booleans but `classes` is None, or holds
        numbers but `classes` is given; if ends of intervals or targets are missing; if
        targets and `classes` are labels of two kinds; or if a weight is negative.

    Examples
    --------
    >>> from sklearn_era.calibration import coverage_score
    >>> coverage_score([1.0, 2.0], [[0.5, 1.5], [2.5, 3.0]])
    0.5
    """
    y, found = column_or_1d(y_true), np.asarray(y_pred)
    if (found.dtype == bool) != (classes is not None):
        raise ValueError(
            "y_pred must hold booleans, which are sets, if classes has the labels of "
            "its columns, such as the classes_ of the model, and ends of intervals if "
            f"not; got {found.dtype} and classes={classes!r}."
        )
    shape = (y.size, 2 if classes is None else np.size(classes))
    if found.shape != shape:
        raise ValueError(f"y_pred must be of shape {shape}; got {found.shape}.")
    if classes is None:
        for values, name in ((y, "y_true"), *((end, "y_pred") for end in found.T)):
            if (missing := missing_rows(values)).size:
                raise ValueError(
                    f"{name} has {missing.size} missing value(s), the first at row "
                    f"{missing[0]}: drop these rows."
                )
        is_in: Any = (found[:, 0] <= y) & (y <= found[:, 1])
    else:
        labels = np.asarray(classes)
        is_class = y[:, np.newaxis] == labels
        if is_class.size and not is_class.any():
            kind, of_classes = kind_of(y[0]), kind_of(labels[0])
            if kind != of_classes:
                raise ValueError(
                    f"y_true holds labels such as {y[0]!s}, a {kind}, and classes such "
                    f"as {labels[0]!s}, a {of_classes}: pass labels of one kind."
                )
        is_in = (found & is_class).any(axis=1)
    return float(np.average(is_in, weights=check_sample_weight(sample_weight, y)))


@with_parameters
class _Conformal(OutOfEra):
    """Base of models that keep the scores of rows left out. Each of M eras has the mass
    ``1 / (M + 1)``, spread over the era's rows; a new era has the remaining mass, at an
    infinite score (Lee, Barber, Willett 2023).
    """

    _if_too_few: ClassVar[str]
    _score_rows: ClassVar[Any]  # from targets and predictions

    era_order: Any = parameter(OF_AXES["era_order"], default="auto")
    horizon: Any = parameter(OF_AXES["horizon"], default=1)
    group: str = parameter(OF_AXES["group"], default="new")

    def _learn(self, codes: Any, folds: Any, y: Any, weights: Any, found: Any) -> None:
        self.conformity_scores_ = self._score_rows(y, found)
        n_eras, n_folds = self.era_labels_.size, len(self.estimators_)
        self._folds, self._pairs = folds, codes * n_folds + folds
        totals = np.bincount(self._pairs, weights, n_folds * n_eras)
        n_tests = np.count_nonzero(totals.reshape(n_eras, n_folds), axis=1)
        self._masses = weights / np.where(totals > 0, totals, 1)[self._pairs]
        self._masses /= (n_eras + 1) * n_tests[codes]

    def _ask_models(
        self, X: Any, level: float, share: float | None, eras: Any
    ) -> tuple[Array, _Atoms, float, float]:
        """Return four results: each model's predictions; the `_Atoms` (each model's
        scores and summed masses); the mass to cover, `level` or `share`; and the least
        score such that all scores up to it have this mass. With a `share` of eras, an
        era has one score per fold: the quantile of its scores there at `level`.
        """
        check_is_fitted(self)
        # The model of all rows has seen the last ones of ordered eras.
        is_one = self.era_order_ == "ordered"
        models = [self.estimator_] if is_one else self.estimators_
        scores, masses, folds = self.conformity_scores_, self._masses, self._folds
        if share is not None:
            order, found = np.lexsort((scores, self._pairs)), []
            for own in np.split(order, np.flatnonzero(np.diff(self._pairs[order])) + 1):
                sums = np.cumsum(masses[own])
                place = np.searchsorted(sums, (level - _ROUNDING) * sums[-1])
                found.append((scores[own[place]], folds[own[0]], sums[-1]))
            scores, folds, masses = map(np.array, zip(*found, strict=True))
            level = share
        n_eras, n_needed = self.era_labels_.size, level / (1 - level) - _ROUNDING
        if n_eras < n_needed:
            warn_user(
                f"{n_eras} eras were left out, and a level or share of {level:g} needs "
                f"{math.ceil(n_needed)}: {self._if_too_few}. Ask for at most "
                f"{n_eras / (n_eras + 1):.3g}, or fit to more eras."
            )
        order, level = np.argsort(scores, kind="stable"), level - _ROUNDING
        order = order[masses[order] > 0]
        scores, masses, folds = scores[order], masses[order], folds[order]
        place = np.searchsorted(np.cumsum(masses), level)
        atoms = []
        for fold in range(len(models)):
            own = is_one | (folds == fold)
            atoms.append((scores[own], np.append(0.0, np.cumsum(masses[own]))))
        X, eras = take_eras_to_predict(self, X, eras)
        models = [with_eras(model, eras) for model in models]
        predicted = np.array([self._respond(model, X) for model in models])
        return predicted, atoms, level, float(np.append(scores, np.inf)[place])


@with_parameters
class EraConformalRegressor(RegressorMixin, _Conformal):
    __doc__ = DOC.format(
        summary="""Make prediction intervals that cover targets in eras not yet seen.

    The score of a row left out is its absolute residual divided by its scale (see
    `power`). Each score gives a value for a new row, prediction + score * scale. The
    prediction and the scale come from the model of the fold that left out the score's
    row (CV+ [3]_) or, for ordered eras, from the model of all rows. The upper end of
    the interval is a quantile of these values, and the lower end is a quantile of the
    values prediction - score * scale.""",
        task="regressor", folds=_FOLDS, more=_AXES + _POWER, attributes=_SCORES,
        rest=f"""{_NOTES}
    >>> y = X[:, 0] + rng.normal(size=20)[shops]
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn_era.calibration import EraConformalRegressor
    >>> model = EraConformalRegressor(LinearRegression(), era_order="unordered")
    >>> model.fit(X, y, eras=shops).predict_interval([[0.0], [1.0]], level=0.8).round(1)
    array([[-1.4,  1.4],
           [-0.5,  2.4]])
    """,
    )  # fmt: skip
    power: float = parameter([Interval(Real, 0, None, closed="left")], default=0.0)
    _if_too_few = "intervals are infinite"
    score = score

    def _score_rows(self, y: Any, found: Any) -> Array:
        self._power = float(self.power)  # of these scores, whatever is set later
        return np.abs(y - found) / self._scales(found)

    def _scales(self, predicted: Array) -> Array:
        power = getattr(self, "_power", self.power)  # which older model files lack
        if power > 0 and not (lowest := predicted.min()) > 0:
            remedy = "use a model of a positive mean, such as loss='poisson' or 'gamma'"
            given = self.estimator.get_params().values()
            if any(isinstance(x, str) and x in ("poisson", "gamma") for x in given):
                remedy = (
                    "the model of means above 0 diverges, and they are rounded to 0; "
                    "use a smaller learning_rate or a less skewed target"
                )
            raise ValueError(
                f"power={power:g} needs predictions above 0, and one is "
                f"{lowest:.3g}: {remedy}, or power=0."
            )
        return predicted ** (power / 2)

    @validate_params(_LEVELS, prefer_skip_nested_validation=True)
    def predict_interval(
        self, X: Any, level: float = 0.9, *, share_of_eras: float | None = None,
        eras: Any = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """Return intervals for the targets of rows of new eras.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        level : float, default=0.9
            Probability, in (0, 1), to cover the target of a row of a new era.
        share_of_eras : float, default=None
            If given, `level` or more of the rows are covered in this share of new eras.
        eras : array-like of shape (n_samples,) or str, default=None
            Eras of the rows, as in `predict`, for models that predict by eras.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2)
            Lower and upper ends; infinite, with a warning, if there are too few eras.
        """
        known: list[Any]
        centers, *known = self._ask_models(X, level, share_of_eras, eras)
        scales = self._scales(centers)
        lower, upper = (_upper_ends(x, scales, *known) for x in (-centers, centers))
        return np.column_stack([-lower, upper])


def _mass(atoms: _Atoms, values: Any, side: Any) -> Any:
    """Return the mass of scores that are below `values` (`side` "left") or at most
    `values` ("right"), summed over models. Each model's scores are compared with the
    model's own values, along the first axis of `values`.
    """
    return sum(
        sums[np.searchsorted(scores, of_model, side)]
        for (scores, sums), of_model in zip(atoms, values, strict=True)
    )


def _upper_ends(
    centers: Array, scales: Array, atoms: _Atoms, least: float, score: float
) -> Array:
    """Return, for each row, the smallest end such that the scores in `atoms` whose
    center + score * scale is at most this end have the mass `least`. The search bisects
    between the models' smallest and largest center + `score` * scale, and rounds up.
    """
    ends = centers + score * scales
    low, high = ends.min(axis=0), ends.max(axis=0)
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        is_enough = _mass(atoms, (middle - centers) / scales, "right") >= least
        low, high = np.where(is_enough, [low, middle], [middle, high])
    return high + _DIGITS * (np.abs(centers) + score * scales).max(axis=0)


@with_parameters
class EraConformalClassifier(ClassifierMixin, _Conformal):
    __doc__ = DOC.format(
        summary="""Make sets of classes that cover the true one in eras not yet seen.

    The score of a row left out is 1 minus the probability of its true class; the score
    of a class for a new row is 1 minus the probability of the class. A class is in the
    new row's set, unless the scores of rows left out that are below the score of the
    class have a mass of `level` or more. For the comparison with a row left out, the
    probability comes from the model of the fold that left this row out or, for ordered
    eras, from the model of all rows. A set is empty if no class is as probable as true
    classes mostly are.""",
        task="classifier with `predict_proba`", folds=_FOLDS, more=_AXES,
        attributes=_SCORES,
        rest=f"""{_NOTES}
    >>> y = X[:, 0] + rng.logistic(size=600) > 0
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_era.calibration import EraConformalClassifier
    >>> model = EraConformalClassifier(LogisticRegression(), era_order="unordered")
    >>> model.fit(X, y, eras=shops).predict_set([[-3.0], [0.0]])
    array([[ True, False],
           [ True,  True]])
    """,
    )  # fmt: skip
    estimator: Any = model_with("predict_proba")
    _if_too_few = "sets have all classes"
    score = score
    predict_proba = prediction("predict_proba", "the probabilities of classes")

    def _score_rows(self, y: Any, found: Any) -> Array:
        return 1 - found[np.arange(y.size), np.searchsorted(self.classes_, y)]

    @validate_params(_LEVELS, prefer_skip_nested_validation=True)
    def predict_set(
        self, X: Any, level: float = 0.9, *, share_of_eras: float | None = None,
        eras: Any = None,
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Return, for each row of new eras, a set of classes to cover the true class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        level, share_of_eras, eras :
            As in :meth:`EraConformalRegressor.predict_interval`.

        Returns
        -------
        sets : ndarray of shape (n_samples, n_classes), dtype=bool
            Whether a class is in the set. With too few eras, all are, with a warning.
        """
        p, atoms, mass, _ = self._ask_models(X, level, share_of_eras, eras)
        return _mass(atoms, 1 - p - _DIGITS, "left") < mass
