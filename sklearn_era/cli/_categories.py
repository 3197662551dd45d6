"""Spell categories and labels as text, and match a table's to those of a model."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from sklearn_era._era_calendar import dates_in
from sklearn_era._era_labels import as_objects, decoded, kind_of, label_texts
from sklearn_era.cli import _ui
from sklearn_era.model_files._estimators import first_booster, inner_models

_WHOLE_FLOAT = re.compile(r"\A(-?(?:0|[1-9][0-9]*))\.0\Z")
_WHOLE_DECIMAL = re.compile(r"\A(-?(?:0|[1-9][0-9]*))\.0+\Z")
# Not 2024.10, which is not how the number 2024.1 is written.
_NUMBER = re.compile(r"-?[0-9]{1,300}(\.[0-9]*[1-9])?")
_DECIMAL = re.compile(r"(?i)-?[0-9.]+(e[-+]?[0-9]+)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")


def spell(value: Any) -> str:
    """Return a category as text: "1" for 1 and 1.0, since pandas may store 1 as 1.0."""
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    text = _WHOLE_FLOAT.sub(r"\1", text)
    return "0" if text == "-0" else text


def as_number(text: str, mark: str) -> str:
    """Return a text as `spell` writes it, if it is a number with the decimal `mark`."""
    return spell(text.rstrip(" ").lstrip(" +").replace(mark or ".", "."))


def _plain(text: str) -> str:
    """Return one text for all spellings of the same flag, time or whole number, such as
    "1" for "1.0"; return any other text itself.
    """
    if text.lower() in ("true", "false"):
        return text.lower()
    if _TIME.fullmatch(text):
        with suppress(ValueError):
            return label_texts(dates_in(np.array([text])))[0]
    return _WHOLE_DECIMAL.sub(r"\1", text)


def find_known(texts: Iterable[str], known: dict[str, Any]) -> dict[str, Any]:
    """Return a dict of the known ones of `texts`, with their values in `known`. A text
    that is not a key of `known` gets the value of the key that is another spelling of
    the text, if there is only one such key.
    """
    plain = {x: _plain(x) for x in known}
    n_spellings = Counter(plain.values())
    others = {y: x for x, y in plain.items() if n_spellings[y] == 1}
    if {*n_spellings} <= {"0", "1"}:  # flags, as some libraries store them
        others |= {"false": "0", "true": "1"}
    elif {*n_spellings} <= {"false", "true"}:
        flags = ("0", "false"), ("1", "true")
        others |= {x: others[y] for x, y in flags if y in others}
    found = {x: x if x in known else others.get(_plain(x)) for x in texts}
    return {x: known[y] for x, y in found.items() if y in known}


class _NewLabel(int):
    """A number that stands for a text beside labels that are numbers."""

    text: str

    def __repr__(self) -> str:
        return self.text


def texts_as_fitted(texts: Sequence[str], known: Any, mark: str) -> Any:
    """Return labels that are text, as the `known` ones: known labels as in the fit, and
    other whole numbers as integers. `mark` is the decimal mark.
    """
    spelled = {decoded(x): decoded(x) for x in known}
    numbers = {x: as_number(x, mark) for x in {*texts} if x not in spelled}
    plain = {x: y for x, y in numbers.items() if _DECIMAL.fullmatch(y)}
    found = find_known([plain.get(x, x) for x in {*texts}], spelled)
    return np.array([found.get(y := plain.get(x, x), y) for x in texts], dtype=object)


def values_as_fitted(
    texts: Sequence[str], known: Any, mark: str, may_be_new: bool
) -> Any:
    """Return texts as dates, booleans or numbers, as the `known` labels are. Raise
    ValueError for the first text that is none; but if known labels are numbers and
    `may_be_new` is true, a new number stands for each such text.
    """
    if known.dtype.kind == "M":
        return dates_in(np.array(texts, dtype=str))
    if kind_of(known[0]) == "bool":
        values = find_known(texts, {spell(x): x for x in known.tolist()})
        may_be_new = False
    else:
        values = _numbers_in(texts, mark)
    others = [x for x in dict.fromkeys(texts) if x not in values]
    if others and not may_be_new:
        raise ValueError(others[0])
    last = int(max([*as_objects(known), *values.values()]))
    for i, text in enumerate(others, last + 1):
        values[text] = _NewLabel(i)
        values[text].text = text
    return np.array([values[x] for x in texts], dtype=object)


def _numbers_in(texts: Iterable[str], mark: str) -> dict[str, Any]:
    """Return a dict from the texts that are numbers to these. Of two texts with the
    same number, such as 7 and 007, only the one that `spell` writes is a number.
    """
    plain = {x: _plain(as_number(x, mark)) for x in {*texts}}
    matches = {x: _NUMBER.fullmatch(y) for x, y in plain.items()}
    numbers = {x: float(y[0]) if y[1] else int(y[0]) for x, y in matches.items() if y}
    n_texts = Counter(numbers.values())
    is_own = {x: n_texts[y] == 1 or spell(y) == plain[x] for x, y in numbers.items()}
    return {x: y for x, y in numbers.items() if is_own[x]}


def match_categories(X: pd.DataFrame, estimator: Any) -> None:
    """Replace each category in X by the model's category with the same text, in place.
    Warn of categories that the model does not know.
    """
    is_encoded, estimator = _encodes(estimator), first_booster(estimator)
    if hasattr(estimator, "_codings"):  # a linear model
        parts = [x for x in estimator._codings if isinstance(x, list)]
        of_columns = [np.array(categories, dtype=object) for categories in parts]
    else:
        of_columns = estimator._preprocessor.named_transformers_["encoder"].categories_
    names = X.columns[estimator.is_categorical_[: X.shape[1]]]
    for name, categories in zip(names, of_columns, strict=True):
        is_missing = pd.isna(categories)
        known = {spell(value): value for value in categories[~is_missing]}
        found = find_known(X[name].cat.categories, known)
        own, n_values = X[name].astype(object).map(found), X[name].count()
        if n_unknown := n_values - own.count():
            values = f"{n_unknown:,} of {n_values:,} values of column '{name}'"
            text = f"the model has not seen {values}, and treats them as missing."
            _ui.echo(f"Warning: DATA: {text}", err=True)
        # The estimator's own missing value: None and NaN are two categories to it.
        missing = [*categories[is_missing], np.nan][0]
        others = missing
        if is_encoded and all(isinstance(x, str) for x in known.values()):
            # Missing values are a category to an encoder, and unknown ones are none.
            others = X[name].astype(object).where(X[name].notna(), missing)
        X[name] = own.astype(object).where(own.notna(), others)


def _encodes(model: Any) -> bool:
    """Return whether a model or an inner one encodes categories by earlier targets."""
    is_encoder = getattr(model, "encoder_", None) is not None
    return is_encoder or any(map(_encodes, inner_models(model)))
