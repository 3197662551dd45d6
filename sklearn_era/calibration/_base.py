"""Define the base of conformal and calibrated models, which fits models to part of the
eras and learns from their predictions for the eras left out.
"""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    is_classifier,
    is_regressor,
)
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions

from .._era_arguments import eras_by_name
from .._era_axes import keep_pair, known_order, with_order
from .._era_routing import PredictsByEra, ask, question_of
from .._fit_attributes import restores_on_failure
from .._parameter_object import parameter, with_parameters
from .._progress import Progress
from .._scikit_learn import check_sample_weight
from ..model_selection import _out_of_era as out_of_era
from ..model_selection._search_scores import prediction
from ..model_selection._times_and_groups import is_same

Array = NDArray[np.float64]
_ASKED = {"horizon": 1, "group": "new"}  # parameters, with defaults as in `AutoEra`

DOC = """{summary}

    Parameters
    ----------
    estimator : object
        Any {task}, whose `fit` gets the eras if it takes eras.
    cv : int, splitter or iterable, default=5
        Folds of whole eras by :class:`~sklearn.model_selection.GroupKFold`{folds}.
    era_order, n_jobs :
        As in :class:`~sklearn_era.model_selection.EraSearchCV`.
    verbose : int, default=0
        1 prints a line for each fit, and the time left, with a bar if rich is installed
        and the output is a terminal.{more}

    Attributes
    ----------
    estimator_, estimators_ : object, list of object
        The model fitted to all rows, and the models fitted in the folds.
    era_labels_, era_order_ : ndarray of shape (n_eras_left_out,), str
        The eras left out, and how eras were taken: 'ordered' or 'unordered'.
{attributes}
    classes_, n_features_in_, feature_names_in_ :
        As in the model `estimator_`.
{rest}"""


def model_with(*methods: str) -> Any:
    """Return a parameter whose value must be a model with ``fit`` and these methods."""
    return parameter([HasMethods(["fit", *methods])], kw_only=False)


@with_parameters
class OutOfEra(PredictsByEra, MetaEstimatorMixin, BaseEstimator):
    """Base of estimators that learn from predictions for eras left out of the fits."""

    # From eras, folds, targets, weights and predictions of rows left out.
    _learn: ClassVar[Any]
    _walks_forward: ClassVar = True  # through ordered eras, of groups perhaps

    estimator: Any = model_with("predict")
    cv: Any = parameter(["cv_object"], default=5)
    era_order: Any = parameter(
        [StrOptions({"auto", "ordered", "unordered"})], default="auto"
    )
    n_jobs: int | None = parameter([Integral, None], default=None)
    verbose: int = parameter(["verbose"], default=0)

    @eras_by_name
    @restores_on_failure
    def fit(
        self, X: Any, y: Any = None, *, eras: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit a model in each fold, and one to all rows; learn from the eras left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y, eras : array-like of shape (n_samples,)
            Targets and eras of the rows. `eras` may name a column of X. For times and
            groups, pass two names, a frame of two columns, or a tuple of two arrays.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows, in the fits of models and within each era. Rows are in no
            fold if all rows of their era, or of their group, have weight 0.

        Returns
        -------
        self : object
            The model, fitted.

        Raises
        ------
        ValueError
            If `eras` is missing, has the wrong length, has no known order, or has fewer
            than three labels (two for unordered eras); if a target is missing; or if
            the `fit` of a model raises one.
        """
        self._validate_params()
        name = type(self).__name__
        if is_regressor(self) and is_classifier(self.estimator):
            raise ValueError(
                f"estimator must be a regressor; got {self.estimator!r}, a classifier, "
                "whose sets of classes EraConformalClassifier gives."
            )
        X, y, eras, encoded, are_ordered = out_of_era.check_rows(
            X, y, eras, self.era_order, name, axes=self._walks_forward,
            estimator=self.estimator,
        )  # fmt: skip
        self.era_order_ = "ordered" if are_ordered else "unordered"
        keep_pair(self, encoded)
        self.__dict__.pop("_known_eras", None)
        weights = check_sample_weight(sample_weight, X)
        kept = encoded.rows_with_weight(weights)
        if encoded.groups is not None:
            of_kept: Any = encoded.take(kept)
            self._known_eras = of_kept.labels
            self._known_groups = of_kept.groups.labels
        walks = self._walks_forward and are_ordered
        out_of_era.check_folds(self, encoded, walks)
        asked = {name: getattr(self, name) for name in _ASKED if hasattr(self, name)}
        folds = out_of_era.split_eras(
            self.cv, X, y, encoded, walks, name, rows=kept, **asked
        )
        order = known_order(encoded, are_ordered)
        model = with_order(self.estimator, order)
        # A model that asks the same question is asked it, unless it has one of its own.
        own = model.get_params(deep=False)
        if isinstance(own.get("cv"), Integral | None):  # else by its splitter
            same = [x for x in asked if x in own and is_same(own[x], _ASKED[x])]
            same = same if are_ordered else []
            question = question_of(self)
            model.set_params(**{x: question[x] for x in same})
        given = None if sample_weight is None else weights
        params = out_of_era.fit_arguments(model, eras, given)
        once = out_of_era.folds_warned_once(self.n_jobs)
        with once, Progress(name, self.verbose) as progress:
            progress.expect(len(folds) + 1)
            self.estimators_ = out_of_era.fit_folds(
                model, X, y, encoded, folds, params, self.n_jobs, progress
            )
            self.estimator_ = out_of_era.fit_rows(model, X, y, params)
            progress.step(1, "all rows")
        out_of_era.take_attributes(self, self.estimator_)
        known = getattr(self, "classes_", None)
        y = np.asarray(y, dtype=np.float64) if known is None else y
        is_known = np.isfinite(y) if known is None else np.isin(y, known)
        if not is_known.all():  # in the rows to calibrate a frozen model by
            row = int(is_known.argmin())
            raise ValueError(
                f"y is missing, infinite or no class of the estimator in "
                f"{(~is_known).sum()} row(s), the first row {row} ({y[row]!s}): drop "
                "these rows."
            )
        tests = [test for _, test in folds]
        predicted = [
            self._respond(one, *(_safe_indexing(x, test) for x in (X, eras)))
            for one, test in zip(self.estimators_, tests, strict=True)
        ]
        rows = np.concatenate(tests)
        _, places, n_tests = np.unique(rows, return_inverse=True, return_counts=True)
        weights = weights[rows] / n_tests[places]  # a row counts once in all its tests
        if encoded.groups is not None:  # those that are fewer: their chance is larger
            axes = encoded, encoded.groups
            encoded = min(axes, key=lambda x: np.unique(x.codes[rows]).size)
        codes = encoded.codes[rows]
        has_weight = (np.bincount(codes, weights) > 0)[codes]
        weighed = encoded.take(rows[has_weight])
        self.era_labels_ = weighed.labels
        numbers = np.repeat(np.arange(len(tests)), [test.size for test in tests])
        left_out = numbers, y[rows], weights, np.concatenate(predicted)
        self._learn(weighed.codes, *(values[has_weight] for values in left_out))
        return self

    def _respond(self, model: Any, X: Any, eras: Any = None) -> Array:
        """Return predictions for X; from a classifier, probabilities of all classes."""
        return out_of_era.respond(model, X, getattr(self, "classes_", None), eras)

    predict = prediction("predict", "targets or classes")

    def _ask(self, method: str, X: Any, eras: Any) -> Any:
        return ask(self.estimator_, method, X, eras)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
