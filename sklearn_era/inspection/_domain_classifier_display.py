"""How well a classifier tells sets or eras apart, drawn."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_era._eras import label_texts
from sklearn_era._plotting import BLUE, GRAY, axes_or_new, label_places
from sklearn_era.inspection._domain_classifier import domain_classifier_auc

_KINDS = ("auc", "importances")


class DomainClassifierDisplay:
    """The AUC of a domain classifier by era, or what it tells the domains apart by.

    Make it with `from_data`, or of what `domain_classifier_auc` returns.

    Parameters
    ----------
    fold_aucs : array-like of shape (n_domains, n_folds), dtype=float
        The AUC of each domain and fold.

    domain_labels : array-like of shape (n_domains,)
        Labels of the eras, in the order in which to draw them, or of the holdout alone.

    importances : array-like of shape (n_domains, n_features), default=None
        The loss of AUC by the permutation of each feature.

    feature_names : array-like of shape (n_features,), default=None
        Names of the features; needed with `importances`.

    Attributes
    ----------
    aucs : ndarray of shape (n_domains,)
        The mean over folds.

    auc : float
        The mean over domains.

    bars_ : matplotlib BarContainer
        The bars.

    chance_line_ : matplotlib Line2D or None
        The line at 0.5; None for importances.

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
    >>> from sklearn_era.inspection import DomainClassifierDisplay
    >>> display = DomainClassifierDisplay(
    ...     fold_aucs=[[0.5, 0.6], [0.8, 0.9]], domain_labels=["a", "b"]
    ... )
    >>> display.aucs.round(6).tolist()
    [0.55, 0.85]
    >>> display.plot()  # doctest: +SKIP
    """

    bars_: Any
    chance_line_: Any
    ax_: Any
    figure_: Any

    def __init__(
        self,
        *,
        fold_aucs: ArrayLike,
        domain_labels: ArrayLike,
        importances: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
    ) -> None:
        self.fold_aucs = np.asarray(fold_aucs, dtype=np.float64)
        self.domain_labels = np.asarray(domain_labels)
        n_domains = self.domain_labels.size
        if (
            self.fold_aucs.ndim != 2
            or self.fold_aucs.size == 0
            or len(self.fold_aucs) != n_domains
        ):
            raise ValueError(
                "fold_aucs must have a row a domain and a column a fold; got the shape "
                f"{self.fold_aucs.shape} with {n_domains} domain_labels."
            )
        self.importances = self.feature_names = None
        if importances is not None:
            self.importances = np.asarray(importances, dtype=np.float64)
            self.feature_names = np.asarray(
                [] if feature_names is None else feature_names, dtype=object
            )
            shape = (n_domains, self.feature_names.size)
            if self.importances.shape != shape or 0 in shape:
                raise ValueError(
                    "importances must have a row a domain and a column a feature; got "
                    f"the shape {self.importances.shape} with {shape[0]} domain_labels "
                    f"and {shape[1]} feature_names."
                )
        self.aucs = self.fold_aucs.mean(axis=1)
        self.auc = float(self.aucs.mean())

    def plot(
        self,
        ax: Any = None,
        *,
        kind: str = "auc",
        max_features: int = 20,
        **kwargs: Any,
    ) -> "DomainClassifierDisplay":
        """Draw the AUCs, or the importances.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        kind : {'auc', 'importances'}, default='auc'
            A bar for the AUC of each domain, with the least and the largest fold; or
            one for the importance of each feature, the mean over domains.

        max_features : int, default=20
            How many features to draw at most, the most important ones.

        **kwargs : dict
            Passed to the ``bar`` or ``barh`` of the axes.

        Returns
        -------
        display : DomainClassifierDisplay
            This object.

        Raises
        ------
        ValueError
            If `kind` is another one, or asks for importances that there are not; or if
            `max_features` is less than 1.
        MissingPackageError
            If matplotlib is not installed.
        """
        if kind not in _KINDS:
            raise ValueError(f"kind must be 'auc' or 'importances'; got {kind!r}.")
        if max_features < 1:
            raise ValueError(f"max_features must be 1 or more; got {max_features!r}.")
        if kind == "importances" and self.importances is None:
            raise ValueError(
                "kind='importances': none were computed; pass n_repeats=5 to from_data "
                "or domain_classifier_auc."
            )
        ax = axes_or_new(ax)
        self.chance_line_ = None
        if kind == "auc":
            self._plot_aucs(ax, kwargs)
        else:
            self._plot_importances(ax, max_features, kwargs)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_aucs(self, ax: Any, kwargs: dict[str, Any]) -> None:
        places = np.arange(self.aucs.size)
        spread = np.abs(
            [
                self.aucs - self.fold_aucs.min(axis=1),
                self.fold_aucs.max(axis=1) - self.aucs,
            ]
        )
        style = {"color": BLUE, "yerr": spread, "ecolor": GRAY} | kwargs
        self.bars_ = ax.bar(places, self.aucs, **style)
        self.chance_line_ = ax.axhline(
            0.5, color=GRAY, linestyle="--", label="0.5: not to be told apart"
        )
        texts = label_texts(self.domain_labels)
        step, text_style = label_places(ax, texts)
        ax.set_xticks(places[::step], texts[::step], **text_style)
        ax.set_ylim(0, 1.05)
        ax.set_ylabel("AUC of the domain classifier")
        ax.legend()

    def _plot_importances(
        self, ax: Any, max_features: int, kwargs: dict[str, Any]
    ) -> None:
        assert self.importances is not None  # `plot` has checked
        assert self.feature_names is not None
        means = self.importances.mean(axis=0)
        features = np.argsort(-means, kind="stable")[:max_features]
        places = np.arange(features.size)
        self.bars_ = ax.barh(places, means[features], **({"color": BLUE} | kwargs))
        ax.set_yticks(places, [str(self.feature_names[j]) for j in features])
        ax.set_ylim(features.size - 0.5, -0.5)
        ax.set_xlabel(f"loss of AUC where permuted, of {self.auc:.3g}")

    @classmethod
    def from_data(
        cls,
        X: Any,
        X_holdout: Any = None,
        *,
        eras: Any = None,
        estimator: Any = None,
        categorical_features: Any = "from_dtype",
        cv: Any = 5,
        n_repeats: int = 0,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Any = None,
        kind: str = "auc",
        max_features: int = 20,
        **kwargs: Any,
    ) -> "DomainClassifierDisplay":
        """Fit domain classifiers, and draw how well they do.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The rows: those of the training set, or of all eras.

        X_holdout : array-like or data frame of shape (n_holdout, n_features), \
default=None
            The rows to tell from those of X. Either this or `eras`.

        eras : array-like of shape (n_samples,), default=None
            Era of each row of X.

        estimator : object, default=None
            A classifier, as `domain_classifier_auc` takes it.

        categorical_features : 'from_dtype', None or array-like of {bool, int, str}, \
default='from_dtype'
            Which features are categorical.

        cv : int, cross-validation generator or iterable, default=5
            The folds.

        n_repeats : int, default=0
            How often to permute each feature; ``kind="importances"`` needs it.

        n_jobs : int, default=None
            Fits to run in parallel.

        random_state : int, RandomState instance or None, default=None
            Determines folds, the default estimator and permutations.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        kind : {'auc', 'importances'}, default='auc'
            What to draw.

        max_features : int, default=20
            How many features to draw at most.

        **kwargs : dict
            Passed to the ``bar`` or ``barh`` of the axes.

        Returns
        -------
        display : DomainClassifierDisplay

        Raises
        ------
        ValueError
            As `domain_classifier_auc` and `plot`.
        """
        result = domain_classifier_auc(
            X,
            X_holdout,
            eras=eras,
            estimator=estimator,
            categorical_features=categorical_features,
            cv=cv,
            n_repeats=n_repeats,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        display = cls(
            fold_aucs=result.fold_aucs,
            domain_labels=result.domain_labels,
            importances=result.get("importances"),
            feature_names=result.feature_names,
        )
        return display.plot(ax, kind=kind, max_features=max_features, **kwargs)
