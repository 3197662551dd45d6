"""Average models, with weights by the models' losses in eras they have not seen."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import validate_data

from .._era_arguments import eras_by_name
from .._era_axes import keep_pair, known_order, read_again, with_order
from .._era_labels import find
from .._era_routing import PredictsByEra, question_of, score
from .._eras import EncodedEras, read_eras
from .._fit_attributes import restores_on_failure
from .._label_columns import EraColumns
from .._parameter_object import parameter, with_parameters
from .._progress import Progress
from .._scikit_learn import check_sample_weight, names_checked_once
from .._tables.checks import check_table, names_of_columns
from .._tables.no_value import no_value_noted
from .._tables.target import check_values
from .._typing import Duration, EraOrder, Eras, Estimator, Folds, Seed, Table
from .._warnings import refuses_moved, warn_user, warned_once
from ..criteria import Gain
from ..ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from ..ensemble._parameters import check_class_weight
from ..model_selection import EraSearchCV, _out_of_era
from ..model_selection._search_scores import prediction
from ..model_selection._times_and_groups import in_order, steps_of
from ._candidates import FIRST, PLAIN, make_members, uses_eras
from ._categories import Columns, beside, columns_of, encode
from ._docstring import DOC
from ._fallback import keep
from ._member_search import PlainModelError, Rows, Search, answer, at_stage, fit_members
from ._row_losses import Loss, check_size, loss_of
from ._update import TakesInEras
from ._weights import LeftOut, diverging, promising

_OF_SEARCH = EraSearchCV._parameter_constraints


@refuses_moved(
    n_averaged="members, whose weights are found",
    scoring="the loss of the plain model, estimator",
    choose_by="EraSearchCV, which chooses by the worst era",
)
@with_parameters
class _AutoEra(TakesInEras, PredictsByEra, BaseEstimator):
    """Base class of the regressor and the classifier, which average their members."""

    _booster: ClassVar[type]

    estimator: Estimator | None = parameter(
        [HasMethods(["fit", "predict"]), None], default=None, kw_only=False
    )
    members: str | Sequence[Any] = parameter(
        [StrOptions({"default"}), list, tuple], default="default"
    )
    time_budget: float | None = parameter(
        [Interval(Real, 0, None, closed="neither"), None], default=None
    )
    random_state: Seed = parameter(["random_state"], default=None)
    cv: Folds = parameter(_OF_SEARCH["cv"], default=3)
    n_jobs: int | None = parameter(_OF_SEARCH["n_jobs"], default=None)
    verbose: int = parameter(_OF_SEARCH["verbose"], default=0)
    era_order: EraOrder = parameter(_OF_SEARCH["era_order"], default="auto")
    encode_categories: bool | str = parameter(
        [StrOptions({"auto"}), "boolean"], default="auto"
    )
    horizon: Duration = parameter(_OF_SEARCH["horizon"], default=1)
    group: str = parameter(_OF_SEARCH["group"], default="new")

    @eras_by_name
    @restores_on_failure
    def fit(
        self, X: Any, y: Any = None, *, eras: Any = None, sample_weight: Any = None
    ) -> Self:
        """Weigh members by folds of whole eras, then fit those with weight to all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.
        y, eras : array-like of shape (n_samples,)
            Targets and eras of the rows. `eras` may name a column of X; times and
            groups are two names, a frame of two columns, or a tuple of two arrays.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows, in fits and losses. Rows are left out if all rows of their
            era, or of their group, have weight 0.

        Returns
        -------
        self : object
            The model, fitted.

        Raises
        ------
        ValueError
            If the loss of the plain model is not given by name; if `members` has an
            invalid member, or a name twice; or if
            :meth:`~sklearn_era.model_selection.EraSearchCV.fit` would raise it.
        """
        self._validate_params()
        budget = self.time_budget
        deadline = None if budget is None else time.perf_counter() + budget
        check_table(X)
        _out_of_era.check_divisible(X, "AutoEra")
        plain = self._plain_model()
        plain._validate_params()
        X, y, eras, encoded, are_ordered = _out_of_era.check_rows(
            X, self._as_target(y), eras, self.era_order, "AutoEra", axes=True
        )
        _out_of_era.check_folds(self, encoded, are_ordered)
        keep_pair(self, encoded)
        self.__dict__.pop("_class_weights", None)
        if getattr(plain, "class_weight", None) is not None:
            check_class_weight(plain.class_weight)
            labels, given = np.unique(y), plain.class_weight
            found = compute_class_weight(given, classes=labels, y=y)
            self._class_weights = dict(
                zip(labels.tolist(), found.tolist(), strict=True)
            )
            plain = clone(plain).set_params(class_weight=None)
        self._plain = clone(plain)
        sample_weight = self._weights_of(X, y, sample_weight)
        rows = Rows(X, y, eras, sample_weight, encoded)
        with config_context(enable_metadata_routing=False):
            try:
                with Progress("AutoEra", self.verbose) as progress:
                    self._fit_and_weigh(plain, rows, are_ordered, deadline, progress)
            except PlainModelError:  # the error of a fit to all rows may be clearer
                given = self.members, rows, are_ordered, self.encode_categories
                plain, columns = columns_of(plain, *given)
                X = columns.of(PLAIN)
                clone(plain).fit(X, y, eras=eras, sample_weight=sample_weight)
                raise
        self.era_order_ = "ordered" if are_ordered else "unordered"
        self.__dict__.pop("update_log_", None)
        return self

    def _fit_and_weigh(
        self, plain: BaseEstimator, every: Rows, are_ordered: bool,
        deadline: float | None, progress: Progress,
    ) -> None:  # fmt: skip
        """Fit members in folds, find the members' weights, and fit members with weight
        to all rows. No fit gets the rows of eras without weight.
        """
        kept = every.encoded.rows_with_weight(every.sample_weight)
        X, y, _, _, encoded = rows = every.take(kept)
        loss = loss_of(plain)
        plain, columns = columns_of(
            plain, self.members, rows, are_ordered, self.encode_categories
        )
        by_eras, n_jobs, cv = not isinstance(self.cv, KFold), self.n_jobs, self.cv
        if not isinstance(cv, Integral | None):
            cv = check_cv(cv)  # an iterator gives its folds once
        asked = question_of(self)
        start = partial(
            Search, rows=rows, columns=columns, loss=loss, deadline=deadline,
            n_jobs=n_jobs, progress=progress,
        )  # fmt: skip
        # Codes of categories, in folds, have no names of columns.
        names = () if columns.coded is None else names_of_columns(columns.native)
        with _out_of_era.folds_warned_once(n_jobs, names=names):
            folds = self._split(cv, every, kept, are_ordered)
            members = make_members(
                plain, self.members, loss, y.size, encoded.labels.size, are_ordered,
                steps_of(asked["horizon"], encoded.labels) if are_ordered else 1,
            )  # fmt: skip
            made, order = members, known_order(encoded, are_ordered)
            members = {x: with_order(model, order) for x, model in made.items()}
            if deadline is not None and asked["group"] == "known":  # effects first
                members = dict(sorted(members.items(), key=lambda x: x[0] not in FIRST))
            search = start(members, folds=folds, by_eras=by_eras).run()
        of_eras = of_rows = search.left_out()
        again, seconds = None, search.seconds
        dropped = search.left_out([x for x in search.found if x not in search.names])
        if far := diverging(of_eras, loss) + diverging(dropped, loss):
            warn_user(
                f"members: {', '.join(far)} diverge: in eras left out their loss is "
                "over 100 times that of the mean of y. Use a smaller learning_rate, or "
                "a less skewed target, such as log(y)."
            )
        # With a gap or purge, targets of neighbouring eras overlap, and rows leak.
        leaks = any(getattr(self.cv, x, 0) for x in ("gap", "purge"))
        if search.leaves_groups_out():  # later times alone tell more, if not of groups
            cv = in_order(cv, "ordered")
            later = self._split(cv, every.of_times(), kept, are_ordered)
            names = promising(of_eras, loss)
            alike = {name: with_order(made[name], "ordered") for name in names}
            alone = rows.of_times()
            again = start(alike, rows=alone, folds=later[-1:], by_eras=True)
        elif by_eras and not leaks and y.size > 2:  # enough for three folds
            alike = {
                name: members[name]
                for name in promising(of_eras, loss)
                if name == PLAIN or not uses_eras(members[name])
            }
            of_each = list(KFold(3, shuffle=True, random_state=0).split(X))[:1]
            again = start(alike, folds=of_each, by_eras=False)
        if again is not None:
            with _out_of_era.quiet_folds(n_jobs):
                of_rows = again.run().left_out()
            seconds |= {name: seconds[name] + x for name, x in again.seconds.items()}
        stages = self._weigh(of_eras, of_rows, dropped, loss, are_ordered, progress)
        models = {name: at_stage(members[name], n) for name, n in stages.items()}
        with warned_once(), no_value_noted():  # of which the first search has warned
            self._fit_members(models, columns, rows)
        times = [seconds[name] for name in self.weights_]
        self.cv_results_["fit_time"] = np.array([*times, sum(times)])
        tested = np.concatenate([test for _, test in folds])
        self.era_labels_ = encoded.take(tested).labels
        self._known_eras = encoded.labels
        if encoded.groups is not None:
            self._known_groups = encoded.groups.labels

    def _split(
        self, cv: Folds, every: Rows, kept: NDArray[Any], are_ordered: bool
    ) -> list[Any]:
        """Return folds of the rows `kept`: pairs of arrays of indices into `kept`."""
        X, y, eras, _, encoded = every
        folds = _out_of_era.split_eras(
            cv, X, y, encoded, are_ordered, "AutoEra", tests_half=True,
            groups=encoded.codes if are_ordered else eras, rows=kept,
            horizon=self.horizon, group=self.group,
        )  # fmt: skip
        return [[np.searchsorted(kept, part) for part in fold] for fold in folds]

    def _fit_members(
        self, models: dict[str, Any], columns: Columns, rows: Rows
    ) -> None:
        """Fit each member to all rows of its columns; set `members_` and `encoder_`."""
        self._encoded = [*filter(columns.is_encoded, models)]
        y, eras, weights = rows.y, rows.eras, rows.sample_weight
        self.encoder_: Any = None
        more = columns.native
        if self._encoded:
            self.encoder_, values = encode(columns, rows, np.arange(y.size))
            more = beside(more, self.encoder_, values)

        def X_of(name: str) -> Any:
            return more if name in self._encoded else columns.of(name)

        self.members_ = fit_members(models, X_of, y, eras, weights, self.n_jobs)
        first = next(iter(self.members_.values()))
        _out_of_era.take_attributes(self, first, ["classes_"])
        validate_data(self, columns.X, skip_check_array=True)  # its number and names

    def _columns_of(self, X: Table) -> Callable[[str], Any]:
        """Return a function that takes a member's name, and returns the member's X."""
        names = vars(self).get("_encoded") or []  # files of before have none
        more = X
        if names:
            more = beside(X, self.encoder_, np.asarray(self.encoder_.transform(X)))
        return lambda name: more if name in names else X

    def _weigh(
        self, of_eras: LeftOut, of_rows: LeftOut, dropped: LeftOut, loss: Loss,
        are_ordered: bool, progress: Progress,
    ) -> dict[str, int]:  # fmt: skip
        """Set `weights_`, `era_scores_` and `cv_results_`. Return a dict from names of
        members with weight to the stage (mostly a number of trees) at which they end.
        """
        found, average = keep(of_eras, of_rows, loss, are_ordered)
        names, stages, weights = list(found.weights), found.stages, found.weights
        predicted = np.vstack([found.predicted, *dropped.at_end(), average])
        predicted[0] = of_eras.predicted[PLAIN][-1]
        losses = loss(of_eras.y, predicted)
        self.era_scores_ = -of_eras.by_era(losses)
        gains = losses[0] - losses  # NaN in folds that lack a member
        pairs = [of_eras.gain_and_error(x, are_ordered) for x in gains]
        mean, error = np.transpose(pairs)
        weights |= dict.fromkeys(dropped.predicted, 0.0)
        self.weights_ = weights
        kept = [name for name in names if weights[name] > 0]
        at_end = dict(zip(names, found.predicted[:, np.newaxis], strict=True))
        self._left_out = of_eras._replace(
            predicted={name: at_end[name] for name in kept},
            stages={name: [0] for name in kept},
        ).parts()
        self.cv_results_ = {
            "member": np.array([*weights, "average"], dtype=object),
            "stage": np.array([*(stages.get(name, 0) for name in weights), 0]),
            "mean_era_score": np.nanmean(self.era_scores_, axis=1),
            "worst_era_score": np.nanmin(self.era_scores_, axis=1),
            "mean_difference": mean,
            "se_difference": error,
            "weight": np.array([*weights.values(), 1.0]),
        }
        note = ": the plain model is kept" if kept == [PLAIN] else ""
        progress.print(
            f"has a loss {mean[-1]:.3g} (se {error[-1]:.2g}) less than the plain "
            f"model's{note}"
        )
        return {name: stages[name] for name in kept}

    def _as_target(self, y: Any) -> Any:
        """Return y as a vector, of float64 in regression."""
        if y is None:
            return None
        are_numbers = isinstance(self, RegressorMixin)
        check_values(y, are_numbers=are_numbers)
        y = column_or_1d(np.asarray(y), warn=True)
        if are_numbers:
            y = y.astype(np.float64)
            check_size(y)
        return y

    def _weights_of(
        self, X: Table, y: NDArray[Any], sample_weight: ArrayLike | None
    ) -> Any:
        """Return rows' weights times their classes' weights; None if neither exists."""
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X)
        if (known := vars(self).get("_class_weights")) is None:
            return sample_weight
        of_classes = np.array([known.get(label, 1.0) for label in y.tolist()])
        return of_classes if sample_weight is None else sample_weight * of_classes

    def _read(self, eras: Any, X: Any) -> tuple[Any, EncodedEras]:
        """Return the era label of each row, and the same labels encoded."""
        if isinstance(eras, EraColumns) and "_pair" in vars(self):
            return read_again(self, eras, X)
        encoded = read_eras(eras, X, self._known_eras)
        return encoded.decode(), encoded

    def _plain_model(self) -> Any:
        if self.estimator is None:
            gain = Gain(splitter="era")
            return self._booster(split_criterion=gain, random_state=self.random_state)
        if not isinstance(self.estimator, self._booster):
            raise ValueError(
                f"estimator must be a {self._booster.__name__} of "
                f"sklearn_era.ensemble, or None; got {type(self.estimator).__name__}. "
                "Pass other models as members, and put what prepares columns before "
                f"{type(self).__name__} in a pipeline."
            )
        plain: Any = self.estimator
        seed = self.random_state if plain.random_state is None else None
        return plain if seed is None else clone(plain).set_params(random_state=seed)

    predict = prediction("predict", "targets or classes, by the average")

    def _ask(self, method: str, X: Table, eras: Eras | None) -> NDArray[Any]:
        check_table(X)
        if eras is not None:
            eras, encoded = self._read(eras, X)
            find(self._known_eras, encoded.labels)  # of their kind
        if method == "predict" and hasattr(self, "classes_"):
            p = self._ask("predict_proba", X, eras)
            return self.classes_[p.argmax(axis=1)]
        parts, routing = [], config_context(enable_metadata_routing=False)
        with routing, names_checked_once(self, X):  # as in the fit
            X_of = self._columns_of(X)
            for name, model in self.members_.items():
                found = answer(model, method, X_of(name), eras)
                parts.append(self.weights_[name] * found)
        return np.sum(parts, axis=0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._booster() if self.estimator is None else self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


class AutoEraRegressor(RegressorMixin, _AutoEra):
    __doc__ = DOC.format(
        task="regression", suffix="Regressor", kind="HistGradientBoostingRegressor",
        classes="", class_weight="",
    )  # fmt: skip
    _booster = HistGradientBoostingRegressor
    score = score


class AutoEraClassifier(ClassifierMixin, _AutoEra):
    __doc__ = DOC.format(
        task="classification", suffix="Classifier",
        kind="HistGradientBoostingClassifier",
        class_weight=" Its\n        `class_weight` multiplies the weights of rows, for "
        "all members and losses;\n        'balanced' is computed from all rows.",
        classes="\n    classes_ : ndarray of shape (n_classes,)\n        The labels of "
        "classes.\n",
    )  # fmt: skip
    _booster = HistGradientBoostingClassifier
    score = score

    predict_proba = prediction("predict_proba", "the probabilities of classes")
