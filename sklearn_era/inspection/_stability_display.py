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
        ax = axes_or_new(ax)
        effects, p_value, turns, names, eras = (
            np.asarray(self.stability[name]) for name in _FIELDS
        )
        order = np.argsort(p_value, kind="stable")[:max_features]
        cells, label = effects[:, order].T, "effect; negative: reversed"
        self.image_ = draw_cells(ax, cells, names[order], eras, label, **kwargs)
        for text, is_turning in zip(ax.get_yticklabels(), turns[order], strict=True):
            text.set_fontweight("bold" if is_turning else "normal")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def draw_cells(
    ax: Any, cells: Any, names: Any, eras: Any, label: str, **kwargs: Any
) -> Any:
    """Draw features by eras as a heat map, of colours around 0; return the image."""
    largest = np.max(np.abs(cells), initial=0, where=np.isfinite(cells)) or 1.0
    style = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest, "aspect": "auto"}
    image = ax.imshow(cells, **(style | kwargs))
    ax.figure.colorbar(image, ax=ax, label=label)
    ax.set_yticks(range(len(names)), [str(name) for name in names])
    texts = label_texts(eras)
    step, text_style = label_places(ax, texts)
    ax.set_xticks(np.arange(len(texts))[::step], texts[::step], **text_style)
    ax.set_xlabel("era")
    return image
