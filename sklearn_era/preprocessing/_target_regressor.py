"""Fit a regressor to targets that are transformed within the era."""

import re
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils._param_validation import HasMethods

from .._era_arguments import eras_by_name, warn_of_row_order
from .._era_columns import take_era_column
from .._era_routing import PredictsByEra, ask, score, takes, takes_eras
from .._fit_attributes import restores_on_failure
from .._parameter_object import parameter, with_parameters
from .._typing import Eras, Estimator, Table
from ..model_selection import _out_of_era as out_of_era
from ..model_selection._search_scores import prediction
from ._scaler import EraTargetTransformer

# Arguments that methods of a transformer have to take.
_TAKEN = {
    "fit": ("eras", "sample_weight"),
    "transform": ("eras",),
    "inverse_transform": ("eras",),
}
# In the errors of losses that are for targets above 0, or also for 0.
_POSITIVE = re.compile(r"(negative|positive) y\b|y are out of the valid range")


@with_parameters
class EraTargetRegressor(
    RegressorMixin, PredictsByEra, MetaEstimatorMixin, BaseEstimator
):
    """Fit a regressor to targets that are transformed within each era.

    It works like :class:`~sklearn.compose.TransformedTargetRegressor`, but also passes
    the eras to the transformer.

    Parameters
    ----------
    regressor : object, default=None
        Any regressor; its `fit` is passed the eras if it takes eras. None is
        scikit-learn's :class:`~sklearn.ensemble.HistGradientBoostingRegressor`.
    transformer : object, default=None
        The transformer of targets, whose methods take eras. It brings predictions back
        to the level of their eras; None is ``EraTargetTransformer()``.

    Attributes
    ----------
    regressor_, transformer_ : object
        The regressor and the transformer, fitted.
    n_features_in_, feature_names_in_ :
        The attributes of the regressor.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn_era.preprocessing import EraTargetRegressor, EraTargetTransformer
    >>> weeks, x = np.repeat([1, 2, 3], 100), np.tile(np.arange(100.0), 3)
    >>> last = EraTargetTransformer(level="last", smooth=0)
    >>> model = EraTargetRegressor(LinearRegression(), last)
    >>> model = model.fit(x[:, np.newaxis], x + 1000 * weeks, eras=weeks)
    >>> model.predict([[5.0]]).round(6), model.predict([[5.0]], eras=[1]).round(6)
    (array([3005.]), array([1005.]))
    """

    _hands_eras_on = False  # alone: it uses them itself
    regressor: Estimator | None = parameter(
        [HasMethods(["fit", "predict"]), None], default=None, kw_only=False
    )
    transformer: Estimator | None = parameter(
        [HasMethods(["fit", "transform", "inverse_transform"]), None],
        default=None,
        kw_only=False,
    )

    @eras_by_name
    @restores_on_failure
    def fit(
        self, X: Any, y: Any = None, *, eras: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the transformer to targets, and the regressor to transformed targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y, eras : array-like of shape (n_samples,)
            Targets and eras of the rows. `eras` may name a column of X; with None, all
            rows are one era.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        self : object
            The model, fitted.
        """
        self._validate_params()
        out_of_era.check_target(y, X, self)
        X, eras = take_era_column(X, eras)
        warn_of_row_order(eras, X)
        y = column_or_1d(y, warn=True, dtype=np.float64)[:, np.newaxis]
        known = {"eras": eras, "sample_weight": sample_weight}
        regressor, transformer = self.regressor, self.transformer
        if regressor is None:
            regressor = HistGradientBoostingRegressor()
        if transformer is None:
            transformer = EraTargetTransformer()
        for method, needed in _TAKEN.items():
            for name in needed:
                if not takes(getattr(transformer, method), name):
                    raise ValueError(
                        f"transformer: the {method} of {type(transformer).__name__} "
                        f"takes no {name}; pass one by era, such as "
                        "EraTargetTransformer(), or use scikit-learn's "
                        "TransformedTargetRegressor, which transforms all rows as one."
                    )
        self.transformer_ = clone(transformer).fit(y, **known)
        least = y.min()
        y = self.transformer_.transform(y, eras=eras)[:, 0]
        params = out_of_era.fit_arguments(regressor, **known)
        try:
            self.regressor_ = out_of_era.fit_rows(regressor, X, y, params)
        except ValueError as error:
            is_below = y.min() < 0 <= least and _POSITIVE.search(str(error))
            if not is_below:
                raise
            name = type(transformer).__name__
            raise ValueError(
                f"{str(error).rstrip('.')}: the {name} shifts y, so "
                "that some targets are below 0. Pass a regressor of another loss, or "
                "transformer=EraTargetTransformer(with_centering=False)."
            ) from error
        out_of_era.take_attributes(self, self.regressor_)
        return self

    predict = prediction("predict", "targets, at the level of their eras")
    score = score

    def _ask(self, method: str, X: Table, eras: Eras | None) -> NDArray[np.float64]:
        known = eras if takes_eras(self.regressor_, method) else None
        found = np.reshape(ask(self.regressor_, method, X, known), (-1, 1))
        return self.transformer_.inverse_transform(found, eras=eras)[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.regressor is not None:
            tags.input_tags = get_tags(self.regressor).input_tags
        return tags
