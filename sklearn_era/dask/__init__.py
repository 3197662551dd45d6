"""Training on a Dask cluster, of rows that are more than one machine holds.

It needs the extra ``dask``: ``pip install 'sklearn-era[dask]'``. A fit goes through
``_fit`` on the client: ``_partitions`` are loaded, the ``_survey`` of their eras and
target decides what concerns all rows, ``_bins`` are made of a sample, ``_placement``
says which worker has which eras, and workers grow trees in lockstep by ``_training``,
over the ``_collective``. ``_progress`` follows them, and ``_cluster`` waits for all of
that, and knows what goes wrong.
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
