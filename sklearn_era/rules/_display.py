"""The display of rules and their rates."""

import textwrap
from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .._plotting import BLUE, GRAY, ORANGE, axes_or_new
from ._estimator import RuleEnsembleClassifier

_LINE = 50  # characters of a label
_KINDS = {"tpr": (BLUE, -0.12), "fpr": (ORANGE, 0.12)}


class RuleDisplay:
    """The true and false positive rate of each rule, overall and by era.

    Make it with `from_estimator`, or from a `RuleEnsembleClassifier.rule_table`. A rule
    that generalises has similar rates in all eras.

    Parameters
    ----------
    rules : :class:`~sklearn.utils.Bunch`
        The table of rules, as `rules_` and `rule_table` have it.

    Attributes
    ----------
    points_ : dict of {'tpr', 'fpr'} to matplotlib Line2D
        The rates over all rows.

    era_points_ : dict of {'tpr', 'fpr'} to matplotlib Line2D
        Those of each era; empty without eras.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        Their figure.

    Raises
    ------
    ValueError
        If there are no rules.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.rules import RuleDisplay, RuleEnsembleClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> est = RuleEnsembleClassifier(n_estimators=5).fit(
    ...     X, X[:, 0] > 0, eras=np.arange(300) % 3
    ... )
    >>> RuleDisplay.from_estimator(est).plot()  # doctest: +SKIP
    """

    points_: dict[str, Any]
    era_points_: dict[str, Any]
    ax_: Any
    figure_: Any

    def __init__(self, rules: Bunch) -> None:
        if len(rules.text) == 0:
            raise ValueError("rules has no rule to draw.")
        self.rules = rules

    def plot(self, ax: Any = None, *, max_rules: int = 10) -> "RuleDisplay":
        """Draw the rules with the largest coefficients, the largest on top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        max_rules : int, default=10
            The most rules to draw.

        Returns
        -------
        display : RuleDisplay
            This object.

        Raises
        ------
        ValueError
            If `max_rules` is less than 1.
        MissingPackageError
            If matplotlib is not installed.
        """
        if max_rules < 1:
            raise ValueError(f"max_rules must be 1 or more; got {max_rules!r}.")
        is_new = ax is None
        ax = axes_or_new(ax)
        rules = self.rules
        sizes = np.abs(rules.coefficient)
        drawn = np.argsort(-sizes, kind="stable")[:max_rules]
        places = np.arange(drawn.size)
        has_eras = "era_labels" in rules
        self.points_, self.era_points_ = {}, {}
        for kind, (color, shift) in _KINDS.items():
            name = f"{'true' if kind == 'tpr' else 'false'} positive rate"
            if has_eras:
                by_era = rules[f"{kind}_by_era"][drawn]
                rows = np.repeat(places + shift, by_era.shape[1])
                label = f"{name}, by era"
                style = {"marker": "|", "linestyle": "none", "color": color}
                (line,) = ax.plot(by_era.ravel(), rows, label=label, **style)
                self.era_points_[kind] = line
            style = {"marker": "o", "linestyle": "none", "color": color}
            (line,) = ax.plot(rules[kind][drawn], places + shift, label=name, **style)
            self.points_[kind] = line
        labels = [
            f"{rules.text[i]}  ({rules.coefficient[i]:+.2f})" for i in drawn.tolist()
        ]
        if np.unique(rules.class_label).size > 1:
            labels = [
                f"{rules.class_label[i]}: {label}"
                for i, label in zip(drawn.tolist(), labels, strict=True)
            ]
        wrapped = [textwrap.fill(label, _LINE) for label in labels]
        if is_new:  # with room for each line
            n_lines = sum(label.count("\n") + 1 for label in wrapped)
            ax.figure.set_size_inches(9, max(3.0, 1.5 + 0.3 * n_lines))
        # A $ in a name is not a formula.
        ax.set_yticks(places, wrapped, parse_math=False)
        ax.set_ylim(drawn.size - 0.5, -0.5)
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel("share of rows covered")
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize="small")
        if drawn.size < len(rules.text):
            ax.text(
                1,
                -0.18,
                f"{drawn.size} of {len(rules.text)} rules",
                color=GRAY,
                ha="right",
                transform=ax.transAxes,
            )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        eras: Any = None,
        ax: Any = None,
        max_rules: int = 10,
    ) -> "RuleDisplay":
        """Draw the rules of a fitted ensemble.

        Parameters
        ----------
        estimator : RuleEnsembleClassifier
            The fitted ensemble.

        X : array-like of shape (n_samples, n_features), default=None
            The rows to measure the rules on; None for the training rows.

        y : array-like of shape (n_samples,), default=None
            Their classes; needed with X.

        eras : array-like of shape (n_samples,), default=None
            Their eras. Those of training rows come from ``fit``.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        max_rules : int, default=10
            The most rules to draw.

        Returns
        -------
        display : RuleDisplay

        Raises
        ------
        TypeError
            If the estimator is another one.
        ValueError
            If y or eras come without X, or X without y; or as in `plot` and
            `RuleEnsembleClassifier.rule_table`.
        """
        if X is None and (y is not None or eras is not None):
            raise ValueError(
                "y and eras are those of the rows X, which is missing; pass X too, or "
                "none of them for the training rows."
            )
        if X is not None and y is None:
            raise ValueError("y is missing: rates are of the classes of the rows X.")
        if not isinstance(estimator, RuleEnsembleClassifier):
            raise TypeError(
                "estimator must be a RuleEnsembleClassifier; got a "
                f"{type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        rules = estimator.rules_ if X is None else estimator.rule_table(X, y, eras=eras)
        return cls(rules).plot(ax, max_rules=max_rules)
