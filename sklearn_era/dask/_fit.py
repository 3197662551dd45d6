"""Run ``fit`` from the client, step by step, on the workers that hold the rows."""

import copy
import uuid
import weakref
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from distributed import Future
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_monotonic_cst

from .._scikit_learn import check_categorical_features
from .._tables.target import check_y
from .._warnings import warn_user
from ..ensemble._binning.integer_columns import UnbinnedRows
from ..ensemble._binning.read_columns import feature_columns
from ..ensemble._binning.thresholds import set_thresholds
from ..ensemble._fit_state import begin_fit
from . import _bins, _partitions, _survey
from ._cluster import Cluster, DaskFitError
from ._collective import start_tracker, stop_tracker
from ._partitions import Codes, Floats, Ints, PartSummary
from ._placement import find_places, shuffle_parts
from ._progress import Progress, is_resumed
from ._survey import Encoding, Survey
from ._training import train

# Seconds for the members of a group to leave it after a failure.
_GRACE = 5


class ClusterFit:
    """A ``fit`` on a cluster. `run` carries it out, and updates the estimator."""

    parts: list[Future]  # of the rows, as they are by the steps so far
    survey: Survey
    encoding: Encoding
    mapper: _BinMapper
    n_trained: Ints  # rows to train on, by part
    is_weighted: bool

    def __init__(self, estimator: BaseEstimator, cluster: Cluster):
        self.estimator = estimator
        self.cluster = cluster
        self.client = cluster.client
        # Futures that are not released yet.
        self._futures: weakref.WeakSet = weakref.WeakSet()

    def run(self, X: Any, y: Any, sample_weight: Any, eras: Any) -> None:
        estimator = self.estimator
        estimator._fit_state = begin_fit(estimator)
        try:
            summaries = self._load(X, y, sample_weight, eras)
            known_categories = self._prepare_columns(summaries)
            values = np.unique(np.concatenate([each.y_values for each in summaries]))
            # Repeated: scikit-learn takes values that are all unique for numbers.
            estimator._encode_y(check_y(values.repeat(3), estimator))
            classes = estimator.classes_ if is_classifier(estimator) else None
            self.survey = Survey.of(summaries, eras is not None, classes)
            random_state = self._prepare_parameters()
            encoding, training_rows = _survey.decide(
                estimator, self.survey, self._gather_rows
            )
            self.encoding = encoding
            self.n_trained = self.survey.training_rows(encoding, training_rows)
            self._encode(training_rows)
            self.mapper = _BinMapper(
                n_bins=estimator.max_bins + 1, known_categories=known_categories,
                is_categorical=estimator._is_categorical_remapped,
                random_state=estimator._random_seed, n_threads=1,
            )  # fmt: skip
            factors = encoding.class_weights, encoding.era_weights
            self.is_weighted = any(x is not None for x in (sample_weight, *factors))
            self._find_bins(training_rows, known_categories)
            local = self._local_estimator(random_state)
            local._known_categories = known_categories
            shards = self._place(local)
            estimator._bin_mapper = self.mapper  # for a fit that is interrupted, too
            self._train(local, shards)
            self._set_weighted(sample_weight is not None)
        except BaseException:
            # The error's traceback would keep them on the workers.
            self.cluster.cancel(list(self._futures))
            raise

    def _load(self, X: Any, y: Any, sample_weight: Any, eras: Any) -> list[PartSummary]:
        """Load parts on workers; drop empty parts, and return the other summaries."""
        has_classes = is_classifier(self.estimator)
        parts = _partitions.delay_parts(X, y, sample_weight, eras, has_classes)
        self.parts = self.client.compute(parts)
        self._futures.update(self.parts)
        summaries = self._ask_parts(
            _partitions.summarize, _blame_partition, has_classes=has_classes
        )
        kept = [i for i, summary in enumerate(summaries) if summary.n_rows]
        if not kept:
            raise ValueError("X has no rows: pass some to train on.")
        empty = np.setdiff1d(np.arange(len(summaries)), kept)
        if empty.size:
            warn_user(f"Partition {empty[0]} of X has no rows; it is left out.")
        _partitions.check_alike({i: summaries[i] for i in kept})
        _partitions.warn_of_row_order(summaries)
        for message, category in dict.fromkeys(
            each for summary in summaries for each in summary.warnings
        ):
            warn_user(message, category)
        self.parts = [self.parts[i] for i in kept]
        return [summaries[i] for i in kept]

    def _prepare_columns(
        self, summaries: Sequence[PartSummary]
    ) -> list[Floats | None] | None:
        """Fit the preprocessing of X; return the known categories of each column, or
        None if no column is categorical.
        """
        estimator, rows = self.estimator, summaries[0].head
        is_categorical = check_categorical_features(
            rows, estimator.categorical_features
        )
        if is_categorical is not None:
            found = self._ask_parts(
                _partitions.categories_of, is_categorical=is_categorical
            )
            rows, estimator._fit_state.rows_of_values = _partitions.frame_of_categories(
                rows, is_categorical, found
            )
        return estimator._preprocess_X(rows, reset=True)[1]

    def _prepare_parameters(self) -> np.random.RandomState:
        """Check parameters and draw seeds; return a random state for all workers."""
        estimator, n_rows = self.estimator, self.survey.n_rows
        n_features = estimator.n_features_in_
        if n_rows >= 2**32:
            raise ValueError(
                f"X has {n_rows} rows, and the trees count up to {2**32 - 1}: fit to "
                "fewer."
            )
        if not isinstance(estimator.era_order, str):
            raise ValueError(
                f"era_order={estimator.era_order!r} is for two columns of eras, which "
                "fits by Dask do not take: pass the times alone."
            )
        rows = UnbinnedRows(n_rows, n_features)
        estimator._check_eras(self.survey.eras, rows, None, None)
        random_state = check_random_state(estimator.random_state)
        of_workers = copy.deepcopy(random_state)
        if not is_resumed(estimator):
            largest = np.iinfo(np.uint32).max
            estimator._random_seed, seed = (
                random_state.randint(largest, dtype="u8") for _ in range(2)
            )
            estimator._feature_subsample_rng = np.random.default_rng(seed)
        estimator._validate_parameters()
        _check_monotonic_cst(estimator, estimator.monotonic_cst)
        estimator._check_interaction_cst(n_features)
        estimator.do_early_stopping_ = estimator.early_stopping
        if estimator.early_stopping == "auto":
            estimator.do_early_stopping_ = n_rows > 10_000
        return of_workers

    def _gather_rows(self, encoding: Encoding) -> tuple[Codes, Floats]:
        """Return the era codes and encoded targets of all rows, from the workers."""
        found = self._ask_parts(_survey.codes_and_target, encoding=encoding)
        codes, target = map(np.concatenate, zip(*found, strict=True))
        return codes, target

    def _encode(self, training_rows: Ints | None) -> None:
        held_out: list[Any] = [None] * len(self.parts)
        if training_rows is not None:
            is_held_out = np.ones(self.survey.n_rows, dtype=bool)
            is_held_out[training_rows] = False
            held_out = np.split(is_held_out, self.survey.starts[1:-1])
        self.parts = [
            self._submit(_survey.encode_part, part, self.encoding, int(start), rows)
            for part, start, rows in zip(
                self.parts, self.survey.starts[:-1], held_out, strict=True
            )
        ]

    def _find_bins(
        self, training_rows: Ints | None, known_categories: list[Floats | None] | None
    ) -> None:
        """Set the thresholds of `mapper` to the thresholds that scikit-learn would find
        in all training rows.
        """
        estimator, mapper, weights = self.estimator, self.mapper, None
        if self.is_weighted and self.n_trained.sum() > mapper.subsample:
            weights = np.concatenate(self._ask_parts(_survey.training_weights))
        drawn = _bins.draw_sample(mapper, self.n_trained, weights, training_rows)
        self.cluster.wait(self.parts)
        held: dict[str, list[int]] = {}
        for i, holder in enumerate(self.cluster.holders(self.parts)):
            held.setdefault(holder, []).append(i)
        samples = [
            self._submit(
                _bins.take_sample, [self.parts[i] for i in of_worker],
                [drawn[i] for i in of_worker], estimator._preprocessor,
            )
            for of_worker in held.values()
        ]  # fmt: skip
        categories = known_categories or [None] * estimator.n_features_in_
        blocks = _bins.find_blocks(samples, estimator, categories)
        thresholds = chain(*self.cluster.gather(self.client.compute(blocks)))
        set_thresholds(mapper, list(thresholds), feature_columns(estimator))

    def _local_estimator(self, random_state: np.random.RandomState) -> Any:
        """Return the local estimator that workers fit, with the client's decisions."""
        local = self.estimator.to_local()
        if not is_resumed(self.estimator):
            vars(local).pop("_predictors", None)
        vars(local).pop("_skl_callbacks", None)
        local.set_params(
            random_state=random_state, early_stopping=local.do_early_stopping_,
            verbose=0, n_jobs=None,
        )  # fmt: skip
        if self.encoding.classes is not None:
            local.class_weight = None
        local._shard_mapper, local._era_factors = self.mapper, None
        if (factors := self.encoding.era_weights) is not None:
            local._era_factors = self.encoding.era_labels, factors
        return local

    def _place(self, local: BaseEstimator) -> dict[str, Future]:
        """Make a shard of rows on each worker; return the futures by worker address."""
        parts, holders = self.parts, self.cluster.holders(self.parts)
        addresses, shuffle = self.cluster.addresses, self.estimator.shuffle
        places, used, moves = find_places(
            self.survey, self.encoding, self.n_trained, holders, addresses, shuffle
        )
        sent = self.cluster.send(local)
        # Bin rows before they leave their worker.
        for i, holder in enumerate(holders):
            if moves or holder != used[places[i]]:
                parts[i] = self._submit(_bins.bin_part, parts[i], sent)
        if moves:
            with self.client.as_current():
                rows = shuffle_parts(
                    parts, places, len(used), local.n_features_in_, self.is_weighted
                )
                moved = self.client.compute(rows)
            self._futures.update(moved)
            parts[:] = moved
            del moved, rows
            places = np.arange(len(used))
        shards = {
            address: self._submit(
                _bins.make_shard, [parts[i] for i in np.flatnonzero(places == worker)],
                sent, self.encoding, workers=[address],
            )
            for worker, address in enumerate(used)
        }  # fmt: skip
        parts.clear()  # each is released once its shard is made
        self.cluster.wait(list(shards.values()), used)
        return shards

    def _train(self, local: BaseEstimator, shards: dict[str, Future]) -> None:
        """Fit on all shards; take over the fitted attributes of the first worker."""
        estimator, cluster = self.estimator, self.cluster
        fit_id = uuid.uuid4().hex
        first, group = next(iter(shards)), None
        progress = Progress(estimator, cluster, fit_id, first, local)
        futures: dict[str, Future] = {}
        try:
            with cluster.messages(fit_id) as messages:
                if len(shards) > 1:
                    group = cluster.run_on(
                        first, start_tracker, fit_id, len(shards), cluster.timeout
                    )
                sent = cluster.send(local)
                labels = self.encoding.era_labels
                if labels is not None:
                    labels = labels[self.encoding.is_trained]
                has_callbacks = hasattr(estimator, "_skl_callbacks")
                futures = {
                    address: self._submit(
                        train, sent, shard, labels, fit_id, rank, group,
                        cluster.timeout, has_callbacks, workers=[address],
                    )
                    for rank, (address, shard) in enumerate(shards.items())
                }  # fmt: skip
                outcomes = cluster.gather_outcomes(futures, progress.handle, messages)
        except BaseException:
            cluster.post(first, stop_tracker, fit_id, _GRACE)
            raise
        finally:
            # Even if the fit still runs after an interrupt.
            cluster.cancel(list(futures.values()))
        outcome = outcomes[0]
        vars(estimator).update(outcome.fitted)
        estimator.bytes_exchanged_ = max(each.n_bytes for each in outcomes)
        for message, category in outcome.warnings:
            warn_user(message, category)
        progress.end()

    def _set_weighted(self, has_weights: bool) -> None:
        """Record whether rows were weighted, for scikit-learn's partial dependence."""
        vars(self.estimator).pop("_fitted_with_sw", None)
        is_reweighted = hasattr(self.estimator, "_era_log_weights")
        if has_weights or self.encoding.era_weights is not None or is_reweighted:
            self.estimator._fitted_with_sw = True

    def _submit(
        self, function: Callable[..., Any], *args: Any, **options: Any
    ) -> Future:
        future = self.client.submit(function, *args, **options, pure=False)
        self._futures.add(future)
        return future

    def _ask_parts(
        self, function: Callable[..., Any], blame: Any = None, **arguments: Any
    ) -> Any:
        """Return a function's result for each part; ``blame(i, error)`` makes the error
        to raise if the function fails for part i.
        """
        futures = [self._submit(function, part, **arguments) for part in self.parts]
        return self.cluster.gather(futures, blame)


def _blame_partition(i: int, error: BaseException) -> Exception:
    message = f"Partition {i} of X: {error}"
    for kind in (TypeError, ValueError):
        if isinstance(error, kind):
            return kind(message)
    return DaskFitError(f"{message} ({type(error).__name__})")
