"""Define the base class that boosters and forests share."""

from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._scikit_learn import CallbackSupportMixin
from .._threads import ThreadsMixin
from .._trees.traversal import gains_by_column
from ._binning.hooks import BinningMixin
from ._parameters import ParametersMixin, VersionedStateMixin
from ._prediction.blocks import BlockPredictionMixin
from ._prediction.partial_dependence import PartialDependenceMixin


class EraEstimatorMixin(
    ThreadsMixin, BlockPredictionMixin, PartialDependenceMixin, BinningMixin,
    ParametersMixin, VersionedStateMixin, CallbackSupportMixin,
):  # fmt: skip
    """Join the mixins of boosters and forests, in the order that inheritance needs."""

    # With metadata routing enabled, meta-estimators pass eras on without a request.
    __metadata_request__fit: ClassVar = {"eras": True}

    _predictors: list[list[Any]]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the gains of all splits; 0 if there is no split."""
        check_is_fitted(self)
        gains = gains_by_column(self, chain.from_iterable(self._predictors))
        return gains / (gains.sum() or 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            needs_target = getattr(self.split_criterion, "_needs_target", False)
            tags.classifier_tags.multi_class = not needs_target
        return tags
