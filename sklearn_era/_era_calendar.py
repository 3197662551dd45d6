"""Find dates and numbers in era labels, and count the steps between eras."""

import datetime
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._era_labels import (
    ZONED,
    Labels,
    as_objects,
    joined_categories,
    key_of,
    kind_of,
    ranks,
)

# Tolerance for the steps of regular eras: months differ by three days in 31.
_UNEVEN = 0.15
# Most steps of regular eras to the next one, on average, where some are left out.
_MOST_STEPS = 2
_DATE_SHAPE = re.compile("0(-0|-0-0|-?[QMW]0)")  # of text whose numbers are 0
ISO_DATE = re.compile(r"\d{4}-\d\d(-\d\d([ T]\d\d(:\d\d(:\d\d([.]\d+)?)?)?)?)?")
# A date with a time of day, perhaps in a zone.
_TIME = re.compile(
    r"\d{4}[-/._]\d\d[-/._]\d\d"
    r"[ T]\d\d(:\d\d(:\d\d([.]\d+)?)?)?(Z|[-+]\d\d:?\d\d)?"
)
_DASHES = str.maketrans("/._", "---")


def _monday_of(year: int, week: int) -> datetime.date:
    """Return the Monday of a week; accept weeks 0 and 53, which some calendars have."""
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


def horizons(
    known: Labels, labels: Labels, default: int = 1, calendars: Iterable[Labels] = ()
) -> NDArray[np.intp]:
    """Return, for each label, by how many eras it follows the last known era; return
    `default` if the known eras are not evenly spaced. If labels can be read in two
    ways, such as months and weeks, keep the ways in which all labels of `calendars` can
    be read, too. Raise ValueError if these ways give different numbers of eras.
    """
    readings = readings_of(known, labels)
    for calendar in calendars if len(readings) > 1 else ():
        names = readings.keys() & readings_of(calendar, calendar[:0])
        readings = {x: readings[x] for x in readings if x in names or not names}
    found = {}
    for name, series in readings.items():
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
    """Return how many steps each new number is after the last known number, at least 1.
    The first `n_known` numbers of each series are known, and a step is the median gap
    between consecutive known numbers. Use the first series whose gaps are all one step.
    If there is none, use the first series whose gaps are whole numbers of steps, at
    most 2 on average. Return None if there is no such series, either.
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
    """Return the possible meanings of labels in a dict, likelier ones first. A key is a
    name, such as "months"; its value is a list of series, each with a number for every
    known label and then for every other label. Return {} unless labels are numbers,
    dates, durations, categories, or text that holds numbers.
    """
    if joined_categories(known, labels) is not None:
        return {"categories": [np.concatenate(ranks(known, labels))]}
    both = as_objects(known) + as_objects(labels)
    keys = [key_of(label) for label in both]
    kinds = {kind_of(label) for label in both}
    if kinds <= {"number", "bool"}:
        return _readings_of_numbers(keys, both, known.size)
    if kinds == {"text"}:
        return _readings_of_text(keys, known.size)
    if kinds <= {"date", ZONED}:
        return {"dates": _places_of_dates(both, known.size)}
    return {"durations": [keys]} if kinds == {"duration"} else {}


def instants_of(labels: Labels, name: str) -> list[int]:
    """Convert ascending dates or durations to nanoseconds. Raise ValueError for other
    labels; its message has the `name` of the parameter.
    """
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
    """Return the form that all texts share: "0-W0" for "2024-W01", with "0" for each
    number and "-" for each of the signs "-/._" or a space. Return "" if forms differ.
    """
    shapes = {re.sub(r"\d+", "0", re.sub(r"[-/._ ]", "-", text)) for text in texts}
    return shapes.pop() if len(shapes) == 1 else ""


def are_dates(texts: list[str]) -> bool:
    """Return whether all texts have the same form, and are years with a month, quarter,
    week or day, or days with a time of day.
    """
    shape = _shape_of(texts)
    are_times = shape != "" and all(map(_TIME.fullmatch, texts))
    return are_times or _DATE_SHAPE.fullmatch(shape) is not None


def hold_dates(texts: list[str]) -> bool:
    """Return whether all texts are dates, or some are dates with years of 4 digits."""
    some = (x for x in texts if re.search(r"\d{4}", x))
    return are_dates(texts) or any(are_dates([x]) for x in some)


def dates_in(texts: Labels) -> Labels:
    """Convert ISO dates without a time zone, perhaps with a time of day, to NumPy's
    dates. Raise ValueError for the first text that is not such a date, even if NumPy
    could read the text.
    """
    for text in np.unique(texts).tolist():
        try:
            if not ISO_DATE.fullmatch(text):
                raise ValueError
            np.datetime64(text)
        except ValueError:
            raise ValueError(text) from None
    return texts.astype("M8[us]")


def _readings_of_text(texts: list[str], n_known: int) -> dict[str, list[Any]]:
    """Return the possible meanings of text: dates, or numbers as in "week 7". The first
    `n_known` texts are the labels of training. If these have regular steps, raise
    ValueError for a text of another form.
    """
    groups, shape = [re.findall(r"\d+", text) for text in texts], _shape_of(texts)
    form = _shape_of(known := texts[:n_known])
    of_known = {} if shape or not form else _readings_of_text(known, n_known)
    if _names_in_steps(of_known, n_known):
        is_alike = [_shape_of([text]) == form for text in texts]
        _need_all(is_alike, texts, n_known, "not written as")
    if len(groups[0]) == 1 and shape:
        numbers = [int(number) for [number] in groups]
        return _readings_of_numbers(numbers, texts, n_known)
    if shape and all(times := [_time_in(text) for text in known]):
        times += [_time_in(text) for text in texts[n_known:]]
        is_time = [time is not None for time in times]
        _need_all(is_time, texts, n_known, "none of the dates that")
        # Where clocks change, so does the offset from UTC that text has.
        return {"dates": _places_of_dates(times, n_known, has_offsets=True)}
    if not _DATE_SHAPE.fullmatch(shape):
        return {}
    forms = {name: form for name, form in _FORMS.items() if form[0] in shape} or _FORMS
    width = 1 if "Q" in shape else 2
    joined = [year + "".join(x.zfill(width) for x in rest) for year, *rest in groups]
    numbers = [int(digits) for digits in joined]
    found = _readings_of_numbers(numbers, texts, n_known, forms)
    found.pop("numbers", None)
    return dict([*found.items()][:1])  # "2024-05" is a month


def _time_in(text: str) -> datetime.datetime | None:
    """Read text as a date with a time of day; return None for other text."""
    if _TIME.fullmatch(text):
        with suppress(ValueError):  # of 25 o'clock
            date = text[:10].translate(_DASHES)
            return datetime.datetime.fromisoformat(date + text[10:])
    return None


def _readings_of_numbers(
    numbers: list[Any], labels: list[Any], n_known: int, forms: Any = _FORMS
) -> dict[str, list[Any]]:
    """Return the possible meanings of numbers: dates, such as 202401, or else numbers.
    Raise ValueError if the labels of training are dates in regular steps, but a later
    label is not a date of the same form.
    """
    found = _as_dates_of(numbers, forms, n_known)
    is_gapless = (np.diff(np.unique(np.array(numbers, np.float64))) == 1).all()
    if not is_gapless and not _names_in_steps(found, n_known):
        of_known = _as_dates_of(numbers[:n_known], forms, n_known)
        for name in _names_in_steps(of_known, n_known):
            is_date = [bool(_dates_of([x], forms[name])) for x in numbers]
            _need_all(is_date, labels, n_known, f"none of the {name} that")
    return found or {"numbers": [numbers]}


def _need_all(is_alike: list[bool], labels: Any, n_known: int, what: str) -> None:
    """Raise ValueError for the first label, if any, whose `is_alike` is False."""
    if not all(is_alike):
        raise ValueError(
            f"eras holds {labels[is_alike.index(False)]!r}, which is {what} labels of "
            f"training such as {labels[n_known - 1]!r} are: pass labels as in training."
        )


def _names_in_steps(readings: dict[str, list[Any]], n_known: int) -> list[str]:
    """Return the keys of `readings` for which the known labels have regular steps."""
    return [x for x in readings if _steps_ahead(readings[x], n_known) is not None]


def _as_dates_of(numbers: list[Any], forms: Any, n_known: int) -> dict[str, list[Any]]:
    """Return a dict. Its keys are the names of the forms in which all numbers are
    dates; its values are these dates, as series of numbers.
    """
    found = {}
    for name, form in forms.items():
        if dates := _dates_of(numbers, form):
            found[name] = _places_of_dates(dates, n_known)
            if name == "months" and any(x % 100 == 12 for x in numbers):
                break  # of weeks of several years, some have larger numbers
    return found


def _dates_of(numbers: list[Any], form: Any) -> list[datetime.date]:
    """Return the dates that numbers stand for in a form; [] if any is not a date."""
    _, base, date_of = form
    try:
        if all(1900 <= x // base < 2100 and x % 1 == 0 for x in numbers):
            return [date_of(*divmod(int(x), base)) for x in numbers]
    except ValueError:
        pass
    return []


def _places_of_dates(
    dates: list[Any], n_known: int, has_offsets: bool = False
) -> list[Any]:
    """Return dates as a list of series of numbers, of which the last one has instants.
    Unless the first `n_known` dates are evenly spaced by the clock, series of months
    and of working days come first. Working days are counted on the weekdays of known
    dates, and only if two consecutive known dates are adjacent working days. The clock
    is that of the first date's zone or, with `has_offsets`, of each date's own zone.
    """
    walls = instants = [key_of(date) for date in dates]
    if (zone := getattr(dates[0], "tzinfo", None)) is not None:
        local = dates if has_offsets else [date.astimezone(zone) for date in dates]
        walls = [key_of(date.replace(tzinfo=None)) for date in local]
    # Every 6 hours by the clock are no even instants where clocks change.
    spaced: list[Any] = [instants] if zone is None else [instants, walls, instants]
    if len({b - a for a, b in pairwise(walls[:n_known])}) < 2:
        return spaced
    times = np.array([wall // 1000 for wall in walls], np.int64).view("M8[us]")
    months, days = (times.astype(f"M8[{unit}]") for unit in "MD")
    is_workday = np.isin(np.arange(7), (days[:n_known].astype(np.int64) + 3) % 7)
    workdays = np.busday_count(days[0], days, weekmask=is_workday)
    if (np.diff(workdays[:n_known]) == 1).any():
        spaced.insert(0, workdays)
    return [months.astype(np.int64), *spaced]
