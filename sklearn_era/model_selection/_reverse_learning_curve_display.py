"""A figure of the reverse learning curve."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._eras import label_texts
from .._plotting import BLUE, GRAY, axes_or_new, label_places
from ._reverse_learning_curve import reverse_learning_curve


class ReverseLearningCurveDisplay:
    """Score of models trained on ever older eras.

    Make it with `from_estimator`, or from the result of `reverse_learning_curve`.
    Curves of several models go into one figure by passing the `ax_` of the first to the
    others.

    Parameters
    ----------
    n_train_eras, scores, oldest_eras : array-like of shape (n_points,)
        As :func:`reverse_learning_curve` returns them.
    score_name : str, default='score'
        The name of the score in the figure.

    Attributes
    ----------
    line_, ax_, figure_ : matplotlib Line2D, Axes and Figure
        The curve, and where it is.

    Raises
    ------
    ValueError
        If the arrays differ in length, or are empty.

    Examples
    --------
    >>> from sklearn_era.model_selection import ReverseLearningCurveDisplay
    >>> display = ReverseLearningCurveDisplay(
    ...     n_train_eras=[1, 2], scores=[0.5, 0.6], oldest_eras=[2021, 2020]
    ... )
    >>> display.plot()  # doctest: +SKIP
    """

    line_: Any
    ax_: Any
    figure_: Any

    def __init__(
        self, *, n_train_eras: ArrayLike, scores: ArrayLike, oldest_eras: ArrayLike,
        score_name: str = "score",
    ) -> None:  # fmt: skip
        self.n_train_eras = np.asarray(n_train_eras)
        self.scores = np.asarray(scores, dtype=np.float64)
        self.oldest_eras = np.asarray(oldest_eras)
        self.score_name = score_name
        shapes = [x.shape for x in (self.n_train_eras, self.scores, self.oldest_eras)]
        if len(shapes[0]) != 1 or shapes[0] == (0,) or len(set(shapes)) > 1:
            raise ValueError(
                "n_train_eras, scores and oldest_eras must be one-dimensional, with "
                f"one value a point each, and one point at least; got the shapes "
                f"{shapes[0]}, {shapes[1]} and {shapes[2]}."
            )

    def plot(self, ax: Any = None, **kwargs: Any) -> "ReverseLearningCurveDisplay":
        """Draw the curve, the older the further to the right.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to the ``plot`` of the axes; `label` for the legend.

        Returns
        -------
        display : ReverseLearningCurveDisplay
            This object.

        Raises
        ------
        MissingPackageError
            If matplotlib is not installed.
        """
        is_first = ax is None or not ax.has_data()
        ax = axes_or_new(ax)
        style: dict[str, Any] = {"marker": "."}
        (self.line_,) = ax.plot(self.n_train_eras, self.scores, **(style | kwargs))
        if is_first and not {"color", "c"} & set(kwargs):
            # Not by `plot`, which would leave the first colour of matplotlib's cycle,
            # another blue, to the second curve.
            self.line_.set_color(BLUE)
        texts = label_texts(self.oldest_eras)
        step, text_style = label_places(ax, texts)
        ax.set_xticks(self.n_train_eras[::step], texts[::step], **text_style)
        ax.set_xlabel("oldest era of the training set")
        ax.set_ylabel(self.score_name)
        ax.grid(axis="y", color=GRAY, alpha=0.3)
        if "label" in kwargs:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, eras: Any,
        test_eras: ArrayLike | None = None, X_test: Any = None, y_test: Any = None,
        eras_test: Any = None, n_train_eras: ArrayLike | None = None,
        scoring: Any = None, sample_weight: ArrayLike | None = None,
        sample_weight_test: ArrayLike | None = None, n_jobs: int | None = None,
        score_name: str | None = None, ax: Any = None, **kwargs: Any,
    ) -> "ReverseLearningCurveDisplay":  # fmt: skip
        """Compute the curve, and draw it.

        Parameters
        ----------
        estimator, X, y, eras, test_eras, X_test, y_test, eras_test, n_train_eras, \
scoring, sample_weight, sample_weight_test, n_jobs :
            As in :func:`reverse_learning_curve`.
        score_name : str, default=None
            The name of the score; None takes that of `scoring`.
        ax, **kwargs :
            Passed to :meth:`plot`.

        Returns
        -------
        display : ReverseLearningCurveDisplay

        Raises
        ------
        ValueError
            As `reverse_learning_curve`.
        """
        result = reverse_learning_curve(
            estimator, X, y, eras=eras, test_eras=test_eras, X_test=X_test,
            y_test=y_test, eras_test=eras_test, n_train_eras=n_train_eras,
            scoring=scoring, sample_weight=sample_weight,
            sample_weight_test=sample_weight_test, n_jobs=n_jobs,
        )  # fmt: skip
        if score_name is not None:
            result.score_name = score_name
        drawn = ("n_train_eras", "scores", "oldest_eras", "score_name")
        return cls(**{name: result[name] for name in drawn}).plot(ax, **kwargs)
