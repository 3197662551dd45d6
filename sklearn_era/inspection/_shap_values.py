"""Compute exact Shapley values of predictions, and summarise them by era."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from .._era_columns import era_columns_in, take_era_column, without_era_column
from .._era_routing import take_eras_to_predict
from .._eras import era_means, read_eras
from .._tables.columns import as_frame, columns_of_fit
from .._typing import Eras
from ._features import feature_names
from ._shapley import Array, explain


@dataclass(frozen=True, eq=False)
class ShapValues:
    """Shapley values of predictions, with the fields of ``shap.Explanation``.

    ``shap.Explanation(**result)`` takes all fields, for the plots of the package shap.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or \
            (n_samples, n_features, n_classes)
        The part of each feature in the prediction of each row.
    base_values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The rest: ``values.sum(axis=1) + base_values`` is the prediction.
    data : ndarray of shape (n_samples, n_features)
        The rows as numbers, with codes for categories.
    display_data : ndarray of shape (n_samples, n_features) or None
        The rows as given, in the columns of the fit; None if there are no categories.
    feature_names, output_names : list of str
        Names of the columns of X, and of classes (None for a single output).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import shap_values
    >>> X = np.arange(40.0).reshape(20, 2)
    >>> model = HistGradientBoostingRegressor(max_iter=1).fit(X, X[:, 0])
    >>> shap_values(model, X).values.shape
    (20, 2)
    """

    values: Array
    base_values: Array
    data: Array
    display_data: NDArray[Any] | None
    feature_names: list[str]
    output_names: list[str] | None

    def keys(self) -> list[str]:
        """Return the names of the fields, which ``**result`` needs."""
        return [field.name for field in fields(self)]

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def by_era(self, eras: Eras) -> Bunch:
        """Summarise the values of each feature in each era.

        Parameters
        ----------
        eras : array-like of shape (n_samples,)
            Era of each row.

        Returns
        -------
        summary : Bunch
            `mean_abs`, `mean` and `std` are, within each era, the mean of absolute
            values, the mean of values and their standard deviation, of shape (n_eras,
            n_features) or (n_eras, n_features, n_classes). `mean_abs_spread` and
            `mean_spread` are the standard deviations of `mean_abs` and `mean` over
            eras, each counting once, of shape (n_features,) or (n_features, n_classes).
            There are also `era_labels`, `feature_names` and `output_names`.

        Raises
        ------
        ValueError
            If a label is missing, or `eras` does not have one label for each row.
        """
        encoded = read_eras(eras, self.values, X_name="the explained X")

        def mean_of(numbers: Array) -> Array:
            return era_means(encoded.codes, np.ones(len(numbers)), numbers.T).T

        mean, mean_abs = mean_of(self.values), mean_of(np.abs(self.values))
        deviations = self.values - mean[encoded.codes]
        return Bunch(
            mean_abs=mean_abs, mean_abs_spread=mean_abs.std(axis=0), mean=mean,
            mean_spread=mean.std(axis=0), std=np.sqrt(mean_of(deviations**2)),
            era_labels=encoded.labels, feature_names=self.feature_names,
            output_names=self.output_names,
        )  # fmt: skip


def shap_values(model: BaseEstimator, X: Any, *, background: Any = None) -> ShapValues:
    """Compute the exact Shapley values of a model's predictions.

    The value of feature i is the rise of v(S), the prediction from a set S of known
    features, when i joins S, averaged over all orders of the n features [1]_ ::

        phi_i = sum_S |S|! (n - |S| - 1)! / n! (v(S + i) - v(S))

    Missing values and categories go to the same side of a split as in ``predict``.

    Parameters
    ----------
    model : HistGradientBoostingRegressor, HistGradientBoostingClassifier, \
            EraForestRegressor, EraForestClassifier, AutoEraRegressor or \
            AutoEraClassifier
        A fitted model. A booster may be scikit-learn's. Members of an AutoEra average
        may be linear if `background` is given: the value of a column is then the
        coefficient times the difference between the row and the mean of `background`.
    X : array-like of shape (n_samples, n_features)
        The rows to explain.
    background : array-like of shape (n_background, n_features), default=None
        Some hundred rows that give values to unknown features: ``v(S) = mean_b f(x_S,
        b_not S)`` ("interventional") [3]_. With None, both sides of a split by an
        unknown feature are weighted by their training rows ("path-dependent", the
        TreeSHAP of [2]_).

    Returns
    -------
    result : ShapValues
        Values of the raw prediction: logarithms with the loss "poisson" or "gamma";
        log-odds of a classifier; and for `EraForestClassifier` mean proportions, of the
        second class or of each class if there are more than two, before they are scaled
        to add up to 1. With `era_effects`, ``base_values`` holds the forecast of a new
        era or, where ``predict(X)`` reads times and groups from columns of X, the
        intercepts of each row's own time and group.

        `AutoEraClassifier`, and `AutoEraRegressor` with a log link, average the
        predictions of members after the link. Exact values of such an average are not
        known. The values returned explain the log-odds of the average if there are two
        classes, else the logarithm of the average. A feature's value is a sum over
        members: the member's exact value times the mean slope of the average in the
        member's raw prediction, along the path from the base to the row [4]_. The
        values of a row add up to the average on this scale. They are exact if all the
        weight is on one member whose raw predictions are on this scale. With two
        classes or a log link, this holds for any member except a forest.

    Raises
    ------
    ValueError, NotFittedError
        If a member of an average is neither linear nor made of trees, or is linear and
        `background` is None; if a linear member keeps predictions of these rows within
        the range of training targets, so that they are not sums; if columns are not
        those of the fit, or `model` is not fitted; or if a path in a tree has over 64
        features and `background` is given.

    References
    ----------
    .. [1] L. S. Shapley (1953), A value for n-person games. Contributions to the Theory
       of Games II.
    .. [2] S. M. Lundberg et al. (2020), From local explanations to global understanding
       with explainable AI for trees. Nature Machine Intelligence 2.
    .. [3] D. Janzing, L. Minorics, P. Bloebaum (2020), Feature relevance quantification
       in explainable AI: a causal problem. AISTATS.
    .. [4] R. J. Aumann, L. S. Shapley (1974), Values of non-atomic games. Princeton.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import shap_values
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    >>> result = shap_values(model, X)
    >>> sums = result.values.sum(axis=1) + result.base_values
    >>> bool(np.allclose(sums, model.predict(X)))
    True
    """
    background = without_era_column(model, background)
    if hasattr(model, "_group_labels"):  # a booster, which reads them in any case
        X, eras = take_era_column(X, era_columns_in(model, X))
    else:
        X, eras = take_eras_to_predict(model, X, None)
    values, base, data = explain(model, X, background, eras)
    base_values, names = base + np.zeros((len(values), 1)), None
    if base.shape[1] == 1:
        values, base_values = values[..., 0], base_values[:, 0]
    else:
        names = [str(label) for label in model.classes_]
    fitted = [model, *getattr(model, "members_", {}).values()]
    has_categories = any(np.any(getattr(x, "is_categorical_", None)) for x in fitted)
    X = columns_of_fit(model, as_frame(X))
    to_numpy = getattr(X, "to_numpy", lambda: np.asarray(X))
    shown = to_numpy() if has_categories else None
    columns = [str(name) for name in feature_names(model)]
    return ShapValues(values, base_values, data, shown, columns, names)
