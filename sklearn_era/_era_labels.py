"""Era labels of any type: their kind, what they are compared by, and their calendar.

Labels stay as they were passed. Two labels are the same era if their *keys* are equal:
dates of any unit, library or class by their instant, numbers by value, texts by
characters. Labels of different *kinds* are never compared.
"""

import datetime
import numbers
import re
from collections.abc import Collection
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._missing import is_pandas_na

Labels = NDArray[Any]

_ZONED = "date with a time zone"
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400 * 10**9  # in nanoseconds, as all keys of dates
# Tolerance for the steps of regular eras: months differ by three days in 31.
_UNEVEN = 0.15
# Most steps of regular eras to the next one, on average, where some are left out.
_MOST_STEPS = 2
_DATE_SHAPE = re.compile("0(-0|-0-0|-?[QMW]0)")  # of text whose numbers are 0


def _monday_of(year: int, week: int) -> datetime.date:
    """Return the Monday of a week; weeks 0 and 53, of some calendars, are no error."""
    if not 0 <= week <= 53:
        raise ValueError(week)
    monday = datetime.date.fromisocalendar(year, 1, 1)
    return monday + datetime.timedelta(weeks=week - 1)


_date, _parse = datetime.date, datetime.datetime.strptime
# Dates that are numbers, and text with such numbers: a letter that text may have, by
# what the year is multiplied, and the date. Months come before weeks.
_FORMS = {
    "quarters": ("Q", 10, lambda year, quarter: _date(year, 3 * quarter - 2, 1)),
    "months": ("M", 100, lambda year, month: _date(year, month, 1)),
    "weeks": ("W", 100, _monday_of),
    "days of a year": ("D", 1000, lambda year, day: _parse(f"{year}{day:03}", "%Y%j")),
    "days": ("D", 10_000, lambda year, day: _date(year, *divmod(day, 100))),
}


class OrderedLabels(np.ndarray):
    """Labels that sort in the order of `categories`, an array; slices do so, too."""

    categories: Labels | None

    def __array_finalize__(self, other: object) -> None:
        self.categories = getattr(other, "categories", None)

    def __reduce__(self) -> Any:  # ndarray's own would lose the categories
        return in_order_of, (self.categories, np.asarray(self))

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()


def in_order_of(categories: Labels | None, labels: Labels) -> Labels:
    """Return labels as `OrderedLabels`, or unchanged if `categories` is None."""
    if categories is not None:
        ordered = labels.view(OrderedLabels)
        ordered.categories = categories
        return ordered
    return labels


def categories_of(eras: Any) -> Labels | None:
    """Return the categories of ordered labels (an ordered categorical of pandas, an
    ordered dictionary of pyarrow or a polars Enum); None for other labels.
    """
    if isinstance(eras, OrderedLabels):
        return eras.categories
    dtype: Any = getattr(eras, "dtype", getattr(eras, "type", None))
    if not getattr(dtype, "ordered", type(dtype).__name__ == "Enum"):
        return None
    if hasattr(dtype, "categories"):
        return np.asarray(dtype.categories)
    return np.asarray(getattr(eras, "combine_chunks", lambda: eras)().dictionary)


def _kind_of(label: object) -> str:
    if isinstance(label, str | bytes):
        return "text"
    if hasattr(label, "asfreq"):  # a period of pandas
        return "date"
    if isinstance(label, np.timedelta64 | datetime.timedelta):
        return "duration"
    if isinstance(label, numbers.Number | np.bool_):
        return "number"
    if getattr(label, "tzinfo", None) is not None:
        return _ZONED
    if isinstance(label, np.datetime64 | datetime.date):
        return "date"
    return type(label).__name__


def _key_of(label: object) -> Any:
    """Return a label's key: labels of a kind are equal if their keys are, and sort as
    their keys do. The key of a time or duration is its nanoseconds.
    """
    if isinstance(label, tuple):
        return tuple(map(_key_of, label))
    if hasattr(label, "asfreq"):
        return label.asfreq("ms", "start").ordinal * 10**6
    if isinstance(label, np.datetime64 | np.timedelta64):
        if np.datetime_data(label.dtype)[0] in ("ns", "ps", "fs", "as"):
            return int(label.astype(f"{label.dtype.kind}8[ns]").astype(np.int64))
        # Python's integers, as years far off have too many nanoseconds for NumPy's.
        return int(label.astype(f"{label.dtype.kind}8[us]").astype(np.int64)) * 1000
    if isinstance(label, datetime.date):
        if not isinstance(label, datetime.datetime):
            return (label - _EPOCH.date()).days * _DAY
        if label.tzinfo is not None:
            return _key_of(label - _EPOCH.replace(tzinfo=datetime.UTC))
        label = label - _EPOCH
    if isinstance(label, datetime.timedelta):
        seconds = label.days * 86_400 + label.seconds
        rest = label.microseconds * 1000 + getattr(label, "nanoseconds", 0)
        return seconds * 10**9 + rest
    if isinstance(label, np.generic):  # Decimals do not compare with NumPy's integers
        label = label.item()
    return label.decode() if isinstance(label, bytes) else label


def as_objects(labels: Labels) -> list[Any]:
    """Return labels as Python objects, but dates as NumPy's, which have one type."""
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()


def keys_of(labels: Labels) -> list[Any]:
    """Return the key of each label."""
    return [_key_of(label) for label in as_objects(labels)]


def find(known: Labels, labels: Labels, name: str | None = "eras") -> NDArray[np.intp]:
    """Return the place of each label among the known labels, or -1 if it is none of
    them. If `name` is given, raise ValueError for labels of another kind.
    """
    of_known, given = as_objects(known), as_objects(labels)
    kinds = [{_kind_of(label) for label in x} for x in (of_known, given)]
    # None stands for eras that were not passed.
    is_alike = not all(kinds) or None in (of_known[0], given[0])
    if name and not is_alike and kinds[0].isdisjoint(kinds[1]):
        raise ValueError(
            f"{name} holds {given[0]!r}, of type {type(given[0]).__name__}, but the "
            f"eras of training are of type {type(of_known[0]).__name__}, such as "
            f"{of_known[0]!r}; pass labels as in training."
        )
    places = {key: i for i, key in enumerate(map(_key_of, of_known))}
    return np.array([places.get(key, -1) for key in map(_key_of, given)], np.intp)


def join(known: Labels, new: Labels) -> Labels:
    """Return the known labels with the new ones, of the same kind, after them."""
    categories = joined_categories(known, new)
    known, new = np.asarray(known), np.asarray(new)
    if known.dtype.kind != new.dtype.kind and "M" in known.dtype.kind + new.dtype.kind:
        known, new = _as_dates(known), _as_dates(new)
    return in_order_of(categories, np.concatenate([known, new]))


def _as_dates(labels: Labels) -> Labels:
    keys = keys_of(labels)
    unit, divisor = ("ns", 1) if any(key % 1000 for key in keys) else ("us", 1000)
    return np.array([key // divisor for key in keys], np.int64).view(f"M8[{unit}]")


def joined_categories(known: Labels, new: Labels) -> Labels | None:
    """Return known and new categories, or the new alone if they include all known."""
    of_known, of_new = categories_of(known), categories_of(new)
    if of_known is None or of_new is None:
        return of_known
    if of_known.size < of_new.size and (find(of_new, of_known, None) >= 0).all():
        return of_new
    added = np.asarray(of_new)[find(of_known, of_new, None) < 0]
    return np.concatenate([of_known, added]) if added.size else of_known


def ranks(known: Labels, labels: Labels) -> tuple[list[Any], list[Any]]:
    """Return the keys that sort known and other labels; places if categorical."""
    categories = joined_categories(known, labels)
    if categories is None:
        return keys_of(known), keys_of(labels)
    at = find(categories, labels)
    if (at < 0).any():
        raise ValueError(
            f"eras holds {as_objects(labels)[at.argmin()]!r}, which is none of the "
            "categories that order the eras of training: pass an ordered categorical "
            "that has it."
        )
    return find(categories, known).tolist(), at.tolist()


def horizons(known: Labels, labels: Labels, default: int = 1) -> NDArray[np.intp]:
    """Return each label's steps from the last known label; `default` if irregular."""
    found = {}
    for name, series in readings_of(known, labels).items():
        if (ahead := _steps_ahead(series, known.size)) is not None:
            found[name] = ahead
    first, *others = [*found.values()] or [np.full(labels.size, default)]
    for other in others:
        if (is_other := first != other).any():
            i, (name, other_name) = is_other.argmax(), found
            raise ValueError(
                f"eras holds {as_objects(labels)[i]!r}, which is {first[i]} {name} or "
                f"{other[i]} {other_name} after the last era of training, "
                f"{as_objects(known)[-1]!r}: pass dates, periods, or text such as "
                "'2024-01' for months and '2024-W01' for weeks."
            )
    return first


def _steps_ahead(series: list[Any], n_known: int) -> NDArray[np.intp] | None:
    """Return how many steps each unknown place is after the last known one, or None. A
    step is the median gap of known places, in the first series where they are evenly
    spaced or, failing that, where gaps are whole steps, at most 2 on average.
    """
    for may_miss, places in product((False, True), series):
        at, asked = np.split(np.array(places, np.float64), [n_known])
        steps = np.diff(at)
        step = np.median(steps) if steps.size else 0
        if step > 0:
            n_steps = np.maximum(np.rint(steps / step), 1) if may_miss else 1
            is_even = np.abs(steps - n_steps * step) <= _UNEVEN * step
            if is_even.all() and np.mean(n_steps) <= _MOST_STEPS:
                ahead = np.rint((asked - at[-1]) / step)
                return np.maximum(ahead, 1).astype(np.intp)
    return None


def readings_of(known: Labels, labels: Labels) -> dict[str, list[Any]]:
    """Return a dict of what labels may stand for: by name (months, weeks, ...), the
    likelier first, lists of numbers for the known labels, then the others. It is empty
    unless labels are numbers, dates, durations, categories, or text that holds numbers.
    """
    if joined_categories(known, labels) is not None:
        return {"categories": [np.concatenate(ranks(known, labels))]}
    both = as_objects(known) + as_objects(labels)
    keys = [_key_of(label) for label in both]
    kinds = {_kind_of(label) for label in both}
    if kinds == {"number"}:
        return _readings_of_numbers(keys, both, known.size)
    if kinds == {"text"}:
        return _readings_of_text(keys, known.size)
    if kinds <= {"date", _ZONED}:
        return {"dates": _places_of_dates(both, known.size)}
    return {"durations": [keys]} if kinds == {"duration"} else {}


def instants_of(labels: Labels, name: str) -> list[int]:
    """Return the nanoseconds of ascending dates or durations; else raise ValueError."""
    plain = np.asarray(labels)  # without categories, which may be dates
    readings = readings_of(plain, plain[:0])
    found = [name for name in readings if name != "numbers"]
    instants: list[int] = readings[found[0]][-1] if len(found) == 1 else []
    if not instants or instants != sorted(instants):
        what = " or ".join(found) if len(found) > 1 else "no dates in their order"
        raise ValueError(
            f"{name} is a duration, and labels such as {as_objects(labels)[0]!r} are "
            f"{what}: pass a number of eras, or label them by dates."
        )
    return instants


def _shape_of(texts: list[str]) -> str:
    """Return the form shared by all texts, with 0 for numbers; "" if forms differ."""
    shapes = {re.sub(r"\d+", "0", re.sub(r"[-/._ ]", "-", text)) for text in texts}
    return shapes.pop() if len(shapes) == 1 else ""


def are_dates(texts: list[str]) -> bool:
    """Return whether texts are years with months, quarters, weeks or days."""
    return _DATE_SHAPE.fullmatch(_shape_of(texts)) is not None


def _readings_of_text(texts: list[str], n_known: int) -> dict[str, list[Any]]:
    """Return what text may stand for: dates, or numbers as in "week 7"."""
    groups, shape = [re.findall(r"\d+", text) for text in texts], _shape_of(texts)
    if len(groups[0]) == 1 and shape:
        numbers = [int(number) for [number] in groups]
        return _readings_of_numbers(numbers, texts, n_known)
    if not _DATE_SHAPE.fullmatch(shape):
        return {}
    forms = {name: form for name, form in _FORMS.items() if form[0] in shape} or _FORMS
    width = 1 if "Q" in shape else 2
    joined = [year + "".join(x.zfill(width) for x in rest) for year, *rest in groups]
    numbers = [int(digits) for digits in joined]
    found = _readings_of_numbers(numbers, texts, n_known, forms)
    found.pop("numbers", None)
    return dict([*found.items()][:1])  # "2024-05" is a month


def _readings_of_numbers(
    numbers: list[Any], labels: list[Any], n_known: int, forms: Any = _FORMS
) -> dict[str, list[Any]]:
    """Return what numbers may stand for: dates, such as 202401, or else numbers. Raise
    ValueError if only the labels of training are dates in regular steps.
    """
    found = _as_dates_of(numbers, forms, n_known)
    is_gapless = (np.diff(np.unique(np.array(numbers, np.float64))) == 1).all()
    if not is_gapless and not _names_in_steps(found, n_known):
        of_known = _as_dates_of(numbers[:n_known], forms, n_known)
        for name in _names_in_steps(of_known, n_known):
            is_date = [bool(_dates_of([x], forms[name])) for x in numbers]
            if not all(is_date):
                raise ValueError(
                    f"eras holds {labels[is_date.index(False)]!r}, which is none of "
                    f"the {name} that labels of training such as "
                    f"{labels[n_known - 1]!r} are: pass labels as in training."
                )
    return found or {"numbers": [numbers]}


def _names_in_steps(readings: dict[str, list[Any]], n_known: int) -> list[str]:
    """Return the names of readings in which the known labels have regular steps."""
    return [x for x in readings if _steps_ahead(readings[x], n_known) is not None]


def _as_dates_of(numbers: list[Any], forms: Any, n_known: int) -> dict[str, list[Any]]:
    """Return, by form in which all numbers are dates, the dates' places in time."""
    found = {}
    for name, form in forms.items():
        if dates := _dates_of(numbers, form):
            found[name] = _places_of_dates(dates, n_known)
            if name == "months" and any(x % 100 == 12 for x in numbers):
                break  # of weeks of several years, some have larger numbers
    return found


def _dates_of(numbers: list[Any], form: Any) -> list[datetime.date]:
    """Return the dates that numbers stand for in a form; [] if any is no date."""
    _, base, date_of = form
    try:
        if all(1900 <= x // base < 2100 and x % 1 == 0 for x in numbers):
            return [date_of(*divmod(int(x), base)) for x in numbers]
    except ValueError:
        pass
    return []


def _places_of_dates(dates: list[Any], n_known: int) -> list[Any]:
    """Return lists of the dates' places in time. If the first `n_known` (known) dates
    are evenly spaced, the only list is of instants. Else there are months, days (of
    weekdays that occur; left out if no known days are neighbours), and instants.
    """
    walls = instants = [_key_of(date) for date in dates]
    if (zone := getattr(dates[0], "tzinfo", None)) is not None:
        walls = [_key_of(date.astimezone(zone).replace(tzinfo=None)) for date in dates]
    if len({b - a for a, b in pairwise(walls[:n_known])}) < 2:
        return [instants]
    times = np.array([wall // 1000 for wall in walls], np.int64).view("M8[us]")
    months, days = (times.astype(f"M8[{unit}]") for unit in "MD")
    is_workday = np.isin(np.arange(7), (days[:n_known].astype(np.int64) + 3) % 7)
    workdays = np.busday_count(days[0], days, weekmask=is_workday)
    series = [months.astype(np.int64), workdays, instants]
    return series if (np.diff(workdays[:n_known]) == 1).any() else series[::2]


def missing_rows(labels: Labels) -> NDArray[np.intp]:
    """Return the rows whose labels are missing: None, NaN, NaT or pandas' NA."""
    if labels.dtype.kind in "fc":
        return np.flatnonzero(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.flatnonzero(np.isnat(labels))
    if labels.dtype.kind == "O" and any(map(_is_missing, _distinct(labels))):
        return np.array([i for i, x in enumerate(labels) if _is_missing(x)], np.intp)
    return np.array([], np.intp)


def _distinct(labels: NDArray[Any]) -> Collection[Any]:
    try:
        return set(labels)
    except TypeError:  # not hashable, so not sortable: `_check_sortable` raises
        return labels.tolist()


def _is_missing(label: object) -> bool:
    if label is None or is_pandas_na(label):
        return True
    # Only NaN and NaT differ from themselves. For an array the result is an array: no
    # label, and `_check_sortable` raises.
    different = label != label
    return bool(different) if np.ndim(different) == 0 else False


def label_texts(labels: Labels) -> list[str]:
    """Return the labels of eras as text, dates without superfluous digits."""
    if labels.dtype.kind == "M":
        return np.datetime_as_string(labels, unit="auto").tolist()
    return [str(label) for label in labels]
