"""Draw how far eras agree on the splits of a model."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._plotting import BLUE, ORANGE, axes_or_new
from .._typing import Axes, Eras, Estimator, Table
from ._split_statistics import split_statistics

_FIELDS = ("depth", "gain", "direction_agreement")
_LARGEST_AREA = 900.0  # in square points, of the largest bubble
_SMALLEST_AREA = 4.0


class SplitAgreementDisplay:
    """Direction agreement of a model's splits, by depth.

    Each bubble is for the splits of one depth and agreement; the bubble's area is the
    splits' share of the model's gain. Eras disagree about the splits of bubbles low in
    the figure. A line runs through the mean agreement of each depth, weighted by gain.

    Parameters
    ----------
    statistics : Bunch or DataFrame
        The result of `split_statistics`, or some of its rows. Negative gains, which
        `l2_regularization` can make, count as 0.

    Attributes
    ----------
    gain_share : ndarray of shape (n_splits,)
        Share of each split in the sum of gains.
    points_, mean_line_, ax_, figure_ : matplotlib PathCollection, Line2D, Axes, Figure
        The bubbles, the line of the mean agreement, the axes and the figure.

    Raises
    ------
    ValueError
        If `statistics` lacks a column or has no split, or no split has a gain.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import SplitAgreementDisplay
    >>> X, eras = np.arange(200.0)[:, np.newaxis], np.arange(200) % 4
    >>> model = HistGradientBoostingRegressor(max_iter=1).fit(X, X[:, 0])
    >>> draw = SplitAgreementDisplay.from_estimator
    >>> draw(model, X, X[:, 0], eras=eras)  # doctest: +SKIP
    """

    def __init__(self, statistics: Any) -> None:
        if missing := [name for name in _FIELDS if name not in statistics]:
            raise ValueError(
                f"statistics has no column {', '.join(missing)}; pass what "
                "split_statistics returned."
            )
        self.statistics = statistics
        self.depth, gain, self.direction_agreement = (
            np.asarray(statistics[name]) for name in _FIELDS
        )
        if gain.size == 0:
            raise ValueError("The model has no split, and there is nothing to draw.")
        positive = np.maximum(gain, 0.0)
        if not positive.sum() > 0:
            raise ValueError(
                "gain: no split has a gain on these rows, so that there are no shares "
                "of it to draw; pass rows that reach both sides of the splits."
            )
        self.gain_share = positive / positive.sum()

    def plot(self, ax: Any = None, **kwargs: Any) -> "SplitAgreementDisplay":
        """Draw a bubble for the splits of each depth and agreement.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to the ``scatter`` of the axes.

        Returns
        -------
        display : SplitAgreementDisplay
            This object.

        Raises
        ------
        MissingPackageError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        # Only some n_eras / 2 agreements exist: points of one would hide each other.
        both = np.stack([self.depth, self.direction_agreement])
        places, place_of_split = np.unique(both, axis=1, return_inverse=True)
        shares = np.bincount(place_of_split.ravel(), self.gain_share)
        areas = np.maximum(_LARGEST_AREA * shares / shares.max(), _SMALLEST_AREA)
        style = {"s": areas, "color": BLUE, "alpha": 0.6, "linewidth": 0} | kwargs
        self.points_ = ax.scatter(*places, **style)
        share = np.bincount(self.depth, self.gain_share)
        sums = np.bincount(self.depth, self.gain_share * self.direction_agreement)
        depths = np.flatnonzero(share)
        style = {"color": ORANGE, "marker": ".", "label": "mean, weighted by gain"}
        (self.mean_line_,) = ax.plot(depths, sums[depths] / share[depths], **style)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend()
        ax.set_xlabel("depth of the split")
        ax.set_ylabel("direction agreement of eras")
        ax.set_ylim(-0.1, 1.1)  # room for bubbles at 0 and 1
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, X: Table, y: ArrayLike, *, eras: Eras,
        sample_weight: ArrayLike | None = None,
        min_samples_per_era: float | None = None, ax: Axes | None = None, **kwargs: Any,
    ) -> "SplitAgreementDisplay":  # fmt: skip
        """Draw the splits of a fitted model.

        Parameters
        ----------
        estimator, X, y, eras, sample_weight, min_samples_per_era :
            As `split_statistics` takes them.
        ax, **kwargs :
            As `plot` takes them.

        Returns
        -------
        display : SplitAgreementDisplay

        Raises
        ------
        ValueError
            As `split_statistics` and the class.
        """
        statistics = split_statistics(
            estimator, X, y, eras=eras, sample_weight=sample_weight,
            min_samples_per_era=min_samples_per_era,
        )  # fmt: skip
        return cls(statistics).plot(ax, **kwargs)
