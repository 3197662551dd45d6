"""How far eras agree on the splits of a model, drawn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._plotting import BLUE, ORANGE, axes_or_new
from sklearn_era.inspection._split_statistics import split_statistics

_X_LABELS = {
    "depth": "depth of the split",
    "gain_share": "share of the model's gain",
}
_LARGEST_AREA = 900.0  # in square points, of the largest bubble
_SMALLEST_AREA = 4.0


class SplitAgreementDisplay:
    """Direction agreement of a model's splits, by depth or by share of the gain.

    By depth, the area of a bubble is the share of the model's gain which the splits of
    that depth and agreement have, and a line runs through the mean agreement of each
    depth, weighted by gain. A model that trusts what eras disagree about has large
    bubbles low in the figure.

    Make it with `from_estimator`, or with `from_statistics` of the table that
    `split_statistics` returns.

    Parameters
    ----------
    depth : ndarray of shape (n_splits,), dtype=int
        Depth of each split; 0 is the root's.

    gain : ndarray of shape (n_splits,), dtype=float
        Its gain over all rows. Negative ones, which `l2_regularization` can make, count
        as 0.

    direction_agreement : ndarray of shape (n_splits,), dtype=float
        Its direction agreement, in [0, 1].

    Attributes
    ----------
    gain_share : ndarray of shape (n_splits,)
        Share of each split in the sum of gains.

    points_ : matplotlib PathCollection
        The bubbles or dots.

    mean_line_ : matplotlib Line2D or None
        The mean agreement by depth; None by share of the gain.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        Their figure.

    Raises
    ------
    ValueError
        If there is no split, none of them has a gain, or lengths differ.

    Examples
    --------
    >>> from sklearn_era.datasets import make_synthetic_memorization
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import SplitAgreementDisplay
    >>> data = make_synthetic_memorization(random_state=0)
    >>> model = HistGradientBoostingRegressor(max_iter=5)
    >>> model = model.fit(data.X_train, data.y_train)
    >>> SplitAgreementDisplay.from_estimator(  # doctest: +SKIP
    ...     model, data.X_train, data.y_train, eras=data.eras_train
    ... )
    """

    points_: Any
    mean_line_: Any
    ax_: Any
    figure_: Any

    def __init__(
        self,
        *,
        depth: NDArray[Any],
        gain: NDArray[Any],
        direction_agreement: NDArray[Any],
    ) -> None:
        self.depth = np.asarray(depth)
        self.gain = np.asarray(gain)
        self.direction_agreement = np.asarray(direction_agreement)
        if not self.depth.shape == self.gain.shape == self.direction_agreement.shape:
            raise ValueError(
                "depth, gain and direction_agreement must have one value a split each; "
                f"got the shapes {self.depth.shape}, {self.gain.shape} and "
                f"{self.direction_agreement.shape}."
            )
        if self.gain.size == 0:
            raise ValueError("The model has no split, and there is nothing to draw.")
        positive = np.maximum(self.gain, 0.0)
        if not positive.sum() > 0:
            raise ValueError(
                "gain: no split has a gain on these rows, so that there are no shares "
                "of it to draw; pass rows that reach both sides of the splits."
            )
        self.gain_share = positive / positive.sum()

    def plot(
        self, ax: Any = None, *, x: str = "depth", **kwargs: Any
    ) -> "SplitAgreementDisplay":
        """Draw the splits.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        x : {'depth', 'gain_share'}, default='depth'
            The horizontal axis. The share of the gain is on a logarithmic scale; where
            some splits have none, it is linear below the smallest positive share.

        **kwargs : dict
            Passed to the ``scatter`` of the axes.

        Returns
        -------
        display : SplitAgreementDisplay
            This object.

        Raises
        ------
        ValueError
            If `x` is another one.
        MissingPackageError
            If matplotlib is not installed.
        """
        if x not in _X_LABELS:
            raise ValueError(f"x must be 'depth' or 'gain_share'; got {x!r}.")
        ax = axes_or_new(ax)
        self.mean_line_ = None
        if x == "depth":
            self._plot_by_depth(ax, kwargs)
        else:
            style = {"s": 12, "color": BLUE, "alpha": 0.5, "linewidth": 0} | kwargs
            self.points_ = ax.scatter(
                self.gain_share, self.direction_agreement, **style
            )
            if np.all(self.gain_share > 0):
                ax.set_xscale("log")
            else:
                smallest = self.gain_share[self.gain_share > 0].min()
                ax.set_xscale("symlog", linthresh=smallest)
        ax.set_xlabel(_X_LABELS[x])
        ax.set_ylabel("direction agreement of eras")
        ax.set_ylim(-0.1, 1.1)  # room for bubbles at 0 and 1
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_by_depth(self, ax: Any, kwargs: dict[str, Any]) -> None:
        # Only some n_eras / 2 agreements exist, so that points would hide each other.
        places, place_of_split = np.unique(
            np.stack([self.depth, self.direction_agreement]),
            axis=1,
            return_inverse=True,
        )
        shares = np.bincount(place_of_split.ravel(), self.gain_share)
        areas = np.maximum(_LARGEST_AREA * shares / shares.max(), _SMALLEST_AREA)
        style = {"s": areas, "color": BLUE, "alpha": 0.6, "linewidth": 0} | kwargs
        self.points_ = ax.scatter(places[0], places[1], **style)

        depths, depth_of_split = np.unique(self.depth, return_inverse=True)
        share = np.bincount(depth_of_split, self.gain_share)
        weighted = np.bincount(
            depth_of_split, self.gain_share * self.direction_agreement
        )
        has_gain = share > 0
        (self.mean_line_,) = ax.plot(
            depths[has_gain],
            weighted[has_gain] / share[has_gain],
            color=ORANGE,
            marker=".",
            label="mean, weighted by gain",
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend()

    @classmethod
    def from_statistics(
        cls, statistics: Any, *, ax: Any = None, x: str = "depth", **kwargs: Any
    ) -> "SplitAgreementDisplay":
        """Draw a table of splits.

        Parameters
        ----------
        statistics : Bunch or DataFrame
            What `split_statistics` returned; or some of its rows.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        x : {'depth', 'gain_share'}, default='depth'
            The horizontal axis.

        **kwargs : dict
            Passed to the ``scatter`` of the axes.

        Returns
        -------
        display : SplitAgreementDisplay

        Raises
        ------
        ValueError
            If a column is missing, and as the class and `plot`.
        """
        needed = ("depth", "gain", "direction_agreement")
        missing = [name for name in needed if name not in statistics]
        if missing:
            raise ValueError(
                f"statistics has no column {', '.join(missing)}; pass what "
                "split_statistics returned."
            )
        display = cls(**{name: np.asarray(statistics[name]) for name in needed})
        return display.plot(ax, x=x, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        eras: Any,
        sample_weight: Any = None,
        min_samples_per_era: int | None = None,
        ax: Any = None,
        x: str = "depth",
        **kwargs: Any,
    ) -> "SplitAgreementDisplay":
        """Draw the splits of a fitted model.

        Parameters
        ----------
        estimator : HistGradientBoostingRegressor, HistGradientBoostingClassifier, \
                EraForestRegressor or EraForestClassifier
            A fitted model; a booster may be scikit-learn's.

        X : array-like of shape (n_samples, n_features)
            The rows: those of the fit or others.

        y : array-like of shape (n_samples,)
            Their targets.

        eras : array-like of shape (n_samples,)
            Era of each row.

        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        min_samples_per_era : int, default=None
            Rows that an era needs on both sides of a split to have a direction; None
            takes the estimator's own, and 1 if it has none.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        x : {'depth', 'gain_share'}, default='depth'
            The horizontal axis.

        **kwargs : dict
            Passed to the ``scatter`` of the axes.

        Returns
        -------
        display : SplitAgreementDisplay

        Raises
        ------
        ValueError
            As `split_statistics`, the class and `plot`.
        """
        statistics = split_statistics(
            estimator,
            X,
            y,
            eras=eras,
            sample_weight=sample_weight,
            min_samples_per_era=min_samples_per_era,
        )
        return cls.from_statistics(statistics, ax=ax, x=x, **kwargs)
