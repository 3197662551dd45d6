"""Transform columns and targets by the statistics of each era."""

from ._neutralizer import EraNeutralizer
from ._ranks import EraRankTransformer
from ._scaler import EraStandardScaler, EraTargetTransformer
from ._target_encoder import EraTargetEncoder
from ._target_regressor import EraTargetRegressor

__all__ = [
    "EraNeutralizer", "EraRankTransformer", "EraStandardScaler", "EraTargetEncoder",
    "EraTargetRegressor", "EraTargetTransformer",
]  # fmt: skip
