"""Compute partial dependence by a walk down the trees."""

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting

from ..._trees.traversal import column_of_feature
from .._binning.read_columns import column_name
from .packed_trees import check_trees


class PartialDependenceMixin(gradient_boosting.BaseHistGradientBoosting):
    """Make `partial_dependence` vary the requested columns. Trees number features with
    categorical columns first, but scikit-learn 1.9.1 uses a column's position in X as
    its number; translate the position. The columns of X must have the same positions as
    in the fit, as positions alone are passed.
    """

    def _compute_partial_dependence_recursion(
        self, grid: NDArray[np.floating], target_features: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the mean prediction at each point of the grid. Raise ValueError for a
        categorical column, or after a fit that took a named column of eras out of X.
        """
        if (name := getattr(self, "_era_column", None)) is not None:
            raise ValueError(
                "partial_dependence by method='recursion' knows a column by its place "
                f"alone, and the fit took eras={name!r} out of X; pass method='brute'."
            )
        known, f_idx_map = self._bin_mapper.make_known_categories_bitsets()
        shapes = (0, self._n_features), (0, self.n_trees_per_iteration_)
        check_trees(self._predictors, *shapes, known, f_idx_map, "raw_left_cat_bitsets")
        targets = np.asarray(target_features, dtype=np.intp)
        if self.is_categorical_ is not None:
            for column in targets[self.is_categorical_[targets]]:
                raise ValueError(
                    "partial_dependence by method='recursion' cannot set column "
                    f"{column_name(self, column)}, which is categorical; pass "
                    "method='brute'."
                )
            targets = np.argsort(column_of_feature(self))[targets]
        return super()._compute_partial_dependence_recursion(grid, targets)
