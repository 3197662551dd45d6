"""The effects of features by era, drawn."""

from typing import Any

import numpy as np

from sklearn_era._eras import label_texts
from sklearn_era._plotting import axes_or_new, label_places

_FIELDS = ("effects", "p_value", "turns", "feature_names", "era_labels")


class EraStabilityDisplay:
    """Sign and size of each feature's effect in each era, as a heat map.

    Parameters
    ----------
    stability : Bunch
        The result of :func:`era_stability`, with frames or without.

    Attributes
    ----------
    image_, ax_, figure_ : matplotlib AxesImage, Axes and Figure
        The heat map, and where it is.

    Raises
    ------
    ValueError
        If a field is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.inspection import EraStabilityDisplay, era_stability
    >>> rng = np.random.default_rng(0)
    >>> X, eras = rng.normal(size=(300, 2)), np.repeat(np.arange(5), 60)
    >>> result = era_stability(X, X[:, 0], eras=eras, price=False)
    >>> EraStabilityDisplay(result).plot()  # doctest: +SKIP
    """

    image_: Any
    ax_: Any
    figure_: Any

    def __init__(self, stability: Any) -> None:
        missing = [name for name in _FIELDS if name not in stability]
        if missing:
            raise ValueError(
                f"stability has no field {', '.join(missing)}; pass what era_stability "
                "returned."
            )
        self.stability = stability

    def plot(
        self, ax: Any = None, *, max_features: int = 30, **kwargs: Any
    ) -> "EraStabilityDisplay":
        """Draw the features by their p-values, those that turn in bold.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        max_features : int, default=30
            How many features to draw at most, those of the smallest p-values.
        **kwargs : dict
            Passed to the ``imshow`` of the axes.

        Returns
        -------
        display : EraStabilityDisplay
            This object.

        Raises
        ------
        ValueError
            If `max_features` is less than 1.
        MissingPackageError
            If matplotlib is not installed.
        """
        if max_features < 1:
            raise ValueError(f"max_features must be 1 or more; got {max_features!r}.")
        self.ax_ = ax = axes_or_new(ax)
        effects, p_value, turns, names, eras = (
            np.asarray(self.stability[name]) for name in _FIELDS
        )
        order = np.argsort(p_value, kind="stable")[:max_features]
        cells = effects[:, order].T
        largest = np.max(np.abs(cells), initial=0, where=np.isfinite(cells)) or 1.0
        style = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest, "aspect": "auto"}
        self.figure_, self.image_ = ax.figure, ax.imshow(cells, **(style | kwargs))
        self.figure_.colorbar(self.image_, ax=ax, label="effect; negative: reversed")
        ax.set_yticks(range(order.size), [str(name) for name in names[order]])
        for text, is_turning in zip(ax.get_yticklabels(), turns[order], strict=True):
            text.set_fontweight("bold" if is_turning else "normal")
        texts = label_texts(eras)
        step, text_style = label_places(ax, texts)
        ax.set_xticks(np.arange(eras.size)[::step], texts[::step], **text_style)
        ax.set_xlabel("era")
        return self
