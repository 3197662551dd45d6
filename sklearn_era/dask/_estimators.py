"""Define the estimators, which fit and predict on a cluster."""

import copy
import functools
import inspect
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, NoReturn, Self

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client, get_client, get_worker
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import Interval

from .._fit_attributes import copy_attributes, restore_on_failure
from ..criteria._blend import as_criterion
from ..criteria._custom import CustomCriterion
from ..ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from ..model_selection._search_scores import prediction
from ._cluster import Cluster, DaskFitError
from ._fit import ClusterFit
from ._partitions import blocks_beside, blocks_of

COLLECTIONS = ("dask Array, DataFrame or Series", "dask Array")
# Parameters that local estimators lack.
_DEFAULTS = {"client": None, "timeout": 300, "shuffle": True}


def _constructor(local: BaseEstimator) -> Callable[..., None]:
    """Return the constructor of a local estimator, with the parameters `client`,
    `timeout` and `shuffle` added to it.
    """

    @functools.wraps(local.__init__)
    def __init__(self: BaseEstimator, *args: Any, **parameters: Any) -> None:
        for name, default in _DEFAULTS.items():
            setattr(self, name, parameters.pop(name, default))
        local.__init__(self, *args, **parameters)

    # scikit-learn reads the parameter names from the signature.
    known, kind = inspect.signature(local.__init__), inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter(x, kind, default=y) for x, y in _DEFAULTS.items()]
    __init__.__signature__ = known.replace(  # type: ignore[attr-defined]
        parameters=[*known.parameters.values(), *own]
    )
    return __init__


def _check_supported(estimator: BaseEstimator) -> None:
    """Raise ValueError for parameters that need all rows in one place."""
    if not isinstance(estimator.loss, str):
        raise ValueError(
            f"loss={estimator.loss!r} is an object, and workers share the means of "
            "scikit-learn's own losses only: name one, as loss='squared_error'."
        )
    if estimator.loss in ("absolute_error", "quantile"):
        raise ValueError(
            f"loss={estimator.loss!r} needs the quantiles of each leaf, for which all "
            "its rows would have to come to one worker: use another loss, or a local "
            "estimator."
        )
    criterion = as_criterion(estimator.split_criterion)
    if any(isinstance(part, CustomCriterion) for part in criterion._parts):
        raise ValueError(
            f"split_criterion={criterion!r} needs the sums of all eras in one place: "
            "use a criterion by name, or a local estimator."
        )
    if estimator.scoring != "loss":
        raise ValueError(
            f"scoring={estimator.scoring!r} needs the predictions of all rows in one "
            "place: use scoring='loss', or a local estimator."
        )


class DaskMixin:
    """Fits on a cluster, and predicts lazily; all else is as in the local estimator."""

    _local: ClassVar[Any]
    _own_constraints: ClassVar[dict[str, list[Any]]] = {
        "client": [Client, None],
        "timeout": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
    }
    client: Client | None
    timeout: int
    shuffle: bool
    classes_: NDArray[Any]
    n_trees_per_iteration_: int

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, eras: Any = None
    ) -> Self:
        """Fit the gradient boosting model on the workers of a cluster.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            The input samples.
        y : dask Array or Series of shape (n_samples,)
            Target values, in as many partitions as `X`.
        sample_weight : dask Array or Series of shape (n_samples,), default=None
            Weights of training data, 0 or more.
        eras : dask Array or Series of shape (n_samples,), default=None
            The era of each row, in a form that the local estimator takes. One worker
            trains on all rows of an era; see `shuffle`.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        TypeError
            If an argument is not a Dask collection.
        ValueError
            If the local estimator would raise it; if partitions differ in number,
            columns or types; if an era is in several partitions and ``shuffle=False``;
            or if `loss`, `split_criterion` or `scoring` needs all rows in one place.
        DaskFitError
            If a worker is gone or does not answer in time, a partition fails to load,
            or the client is closed. The next fit uses the workers that are left, and
            with ``warm_start=True`` continues after the last whole iteration.
        """
        _check_supported(self)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed.")
        try:
            get_worker()
        except ValueError:
            pass
        else:
            raise ValueError(
                "fit is called in a task of Dask, whose worker it would wait for: call "
                "it on the client."
            )
        cluster = Cluster(self._find_client(), self.timeout)
        with cluster.only_fit(), restore_on_failure(self, (DaskFitError,)):
            ClusterFit(self, cluster).run(X, y, sample_weight, eras)
        return self

    def _find_client(self) -> Client:
        try:
            client = self.client or get_client()
        except ValueError:
            raise ValueError(
                "There is no Dask client: make one, as distributed.Client(), or pass "
                "client=."
            ) from None
        if client.asynchronous:
            raise ValueError(
                "The client is asynchronous, and fit waits for its result: make one "
                "with asynchronous=False."
            )
        return client

    predict = prediction("predict", "targets or classes, lazily", *COLLECTIONS)

    def _ask(self, method: str, X: Any, eras: Any) -> da.Array:
        """Return a method's lazy predictions, partition by partition."""
        dtype: Any = np.dtype(np.float64)
        trailing: tuple[int, ...] = ()
        if method == "predict_proba":
            trailing = (self.classes_.size,)
        elif method == "decision_function" and self.n_trees_per_iteration_ > 1:
            trailing = (self.n_trees_per_iteration_,)
        elif method == "predict" and is_classifier(self):
            dtype = self.classes_.dtype
        blocks = blocks_of("X", X)
        labels = blocks_beside(X, "eras", eras)
        sizes = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(blocks)
        local = self.to_local()
        vars(local).pop("_skl_callbacks", None)
        local, predict = delayed(local), delayed(_predict_block, pure=False)
        parts = []
        for block, of_block, size in zip(blocks, labels, sizes, strict=True):
            part = predict(local, method, block, of_block, trailing, dtype)
            parts.append(da.from_delayed(part, (size, *trailing), dtype))
        return da.concatenate(parts, allow_unknown_chunksizes=True)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, eras: Any = None
    ) -> float:
        """Score predictions: by R^2 of a regressor, by accuracy of a classifier.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            The rows to predict.
        y, sample_weight, eras : dask Array or Series of shape (n_samples,)
            The targets; and weights and eras (as in `predict`), which are optional.

        Returns
        -------
        score : float
            The score, computed by the client, which gathers all predictions and `y`.
        """
        client, predicted = self._find_client(), self.predict(X, eras=eras)
        # One by one: of arrays and frames in one list, Dask mixes up the results.
        parts = [client.compute(part) for part in (y, predicted, sample_weight)]
        y, predicted, weights = client.gather(parts)
        metric = accuracy_score if is_classifier(self) else r2_score
        return metric(y, predicted, sample_weight=weights)

    def to_local(self) -> Any:
        """Make a local estimator with the same fitted model.

        Returns
        -------
        estimator : HistGradientBoostingRegressor or HistGradientBoostingClassifier
            An estimator of :mod:`sklearn_era.ensemble`, for rows on this machine.
        """
        local: Any = object.__new__(self._local)
        vars(local).update(
            (name, list(value) if name == "_predictors" else value)
            for name, value in copy_attributes(self).items()
            if name not in self._own_constraints and name != "bytes_exchanged_"
        )
        return local

    def _in_one_place(self, X: Any, *, eras: Any = None) -> NoReturn:
        """Raise TypeError, as only the local estimator has staged predictions."""
        raise TypeError(
            f"{type(self).__name__} has no staged predictions: call to_local(), and "
            "those of the local estimator, for rows that this machine holds."
        )

    staged_predict = staged_predict_proba = staged_decision_function = _in_one_place

    def __getstate__(self) -> dict[str, Any]:
        # A client is a connection of this process.
        state: Any = super().__getstate__()
        return {**state, "client": None}

    def __sklearn_clone__(self) -> Any:
        # The copy has no client: scikit-learn's clone would copy it.
        clone = super(DaskMixin, copy.copy(self)).__sklearn_clone__()  # type: ignore[misc]
        clone.client = self.client
        return clone


def _predict_block(
    local: BaseEstimator, method: str, X: Any, eras: Any, trailing: tuple[int, ...],
    dtype: Any,
) -> NDArray[Any]:  # fmt: skip
    if len(X) == 0:
        return np.empty((0, *trailing), dtype)
    return getattr(local, method)(X, **({} if eras is None else {"eras": eras}))


_DOC = """{local}, fitted on the workers of a Dask cluster.

*Experimental*: it may change without a deprecation.

Each worker trains on its own rows, which take one byte per value. For each split the
workers add up a few sums per candidate, so that the traffic of a tree depends neither
on the number of rows nor on the number of eras. Trees are those of the local estimator,
except where two splits are equally good to 12 digits. The guide lists the data that
workers send, and the limits.

Parameters
----------
*args, **parameters
    Parameters of :class:`~sklearn_era.ensemble.{local}`. `loss` must be a name other
    than ``"absolute_error"`` and ``"quantile"``, and `scoring` must be ``"loss"``. A
    worker fits on the threads that it was started with; `n_jobs` is for predictions.
client : distributed.Client, default=None
    The cluster to fit on; None for the latest client.
timeout : int, default=300
    Seconds that workers wait for each other, and the client for a worker to answer,
    before the fit ends with an error. A callback that takes longer also ends the fit.
shuffle : bool, default=True
    Whether the rows of partitions may be redistributed, if an era has rows in several
    partitions, or there are fewer partitions than workers. If False, an era in several
    partitions is an error. Whole partitions may move in any case, to balance the load.

Attributes
----------
bytes_exchanged_ : int
    The largest number of bytes that a worker sent for the sums over workers.

See Also
--------
sklearn_era.ensemble.{local} : The local estimator, with the attributes of a fit.
"""


class DaskHistGradientBoostingRegressor(DaskMixin, HistGradientBoostingRegressor):
    _local = HistGradientBoostingRegressor
    __doc__ = _DOC.format(local=_local.__name__)
    _parameter_constraints = _local._parameter_constraints | DaskMixin._own_constraints
    __init__ = _constructor(_local)


class DaskHistGradientBoostingClassifier(DaskMixin, HistGradientBoostingClassifier):
    _local = HistGradientBoostingClassifier
    __doc__ = _DOC.format(local=_local.__name__)
    _parameter_constraints = _local._parameter_constraints | DaskMixin._own_constraints
    __init__ = _constructor(_local)

    predict_proba = prediction(
        "predict_proba", "the probabilities of classes, lazily", *COLLECTIONS
    )
    decision_function = prediction(
        "decision_function", "the raw values of classes, lazily", *COLLECTIONS
    )
