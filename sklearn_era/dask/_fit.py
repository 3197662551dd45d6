"""The client's side of ``fit``: its steps, run on the workers that hold the rows."""

import copy
import uuid
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_monotonic_cst, _check_y

from .._scikit_learn import check_categorical_features
from .._warnings import warn_user
from ..ensemble._binning.errors import feature_columns, raise_column_error
from ..ensemble._binning.integer_columns import UnbinnedRows
from ..ensemble._binning.thresholds import set_thresholds
from ..ensemble._fit_state import begin_fit
from . import _bins, _partitions, _survey
from ._cluster import Cluster, DaskFitError
from ._collective import start_tracker, stop_tracker
from ._partitions import PartSummary
from ._placement import find_places, shuffle_parts
from ._progress import Progress, is_resumed
from ._survey import Encoding, Survey
from ._training import train

# Seconds for the members of a group to leave it after a failure.
_GRACE = 5


class ClusterFit:
    """One ``fit``, by `run`; the estimator is updated after each iteration."""

    def __init__(self, estimator: Any, cluster: Cluster):
        self.estimator = estimator
        self.cluster = cluster
        self.client = cluster.client
        # Futures that are not released yet.
        self._futures: weakref.WeakSet = weakref.WeakSet()

    def run(self, X: Any, y: Any, sample_weight: Any, eras: Any) -> None:
        estimator = self.estimator
        estimator._fit_state = begin_fit(estimator)
        try:
            parts, summaries = self._load(X, y, sample_weight, eras)
            known_categories = self._prepare_columns(parts, summaries)
            values = np.unique(np.concatenate([each.y_values for each in summaries]))
            # Repeated: scikit-learn takes values that are all unique for numbers.
            estimator._encode_y(_check_y(values.repeat(3), estimator=estimator))
            has_classes = is_classifier(estimator)
            classes = estimator.classes_ if has_classes else None
            survey = Survey.of(summaries, eras is not None, classes)
            random_state = self._prepare_parameters(survey)
            encoding, training_rows = _survey.decide(
                estimator, survey, partial(self._gather_rows, parts)
            )
            n_trained = survey.training_rows(encoding, training_rows)
            parts = self._encode(parts, survey, encoding, training_rows)
            mapper = _bins.new_mapper(estimator, known_categories)
            factors = encoding.class_weights, encoding.era_weights
            is_weighted = any(x is not None for x in (sample_weight, *factors))
            drawn = self._draw(mapper, parts, n_trained, is_weighted, training_rows)
            self._find_bins(mapper, parts, drawn, known_categories)
            local = self._local_estimator(encoding, random_state, mapper)
            local._known_categories = known_categories
            shards = self._place(parts, n_trained, survey, encoding, local, is_weighted)
            estimator._bin_mapper = mapper  # for a fit that is interrupted, too
            self._train(local, shards, encoding)
            self._set_weighted(sample_weight is not None, encoding)
        except BaseException:
            # The error's traceback would keep them on the workers.
            self.cluster.cancel(list(self._futures))
            raise

    def _load(
        self, X: Any, y: Any, sample_weight: Any, eras: Any
    ) -> tuple[list[Future], list[PartSummary]]:
        """Load the parts on workers; return those with rows, and their summaries."""
        parts = _partitions.delay_parts(X, y, sample_weight, eras)
        futures = self.client.compute(parts)
        self._futures.update(futures)
        summaries = self.cluster.gather(
            self._map(
                _partitions.summarize,
                futures,
                has_classes=is_classifier(self.estimator),
            ),
            _blame_partition,
        )
        empty = [i for i, summary in enumerate(summaries) if summary.n_rows == 0]
        if len(empty) == len(summaries):
            raise ValueError("X has no rows: pass some to train on.")
        if empty:
            warn_user(f"Partition {empty[0]} of X has no rows; it is left out.")
        _partitions.check_alike(summaries)
        for message, category in dict.fromkeys(
            each for summary in summaries for each in summary.warnings
        ):
            warn_user(message, category)
        kept = [i for i, summary in enumerate(summaries) if summary.n_rows]
        return [futures[i] for i in kept], [summaries[i] for i in kept]

    def _prepare_columns(
        self, parts: Sequence[Future], summaries: Sequence[PartSummary]
    ) -> list[NDArray[np.float64] | None] | None:
        """Fit the estimator's preprocessing of X; return the known categories."""
        estimator, rows = self.estimator, summaries[0].head
        is_categorical = check_categorical_features(
            rows, estimator.categorical_features
        )
        if is_categorical is not None:
            found = self.cluster.gather(
                self._map(
                    _partitions.categories_of, parts, is_categorical=is_categorical
                )
            )
            rows, estimator._fit_state.rows_of_values = _partitions.frame_of_categories(
                rows, is_categorical, found
            )
        try:
            _, known_categories = estimator._preprocess_X(rows, reset=True)
        except (TypeError, ValueError) as error:
            raise_column_error(rows, error)
            raise
        return known_categories

    def _prepare_parameters(self, survey: Survey) -> np.random.RandomState:
        """Check parameters and draw seeds; return the workers' common random state."""
        estimator = self.estimator
        n_features = estimator.n_features_in_
        if survey.n_rows >= 2**32:
            raise ValueError(
                f"X has {survey.n_rows} rows, and the trees count up to {2**32 - 1}: "
                "fit to fewer."
            )
        rows = UnbinnedRows(survey.n_rows, n_features)
        estimator._check_eras(survey.eras, rows, None, None)
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
            estimator.do_early_stopping_ = survey.n_rows > 10_000
        return of_workers

    def _gather_rows(
        self, parts: Sequence[Future], encoding: Encoding
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The codes of eras and the encoded target of all rows."""
        found = self.cluster.gather(
            self._map(_survey.codes_and_target, parts, encoding=encoding)
        )
        codes, target = (np.concatenate(each) for each in zip(*found, strict=True))
        return codes, target

    def _encode(
        self,
        parts: Sequence[Future],
        survey: Survey,
        encoding: Encoding,
        training_rows: NDArray[np.intp] | None,
    ) -> list[Future]:
        held_out: list[Any] = [None] * len(parts)
        if training_rows is not None:
            is_held_out = np.ones(survey.n_rows, dtype=bool)
            is_held_out[training_rows] = False
            held_out = np.split(is_held_out, survey.starts[1:-1])
        return [
            self._submit(_survey.encode_part, part, encoding, int(start), rows)
            for part, start, rows in zip(parts, survey.starts, held_out, strict=False)
        ]

    def _draw(
        self,
        mapper: _BinMapper,
        parts: Sequence[Future],
        n_trained: NDArray[np.intp],
        is_weighted: bool,
        training_rows: NDArray[np.intp] | None,
    ) -> list[NDArray[np.intp] | None]:
        """Draw the rows of each part for finding bins."""
        weights = None
        if is_weighted and n_trained.sum() > mapper.subsample:
            found = self.cluster.gather(self._map(_survey.training_weights, parts))
            weights = np.concatenate(found)
        return _bins.draw_sample(mapper, n_trained, weights, training_rows)

    def _find_bins(
        self,
        mapper: _BinMapper,
        parts: Sequence[Future],
        drawn: Sequence[NDArray[np.intp] | None],
        known_categories: list[NDArray[np.float64] | None] | None,
    ) -> None:
        """Fit the mapper as scikit-learn would on all training rows."""
        estimator = self.estimator
        self.cluster.wait(parts)
        held: dict[str, list[int]] = {}
        for i, holder in enumerate(self.cluster.holders(parts)):
            held.setdefault(holder, []).append(i)
        samples = [
            self._submit(
                _bins.take_sample,
                [parts[i] for i in of_worker],
                [drawn[i] for i in of_worker],
                estimator._preprocessor,
            )
            for of_worker in held.values()
        ]
        categories = known_categories or [None] * estimator.n_features_in_
        blocks = _bins.find_blocks(samples, estimator, categories)
        thresholds = self.cluster.gather(self.client.compute(blocks))
        set_thresholds(
            mapper,
            [each for block in thresholds for each in block],
            feature_columns(estimator),
        )

    def _local_estimator(
        self,
        encoding: Encoding,
        random_state: np.random.RandomState,
        mapper: _BinMapper,
    ) -> Any:
        """The estimator for the workers, with all global decisions made."""
        local = self.estimator.to_local()
        if not is_resumed(self.estimator):
            vars(local).pop("_predictors", None)
        vars(local).pop("_skl_callbacks", None)
        local.set_params(
            random_state=random_state,
            early_stopping=local.do_early_stopping_,
            verbose=0,
            n_jobs=None,
        )
        if encoding.classes is not None:
            local.class_weight = None
        local._shard_mapper, local._training_factors = mapper, None
        if encoding.era_weights is not None:
            local._training_factors = encoding.era_weights[encoding.is_trained]
        return local

    def _place(
        self,
        parts: list[Future],
        n_trained: NDArray[np.intp],
        survey: Survey,
        encoding: Encoding,
        local: Any,
        is_weighted: bool,
    ) -> dict[str, Future]:
        """Make the shard of each worker with training rows, by address."""
        holders = self.cluster.holders(parts)
        places, used, moves = find_places(
            survey,
            encoding,
            n_trained,
            holders,
            self.cluster.addresses,
            self.estimator.shuffle,
        )
        sent = self.cluster.send(local)
        # Bin rows before they leave their worker.
        for i, holder in enumerate(holders):
            if moves or holder != used[places[i]]:
                parts[i] = self._submit(_bins.bin_part, parts[i], sent)
        if moves:
            with self.client.as_current():
                rows = shuffle_parts(
                    parts, places, len(used), local.n_features_in_, is_weighted
                )
                moved = self.client.compute(rows)
            self._futures.update(moved)
            parts[:] = moved
            del moved, rows
            places = np.arange(len(used))
        shards = {
            address: self._submit(
                _bins.make_shard,
                [parts[i] for i in np.flatnonzero(places == worker)],
                sent,
                encoding,
                workers=[address],
                allow_other_workers=False,
            )
            for worker, address in enumerate(used)
        }
        parts.clear()  # each is released once its shard is made
        self.cluster.wait(list(shards.values()), used)
        return shards

    def _train(self, local: Any, shards: dict[str, Future], encoding: Encoding) -> None:
        """Fit on all shards, and copy the first worker's fitted attributes."""
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
                futures = {
                    address: self._submit(
                        train,
                        sent,
                        shard,
                        encoding.training_labels,
                        fit_id,
                        rank,
                        group,
                        cluster.timeout,
                        hasattr(estimator, "_skl_callbacks"),
                        workers=[address],
                        allow_other_workers=False,
                    )
                    for rank, (address, shard) in enumerate(shards.items())
                }
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

    def _set_weighted(self, has_weights: bool, encoding: Encoding) -> None:
        """Record whether rows were weighted, for scikit-learn's partial dependence."""
        vars(self.estimator).pop("_fitted_with_sw", None)
        is_reweighted = hasattr(self.estimator, "_era_log_weights")
        if has_weights or encoding.era_weights is not None or is_reweighted:
            self.estimator._fitted_with_sw = True

    def _submit(self, function: Any, *args: Any, **options: Any) -> Future:
        future = self.client.submit(function, *args, **options, pure=False)
        self._futures.add(future)
        return future

    def _map(self, function: Any, parts: Sequence[Future], **arguments: Any) -> Any:
        return [self._submit(function, part, **arguments) for part in parts]


def _blame_partition(i: int, error: BaseException) -> Exception:
    message = f"Partition {i} of X: {error}"
    for kind in (TypeError, ValueError):
        if isinstance(error, kind):
            return kind(message)
    return DaskFitError(f"{message} ({type(error).__name__})")
