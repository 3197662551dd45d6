"""The support match of features, drawn."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_era._eras import label_texts
from sklearn_era._plotting import (
    BLUE,
    GRAY,
    ORANGE,
    axes_or_new,
    label_places,
)
from sklearn_era.inspection._support_match import support_match

_KINDS = ("bar", "heatmap")


class SupportMatchDisplay:
    """How far eras cover the same values: by feature, or by feature and era.

    Make it with `from_data`, or of what `support_match` returns.

    Parameters
    ----------
    by_era : array-like of shape (n_eras, n_features), dtype=float
        The share of each feature's bins that each era covers, in [0, 1].

    feature_names : array-like of shape (n_features,)
        Names of the features.

    era_labels : array-like of shape (n_eras,)
        Labels of the eras, in the order in which to draw them.

    Attributes
    ----------
    match : ndarray of shape (n_features,)
        The match of each feature: the mean over eras.

    mean : float
        The mean over features.

    bars_ : matplotlib BarContainer or None
        The bars; None for a heat map.

    mean_line_ : matplotlib Line2D or None
        The line at the mean; None for a heat map.

    image_ : matplotlib AxesImage or None
        The heat map; None for bars.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        Their figure.

    Raises
    ------
    ValueError
        If shapes do not agree, or there is nothing to draw.

    Examples
    --------
    >>> from sklearn_era.inspection import SupportMatchDisplay
    >>> display = SupportMatchDisplay(
    ...     by_era=[[1.0, 0.5], [0.8, 0.1]], feature_names=["a", "b"], era_labels=[1, 2]
    ... )
    >>> round(display.mean, 6)
    0.6
    >>> display.plot()  # doctest: +SKIP
    """

    bars_: Any
    mean_line_: Any
    image_: Any
    ax_: Any
    figure_: Any

    def __init__(
        self, *, by_era: ArrayLike, feature_names: ArrayLike, era_labels: ArrayLike
    ) -> None:
        self.by_era = np.asarray(by_era, dtype=np.float64)
        self.feature_names = np.asarray(feature_names, dtype=object)
        self.era_labels = np.asarray(era_labels)
        shape = (self.era_labels.size, self.feature_names.size)
        if self.by_era.shape != shape or 0 in shape:
            raise ValueError(
                "by_era must have a row an era and a column a feature, and one at "
                f"least of each; got the shape {self.by_era.shape} with {shape[0]} "
                f"era_labels and {shape[1]} feature_names."
            )
        self.match = self.by_era.mean(axis=0)
        self.mean = float(self.match.mean())

    def plot(
        self,
        ax: Any = None,
        *,
        kind: str = "bar",
        max_features: int = 30,
        **kwargs: Any,
    ) -> "SupportMatchDisplay":
        """Draw the features, those of the least match uppermost.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        kind : {'bar', 'heatmap'}, default='bar'
            A bar for the match of each feature, or a cell for each era and feature.

        max_features : int, default=30
            How many features to draw at most, those of the least match. The mean is
            that of all.

        **kwargs : dict
            Passed to the ``barh`` or ``imshow`` of the axes.

        Returns
        -------
        display : SupportMatchDisplay
            This object.

        Raises
        ------
        ValueError
            If `kind` is another one, or `max_features` is less than 1.
        MissingPackageError
            If matplotlib is not installed.
        """
        if kind not in _KINDS:
            raise ValueError(f"kind must be 'bar' or 'heatmap'; got {kind!r}.")
        if max_features < 1:
            raise ValueError(f"max_features must be 1 or more; got {max_features!r}.")
        ax = axes_or_new(ax)
        features = np.argsort(self.match, kind="stable")[:max_features]
        places = np.arange(features.size)
        names = [str(self.feature_names[j]) for j in features]
        self.bars_ = self.mean_line_ = self.image_ = None
        if kind == "bar":
            style = {"color": BLUE} | kwargs
            self.bars_ = ax.barh(places, self.match[features], **style)
            ax.set_ylim(features.size - 0.5, -0.5)
            self.mean_line_ = ax.axvline(
                self.mean,
                color=ORANGE,
                linestyle="--",
                label=f"mean of {self.match.size} features: {self.mean:.3g}",
            )
            ax.set_xlim(0, 1)
            ax.set_xlabel("support match")
            ax.legend()
        else:
            style = {"vmin": 0, "vmax": 1, "aspect": "auto", "cmap": "viridis"}
            self.image_ = ax.imshow(self.by_era[:, features].T, **(style | kwargs))
            ax.figure.colorbar(self.image_, ax=ax, label="share of bins covered")
            texts = label_texts(self.era_labels)
            step, text_style = label_places(ax, texts)
            eras = np.arange(len(texts))
            ax.set_xticks(eras[::step], texts[::step], **text_style)
            ax.set_xlabel("era")
        ax.set_yticks(places, names)
        if features.size < self.match.size:
            ax.set_title(
                f"the {features.size} features of least match, of {self.match.size}",
                color=GRAY,
            )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_data(
        cls,
        X: Any,
        *,
        eras: Any,
        categorical_features: Any = "from_dtype",
        n_bins: int = 10,
        min_samples: int = 1,
        ax: Any = None,
        kind: str = "bar",
        max_features: int = 30,
        **kwargs: Any,
    ) -> "SupportMatchDisplay":
        """Measure the support match, and draw it.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The rows.

        eras : array-like of shape (n_samples,)
            Era of each row.

        categorical_features : 'from_dtype', None or array-like of {bool, int, str}, \
default='from_dtype'
            Which features are categorical, as `support_match` takes it.

        n_bins : int, default=10
            Number of quantile bins of a numeric feature.

        min_samples : int, default=1
            Rows that an era needs in a bin to cover it.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        kind : {'bar', 'heatmap'}, default='bar'
            What to draw.

        max_features : int, default=30
            How many features to draw at most.

        **kwargs : dict
            Passed to the ``barh`` or ``imshow`` of the axes.

        Returns
        -------
        display : SupportMatchDisplay

        Raises
        ------
        ValueError
            As `support_match` and `plot`.
        """
        result = support_match(
            X,
            eras=eras,
            categorical_features=categorical_features,
            n_bins=n_bins,
            min_samples=min_samples,
        )
        display = cls(
            by_era=result.by_era,
            feature_names=result.feature_names,
            era_labels=result.era_labels,
        )
        return display.plot(ax, kind=kind, max_features=max_features, **kwargs)
