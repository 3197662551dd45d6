"""From Parquet files to a model with a record of how it came about."""

from sklearn_era.numerai.training.fitting import GAIN, MODEL, train
from sklearn_era.numerai.training.model_store import (
    ModelRecord,
    load_trained,
    save_trained,
)

__all__ = [
    "GAIN",
    "MODEL",
    "ModelRecord",
    "load_trained",
    "save_trained",
    "train",
]
