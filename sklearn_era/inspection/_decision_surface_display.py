"""What a model predicts over the plane of two of its features."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._response import _get_response_values
from sklearn.utils.validation import check_is_fitted

from sklearn_era._optional import import_optional
from sklearn_era.inspection._fixed_columns import hold_column
from sklearn_era.inspection._surface_grid import (
    axis_ranges,
    check_table,
    column_names,
    grid_tables,
    resolve_axes,
    resolve_fixed,
)

_RESPONSE_METHODS = ("auto", "predict", "predict_proba", "decision_function")


class DecisionSurfaceDisplay(DecisionBoundaryDisplay):
    """Prediction of a model over two of its features, whatever it does with others.

    scikit-learn's `DecisionBoundaryDisplay` draws models of two features. This one
    draws any model: features that are not on the axes are held at given values, or
    averaged over the rows of `X`, which makes the surface a partial dependence.

    Make it with `from_estimator`. Parameters, attributes and `plot` are those of
    `sklearn.inspection.DecisionBoundaryDisplay`.

    See Also
    --------
    sklearn.inspection.PartialDependenceDisplay : Partial dependence in contour lines.

    Examples
    --------
    >>> from sklearn_era.datasets import make_synthetic_memorization
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import DecisionSurfaceDisplay
    >>> data = make_synthetic_memorization(random_state=0)
    >>> model = HistGradientBoostingRegressor(max_iter=5)
    >>> model = model.fit(data.X_train, data.y_train)
    >>> shortcut = range(2, data.X_train.shape[1])
    >>> DecisionSurfaceDisplay.from_estimator(  # doctest: +SKIP
    ...     model, data.X_train, (0, 1), fixed={column: 0 for column in shortcut}
    ... )
    """

    def plot(
        self,
        plot_method: str = "contourf",
        ax: Any = None,
        xlabel: str | None = None,
        ylabel: str | None = None,
        **kwargs: Any,
    ) -> "DecisionSurfaceDisplay":
        """Draw the surface.

        Parameters
        ----------
        plot_method : {'contourf', 'contour', 'pcolormesh'}, default='contourf'
            The method of the axes that draws.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        xlabel, ylabel : str, default=None
            Labels to use in the place of the features' names.

        **kwargs : dict
            Passed to the method.

        Returns
        -------
        display : DecisionSurfaceDisplay
            This object, with `ax_`, `figure_` and `surface_`.

        Raises
        ------
        MissingPackageError
            If matplotlib is not installed.
        """
        import_optional("matplotlib", extra="plot")
        return super().plot(
            plot_method=plot_method, ax=ax, xlabel=xlabel, ylabel=ylabel, **kwargs
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        features: Sequence[int | str],
        *,
        fixed: Mapping[int | str, Any] | None = None,
        limits: Sequence[Sequence[float]] | None = None,
        grid_resolution: int = 100,
        max_rows: int | None = 100,
        random_state: Any = None,
        response_method: str = "auto",
        class_of_interest: Any = None,
        plot_method: str = "contourf",
        multiclass_colors: Any = None,
        xlabel: str | None = None,
        ylabel: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "DecisionSurfaceDisplay":
        """Compute and draw the surface of a fitted model.

        Parameters
        ----------
        estimator : object
            Any fitted regressor or classifier, or a pipeline that ends in one.

        X : {array-like, data frame} of shape (n_samples, n_features)
            Rows to average over, which also tell the range of the axes.

        features : pair of int or str
            The columns of the horizontal and the vertical axis, numbers both.

        fixed : mapping of int or str to value, default=None
            Columns of other features, and the value to hold each at: a number, a
            category that the model knows, or None for a missing value. Features that
            are neither here nor on the axes are averaged over.

        limits : pair of (float, float), default=None
            Range of either axis, in units of the feature. None takes that of `X`, and
            a twentieth more at both ends.

        grid_resolution : int, default=100
            Points along either axis, at least 2.

        max_rows : int or None, default=100
            How many rows of `X` to average over; if `X` has more, as many are drawn at
            random. None takes all. Time grows with rows times grid points.

        random_state : int, RandomState instance or None, default=None
            Seed of that draw.

        response_method : {'auto', 'predict', 'predict_proba', 'decision_function'}, \
                default='auto'
            What to draw. 'auto' is ``predict`` for regressors, and ``predict_proba``
            or else ``decision_function`` for classifiers, whose classes, 'predict',
            cannot be averaged and so need all other features in `fixed`.

        class_of_interest : label, default=None
            The class whose response to draw. None is the second one of two; of more
            classes, it draws at each point the one with the largest response. Not with
            ``response_method='predict'``.

        plot_method : {'contourf', 'contour', 'pcolormesh'}, default='contourf'
            The method of the axes that draws.

        multiclass_colors : str or list of colors, default=None
            Colours of the classes, if there are more than two.

        xlabel, ylabel : str, default=None
            Labels of the axes; None takes the features' names.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        **kwargs : dict
            Passed to the method.

        Returns
        -------
        display : DecisionSurfaceDisplay

        Raises
        ------
        ValueError
            If an argument names no column of `X`, an axis is not of numbers, a column
            cannot have the value that `fixed` has for it, or a parameter is out of its
            range.
        MissingPackageError
            If matplotlib is not installed.
        """
        import_optional("matplotlib", extra="plot")
        check_is_fitted(estimator)
        if not (is_classifier(estimator) or is_regressor(estimator)):
            raise ValueError(
                f"estimator must be a regressor or a classifier; got {estimator!r}."
            )
        _check_at_least("grid_resolution", grid_resolution, 2)
        if max_rows is not None:
            _check_at_least("max_rows", max_rows, 1)
        X = check_table(X)
        names = column_names(estimator, X)
        columns = resolve_axes(features, names)
        fixed_columns = resolve_fixed(fixed, columns, names)
        methods = _response_methods(estimator, response_method)
        if methods == ["predict"] and is_classifier(estimator):
            free = len(names) - 2 - len(fixed_columns)
            if free:
                raise ValueError(
                    "response_method='predict' gives classes, which cannot be averaged "
                    f"over the {free} feature(s) that are not in fixed: hold them at "
                    "values, or use 'predict_proba'."
                )
        _check_class(estimator, class_of_interest, methods)

        ranges = axis_ranges(estimator, X, columns, names, limits)
        xx0, xx1 = np.meshgrid(*(np.linspace(*r, grid_resolution) for r in ranges))
        if len(fixed_columns) == len(names) - 2:
            rows = np.array([0])  # All of them are the same.
        elif max_rows is None or max_rows >= X.shape[0]:
            rows = np.arange(X.shape[0])
        else:
            rng = check_random_state(random_state)
            rows = rng.choice(X.shape[0], max_rows, replace=False)
        X = _safe_indexing(X, rows)
        for column, value in fixed_columns.items():
            X = hold_column(estimator, X, column, value, names)

        response = np.zeros(1)
        # Row by row, with all points of the grid at once, where scikit-learn's
        # `partial_dependence` goes point by point: same result, a call a row.
        for table in grid_tables(X, columns, (xx0.ravel(), xx1.ravel()), names):
            values = _get_response_values(
                estimator, table, methods, pos_label=class_of_interest
            )[0]
            if methods == ["predict"] and is_classifier(estimator):
                values = np.searchsorted(estimator.classes_, values)
            response = response + values / X.shape[0]
        n_classes = 2
        if response.ndim == 2 and class_of_interest is not None:
            response = response[:, list(estimator.classes_).index(class_of_interest)]
        elif is_classifier(estimator):
            n_classes = len(estimator.classes_)
        display = cls(
            xx0=xx0,
            xx1=xx1,
            n_classes=n_classes,
            response=response.reshape(*xx0.shape, *response.shape[1:]),
            multiclass_colors=multiclass_colors,
            xlabel=str(names[columns[0]]) if xlabel is None else xlabel,
            ylabel=str(names[columns[1]]) if ylabel is None else ylabel,
        )
        return display.plot(ax=ax, plot_method=plot_method, **kwargs)


def _check_at_least(name: str, value: Any, minimum: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(
            f"{name} must be an integer of at least {minimum}; got {value!r}."
        )


def _response_methods(estimator: Any, response_method: str) -> list[str]:
    if response_method not in _RESPONSE_METHODS:
        raise ValueError(
            f"response_method must be one of {', '.join(_RESPONSE_METHODS)}; got "
            f"{response_method!r}."
        )
    if is_regressor(estimator):
        if response_method not in ("auto", "predict"):
            raise ValueError(
                f"response_method={response_method!r} is for classifiers; of a "
                "regressor, use 'auto' or 'predict'."
            )
        return ["predict"]
    if response_method == "auto":
        return ["predict_proba", "decision_function"]
    return [response_method]


def _check_class(estimator: Any, class_of_interest: Any, methods: list[str]) -> None:
    if class_of_interest is None:
        return
    if not is_classifier(estimator):
        raise ValueError(
            f"class_of_interest={class_of_interest!r} is for classifiers; leave it out."
        )
    if methods == ["predict"]:
        raise ValueError(
            f"class_of_interest={class_of_interest!r} has no effect with "
            "response_method='predict', which draws the class of each point. Leave it "
            "out, or use 'predict_proba' or 'decision_function'."
        )
    if class_of_interest not in estimator.classes_:
        raise ValueError(
            f"class_of_interest={class_of_interest!r} is not a class of the model, "
            f"which knows {estimator.classes_.tolist()}."
        )
