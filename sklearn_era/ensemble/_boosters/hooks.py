"""Define the methods that the patched ``fit`` calls on a booster with eras."""

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.ensemble._hist_gradient_boosting._gradient_boosting import (
    _update_raw_predictions,
)
from sklearn.ensemble._hist_gradient_boosting.grower import TreeGrower
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _num_samples

from ..._era_arguments import eras_by_name, suggest_eras_keyword, warn_of_row_order
from ..._era_axes import keep_pair, read_again
from ..._era_columns import names_columns, take_era_column
from ..._eras import Array, EncodedEras, check_eras, check_splittable
from ..._fit_attributes import Snapshot, restore_on_failure
from ..._tables.checks import check_mask, check_table
from ..._tables.target import check_values
from ..._threads import openmp_threads, threads_of_fit
from ..._typing import Eras, Table
from ...effects import intercepts_of
from .._binning.integers import find_missing_values
from .._callbacks import Tasks, TrainingRows
from .._criterion_plan import (
    MIN_HESSIAN_TO_SPLIT,
    CriterionPlan,
    choose_splitter,
    least_gain,
    warn_if_few_splits_are_covered,
    warn_if_nothing_split,
    warn_of_limits,
    warn_of_single_era,
)
from .._feature_penalty import feature_penalties
from .._fit_state import ScoringEras, begin_fit
from .._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from .._parameters import check_weights, refuse_uses_of_eras
from .._splitting.symmetric import SymmetricGrower
from .._splitting.tree_grower import EraTreeGrower
from .era_effects import begin_intercepts, constant_columns, drop_held_out
from .era_weights import (
    base_weights,
    begin_era_weights,
    weigh_rows,
    weights_by_label,
)
from .held_out_eras import (
    check_rows_left,
    resolve_validation_eras,
    split_arrays,
    split_rows_of_eras,
    warn_of_unseen_classes,
)
from .intercept_updates import InterceptUpdatesMixin
from .known_eras import read_for_fit
from .leaf_shrinkage import shrink_leaves
from .line_search import update_leaves_values
from .scoring import EraScoringMixin
from .tree_features import (
    SortedFeaturesGrower,
    draw_tree_features,
    warn_if_interaction_sets_moved,
)

Grower: TypeAlias = TreeGrower | EraTreeGrower | SymmetricGrower


class EraFitMixin(InterceptUpdatesMixin, EraScoringMixin):
    """The patched ``fit`` and its hooks, in the order of the calls."""

    # Whether nodes of a level share a split; then eras have no part in it.
    _is_symmetric: ClassVar[bool] = False

    @eras_by_name
    def fit(
        self, X: Table, y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None, *, eras: Eras | None = None,
        X_val: Any = None, y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None, eras_val: Any = None,
    ) -> Self:  # fmt: skip
        """Fit the gradient boosting model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or BinnedDataset
            The input samples. A :class:`~sklearn_era.ensemble.BinnedDataset` includes
            the target, weights and eras, which must then not be passed.
        y : array-like of shape (n_samples,)
            Target values; not needed with a `BinnedDataset`, which has its own.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of training data.
        eras : array-like of shape (n_samples,) or (n_samples, n_columns), str or \
                list of str, default=None
            Era of each row: a week, a hospital, a region. Labels may be of any type
            that `np.unique` sorts (int, str, datetime64), or an ordered categorical;
            rows need not be in order. With several columns, each combination of labels
            is an era, a tuple in the order of the columns. Strings name columns of the
            data frames X and X_val, which are then not features. Required unless
            `split_criterion="gain"`. With any criterion, early stopping holds out whole
            eras (see `validation_eras`) and passes eras to a `scoring` that takes them.
        X_val : array-like of shape (n_val, n_features), default=None
            Validation rows for early stopping. In a `Pipeline`,
            ``transform_input=["X_val"]`` transforms them as `X`.
        y_val, sample_weight_val : array-like of shape (n_val,), default=None
            Target values and weights of the validation rows.
        eras_val : array-like of shape (n_val,), default=None
            Era of each row of `X_val`, passed to a `scoring` that takes eras: a scorer
            of :func:`sklearn_era.metrics.make_era_scorer`, a callable
            `scoring(estimator, X, y, eras)`, or, with metadata routing enabled, a
            scorer after `set_score_request(eras=True)`.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If `eras` is missing and a parameter needs it; if `eras` or `eras_val` has
            the wrong length or missing labels; if too many eras have too few training
            rows; if early stopping would hold out all eras; if a `Blend` or a dict has
            an unknown criterion or no positive weight; if
            ``Invariant(statistic="ratio")`` gets a target other than 0 and 1; if
            `warm_start` gets other columns, categories or classes than before; if `X`
            is a `BinnedDataset` with another `max_bins`, or `y`, `sample_weight` or
            `eras` are passed with it; if ``TimeRobust(impurity="standard_deviation")``
            gets weights, or a loss whose hessians vary.

        Warns
        -----
        UserWarning
            If columns of `X` have no value in training rows with weight: no tree splits
            on them, and all their values get the same prediction.
        """
        if names_columns(eras, X) and X_val is not None and eras_val is None:
            eras_val = eras
        X, eras = take_era_column(X, eras)
        val = {"name": "eras_val", "X_name": "X_val"}
        X_val, eras_val = take_era_column(X_val, eras_val, **val)
        warn_of_row_order(eras, X)
        warn_of_row_order(eras_val, X_val, **val)
        y, sample_weight, eras = self._arrays_of_fit(X, y, sample_weight, eras)
        check_table(X_val, "X_val")
        check_mask(sample_weight_val, "sample_weight_val")
        if y_val is not None:
            check_values(y_val, are_numbers=is_regressor(self), name="y_val")
        with restore_on_failure(self):
            self._fit_state = state = begin_fit(self)
            try:
                # scikit-learn's own text, patched, of another class: it calls nothing
                # on `self` that this one lacks.
                with openmp_threads(self.n_jobs, type(self).__name__):
                    BaseHistGradientBoosting.fit(
                        self, X, y, sample_weight, eras=eras, X_val=X_val, y_val=y_val,
                        sample_weight_val=sample_weight_val, eras_val=eras_val,
                    )  # fmt: skip
            except (TypeError, ValueError) as error:
                suggest_eras_keyword(sample_weight, error)
                raise
            weighs_little = warn_of_limits(self, state.mean_weight)
            if state.compares_eras and not weighs_little:
                warn_if_nothing_split(self, state.plan, "model")
                warn_if_few_splits_are_covered(self, state.plan, state.era_splitter)
            warn_if_interaction_sets_moved(self)
        return self

    era_weights_ = property(weights_by_label)

    def _check_eras(
        self, eras: Any, X: Any, eras_val: Any, X_val: Any
    ) -> tuple[EncodedEras | None, NDArray[Any] | None]:
        """Return `eras`, encoded, and `eras_val`, both checked. Store the criterion
        plan, the penalties and the rule for held-out eras in the state of the fit.
        """
        state = self._fit_state
        if state.previous is not None:
            state.previous.check_same(self)
        state.plan = plan = CriterionPlan.from_estimator(self)
        state.penalties = feature_penalties(self)
        self.__dict__.pop("validation_eras_", None)
        encoded = eras  # if from a `BinnedDataset`, checked before
        if not isinstance(eras, EncodedEras | None):
            goes_on = state.previous is not None
            known = getattr(self, "_era_labels", None) if goes_on else None
            encoded = read_for_fit(self, eras, X, known)
        if encoded is None:
            refuse_uses_of_eras(self, plan.is_plain_gain)
        else:
            n_rows = _num_samples(X) if X_val is None else 0  # 0 if none is held out
            state.validation_eras = resolve_validation_eras(self, encoded, n_rows)
        keep_pair(self, encoded)
        if eras_val is not None:
            if X_val is None:
                raise ValueError("eras_val is provided, but X_val was not provided.")
            if encoded is None or encoded.groups is None:
                eras_val = check_eras(eras_val, X_val, name="eras_val", X_name="X_val")
            else:
                of_rows = read_again(self, eras_val, X_val, "eras_val", "X_val")[1]
                state.held_out_groups, eras_val = of_rows.groups, of_rows.decode()
        return encoded, eras_val

    def _weigh_eras(
        self, eras: EncodedEras | None, sample_weight: Array | None
    ) -> Array | None:
        """Check the weights of rows, and return the result of `weigh_rows` for them."""
        self._check_weights(sample_weight)
        return sample_weight if eras is None else weigh_rows(self, eras, sample_weight)

    def _check_weights(self, sample_weight: Array | None) -> None:
        """Check the weights of rows, and keep their mean in the state of the fit."""
        check_weights(self, sample_weight, self._exchange)
        if sample_weight is not None:
            sums = self._exchange.sum_of(sample_weight.sum(), sample_weight.size)
            self._fit_state.mean_weight = sums[0] / sums[1]

    def _hold_out_eras(
        self, eras: EncodedEras | None, stratify: NDArray[Any] | None
    ) -> tuple[EncodedEras | None, NDArray[Any] | None, Callable[..., list[Any]]]:
        """Return three results: the eras of the training rows, the era label of each
        held-out row, and a function that splits arrays into training and held-out rows.
        Set `validation_eras_` if whole eras are held out.
        """
        if eras is None:
            return None, None, train_test_split
        state, plan = self._fit_state, self._fit_state.plan
        is_single, compares = eras.labels.size == 1, not plan.is_plain_gain
        if compares and not is_single and state.validation_eras != "last":
            # A random draw should not decide whether a small era is refused.
            check_splittable(eras.labels, eras.counts, plan)
        train, validation = split_rows_of_eras(
            eras, validation_fraction=self.validation_fraction,
            validation_eras=state.validation_eras, stratify=stratify,
            random_state=self._random_seed,
        )  # fmt: skip
        state.training_rows = train
        held_out = eras.take(validation)
        state.held_out_groups = held_out.groups
        if self.validation_eras is not None and not is_single:
            self.validation_eras_ = held_out.labels

        def split(*arrays: Any, **_: Any) -> list[Any]:
            parts = split_arrays(*arrays, train=train, validation=validation)
            self._keep_held_out(held_out, *parts[3::2])
            return parts

        if stratify is not None:
            classes = stratify[train].astype(np.intp)
            is_seen = np.bincount(classes, minlength=self.classes_.size) > 0
            warn_of_unseen_classes(self.classes_, is_seen)
        if compares and self.validation_eras is None and plan.min_era_coverage == 1:
            fraction = self.validation_fraction
            check_rows_left(eras, train, fraction, plan.min_samples_per_era)
        return eras.take(train), held_out.decode(), split

    def _make_era_splitter(
        self, eras: EncodedEras | None, eras_val: NDArray[Any] | None, y: NDArray[Any],
        sample_weight: NDArray[Any] | None,
    ) -> None:  # fmt: skip
        """Store the era splitter in the state of the fit, or None if scikit-learn's
        splitter is used. Raise ValueError if too many eras are too small; warn if a
        criterion that compares eras gets a single era.
        """
        state, plan = self._fit_state, self._fit_state.plan
        goes_on = state.previous is not None and hasattr(self, "_era_labels")
        if goes_on and eras is not None and self.era_effects is not None:
            drop_held_out(self, eras.labels)  # from the raw predictions, too
        state.training_eras, state.target = eras, (y, sample_weight, eras)
        state.scoring_eras = ScoringEras(eras, eras_val)
        state.era_splitter = choose_splitter(
            self, plan, eras, y, sample_weight,
            exchange=self._exchange, penalties=state.penalties,
        )  # fmt: skip
        state.compares_eras = eras is not None and plan.compares(eras.labels.size)
        if eras is None or plan.is_plain_gain:
            return
        if state.compares_eras:
            check_splittable(eras.labels, self._exchange.sum(eras.counts), plan)
        warn_of_single_era(self, plan, eras)

    def _find_missing_values(self, X_binned: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return whether each column has missing values. If a level of intercepts is
        estimated, store the result of `constant_columns` in the state of the fit.
        """
        effects, state = intercepts_of(self), self._fit_state
        if effects is not None and effects._estimates:
            state.era_patterns = constant_columns(
                X_binned, state.training_eras, self._exchange
            )
        return self._exchange.max(find_missing_values(X_binned, self._bin_mapper))

    def _begin_tasks(
        self, X: Table, y: NDArray[Any], y_train: NDArray[Any],
        sample_weight: ArrayLike | None, eras: EncodedEras | None, first_iteration: int,
    ) -> Tasks:  # fmt: skip
        """Begin the intercepts and weights of eras; return the fit's callback tasks."""
        state, is_warm = self._fit_state, first_iteration > 0
        if state.previous is not None:
            state.previous.warn_of_other_bins(self)
        state.era_intercepts = begin_intercepts(self, eras, is_warm, self._exchange)
        state.group_dro = begin_era_weights(self, eras, is_warm, self._exchange)
        rows = TrainingRows(self, X, y, y_train, sample_weight, eras)
        n_tasks = self.max_iter - first_iteration
        return Tasks(self, rows, n_tasks)

    def _fitted_so_far(self) -> dict[str, Any]:
        """Return the attributes that the estimator has if the fit stops here."""
        return Snapshot(self).attributes()

    def _threads_of_iteration(self, n_threads: int) -> int:
        """Return how many of the fit's threads the next iteration uses."""
        state = self._fit_state
        if state.threads is None:
            state.threads = threads_of_fit(n_threads)
        return state.threads.begin_iteration()

    def _update_eras(
        self, y: Array, raw_predictions: Array, sample_weight: Array | None,
        raw_predictions_val: Array | None,
    ) -> None:  # fmt: skip
        """Update the intercepts of eras, then the weights of eras, which depend on the
        new losses. Raw predictions and weights of rows change in place.
        """
        state, raw, raw_val = self._fit_state, raw_predictions, raw_predictions_val
        dro, intercepts = state.group_dro, state.era_intercepts
        if state.base_weights is None and not (dro is intercepts is None):
            base = base_weights(self, state.training_eras, sample_weight)
            if dro is not None and base is not None:
                base = base.copy()  # of weights that change in place
            state.base_weights = base
        if intercepts is not None:
            intercepts.update(self, y, raw, state.base_weights, raw_val)
        if dro is not None:
            dro.update(self, y, raw, state.base_weights, sample_weight)

    def _first_targets(self, y: Array, sample_weight: Array | None) -> Array:
        """Return the first negative gradients, of shape (n_rows, n_outputs)."""
        start = self._loss.fit_intercept_only(y_true=y, sample_weight=sample_weight)
        raw = np.tile(np.reshape(start, (1, -1)), (y.shape[0], 1))
        raw = raw[:, 0] if raw.shape[1] == 1 else raw
        gradients = self._loss.gradient(y_true=y, raw_prediction=raw)
        return -gradients.reshape(y.shape[0], -1)

    def _make_grower(
        self, *, X_binned: NDArray[np.uint8], gradients: NDArray[np.float32],
        hessians: NDArray[np.float32], interaction_cst: Any, **parameters: Any,
    ) -> Grower:  # fmt: skip
        """Return the next tree's grower: symmetric, for eras, or scikit-learn's."""
        state, is_drawn = self._fit_state, self.colsample_bytree < 1
        parameters["interaction_cst"] = draw_tree_features(
            self._feature_subsample_rng, self._n_features, self.colsample_bytree,
            interaction_cst, state.penalties,
        )  # fmt: skip
        if hessians.size == 1:  # constant, and kept once
            total = float(hessians[0]) * X_binned.shape[0]
        else:
            total = float(hessians.sum(dtype=np.float64))
        (total,) = self._exchange.sum_of(total)
        parameters["min_gain_to_split"] = least_gain(self, total)
        if self._is_symmetric:
            parameters["l2_regularization"] *= state.mean_weight
            return SymmetricGrower(X_binned, gradients, hessians, **parameters)
        if state.era_splitter is not None:
            return EraTreeGrower(
                state.era_splitter, X_binned, gradients, hessians,
                min_hessian_to_split=MIN_HESSIAN_TO_SPLIT, sort_features=is_drawn,
                **parameters,
            )  # fmt: skip
        grower = SortedFeaturesGrower if is_drawn else TreeGrower
        return grower(X_binned, gradients, hessians, **parameters)

    def _add_tree(self, raw_predictions: Array, grower: Grower, n_threads: int) -> None:
        """Add the values of a grown tree's leaves to the raw predictions."""
        if isinstance(grower, EraTreeGrower | SymmetricGrower):
            grower.add_to(raw_predictions)
        else:
            _update_raw_predictions(raw_predictions, grower, n_threads)

    _update_leaves_values = update_leaves_values
    _shrink_leaves = shrink_leaves
