"""The candidates of a search by eras, drawn."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_era._plotting import BLUE, GRAY, ORANGE, axes_or_new
from sklearn_era.model_selection._search_candidates import mean_and_error, text_of


class EraSearchDisplay:
    """Differences of a search's candidates to the plain model, with their errors.

    Make it with `from_search`, or of differences that are at hand.

    Parameters
    ----------
    differences : array-like of shape (n_candidates, n_eras), dtype=float
        Score of each candidate in each era less that of the plain model; NaN where one
        is not defined.

    names : array-like of str of shape (n_candidates,)
        What to call the candidates.

    chosen : int or None, default=None
        Index of the candidate to mark.

    Attributes
    ----------
    means : ndarray of shape (n_candidates,), dtype=float64
        Mean differences over eras.

    errors : ndarray of shape (n_candidates,), dtype=float64
        Their standard errors.

    errorbar_ : matplotlib ErrorbarContainer
        The means, and two standard errors on both sides.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        Their figure.

    Raises
    ------
    ValueError
        If the arrays differ in length, or are empty.

    Examples
    --------
    >>> from sklearn_era.model_selection import EraSearchDisplay
    >>> display = EraSearchDisplay(
    ...     differences=[[0.1, 0.2, 0.3], [-0.1, 0.1, 0.0]], names=["a", "b"], chosen=0
    ... )
    >>> display.means.round(6).tolist()
    [0.2, 0.0]
    >>> display.plot()  # doctest: +SKIP
    """

    errorbar_: Any
    ax_: Any
    figure_: Any

    def __init__(
        self, *, differences: ArrayLike, names: ArrayLike, chosen: int | None = None
    ) -> None:
        self.differences = np.asarray(differences, dtype=np.float64)
        self.names = list(names)  # type: ignore[arg-type]
        self.chosen = chosen
        if self.differences.ndim != 2 or self.differences.shape[:1] != (
            len(self.names) or -1,
        ):
            raise ValueError(
                "differences must have a row for each of names, and one at least; got "
                f"the shape {self.differences.shape} and {len(self.names)} names."
            )
        self.means, self.errors = mean_and_error(self.differences)

    def plot(self, ax: Any = None, **kwargs: Any) -> "EraSearchDisplay":
        """Draw the mean differences, and two standard errors, the first on top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        **kwargs : dict
            Passed to the ``errorbar`` of the axes.

        Returns
        -------
        display : EraSearchDisplay
            This object.

        Raises
        ------
        MissingPackageError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        places = np.arange(len(self.names))
        style: dict[str, Any] = {"fmt": "o", "color": BLUE}
        self.errorbar_ = ax.errorbar(
            self.means, places, xerr=2 * np.nan_to_num(self.errors), **(style | kwargs)
        )
        if self.chosen is not None:
            ax.plot(self.means[self.chosen], self.chosen, "o", color=ORANGE, zorder=3)
        ax.axvline(0, color=GRAY, linewidth=1)
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set_xlabel("score less that of the plain model, ± 2 standard errors")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_search(
        cls, search: Any, *, ax: Any = None, **kwargs: Any
    ) -> "EraSearchDisplay":
        """Draw the candidates of a search, all but the plain model.

        Parameters
        ----------
        search : EraSearchCV, AutoEraRegressor or AutoEraClassifier
            A search that is fitted.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        **kwargs : dict
            Passed to the ``errorbar`` of the axes.

        Returns
        -------
        display : EraSearchDisplay

        Raises
        ------
        ValueError
            If the plain model is the only candidate.
        """
        check_is_fitted(search)
        params = search.cv_results_["params"][1:]
        if len(params) == 0:
            raise ValueError("search has no candidate beside the plain model to draw.")
        display = cls(
            differences=search.era_scores_[1:] - search.era_scores_[0],
            names=[
                f"average of {len(one)}" if isinstance(one, list) else text_of(one)
                for one in params
            ],
            chosen=search.best_index_ - 1 if search.best_index_ > 0 else None,
        )
        return display.plot(ax, **kwargs)


__all__ = ["EraSearchDisplay"]
