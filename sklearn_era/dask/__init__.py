"""Train on a Dask cluster, on more rows than one machine holds.

``_fit`` runs on the client: it lets workers load the ``_partitions``, makes decisions
for all rows by a ``_survey``, finds ``_bins`` from a sample of rows, and assigns eras
to workers (``_placement``). The workers then grow trees in lockstep (``_training``),
add up sums by a ``_collective``, and report their ``_progress`` to the client.
``_cluster`` waits for workers and classifies their failures.
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
