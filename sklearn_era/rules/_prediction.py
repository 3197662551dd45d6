"""Check X, predict by fitted rules, and measure rules on any rows: the share of the
positive rows, and the share of the negative rows, that each rule covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._era_columns import take_era_column, without_era_column
from .._era_labels import label_texts
from .._eras import EncodedEras, read_eras
from .._optional import import_optional
from .._scikit_learn import check_categorical_features, check_sample_weight
from .._tables.columns import INFINITE
from .._tables.target import check_y
from .._typing import Eras, Table
from ..ensemble._binning.hooks import BinningMixin
from ..ensemble._binning.rare_categories import (
    codes_of_categories,
    encoder_of,
    share_bins,
)
from ..ensemble._binning.read_columns import encode
from ..ensemble._docstrings import CLASSES, PROBABILITIES, predicts
from ._beam import Rule


@dataclass(frozen=True)
class WeightedRule:
    """A rule for a class, with a coefficient: the sum of the rule's steps."""

    rule: Rule
    text: str
    class_index: int  # in `classes_`; 1 of two
    coefficient: float  # added to the class's score, or subtracted if not covered


class RulePredictionMixin(BaseEstimator):
    """Checks X as `HistGradientBoostingClassifier` does, and predicts by rules."""

    categorical_features: Any
    classes_: NDArray[Any]
    intercept_: NDArray[np.float64]
    is_categorical_: Any  # (n_features,), bool, or None
    _bin_mapper: Any
    _preprocessor: Any
    _rules: list[WeightedRule]

    # Borrowed, since a subclass would be taken for trees. It reads `max_bins`, the most
    # categories of a column.
    max_bins = 255
    _preprocess_X = encode
    _check_categories = BinningMixin._check_categories

    def _check_categorical_features(self, X: Table) -> NDArray[np.bool_] | None:
        return check_categorical_features(X, self.categorical_features)

    def _columns_of(
        self, X: Table, *, reset: bool
    ) -> tuple[NDArray[np.float64], list[NDArray[np.float64] | None]]:
        """Return (values, categories): X as numbers, in the order of its columns; and,
        if `reset`, a list of the known categories of each column.
        """
        X = X if reset else without_era_column(self, X)
        found: Any = self._preprocess_X(X, reset=reset)
        values, known_categories = found if reset else (found, [])
        if np.isinf(values).any():
            values = np.clip(values, -INFINITE, INFINITE)
        is_categorical = self.is_categorical_
        if is_categorical is None:
            return values, [None] * values.shape[1]
        if reset:
            share_bins(self, values)
        # scikit-learn puts categorical columns first.
        place = np.argsort(np.argsort(~is_categorical, kind="stable"))
        return values[:, place], [known_categories[j] for j in place if reset]

    def _binned(self, X: Table) -> NDArray[np.uint8]:
        """Return the bins of rows to predict."""
        check_is_fitted(self)
        return self._bin_mapper.transform(self._columns_of(X, reset=False)[0])

    def _categories_by_column(self) -> dict[int, list[Any]]:
        """Return a dict from each categorical column to the categories of its bins."""
        names: dict[int, list[Any]] = {}
        for i, column in enumerate(np.flatnonzero(self.is_categorical_).tolist()):
            codes = codes_of_categories(encoder_of(self), i)
            labels = encoder_of(self).categories_[i][: codes.size]
            in_bin = np.bincount(codes)
            names[column] = labels[in_bin[codes] == 1].tolist()
            names[column] += [f"one of {n:,} others" for n in in_bin[in_bin > 1]]
        return names

    @predicts(
        "Compute the score F of each row: the log-odds of the class, or of each class.",
        """scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
    ``intercept + sum_m coefficient_m r_m(x)``, of each class if there are more than
    two.""",
    )
    def decision_function(self, X: Table) -> NDArray[np.float64]:
        X_binned = self._binned(X)
        scores = np.tile(self.intercept_, (X_binned.shape[0], 1))
        for rule in self._rules:
            sign = np.where(rule.rule.covers(X_binned), 1.0, -1.0)
            scores[:, rule.class_index] += rule.coefficient * sign
        return scores[:, 1] if self.classes_.size == 2 else scores

    @predicts(
        "Predict the probability of each class.",
        f"{PROBABILITIES[:-1]}: ``sigmoid(F)``, scaled to add up to 1.",
    )
    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        scores = self.decision_function(X)
        if scores.ndim == 1:
            probability = expit(scores)
            return np.stack([1.0 - probability, probability], axis=1)
        return softmax(log_expit(scores), axis=1)

    @predicts(
        "Predict the class of rows.",
        CLASSES.format("class of largest score; of two classes, the second if F > 0"),
    )
    def predict(self, X: Table) -> NDArray[Any]:
        scores = self.decision_function(X)
        indices = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[indices]

    def rule_table(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        eras: Eras | None = None, as_frame: bool = False,
    ) -> Any:  # fmt: skip
        """Measure the rules on any rows; `rules_` is this table for the training rows.

        Parameters
        ----------
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            The rows, and their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, or the name of the column of eras in X, for rates by era.
        as_frame : bool, default=False
            Whether to return a data frame, with a row for each rule.

        Returns
        -------
        table : :class:`~sklearn.utils.Bunch` or DataFrame
            Class by class, rules with the largest coefficients come first.

            text, class_label : ndarray of shape (n_rules,)
                The text of each rule, and its class; of two classes, the second.
            coefficient, coverage : ndarray of shape (n_rules,)
                The coefficient in log-odds; and the share of all rows that the rule
                covers.
            tpr, fpr : ndarray of shape (n_rules,)
                The share of the class's rows, and of all other rows, that the rule
                covers; NaN if there are no such rows.
            tpr_by_era, fpr_by_era : ndarray of shape (n_rules, n_eras)
                The same shares in each era, if eras are passed. A data frame has
                columns such as "tpr A" and "fpr A" for an era A.
            era_labels : ndarray of shape (n_eras,)
                The sorted labels of eras.

        Raises
        ------
        ValueError
            If `y` has a class that is unknown to the fit.
        MissingPackageError
            If pandas is not installed, with ``as_frame=True``.
        """
        X, eras = take_era_column(X, eras)
        X_binned = self._binned(X)
        y = check_y(y, self)
        check_consistent_length(X_binned, y)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y holds {unknown.tolist()[0]!r}, which is no class of the fit; those "
                f"are {', '.join(map(repr, self.classes_.tolist()))}."
            )
        weights = check_sample_weight(sample_weight, X_binned, dtype=np.float64)
        table = rate_rules(
            self._rules, X_binned, np.searchsorted(self.classes_, y), self.classes_,
            weights, None if eras is None else read_eras(eras, X),
        )  # fmt: skip
        return rates_frame(table) if as_frame else table


def rate_rules(
    rules: Sequence[WeightedRule], X_binned: NDArray[np.uint8], y: NDArray[np.intp],
    classes: NDArray[Any], sample_weight: NDArray[np.float64], eras: EncodedEras | None,
) -> Bunch:  # fmt: skip
    """Return the columns of `rule_table`; `y` holds the index of each row's class."""
    class_index = np.array([rule.class_index for rule in rules], dtype=np.intp)
    codes = np.zeros(y.size, np.intp) if eras is None else eras.codes.astype(np.intp)
    shape = 1 if eras is None else eras.labels.size, classes.size
    # Weights by era and class.
    cells = codes * classes.size + y

    def weigh(rows: Any) -> NDArray[Any]:
        n_cells = shape[0] * shape[1]
        return np.bincount(cells[rows], sample_weight[rows], n_cells).reshape(shape)

    totals = weigh(slice(None))
    by_rule = [weigh(rule.rule.covers(X_binned)) for rule in rules]
    covered = np.reshape(by_rule, (-1, *shape))
    table = Bunch(
        text=np.array([rule.text for rule in rules], dtype=object),
        class_label=classes[class_index],
        coefficient=np.array([rule.coefficient for rule in rules]),
        coverage=covered.sum(axis=(1, 2)) / totals.sum(),
    )
    of_class = np.arange(classes.size) == class_index[:, np.newaxis, np.newaxis]
    for name, which in (("tpr", of_class), ("fpr", ~of_class)):
        inside, among = (np.sum(w * which, axis=2) for w in (covered, totals))
        table[name] = _share(inside.sum(axis=1), among.sum(axis=1))
        if eras is not None:
            table[f"{name}_by_era"] = _share(inside, among)
    if eras is not None:
        table.era_labels = eras.labels
    return table


def _share(covered: Any, total: Any) -> Any:
    """Return ``covered / total``, or NaN where `total` is 0."""
    return np.divide(covered, total, out=np.full(total.shape, np.nan), where=total > 0)


def rates_frame(table: Bunch) -> Any:
    """Return the table as a data frame, with a column of each rate for each era."""
    pandas = import_optional("pandas", extra="cli")
    names = ("text", "class_label", "coefficient", "coverage", "tpr", "fpr")
    columns = {name: table[name] for name in names}
    if "era_labels" in table:
        for name in ("tpr", "fpr"):
            for j, era in enumerate(label_texts(table.era_labels)):
                columns[f"{name} {era}"] = table[f"{name}_by_era"][:, j]
    return pandas.DataFrame(columns)
