"""From Parquet files to a model with a record of how it came about.

- ``fitting``: the training; ``arguments``, ``estimator_parameters``: what it is asked;
- ``era_selection``: the eras that it takes;
- ``checkpoints``: the trees so far, and ``fit_identity``, whether they are this fit's;
- ``model_store``: the model in its folder, with its record.
"""

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
