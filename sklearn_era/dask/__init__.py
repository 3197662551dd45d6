"""Training on a Dask cluster, of more rows than one machine holds.

On the client, ``_fit`` loads ``_partitions``, makes decisions for all rows by a
``_survey``, makes ``_bins`` of a sample, assigns eras to workers (``_placement``), and
lets these grow trees in lockstep (``_training``) over a ``_collective``, and shows
their ``_progress``. ``_cluster`` waits for workers and classifies their failures.
"""

from .._optional import import_optional

for _module in ("dask.dataframe", "distributed", "xgboost"):
    import_optional(_module, extra="dask")

from ._cluster import DaskFitError  # noqa: E402
from ._estimators import (  # noqa: E402
    DaskHistGradientBoostingClassifier,
    DaskHistGradientBoostingRegressor,
)

__all__ = [
    "DaskFitError", "DaskHistGradientBoostingClassifier",
    "DaskHistGradientBoostingRegressor",
]  # fmt: skip
