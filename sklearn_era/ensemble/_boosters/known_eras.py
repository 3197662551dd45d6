"""Predict rows of known eras by their intercepts, and check the labels of eras."""

import re
from difflib import SequenceMatcher, get_close_matches
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..._era_arguments import warn_of_row_order
from ..._era_axes import read_again, read_known
from ..._era_calendar import horizons
from ..._era_columns import era_columns_in, names_columns, take_era_column
from ..._era_labels import find
from ..._eras import EncodedEras, read_eras
from ..._label_columns import EraColumns, label_columns
from ..._typing import Eras, Table
from ..._warnings import warn_user
from ...effects import Intercepts, fitted_intercepts, intercepts_of
from .era_values import eras_with_weight
from .group_intercepts import group_steps
from .level_forecast import forecast_levels

# Texts are similar from this ratio of `difflib` on: one wrong letter of four or more.
# Each is compared with all known ones, so only some unknown ones are checked.
_CLOSE = 0.85
_MOST_GUESSED = 50


def in_eras(estimator: BaseEstimator, X: Table, eras: Eras | None) -> Any:
    """Return the estimator, or a copy of it, that predicts the rows X in the given
    eras. Rows of a known era get the era's own intercept. Rows of another era get the
    forecast for as many eras ahead as its label shows. Raise ValueError if labels of
    eras are given and the model has no intercepts.
    """
    # During a fit, raw predictions already include the intercepts of their rows.
    if getattr(estimator, "_in_fit", False):
        return estimator
    if eras is None and hasattr(estimator, "_group_labels"):
        eras = era_columns_in(estimator, X, is_known=True)
    if eras is None:
        return estimator
    check_is_fitted(estimator)
    is_name = names_columns(eras, X)
    X, eras = take_era_column(X, eras, model=estimator)
    warn_of_row_order(eras, X)
    if not hasattr(estimator, "_era_labels"):
        if is_name:  # of a column that is no feature
            return _predictor_of(estimator, X, 0.0)
        raise ValueError(
            "predicting with eras needs the intercepts of a fit with "
            "era_effects='intercept': leave eras out, or fit with them."
        )
    given = read_as_fitted(estimator, eras, X)
    known, labels = estimator._era_labels, given.labels
    calendars = [known]  # of all eras of the fit, and of the rows of which X are some
    if isinstance(eras, EraColumns) and eras.calendar is not None:
        calendars.append(eras.calendar)
    at = find(known, labels)
    _warn_of_misspelt(labels[at < 0].tolist(), known.tolist())
    has_weight = eras_with_weight(estimator._era_series)
    at[~has_weight[at]] = -1  # forecast, as unknown ones
    of_labels = np.zeros((labels.size, estimator._era_forecast.size))
    if hasattr(estimator, "_era_level"):
        horizon = fitted_intercepts(estimator).horizon
        n_ahead = horizons(known[has_weight], labels, horizon, calendars)
        ahead = forecast_levels(estimator._era_level, n_ahead)
        of_labels += ahead - estimator._era_forecast
    intercepts = estimator._era_intercepts - estimator._era_forecast
    of_labels[at >= 0] = intercepts[at[at >= 0]]
    steps = of_labels[given.codes]
    if given.groups is not None:
        of_groups, known = given.groups.labels, estimator._group_labels
        is_new = find(known, of_groups) < 0
        _warn_of_misspelt(of_groups[is_new].tolist(), known.tolist())
        steps += group_steps(estimator, given.groups)
    return _predictor_of(estimator, X, steps)


def read_for_fit(
    estimator: BaseEstimator, eras: Any, X: Any, known: Any = None
) -> EncodedEras:
    """Return the encoded eras of a fit. Two columns are times and groups if `era_order`
    is a pair, or is "auto" and the estimator's intercepts depend on the order of eras.
    """
    order, effects = estimator.era_order, intercepts_of(estimator)
    is_pair = not isinstance(order, str)
    if order == "auto" and isinstance(effects, Intercepts) and effects._is_ordered:
        is_pair = len(label_columns(eras)) == 2
    if not is_pair:
        return read_eras(eras, X, known)
    return read_known(eras, X, order, type(estimator).__name__)[1]


def read_as_fitted(estimator: BaseEstimator, eras: Eras, X: Table) -> EncodedEras:
    """Encode the labels of eras as the fit did: of one column, or of two columns if the
    fit had times and groups.
    """
    if "_pair" in vars(estimator):
        return read_again(estimator, eras, X)[1]
    return read_eras(eras, X, estimator._era_labels)


def _predictor_of(estimator: BaseEstimator, X: Table, steps: Any) -> Any:
    """Return a copy of an estimator whose methods predict the rows X, whatever rows
    they get. `steps`, an array with a value for each row, is added to the raw
    predictions.
    """
    copied = object.__new__(type(estimator))
    copied.__dict__.update(vars(estimator))
    copied.__dict__.pop("_group_labels", None)  # which X would be read for once more
    copied._steps_of_rows = steps
    copied._raw_predict = lambda _: estimator._raw_predict(X) + steps
    copied._staged_raw_predict = lambda _: (
        raw + steps for raw in estimator._staged_raw_predict(X)
    )
    return copied


def _warn_of_misspelt(unknown: list[Any], known: list[Any]) -> None:
    """Warn of unknown labels that are text and resemble a known label."""
    texts = ([x for x in labels if type(x) is str] for labels in (unknown, known))
    if guesses := guess_labels(*texts):
        shown = [f"{x!r} (was {guess!r} meant?)" for x, guess in guesses.items()]
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        warn_user(
            "eras holds labels that the fit has not seen and that get the forecast: "
            f"{', '.join(shown[:5])}{more}. Pass labels as in training."
        )


def guess_labels(unknown: list[str], known: list[str]) -> dict[str, str]:
    """Return a dict from unknown labels to the known labels that they resemble. Labels
    resemble each other only if the numbers in them are equal.
    """
    by_numbers: dict[tuple[str, ...], dict[str, str]] = {}
    for label in known:
        digits, text = _simplify(label)
        by_numbers.setdefault(digits, {})[text] = label
    guesses = {}
    for label in unknown[:_MOST_GUESSED]:
        digits, text = _simplify(label)
        candidates = by_numbers.get(digits, {})
        for close in get_close_matches(text, candidates, 1, _CLOSE):
            others = [other for other in candidates if other != close]
            nearest = get_close_matches(close, others, 1, _CLOSE)
            closeness = [SequenceMatcher(None, x, close).ratio() for x in nearest]
            if SequenceMatcher(None, text, close).ratio() > max(closeness, default=0):
                guesses[label] = candidates[close]
    return guesses


def _simplify(label: str) -> tuple[tuple[str, ...], str]:
    """Return a label's numbers, and its text without case, signs and leading zeros."""
    text = re.sub(r"(?<!\d)0+(?=\d)", "", label.casefold())
    return tuple(re.findall(r"\d+", text)), re.sub(r"[\W_]", "", text)
