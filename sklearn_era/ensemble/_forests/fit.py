"""Fit a forest: bin the rows once, then grow each tree on its own draw of rows."""

from itertools import takewhile
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn._loss.loss import HalfSquaredError
from sklearn.base import _fit_context
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..._era_arguments import eras_by_name, suggest_eras_keyword, warn_of_row_order
from ..._era_columns import take_era_column
from ..._eras import Array, weigh_eras
from ..._fit_attributes import copy_attributes, restore_on_failure
from ..._scikit_learn import check_sample_weight
from ..._tables.target import check_y
from ..._threads import openmp_threads
from ..._typing import Eras, Table
from .._binning.hooks import DatasetRows
from .._callbacks import Tasks, TrainingRows
from .._criterion_plan import CriterionPlan, target_weights_of, warn_if_nothing_split
from .._feature_penalty import feature_penalties
from .._fit_state import FitState
from .checks import (
    check_bootstrap,
    check_forest_eras,
    check_spread,
    check_warm_start,
    describe_draws,
)
from .class_forest import tree_of_values
from .iteration import IterationMixin, TrainingSet
from .out_of_bag import OutOfBagMixin
from .sampling import encode_era_columns


class ForestFitMixin(IterationMixin, OutOfBagMixin):
    """The method ``fit`` of a forest. Leaf values are divided by the number of trees,
    so that the sum over trees is the mean of their predictions.
    """

    @eras_by_name
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Table, y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None, *, eras: Eras | None = None,
    ) -> Self:  # fmt: skip
        """Grow the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or BinnedDataset
            The input samples. A :class:`~sklearn_era.ensemble.BinnedDataset` includes
            the target, weights and eras, which must then not be passed.
        y : array-like of shape (n_samples,)
            Target values; not needed with a `BinnedDataset`, which has its own.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. They do not affect which rows are drawn.
        eras : array-like of shape (n_samples,) or (n_samples, n_columns), str, list \
                of str or dict, default=None
            Era of each row: a week, a hospital, a region. Labels may be of any type
            that `np.unique` sorts (int, str, datetime64), or an ordered categorical;
            rows need not be in order. With several columns, each combination of labels
            is an era, a tuple in the order of the columns. Strings name columns of the
            data frame X, which are then not features. Required unless
            `split_criterion="gain"` and rows are drawn regardless of eras. A dict has
            several labels for each row, such as week, month and quarter: each tree then
            compares eras by one of them, drawn at random, and scores and importances by
            era use the first.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If `eras` is missing and the parameters need it; if it has the wrong length
            or missing labels; if too many eras have too few rows to split; if
            `random_segments` exceeds the number of eras; if `warm_start` gets fewer
            trees, other columns, categories or classes than before, or, with
            `oob_score`, other rows or eras; if ``Invariant(statistic="ratio")`` gets a
            target other than 0 and 1; if `y` times the weights is too large or too
            small for single precision; if `X` is a `BinnedDataset` with another
            `max_bins`, or `y`, `sample_weight` or `eras` are passed with it.

        Warns
        -----
        UserWarning
            If columns of `X` have no value in rows with weight: no tree splits on them.
        """
        with restore_on_failure(self):
            self._fit_state = FitState()
            try:
                X, eras = take_era_column(X, eras)
                warn_of_row_order(eras, X)
                y, sample_weight, eras = self._arrays_of_fit(X, y, sample_weight, eras)
                with openmp_threads(self.n_jobs, type(self).__name__):
                    n_threads = _openmp_effective_n_threads()
                    training, y = self._prepare(X, y, sample_weight, eras, n_threads)
                    first = next(iter(training.era_columns), None)
                    rows = TrainingRows(self, X, y, y, sample_weight, first)
                    n_trees = self.n_estimators - len(self._predictors)
                    tasks = Tasks(self, rows, n_trees)
                    self._grow_forest(training, tasks, n_threads)
                    self._score_out_of_bag(training, n_threads)
                    tasks.end()
            except (TypeError, ValueError) as error:
                suggest_eras_keyword(sample_weight, error)
                raise
        return self

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, eras: Eras | None, n_threads: int
    ) -> tuple[TrainingSet, Array]:
        """Check, encode and bin the arguments of ``fit``. Return the training set and
        the encoded `y`.
        """
        self._fit_state.previous = previous = check_warm_start(self)
        plan = CriterionPlan.from_estimator(self)
        era_columns = []
        if eras is not None:
            era_columns = encode_era_columns(eras, X, self.era_order)
        check_forest_eras(self, era_columns, plan)
        X, known_categories = self._preprocess_X(X, reset=True)
        penalties = feature_penalties(self)
        y = self._encode_y(check_y(y, self))
        check_consistent_length(X, y)
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X, dtype=np.float64)
        sample_weight = self._finalize_sample_weight(sample_weight, y)
        if (how := self.era_weighting) != "rows":
            sample_weight = weigh_eras(era_columns[0], sample_weight, how)[0]
        # scikit-learn's partial dependence needs it.
        self._fitted_with_sw = sample_weight is not None
        if sample_weight is not None and not sample_weight.any():
            raise ValueError(
                "sample_weight is 0 in all rows, which leaves nothing to learn from; "
                "give some rows a positive weight, and their classes by class_weight."
            )
        check_spread(y, sample_weight)
        target_weights_of(self, plan, y, sample_weight)  # all rows: trees draw some
        check_bootstrap(self, X.shape[0], era_columns)
        if previous is None:
            self._forest_seed = int(
                check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            )
            self._predictors: list[list[TreePredictor]] = []
        else:
            previous.check_same(self)
        self._n_features = X.shape[1]
        self._bin_mapper = _BinMapper(
            n_bins=self.max_bins + 1,  # and one for missing values
            is_categorical=self._is_categorical_remapped,
            known_categories=known_categories,
            random_state=self._forest_seed,
            n_threads=n_threads,
        )
        first = next(iter(era_columns), None)
        self._fit_state.target = y, sample_weight, first
        X_binned = self._bin_data(X, sample_weight, is_training_data=True)
        self._draws = describe_draws(self, X_binned, y, era_columns)
        if previous is not None and self.oob_score:
            previous.check_same_draws(self)
        if era_columns:
            self.era_labels_ = era_columns[0].labels
        else:
            self.__dict__.pop("era_labels_", None)
        self._forget_out_of_bag()
        self._loss = self._get_loss(sample_weight)
        self._baseline_prediction = np.zeros((1, self.n_trees_per_iteration_))
        targets = self._make_targets(y)
        order = X.dataset.order if isinstance(X, DatasetRows) else None
        return TrainingSet(
            X_binned, targets, sample_weight, era_columns, plan, penalties, order
        ), y

    def _get_loss(self, sample_weight: Array | None) -> Any:
        return HalfSquaredError()

    def _first_targets(self, y: Array, sample_weight: Array | None) -> Array:
        return self._make_targets(y)

    def _make_targets(self, y: Array) -> Array:
        """Return targets, one column for each tree of an iteration: `y` itself or, if
        each class has a tree, 1 in rows of the tree's class and 0 in other rows.
        """
        if self.n_trees_per_iteration_ == 1:
            return y[:, np.newaxis]
        classes = np.arange(self.n_trees_per_iteration_)
        return np.asarray(y[:, np.newaxis] == classes, dtype=np.float64, order="F")

    def _grow_forest(self, training: TrainingSet, tasks: Tasks, n_threads: int) -> None:
        """Grow the trees that the forest lacks, several at a time."""
        n_grown = len(self._predictors)
        n_workers = max(1, min(n_threads, self.n_estimators - n_grown))
        trees, is_stopped = self._fit_state.trees, False
        numbers = range(n_grown, self.n_estimators)
        grown = Parallel(
            n_workers, require="sharedmem", verbose=self.verbose, return_as="generator"
        )(
            delayed(self._grow_iteration)(training, i, n_threads, n_workers)
            for i in takewhile(lambda _: not is_stopped, numbers)
        )
        try:
            while n_grown + len(trees) < self.n_estimators and not is_stopped:
                tasks.begin_iteration()
                trees.append(next(grown))
                is_stopped = tasks.end_iteration()
        finally:
            is_stopped = True
            for _ in grown:  # those begun before a callback stopped the fit
                pass
        self._predictors = self._trees_so_far()
        trees.clear()
        if not training.plan.is_plain_gain:
            warn_if_nothing_split(self, training.plan, "forest")

    def _trees_so_far(self) -> list[list[TreePredictor]]:
        """Return all trees, with leaf values divided by the present number of trees."""
        before, grown = self._predictors, self._fit_state.trees
        n_trees = max(1, len(before) + len(grown))
        return [
            [tree_of_values(tree, share * tree.nodes["value"]) for tree in outputs]
            for trees, share in ((before, len(before) / n_trees), (grown, 1 / n_trees))
            for outputs in trees
        ]

    def _fitted_so_far(self) -> dict[str, Any] | None:
        """Return the attributes if the fit stops here; None if there is no tree yet."""
        trees = self._trees_so_far()
        return copy_attributes(self) | {"_predictors": trees} if trees else None

    @property
    def n_iter_(self) -> int:
        """Number of trees of each output."""
        check_is_fitted(self)
        return len(self._predictors)
