"""What boosters and forests have alike."""

from typing import Any, ClassVar

from sklearn.callback import CallbackSupportMixin

from .._threads import ThreadsMixin
from ._binning.hooks import BinningMixin
from ._parameters import ParametersMixin, VersionedStateMixin
from ._prediction.blocks import BlockPredictionMixin
from ._prediction.partial_dependence import PartialDependenceMixin


class EraEstimatorMixin(
    ThreadsMixin,
    BlockPredictionMixin,
    PartialDependenceMixin,
    BinningMixin,
    ParametersMixin,
    VersionedStateMixin,
    CallbackSupportMixin,
):
    """What comes before scikit-learn's estimators, in the one order of the mixins."""

    # With metadata routing enabled, meta-estimators hand eras over without being told.
    __metadata_request__fit: ClassVar = {"eras": True}

    invariance_statistic: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None and self.split_criterion == "invariant":
            tags.classifier_tags.multi_class = self.invariance_statistic != "ratio"
        return tags
