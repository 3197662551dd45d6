"""Draw effects and Shapley values of features by era as heat maps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._era_labels import label_texts
from .._plotting import axes_or_new, label_eras

_FIELDS = ("effects", "p_value", "turns", "feature_names", "era_labels")
_LABELS = {
    "mean_abs": "mean |SHAP value|", "mean": "mean SHAP value",
    "std": "standard deviation of SHAP values",
}  # fmt: skip


class _HeatMap:
    def _draw(
        self, ax: Any, found: Any, cells: Any, rank: Any, n: int, label: str, style: Any
    ) -> NDArray[np.intp]:
        """Draw a heat map of the n features of lowest `rank`; return their indices."""
        if n < 1:
            raise ValueError(f"max_features must be 1 or more; got {n!r}.")
        ax = axes_or_new(ax)
        order = np.argsort(rank, kind="stable")[:n]
        cells = np.asarray(cells)[:, order].T
        sizes = np.abs(cells[np.isfinite(cells)])
        # A single era does not set the colors.
        largest = np.quantile(sizes, [0.9, 1.0]) if sizes.size else np.ones(1)
        largest = next(iter(largest[largest > 0]), 1.0)
        colors = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
        self.image_ = ax.imshow(cells, **({"aspect": "auto"} | colors | style))
        extend = "both" if self.image_.norm.vmin < 0 else "max"
        ax.figure.colorbar(self.image_, ax=ax, label=label, extend=extend)
        names = np.asarray(found["feature_names"])[order]
        ax.set_yticks(range(len(names)), [*map(str, names)], parse_math=False)
        label_eras(ax, label_texts(np.asarray(found["era_labels"])))
        self.ax_, self.figure_ = ax, ax.figure
        return order


class EraStabilityDisplay(_HeatMap):
    """Sign and size of each feature's effect in each era, as a heat map.

    Parameters
    ----------
    stability : Bunch
        The result of :func:`era_stability`, with pandas objects or arrays.

    Attributes
    ----------
    image_, ax_, figure_ : matplotlib AxesImage, Axes and Figure
        The heat map, its axes and its figure.

    Raises
    ------
    ValueError
        If `stability` lacks a field.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.inspection import EraStabilityDisplay, era_stability
    >>> X, eras = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) // 60
    >>> result = era_stability(X, X[:, 0], eras=eras, price=False)
    >>> EraStabilityDisplay(result).plot()  # doctest: +SKIP
    """

    def __init__(self, stability: Any) -> None:
        if missing := [name for name in _FIELDS if name not in stability]:
            raise ValueError(
                f"stability has no field {', '.join(missing)}; pass what era_stability "
                "returned."
            )
        self.stability = stability

    def plot(
        self, ax: Any = None, *, max_features: int = 30, **kwargs: Any
    ) -> "EraStabilityDisplay":
        """Draw a heat map of the features' effects by era, sorted by p-value.

        Bold names mark features whose effect changes its sign between eras, for which
        `turns` of :func:`era_stability` is True. The color scale ends at the 90%
        quantile of the absolute effects drawn.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        max_features : int, default=30
            The most features to draw, those with the smallest p-values.
        **kwargs : dict
            Passed to the ``imshow`` of the axes.

        Returns
        -------
        display : EraStabilityDisplay
            This object.

        Raises
        ------
        ValueError, MissingPackageError
            If `max_features` is less than 1, or matplotlib is not installed.
        """
        found, label = self.stability, "effect; negative: reversed"
        order = self._draw(
            ax, found, found["effects"], found["p_value"], max_features, label, kwargs
        )
        turns = np.asarray(found["turns"])[order]
        for text, is_turning in zip(self.ax_.get_yticklabels(), turns, strict=True):
            text.set_fontweight("bold" if is_turning else "normal")
        return self


class EraShapDisplay(_HeatMap):
    """Shapley values of each feature in each era, as a heat map.

    Parameters
    ----------
    summary : Bunch
        The result of the method ``by_era`` of `ShapValues`.

    Attributes
    ----------
    image_, ax_, figure_ : matplotlib AxesImage, Axes and Figure
        The heat map, its axes and its figure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import EraShapDisplay, shap_values
    >>> X, eras = np.arange(200.0)[:, np.newaxis], np.arange(200) % 4
    >>> model = HistGradientBoostingRegressor(max_iter=1).fit(X, X[:, 0])
    >>> EraShapDisplay(shap_values(model, X).by_era(eras)).plot()  # doctest: +SKIP
    """

    def __init__(self, summary: Any) -> None:
        self.summary = summary

    def plot(
        self, ax: Any = None, *, field: str = "mean_abs", output: int | None = None,
        max_features: int = 30, **kwargs: Any,
    ) -> "EraShapDisplay":  # fmt: skip
        """Draw features by their mean absolute Shapley value, the largest first.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        field : {'mean_abs', 'mean', 'std'}, default='mean_abs'
            The field of `summary` to draw.
        output : int, default=None
            The index of the class to draw, from 0, if there are more than two classes.
        max_features, **kwargs :
            As in `EraStabilityDisplay`.

        Returns
        -------
        display : EraShapDisplay
            This object.

        Raises
        ------
        ValueError, MissingPackageError
            If `field` is unknown, `output` is missing or is no index of a class,
            `max_features` is less than 1, or matplotlib is not installed.
        """
        if field not in _LABELS:
            raise ValueError(
                f"field must be one of {', '.join(map(repr, _LABELS))}; got {field!r}."
            )
        found, label = self.summary, _LABELS[field]
        size, cells, names = found.mean_abs, found[field], found.output_names
        if names is None and output is not None:
            raise ValueError(f"output={output!r}: there is one alone; leave it out.")
        if names is not None:
            if output not in range(len(names)):
                raise ValueError(
                    f"output must be the number of one of the classes {names}, from 0; "
                    f"got {output!r}."
                )
            size, cells = size[..., output], cells[..., output]
            label += f", class {names[output]}"
        style = {} if field == "mean" else {"cmap": "Blues", "vmin": 0.0}
        rank = -size.mean(axis=0)
        self._draw(ax, found, cells, rank, max_features, label, style | kwargs)
        return self
