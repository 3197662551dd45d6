"""Shapley values of features by era, drawn."""

from typing import Any

import numpy as np

from sklearn_era._plotting import axes_or_new
from sklearn_era.inspection._stability_display import draw_cells

_LABELS = {
    "mean_abs": "mean |SHAP value|",
    "mean": "mean SHAP value",
    "std": "standard deviation of SHAP values",
}


class EraShapDisplay:
    """Shapley values of each feature in each era, as a heat map.

    Parameters
    ----------
    summary : Bunch
        What the method ``by_era`` of the result of `shap_values` returned.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The heat map.

    ax_, figure_ : matplotlib Axes and Figure
        Where it is.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import EraShapDisplay, shap_values
    >>> rng = np.random.default_rng(0)
    >>> X, eras = rng.normal(size=(300, 3)), np.repeat(np.arange(5), 60)
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    >>> summary = shap_values(model, X).by_era(eras)
    >>> EraShapDisplay(summary).plot()  # doctest: +SKIP
    """

    image_: Any
    ax_: Any
    figure_: Any

    def __init__(self, summary: Any) -> None:
        self.summary = summary

    def plot(
        self,
        ax: Any = None,
        *,
        field: str = "mean_abs",
        output: int | None = None,
        max_features: int = 30,
        **kwargs: Any,
    ) -> "EraShapDisplay":
        """Draw the features by their mean absolute values, the largest first.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        field : {'mean_abs', 'mean', 'std'}, default='mean_abs'
            Which numbers of the summary to draw.

        output : int, default=None
            The number of the class to draw, where there are more than two.

        max_features : int, default=30
            How many features to draw at most.

        **kwargs : dict
            Passed to the ``imshow`` of the axes.

        Returns
        -------
        display : EraShapDisplay
            This object.

        Raises
        ------
        ValueError
            If `field` is another one, `output` is missing or is none of the classes, or
            `max_features` is less than 1.
        MissingPackageError
            If matplotlib is not installed.
        """
        if field not in _LABELS:
            raise ValueError(
                f"field must be one of {', '.join(map(repr, _LABELS))}; got {field!r}."
            )
        if max_features < 1:
            raise ValueError(f"max_features must be 1 or more; got {max_features!r}.")
        size, cells = self.summary.mean_abs, self.summary[field]
        names = self.summary.output_names
        if names is not None and output not in range(len(names)):
            raise ValueError(
                f"output must be the number of one of the classes {names}, from 0; got "
                f"{output!r}."
            )
        if names is None and output is not None:
            raise ValueError(f"output={output!r}: there is one alone; leave it out.")
        if output is not None:
            size, cells = size[..., output], cells[..., output]
        order = np.argsort(-size.mean(axis=0), kind="stable")[:max_features]
        style = {} if field == "mean" else {"cmap": "Blues", "vmin": 0.0}
        ax = axes_or_new(ax)
        self.image_ = draw_cells(
            ax,
            cells[:, order].T,
            np.asarray(self.summary.feature_names)[order],
            self.summary.era_labels,
            _LABELS[field] + (f", class {names[output]}" if output is not None else ""),
            **(style | kwargs),
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self


__all__ = ["EraShapDisplay"]
