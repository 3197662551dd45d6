"""Check that a warm start continues with the same columns, classes, bins and draws."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn._loss.link import LogLink
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from .._warnings import warn_user
from ._binning.rare_categories import codes_of_categories, encoder_of

# The losses of regressors with a log link.
_OF_LOG = ("poisson", "gamma")


class PreviousFit(NamedTuple):
    """Facts about the fit that a warm start continues."""

    n_features: int
    feature_names: NDArray[Any] | None
    classes: NDArray[Any] | None
    categories: list[tuple[Any, ...]]
    bin_thresholds: list[NDArray[Any]]
    draws: str
    has_log_link: bool

    @classmethod
    def of(cls, estimator: BaseEstimator) -> "PreviousFit":
        return cls(
            n_features=estimator.n_features_in_,
            feature_names=getattr(estimator, "feature_names_in_", None),
            classes=estimator.classes_ if is_classifier(estimator) else None,
            categories=_known_categories(estimator),
            bin_thresholds=estimator._bin_mapper.bin_thresholds_,
            draws=getattr(estimator, "_draws", ""),
            has_log_link=isinstance(estimator._loss.link, LogLink),
        )

    def check_same(self, estimator: BaseEstimator) -> None:
        """Raise ValueError if columns, classes, categories or the loss link changed."""
        end = "or set warm_start=False."
        kept = "trees that warm_start=True keeps"
        n_features = estimator.n_features_in_
        if n_features != self.n_features:
            raise ValueError(
                f"X has {n_features} columns, but the {kept} were grown on "
                f"{self.n_features}; pass the same columns, {end}"
            )
        if self.classes is not None and not np.array_equal(
            estimator.classes_, self.classes
        ):
            raise ValueError(
                f"y has the classes {estimator.classes_.tolist()}, but the {kept} know "
                f"{self.classes.tolist()}; pass the same classes, {end}"
            )
        if is_regressor(estimator) and self.has_log_link != (estimator.loss in _OF_LOG):
            raise ValueError(
                f"loss={estimator.loss!r} has another link than that of the {kept}, "
                f"whose sums are {'' if self.has_log_link else 'not '}logarithms of "
                f"means; pass a loss with the same link, {end}"
            )
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None and self.feature_names is not None:
            for name, known in zip(names, self.feature_names, strict=True):
                if name != known:
                    raise ValueError(
                        f"X has the column {name!r} where the {kept} had {known!r}; "
                        f"pass the same columns in the same order, {end}"
                    )
        self.check_same_categories(estimator, bins=False)

    def check_same_categories(
        self, estimator: BaseEstimator, *, bins: bool = True
    ) -> None:
        """Raise ValueError if categories, or (with `bins`) their bins, have changed."""
        known = _known_categories(estimator), self.categories
        now, before = ([each[: 2 + bins] for each in columns] for columns in known)
        if now != before:
            raise ValueError(
                "X has other categorical features, or other categories in them or in a "
                "shared bin, than the trees that warm_start=True keeps were grown on; "
                "pass the same rows, with the y, weights and eras by which categories "
                "share bins, or set warm_start=False."
            )

    def check_same_draws(self, forest: BaseEstimator) -> None:
        """Raise ValueError if drawing existing trees' rows again gives other rows."""
        if forest._draws != self.draws or not self._has_same_bins(forest):
            raise ValueError(
                f"oob_score={forest.oob_score!r} draws the rows of the trees that "
                "warm_start=True keeps again, but the rows or eras, or bootstrap, "
                "max_samples or random_segments, are not those of before; pass the "
                "same, or set oob_score=False or warm_start=False."
            )

    def warn_of_other_bins(self, booster: BaseEstimator) -> None:
        """Warn if the thresholds of bins differ from the previous fit's thresholds."""
        if not self._has_same_bins(booster):
            warn_user(
                "X makes other bins than the rows that the trees which warm_start=True "
                "keeps were grown on, and scikit-learn takes one for the other where "
                "it computes the gradients that the fit goes on from; pass the same "
                "rows and weights, or set warm_start=False."
            )

    def _has_same_bins(self, estimator: BaseEstimator) -> bool:
        thresholds = estimator._bin_mapper.bin_thresholds_
        return all(
            # The threshold between -inf and inf is NaN.
            np.array_equal(now, before, equal_nan=True)
            for now, before in zip(thresholds, self.bin_thresholds, strict=True)
        )


def _known_categories(estimator: BaseEstimator) -> list[tuple[Any, ...]]:
    """Return a tuple for each categorical column: index, categories, and their bins."""
    if estimator.is_categorical_ is None:
        return []
    encoder = encoder_of(estimator)
    columns = np.flatnonzero(estimator.is_categorical_).tolist()
    known = []
    for i, column in enumerate(columns):
        codes = codes_of_categories(encoder, i)
        labels = encoder.categories_[i][: codes.size]
        known.append((column, labels.tolist(), codes.tolist()))
    return known
