"""Join the summaries of all parts on the client, and decide there on matters of all
rows, such as the classes, the eras and the weights of classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.class_weight import compute_class_weight

from .._era_labels import categories_of, find, in_order_of, join, merged_categories
from .._eras import EncodedEras, check_splittable, encode_eras, is_fixed, weigh_eras
from ..ensemble._boosters.held_out_eras import (
    check_rows_left,
    no_weight,
    split_rows_of_eras,
    warn_of_unseen_classes,
)
from ..ensemble._parameters import check_class_weight
from ._partitions import Codes, Flags, Floats, Ints, Part, PartSummary


@dataclass
class Survey:
    """The summaries of all parts joined: eras, classes and numbers of rows."""

    starts: Ints  # (n_parts + 1,), the number of a part's first row
    eras: EncodedEras | None  # all labels, and codes of each part's eras
    parts_of_eras: Ints  # the part of each code
    counts: Floats  # of rows, (n_codes, n_classes)
    weights: Floats  # as `counts`

    @classmethod
    def of(
        cls, summaries: Sequence[PartSummary], has_eras: bool,
        classes: NDArray[Any] | None,
    ) -> "Survey":  # fmt: skip
        """Return the merged summaries of parts; `classes` is None in regression."""
        n_classes = 1 if classes is None else classes.size
        tables = []
        for summary in summaries:
            table = np.zeros((2, summary.era_labels.size, n_classes))
            at = [0] if classes is None else np.searchsorted(classes, summary.y_values)
            table[:, :, at] = summary.counts, summary.weights
            tables.append(table)
        counts, weights = np.concatenate(tables, axis=1)
        sizes = [summary.era_labels.size for summary in summaries]
        eras = None
        if has_eras:
            labels = [s.era_labels for s in summaries]
            orders = [x for x in map(categories_of, labels) if x is not None]
            joined = reduce(join, map(np.asarray, labels))
            if len(orders) == len(labels):
                joined = in_order_of(merged_categories(orders), joined)
            eras = encode_eras(joined)
        n_rows = [0, *(summary.n_rows for summary in summaries)]
        starts = np.cumsum(n_rows, dtype=np.intp)
        parts = np.repeat(np.arange(len(summaries)), sizes)
        return cls(starts, eras, parts, counts, weights)

    @property
    def n_rows(self) -> int:
        return int(self.starts[-1])

    @property
    def era_counts(self) -> Ints:
        """Return the number of rows of each era in all parts."""
        assert self.eras is not None
        rows = self.counts.sum(axis=1)
        return np.bincount(self.eras.codes, rows).astype(np.intp)

    def training_rows(self, encoding: "Encoding", drawn: Ints | None) -> Ints:
        """Return how many training rows each part has. `drawn` has the row numbers of
        all training rows; if None, all rows outside of held-out eras are for training.
        """
        if drawn is not None:
            return np.diff(np.searchsorted(np.sort(drawn), self.starts))
        rows = self.counts.sum(axis=1)
        if self.eras is not None and encoding.held_out is not None:
            rows[encoding.held_out[self.eras.codes]] = 0
        return np.bincount(self.parts_of_eras, rows).astype(np.intp)


@dataclass
class Encoding:
    """The encoding of rows, which the client chooses, and which all parts share."""

    era_labels: NDArray[Any] | None  # all, sorted
    classes: NDArray[Any] | None
    class_weights: Floats | None
    era_weights: Floats | None  # (n_eras,), factors of rows' weights
    held_out: Flags | None = None  # (n_eras,), to stop early by
    is_trained: Any = None  # (n_eras,), which have training rows; None without eras


@dataclass
class EncodedPart:
    """The rows of a part, encoded for training; X is binned later."""

    X: Any
    y: Floats  # of classes, their numbers
    sample_weight: Floats | None  # times those of classes and eras
    codes: Codes  # eras, among those of all rows
    held_out: Flags  # for early stopping
    rows: NDArray[np.uint32]  # row numbers among all
    is_binned: bool = False  # whether X holds bins


def encode_part(
    part: Part, encoding: Encoding, start: int, held_out: Flags | None
) -> EncodedPart:
    """Return a part, encoded; `start` is the number of its first row among all rows."""
    codes = era_codes(part, encoding)
    y, weights = encode_target(part, encoding), part.sample_weight
    pairs = (encoding.class_weights, y.astype(np.intp)), (encoding.era_weights, codes)
    for factors, at in pairs:
        if factors is not None:
            weights = factors[at] if weights is None else weights * factors[at]
    if held_out is None:
        of_eras = encoding.held_out
        held_out = np.zeros(y.size, dtype=bool) if of_eras is None else of_eras[codes]
    rows = np.arange(start, start + y.size, dtype=np.uint32)
    return EncodedPart(part.X, y, weights, codes, held_out, rows)


def era_codes(part: Part, encoding: Encoding) -> Codes:
    """Return the era of each row of a part, as an index into the encoding's labels."""
    if part.eras is None or encoding.era_labels is None:
        return np.zeros(part.y.size, dtype=np.int32)
    own = encode_eras(part.eras)
    return find(encoding.era_labels, own.labels)[own.codes].astype(np.int32)


def codes_and_target(part: Part, encoding: Encoding) -> tuple[Codes, Floats]:
    return era_codes(part, encoding), encode_target(part, encoding)


def training_weights(part: EncodedPart) -> Floats:
    assert part.sample_weight is not None
    return part.sample_weight[~part.held_out]


def encode_target(part: Part, encoding: Encoding) -> Floats:
    if encoding.classes is None:
        return part.y.astype(np.float64)
    return np.searchsorted(encoding.classes, part.y).astype(np.float64)


def decide(
    estimator: BaseEstimator, survey: Survey,
    gather_rows: Callable[[Encoding], tuple[Codes, Floats]],
) -> tuple[Encoding, Ints | None]:  # fmt: skip
    """Return the encoding of parts; and the row numbers to train on if early stopping
    holds out single rows, else None. To draw these rows, `gather_rows` brings the eras
    and the targets of all rows to the client.
    """
    eras = survey.eras
    classes: Any = estimator.classes_ if is_classifier(estimator) else None
    weights = survey.weights
    class_weights = era_weights = None
    if getattr(estimator, "class_weight", None) is not None:
        check_class_weight(estimator.class_weight)
        class_weights = compute_class_weight(
            estimator.class_weight, classes=classes, y=classes,
            sample_weight=survey.counts.sum(axis=0),
        )  # fmt: skip
        weights = weights * class_weights
    if eras is not None and is_fixed(estimator.era_weighting):
        each = encode_eras(eras.labels)
        totals = np.bincount(eras.codes, weights.sum(axis=1)).astype(np.float64)
        _, era_weights = weigh_eras(each, totals, estimator.era_weighting)
    encoding = Encoding(
        None if eras is None else eras.labels, classes, class_weights, era_weights
    )
    training_rows = None
    is_trained = np.ones(1 if eras is None else eras.labels.size, dtype=bool)
    if estimator.do_early_stopping_ and estimator.validation_fraction is not None:
        validation_eras = estimator._fit_state.validation_eras
        if eras is None or validation_eras is None or eras.labels.size == 1:
            codes, y = gather_rows(encoding)
            training_rows = _hold_out_rows(estimator, survey, codes, y)
            trained = codes[training_rows]
            is_trained = np.bincount(trained, minlength=is_trained.size) > 0
        else:
            encoding.held_out = _hold_out_eras(estimator, eras, survey)
            is_trained = ~encoding.held_out
            parts = {"holds out": encoding.held_out, "leaves to train": is_trained}
            for name, part in parts.items():
                if not weights[part[eras.codes]].any():
                    raise no_weight(name)
    if not weights.any():
        raise ValueError("sample_weight is 0 in all rows: give some a weight.")
    encoding.is_trained = None if eras is None else is_trained
    return encoding, training_rows


def _hold_out_eras(
    estimator: BaseEstimator, eras: EncodedEras, survey: Survey
) -> Flags:
    """Return a mask of the eras held out for early stopping; set `validation_eras_`."""
    plan = estimator._fit_state.plan
    if not plan.is_plain_gain and estimator._fit_state.validation_eras != "last":
        check_splittable(eras.labels, survey.era_counts, plan)
    _, held_out = split_rows_of_eras(
        encode_eras(eras.labels), validation_fraction=estimator.validation_fraction,
        validation_eras=estimator._fit_state.validation_eras, stratify=None,
        random_state=estimator._random_seed,
    )  # fmt: skip
    is_held_out = np.isin(np.arange(eras.labels.size), held_out)
    estimator.validation_eras_ = eras.labels[is_held_out]
    if is_classifier(estimator):
        trained = survey.counts[~is_held_out[eras.codes]]
        warn_of_unseen_classes(estimator.classes_, trained.sum(axis=0) > 0)
    return is_held_out


def _hold_out_rows(
    estimator: BaseEstimator, survey: Survey, codes: Codes, y: Floats
) -> Ints:
    """Draw the rows that early stopping holds out; return the rows to train on."""
    labels = np.zeros(1) if survey.eras is None else survey.eras.labels
    eras = EncodedEras(labels, codes)
    train, _ = split_rows_of_eras(
        eras, validation_fraction=estimator.validation_fraction, validation_eras=None,
        stratify=y if is_classifier(estimator) else None,
        random_state=estimator._random_seed,
    )  # fmt: skip
    plan = estimator._fit_state.plan
    if not plan.is_plain_gain and plan.min_era_coverage == 1:
        check_rows_left(
            eras, train, estimator.validation_fraction, plan.min_samples_per_era
        )
    return train
