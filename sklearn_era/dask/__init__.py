"""Training on a Dask cluster, of more rows than one machine holds.

Install the extra ``dask``: ``pip install 'sklearn-era[dask]'``. On the client, ``_fit``
runs the steps: load ``_partitions``; make decisions for all rows from a ``_survey``;
make ``_bins`` of a sample; assign eras to workers (``_placement``); and let the workers
grow trees in lockstep (``_training``) over a ``_collective``. ``_cluster``
waits for workers and classifies their failures.
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
    "DaskFitError",
    "DaskHistGradientBoostingClassifier",
    "DaskHistGradientBoostingRegressor",
]
