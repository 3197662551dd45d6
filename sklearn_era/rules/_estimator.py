"""Fit the estimator: check the arguments, and find each class's rules by boosting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_consistent_length,
)

from .._era_arguments import eras_by_name, warn_of_row_order
from .._era_columns import take_era_column
from .._eras import EncodedEras, check_eras, read_eras
from .._fit_attributes import restores_on_failure
from .._parameter_object import parameter, with_parameters
from .._scikit_learn import check_sample_weight
from .._tables.checks import names_of_columns
from .._tables.target import check_y
from .._threads import N_JOBS_CONSTRAINTS, openmp_threads
from .._typing import Eras, Table
from .._warnings import warn_user
from ..ensemble._feature_penalty import penalties_by_column
from ..ensemble._parameters import VersionedStateMixin
from ._beam import BeamSearch, Rule
from ._boosting import boost_rules
from ._columns import condition_text, fit_bins, list_conditions
from ._docstring import RULE_ENSEMBLE
from ._prediction import RulePredictionMixin, WeightedRule, rate_rules
from ._refinements import RefinementCounter
from ._variance import VarianceTerm, make_term

# Rows and groups are numbered by C ints.
MAX_ROWS = 2**31
_AT_LEAST_1 = [Interval(Integral, 1, None, closed="left")]
_AT_LEAST_0 = [Interval(Real, 0, None, closed="left")]
_POSITIVE = [Interval(Real, 0, None, closed="neither")]
_CATEGORICAL = BaseHistGradientBoosting._parameter_constraints["categorical_features"]


@with_parameters
class RuleEnsembleClassifier(
    VersionedStateMixin, RulePredictionMixin, ClassifierMixin, BaseEstimator
):
    __doc__ = RULE_ENSEMBLE

    # With metadata routing enabled, eras are requested by default. `groups` are not:
    # those of splitters have another meaning.
    __metadata_request__fit: ClassVar = {"eras": True, "groups": False}

    n_estimators: int = parameter(_AT_LEAST_1, default=100, kw_only=False)
    max_depth: int = parameter(_AT_LEAST_1, default=2)
    beam_width: int = parameter(_AT_LEAST_1, default=30)
    disjunctions: bool = parameter(["boolean"], default=False)
    quality: str = parameter(
        [StrOptions({"laplace", "m_estimate", "youden"})], default="youden"
    )
    m: float = parameter(_AT_LEAST_0, default=2.0)
    learning_rate: float = parameter(_POSITIVE, default=0.3)
    l2_regularization: float = parameter(_AT_LEAST_0, default=0.0)
    min_samples_rule: int = parameter(
        [Interval(Integral, 1, 2**31 - 1, closed="both")], default=1
    )
    n_bins: int = parameter([Interval(Integral, 2, 255, closed="both")], default=32)
    binning: str = parameter([StrOptions({"uniform", "quantile"})], default="quantile")
    categorical_features: Any = parameter(_CATEGORICAL, default="from_dtype")
    feature_penalty: Any = parameter(["array-like", Mapping, None], default=None)
    feature_penalty_scale: float = parameter(_AT_LEAST_0, default=1.0)
    feature_penalty_noise: float = parameter(_AT_LEAST_0, default=0.1)
    variance_penalty: float = parameter(_AT_LEAST_0, default=0.0)
    variance_of: str = parameter(
        [StrOptions({"loss", "score", "probability"})], default="loss"
    )
    variance_power: float = parameter(_POSITIVE, default=1.0)
    n_jobs: int | None = parameter(N_JOBS_CONSTRAINTS, default=None)
    random_state: Any = parameter(["random_state"], default=None)

    @_fit_context(prefer_skip_nested_validation=True)
    @eras_by_name
    @restores_on_failure
    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        eras: Eras | None = None, groups: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Find the rules.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows; missing values are NaN.
        y : array-like of shape (n_samples,)
            The classes of the rows.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the rows. Rows of weight 0 are ignored.
        eras : array-like of shape (n_samples,), str or list of str, default=None
            Era of each row, or the name or names of columns of X, which are then no
            features. Eras give rates by era in `rules_`, and are the default `groups`.
        groups : array-like of shape (n_samples,) or str, default=None
            With a `variance_penalty`: labels of rows that should be treated alike, such
            as the digit in an image of any colour; or the name of a column of X with
            such labels, which stays a feature. None takes the eras, although a shortcut
            that is constant within eras then goes unnoticed.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If `y` has a single class; if a `variance_penalty` has neither groups nor
            eras, or a group of one row; if the exponential loss overflows; or if
            `feature_penalty` is negative, of another length, or names no column.
        """
        rng = check_random_state(self.random_state)
        if isinstance(groups, str):
            if groups not in names_of_columns(X):
                raise ValueError(
                    f"groups={groups!r} is no column of X; pass the name of one, or a "
                    "label a row."
                )
            groups = X[groups]
        X, eras = take_era_column(X, eras)
        warn_of_row_order(eras, X)
        values, known_categories = self._columns_of(X, reset=True)
        encoded = None if eras is None else read_eras(eras, X)
        labels = self._group_labels(X, encoded, groups)
        target = check_y(y, self)
        check_consistent_length(values, target)
        if values.shape[0] >= MAX_ROWS:
            raise ValueError(
                f"X has {values.shape[0]:,} rows, and rules count up to "
                f"{MAX_ROWS - 1:,}: fit to fewer rows."
            )
        check_classification_targets(target)
        weights = check_sample_weight(sample_weight, values, dtype=np.float64)
        if not np.isfinite(weights.sum()):
            raise ValueError("sample_weight adds up to infinity; pass smaller weights.")
        kept = np.flatnonzero(weights)
        if kept.size < weights.size:  # ignore rows without weight
            values, target, weights = values[kept], target[kept], weights[kept]
            labels = None if labels is None else labels[kept]
            encoded = None if encoded is None else encoded.take(kept)
        classes, codes = np.unique(target, return_inverse=True)
        if classes.size < 2:
            raise ValueError(
                f"y holds 1 class, {classes[0]!s}; rules tell classes apart, so pass "
                "rows of two classes or more that have a weight."
            )
        penalties = penalties_by_column(self)
        of_term = self.variance_of, self.variance_penalty, self.variance_power
        variances = {
            index: None
            if labels is None
            else make_term(labels, codes == index, name, *of_term)
            for index, name in enumerate(classes)
            if index or classes.size > 2
        }
        self.classes_ = classes
        with openmp_threads(self.n_jobs, type(self).__name__):
            X_binned = self._find_rules(
                values, known_categories, codes, weights, variances, penalties, rng
            )
        self.rules_ = rate_rules(
            self._rules, X_binned, codes, classes, weights, encoded
        )
        return self

    def _find_rules(
        self, values: NDArray[np.float64],
        known_categories: list[NDArray[np.float64] | None], codes: NDArray[np.intp],
        sample_weight: NDArray[np.float64], variances: dict[int, VarianceTerm | None],
        penalties: NDArray[np.float64], rng: np.random.RandomState,
    ) -> NDArray[np.uint8]:  # fmt: skip
        """Return the bins of rows; set the bin mapper and the rules of each class."""
        n_threads = _openmp_effective_n_threads()
        names = _check_feature_names_in(self)
        self._bin_mapper = mapper = fit_bins(
            values, known_categories, sample_weight, names, n_bins=int(self.n_bins),
            binning=self.binning, random_state=rng.randint(np.iinfo(np.int32).max),
            n_threads=n_threads,
        )  # fmt: skip
        X_binned = mapper.transform(values)
        is_missing = X_binned == mapper.missing_values_bin_idx_
        has_missing = is_missing.any(axis=0) & ~is_missing.all(axis=0)
        conditions = list_conditions(mapper, has_missing)
        counter = RefinementCounter(X_binned, conditions, n_threads)
        draw_penalties = partial(self._draw_penalties, penalties, rng)
        self._rules: list[WeightedRule] = []
        self.intercept_ = np.zeros(self.classes_.size)
        for index, variance in variances.items():
            search = BeamSearch(
                X_binned, conditions, counter, variance, int(self.beam_width),
                self.max_depth, self.disjunctions, self.min_samples_rule,
            )  # fmt: skip
            self.intercept_[index], found = boost_rules(
                search, codes == index, sample_weight, draw_penalties, self
            )
            self._rules += [
                WeightedRule(rule, self._text_of(rule), index, step)
                for rule, step in found
            ]
        if not self._rules:
            penalized = self.feature_penalty is not None
            or_gains = " or gains more than feature_penalty" if penalized else ""
            warn_user(
                "RuleEnsembleClassifier found no rule, since no condition on a column "
                f"covers min_samples_rule={self.min_samples_rule!r} rows but not all"
                f"{or_gains}; all rows get the same probability."
            )
        return X_binned

    def _group_labels(
        self, X: Any, eras: EncodedEras | None, groups: Any
    ) -> NDArray[Any] | None:
        """Return the rows' groups for the variance term; None if there is no penalty.
        Raise ValueError if there is a penalty, and neither groups nor eras are given.
        """
        if groups is not None:
            groups = check_eras(groups, X, name="groups")
        if self.variance_penalty == 0:
            return None
        if groups is not None:
            return groups
        if eras is None:
            raise ValueError(
                f"variance_penalty={self.variance_penalty!r} needs groups: pass "
                "fit(X, y, groups=...) or eras=..., with one label a row."
            )
        return eras.decode()

    def _draw_penalties(
        self, penalties: NDArray[np.float64], rng: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Draw a round's penalties of columns (soft mask, Du et al. 2025, III-B)."""
        drawn = penalties.copy()
        variant = np.flatnonzero(penalties)
        if variant.size and self.feature_penalty_noise > 0:
            drawn[variant] += rng.normal(0, self.feature_penalty_noise, variant.size)
        return self.feature_penalty_scale * np.clip(drawn, 0.0, 1.0)

    def _text_of(self, rule: Rule) -> str:
        """Return the text of a rule: its conjunctions, joined by *or*."""
        names, categories = _check_feature_names_in(self), self._categories_by_column()
        mapper = self._bin_mapper
        texts = [
            " and ".join(
                condition_text(mapper, names[bins[0]], categories.get(bins[0]), bins)
                for bins in conjunction
            )
            for conjunction in sorted(map(sorted, rule.conjunctions))
        ]
        if len(texts) == 1:
            return texts[0]
        return " or ".join(f"({text})" if " and " in text else text for text in texts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
