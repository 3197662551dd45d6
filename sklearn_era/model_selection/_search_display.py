"""Draw the candidates of a search by eras."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._plotting import BLUE, GRAY, ORANGE, axes_or_new, label_rows
from .._typing import Axes


class EraSearchDisplay:
    """Differences of a search's candidates to the plain model, with their errors.

    The plain model is a search's first candidate, with which the search compares all
    other candidates. Make the display with `from_search`, or from known differences.

    Parameters
    ----------
    means, errors : array-like of shape (n_candidates,), dtype=float
        Mean difference of each candidate's scores to the plain model's scores, and the
        standard error of this mean.
    names : array-like of str of shape (n_candidates,)
        Names of the candidates.
    chosen : int or None, default=None
        Index of the candidate to mark.

    Attributes
    ----------
    errorbar_, ax_, figure_ : matplotlib ErrorbarContainer, Axes and Figure
        The means with two standard errors on both sides, the axes and the figure.

    Raises
    ------
    ValueError
        If the arrays differ in length, or are empty.

    Examples
    --------
    >>> from sklearn_era.model_selection import EraSearchDisplay
    >>> display = EraSearchDisplay(
    ...     means=[0.2, 0.0], errors=[0.06, 0.05], names=["a", "b"], chosen=0
    ... )
    >>> display.plot()  # doctest: +SKIP
    """

    errorbar_: Any
    ax_: Any
    figure_: Any

    def __init__(
        self, *, means: ArrayLike, errors: ArrayLike, names: ArrayLike,
        chosen: int | None = None,
    ) -> None:  # fmt: skip
        self.means = np.asarray(means, dtype=np.float64)
        self.errors = np.asarray(errors, dtype=np.float64)
        self.names: list[Any] = list(names)  # type: ignore[arg-type]
        self.chosen = chosen
        shapes = (self.means.shape, self.errors.shape)
        if shapes != ((len(self.names) or -1,),) * 2:
            raise ValueError(
                "means and errors must have a number for each of names, and one at "
                f"least; got the shapes {shapes[0]} and {shapes[1]} and "
                f"{len(self.names)} names."
            )

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> EraSearchDisplay:
        """Draw mean differences with two standard errors, the first candidate on top.

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
        label_rows(ax, self.names)
        ax.locator_params(axis="x", nbins=4)
        ax.set_xlabel("gain over the plain model, ± 2 s.e.")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_search(
        cls, search: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> EraSearchDisplay:
        """Draw the gains of a search's candidates over the first, the plain model.

        Parameters
        ----------
        search : EraSearchCV, AutoEraRegressor or AutoEraClassifier
            A fitted search, or a fitted average of models.
        ax, **kwargs :
            Passed to :meth:`plot`.

        Returns
        -------
        display : EraSearchDisplay

        Raises
        ------
        ValueError
            If there are no other candidates, or no plain model (``rule='best'``).
        """
        check_is_fitted(search)
        results = search.cv_results_
        chosen = getattr(search, "best_index_", len(search.era_scores_) - 1)
        if "weight" in results and results["weight"][0] == 1:
            chosen = 0  # the plain model
        if "mean_difference" not in results or len(results["mean_difference"]) == 1:
            raise ValueError(
                "search has no candidate beside the plain model to draw, or was made "
                "with rule='best', which compares none with it."
            )
        names = results.get("member")
        if names is None:
            names = [
                ", ".join(f"{name}={value!r}" for name, value in params.items())
                for params in results["params"]
            ]
        display = cls(
            means=results["mean_difference"][1:], errors=results["se_difference"][1:],
            names=names[1:], chosen=chosen - 1 if chosen > 0 else None,
        )  # fmt: skip
        return display.plot(ax, **kwargs)
