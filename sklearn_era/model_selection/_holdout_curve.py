"""Compute and draw scores in test eras against a parameter or the number of eras."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import ValidationCurveDisplay
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils._param_validation import StrOptions, validate_params
from sklearn.utils.parallel import Parallel, delayed

from .._era_arguments import refuse_places
from .._era_axes import with_order
from .._era_labels import find
from .._eras import EncodedEras, check_eras
from .._progress import Progress
from .._typing import Axes, Estimator, Scoring, Table
from ._out_of_era import check_rows, fit_arguments, fit_rows, folds_warned_once
from ._search_scores import EraMean, ScorerByEra, warn_of_undefined

Array = NDArray[Any]


@validate_params(
    {
        "test_eras": ["array-like"], "param_name": [str, None],
        "param_range": ["array-like", None], "scoring": [str, callable, None],
        "era_order": [StrOptions({"auto", "ordered", "unordered"})],
        "n_jobs": [Integral, None], "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=True,
)  # fmt: skip
def holdout_curve(
    estimator: BaseEstimator, X: Table, y: ArrayLike, *, eras: Any,
    test_eras: ArrayLike, param_name: str | None = None,
    param_range: ArrayLike | None = None, scoring: Scoring = None,
    era_order: str = "auto", n_jobs: int | None = None, verbose: int = 0,
) -> Bunch:  # fmt: skip
    """Score models in test eras: reverse learning curves, and curves of a parameter.

    Without `param_name`, models are trained on the latest k eras before the test, with
    k = 1, 2, ...: the *reverse learning curve* of [1]_, section 6.1.3, which falls
    where old eras mislead the model. With `param_name`, models with different values of
    this parameter are trained on all other eras. For example, ``min_samples_per_era``
    trades scores in training eras for scores in later eras (6.1.6, 6.1.7).

    Parameters
    ----------
    estimator : object
        Any estimator, which is cloned; its ``fit`` gets the eras if it takes eras.
    X, y : array-like of shape (n_samples, n_features) and (n_samples,)
        The rows, of training and of test, and their targets.
    eras : array-like of shape (n_samples,) or str
        Era of each row, or the name of the column of eras in a data frame.
    test_eras : array-like of shape (n_test_eras,)
        Labels of the eras to score, which must be the last eras for a reverse learning
        curve.
    param_name : str, default=None
        The parameter to vary; None varies the number of eras to train on.
    param_range : array-like of shape (n_points,), default=None
        Values of the parameter `param_name`. Without `param_name`, numbers of eras to
        train on; None means all numbers from 1 on.
    scoring : str, callable or None, default=None
        A scorer of the rows of one era at a time, as
        :func:`sklearn.metrics.check_scoring` takes it; None means ``estimator.score``.
    era_order, n_jobs :
        As in :class:`EraSearchCV`.
    verbose : int, default=0
        1 prints a line per fit with the time left, as in :class:`EraSearchCV`.

    Returns
    -------
    result : Bunch
        With `param_range`; `train_scores` of shape (n_points, 1), the means over
        training eras; `test_scores` of shape (n_points, n_test_eras), NaN where they
        are undefined; `test_eras`, sorted; and `oldest_eras` of shape (n_points,), the
        labels of the oldest training eras.

    Raises
    ------
    ValueError
        If `test_eras` are unknown, leave no era to train on, or are not the last eras
        for a reverse learning curve; if `param_name` is given but `param_range` is not;
        or if, without `param_name`, a value of `param_range` is not a number of eras.

    Warns
    -----
    UndefinedMetricWarning
        If the score is undefined in some eras; the message names them.

    References
    ----------
    .. [1] L. Moneda (2021), Domain Generalization, Invariance and the Time Robust
           Forest, master thesis, University of São Paulo.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_era.model_selection import holdout_curve
    >>> years, X = np.repeat(np.arange(2018, 2023), 9), np.tile(np.arange(9.0), 5)
    >>> y = np.where(years < 2020, -1, 1) * X  # an old regime, and a new one
    >>> curve = holdout_curve(Ridge(), X[:, None], y, eras=years, test_eras=[2022])
    >>> curve.oldest_eras.tolist(), curve.test_scores[:, 0].round(1).tolist()
    ([2021, 2020, 2019, 2018], [1.0, 1.0, -0.5, -2.4])
    """
    name = "holdout_curve"
    grid = None if param_name is None else {param_name: param_range}
    refuse_places(None, X, eras, grid)
    X, y, eras, encoded, are_ordered = check_rows(
        X, y, eras, era_order, name, estimator=estimator
    )
    labels = check_eras(test_eras, test_eras, name="test_eras", X_name="itself")
    test = np.unique(find(encoded.labels, labels, "test_eras"))
    train = np.setdiff1d(np.arange(encoded.labels.size), test)
    is_last = are_ordered and (train[:, np.newaxis] < test).all()
    if -1 in test or 0 in (test.size, train.size) or not (param_name or is_last):
        raise ValueError(
            f"test_eras={test_eras!r} must be labels that eras has, leave others to "
            "train on, and, without a param_name, be the last of ordered eras."
        )
    values: Any = [] if param_range is None else param_range
    values = [*values]
    order = "ordered" if are_ordered else "unordered"
    if param_name is None:
        sizes = np.arange(train.size) + 1
        values = sizes if param_range is None else np.asarray(values)
        is_known = np.isin(values, sizes).all()
        parts = [train[-int(k) :] for k in values] if is_known else []
        models = [with_order(estimator, order)] * len(parts)
    else:
        tried = [{param_name: clone(x, safe=False)} for x in values]
        models = [with_order(estimator, order, **x) for x in tried]
        parts = [train] * len(models)
    if not parts:
        raise ValueError(
            f"param_range={param_range!r} must be values of {param_name!r}, or, without"
            f" a param_name, numbers of eras from 1 to {train.size}."
        )
    scorer = check_scoring(estimator, scoring)
    scorer = ScorerByEra(scorer, encoded, of_number=True)
    params = [fit_arguments(model, eras, None) for model in models]
    texts = [f"{param_name or 'latest eras'}={x!s}" for x in values]
    once = folds_warned_once(n_jobs, "rows that some model is trained on")
    with once, Progress(name, verbose) as progress:
        progress.expect(len(models))
        fitted = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_fit_and_score)(model, X, y, encoded, given, scorer, part, test)
            for model, given, part in zip(models, params, parts, strict=True)
        )
        found = [*progress.of(fitted, texts)]
    seen, unseen = zip(*found, strict=True)
    warn_of_undefined([*seen, *unseen], encoded.labels, scoring)
    return Bunch(
        param_range=_as_array(values), train_scores=np.array(seen)[:, np.newaxis],
        test_scores=np.array([x.scores for x in unseen]),
        test_eras=encoded.labels[test], oldest_eras=encoded.labels[[*map(min, parts)]],
    )  # fmt: skip


def _as_array(values: Any) -> Array:
    """Return an array, of numbers if all values are numbers, or else of objects."""
    is_number = all(isinstance(x, Real) and not isinstance(x, bool) for x in values)
    return np.asarray(values) if is_number else np.fromiter(values, dtype=object)


def _fit_and_score(
    model: BaseEstimator, X: Any, y: Any, eras: EncodedEras, params: dict[str, Any],
    scorer: Any, train: Array, test: Array,
) -> list[EraMean]:  # fmt: skip
    """Fit a model to the eras `train`; return its scores in `train` and in `test`."""
    rows = [np.flatnonzero(np.isin(eras.codes, codes)) for codes in (train, test)]
    fitted = fit_rows(model, X, y, params, rows[0])
    return [
        scorer(fitted, _safe_indexing(X, i), y[i], era_codes=eras.codes[i])
        for i in rows
    ]


class HoldoutCurveDisplay(ValidationCurveDisplay):
    """The curve of :func:`holdout_curve`, as scikit-learn draws validation curves.

    The curve is the mean score over test eras (without eras whose score is NaN), with a
    band of one standard deviation above and below. Parameter values that are not
    numbers are spaced evenly on the x axis. Everything except `from_estimator` is as in
    :class:`~sklearn.model_selection.ValidationCurveDisplay`.

    Examples
    --------
    >>> from sklearn_era.model_selection import HoldoutCurveDisplay
    >>> HoldoutCurveDisplay.from_estimator(
    ...     model, X, y, eras=years, test_eras=[2022], score_type="test"
    ... )  # doctest: +SKIP
    """

    train_scores: Array
    test_scores: Array

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, X: Table, y: ArrayLike, *, ax: Axes | None = None,
        score_type: str = "both", **params: Any,
    ) -> HoldoutCurveDisplay:  # fmt: skip
        """Measure a curve and draw it.

        Parameters
        ----------
        estimator, X, y :
            As :func:`holdout_curve` takes them.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        score_type : {'train', 'test', 'both'}, default='both'
            Which scores to draw.
        **params :
            `eras`, `test_eras` and other arguments of :func:`holdout_curve`.

        Returns
        -------
        display : HoldoutCurveDisplay
        """
        curve = holdout_curve(estimator, X, y, **params)
        scoring = params.get("scoring")
        display = cls(
            param_name=params.get("param_name") or "latest eras trained on",
            param_range=curve.param_range, train_scores=curve.train_scores,
            test_scores=curve.test_scores,
            score_name=scoring if isinstance(scoring, str) else "score",
        )  # fmt: skip
        return display.plot(ax, score_type=score_type)

    def _plot_curve(self, x_data: Any, **options: Any) -> None:
        """Draw the curve, without scores that are NaN. Raise ValueError if test scores
        are drawn and all of them are NaN.
        """
        given = self.train_scores, self.test_scores
        if options.get("score_type") != "train" and np.isnan(given[1]).all():
            raise ValueError(
                f"scoring: {self.score_name} is undefined in all test eras; test eras "
                "with several classes, or pass a scoring that eras of one class have."
            )
        x = _as_array(x_data)
        are_numbers = x.dtype.kind != "O"
        try:
            self.train_scores, self.test_scores = map(np.ma.masked_invalid, given)
            super()._plot_curve(x if are_numbers else np.arange(x.size), **options)
        finally:
            self.train_scores, self.test_scores = given
        if not are_numbers:
            self.ax_.set_xticks(np.arange(x.size), [*map(str, x)])
