"""Labels of every kind, and columns of every dtype, that stand for the same values."""

from contextlib import suppress
from datetime import UTC, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

N, AHEAD = 14, 20  # eras of training, and the last one asked for; a year ends between
MONTHS = pd.date_range("2023-01-01", periods=AHEAD, freq="MS")
WEEKS = pd.date_range("2023-10-02", periods=AHEAD, freq="7D")
QUARTERS = pd.period_range("2020Q1", periods=AHEAD, freq="Q")
NAMES = [f"m{i}" for i in range(AHEAD)]  # m10 before m9 as text
BERLIN = MONTHS.tz_localize("Europe/Berlin")
ISO = [week.isocalendar()[:2] for week in WEEKS]  # years and weeks


def each(values):
    """Labels of an object array, one by one."""
    labels = np.empty(AHEAD, dtype=object)
    labels[:] = list(values)
    return lambda codes: labels[codes]


def of(values):
    return lambda codes: values[codes]


def texts(form, values):
    return each(form.format(*value) for value in values)


KINDS = {
    "integers": lambda codes: codes,
    "floats": lambda codes: codes / 4,
    "decimals": each(map(Decimal, range(AHEAD))),
    "YYYYMM": of(np.array(MONTHS.strftime("%Y%m").astype(int))),
    "YYYYMM as floats": of(np.array(MONTHS.strftime("%Y%m").astype(float))),
    "YYYYMMDD": of(np.array(MONTHS.strftime("%Y%m%d").astype(int))),
    "YYYYWW": of(np.array([100 * year + week for year, week in ISO])),
    "YYYYQ": of(np.array(QUARTERS.year * 10 + QUARTERS.quarter)),
    "datetime64[M]": of(MONTHS.to_numpy().astype("M8[M]")),
    "datetime64[ns]": of(MONTHS.to_numpy().astype("M8[ns]")),
    "weeks": lambda codes: pd.Series(WEEKS)[codes],
    "ends of months": of(MONTHS + pd.offsets.MonthEnd(0)),
    "dates": each(MONTHS.date),
    "datetimes": lambda codes: [MONTHS[i].to_pydatetime() for i in codes],
    "time zone": lambda codes: pd.Series(BERLIN)[codes],
    "time zone of polars": lambda codes: pl.Series(BERLIN[codes].to_list()),
    "time zone of pyarrow": lambda codes: pa.chunked_array([pa.array(BERLIN[codes])]),
    "periods": of(MONTHS.to_period("M")),
    "quarters": of(QUARTERS),
    "durations": lambda codes: pd.Series(pd.to_timedelta(7 * codes, unit="D")),
    "text of months": of(np.array(MONTHS.strftime("%Y-%m").tolist())),
    "text of days": lambda codes: pd.Series(MONTHS.strftime("%Y-%m-%d"))[codes],
    "index of text": of(pd.Index(MONTHS.strftime("%Y-%m"), dtype="string[pyarrow]")),
    "text of weeks": texts("{}-W{:02}", ISO),
    "bytes": of(np.array(MONTHS.strftime("%Y-%m").tolist(), "S")),
    "numbered text": each(f"week {i:02}" for i in range(AHEAD)),
    "ordered categorical": lambda codes: pd.Series(
        pd.Categorical.from_codes(codes, NAMES, ordered=True)),
    "categories of dates": lambda codes: pd.Categorical.from_codes(
        codes, MONTHS.date, ordered=True),
    "polars Enum": lambda codes: pl.Series([NAMES[i] for i in codes],
                                           dtype=pl.Enum(NAMES)),
    "ordered dictionary": lambda codes: pa.chunked_array(
        [pa.DictionaryArray.from_arrays(codes, NAMES, ordered=True)]),
}  # fmt: skip
# The same eras, asked for as another type.
OTHERS = {
    "integers": lambda codes: codes.astype(np.float32),
    "decimals": lambda codes: np.array([*codes], dtype=object),
    "datetime64[M]": KINDS["datetime64[ns]"], "datetime64[ns]": KINDS["dates"],
    "dates": KINDS["periods"], "periods": KINDS["datetimes"],
    "time zone": KINDS["time zone of polars"], "datetimes": KINDS["datetime64[M]"],
    "time zone of polars": lambda codes: pd.Series(BERLIN.tz_convert("UTC"))[codes],
    "bytes": KINDS["text of months"], "polars Enum": KINDS["ordered categorical"],
    "ordered categorical": KINDS["ordered dictionary"],
}  # fmt: skip
# Kinds whose labels are the same eras.
SAME = [
    ["integers", "decimals"], ["YYYYMM", "YYYYMM as floats"],
    ["datetime64[M]", "datetime64[ns]", "dates", "datetimes", "periods"],
    ["time zone", "time zone of polars", "time zone of pyarrow"],
    ["text of months", "index of text", "bytes"],
    ["ordered categorical", "polars Enum", "ordered dictionary"],
]  # fmt: skip
# Types of labels and of columns, all of which hold small integers.
TYPES: dict[str, Any] = {
    "as they are": None, "list": list, "Index": pd.Index, "Series": pd.Series,
    "Categorical": pd.Categorical, "pyarrow": pa.array,
    # Of a list of NumPy's nanoseconds, polars 2.1.0 makes microseconds.
    "polars": lambda labels: pl.Series(
        np.array(labels) if isinstance(labels[0], np.datetime64) else labels),
    "objects": lambda labels: pd.Series(labels, dtype=object).to_numpy(),
    "not contiguous": lambda labels: np.repeat(labels, 2)[::2],
    "pandas of pyarrow": lambda labels: pd.Series(labels).convert_dtypes(
        dtype_backend="pyarrow"),
}  # fmt: skip
COLUMNS: dict[str, Any] = {
    "Fortran": np.asfortranarray, "list": np.ndarray.tolist,
    "polars": partial(pl.DataFrame, schema=["0", "1"]),
    "not contiguous": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "pyarrow": lambda X: pa.table([*X.T], names=["0", "1"]),
    **{kind: partial(np.array, dtype=kind) for kind in ("f8", "f4", "i1", "O", ">f8")},
    **{f"pandas {kind}": partial(pd.DataFrame, columns=["0", "1"], dtype=kind)
       for kind in ("f8", "f4", "i2", "O", "Int8", "Float32", "int64[pyarrow]")},
}  # fmt: skip


def plain(labels: Any) -> list[Any]:
    return labels.to_pylist() if hasattr(labels, "to_pylist") else list(labels)


def as_type(name: str, labels: Any) -> Any:
    """Return labels in a type, if that holds them, and the order of categories."""
    dtype = getattr(labels, "dtype", getattr(labels, "type", None))
    is_ordered = getattr(dtype, "ordered", isinstance(dtype, pl.Enum))
    if name != "as they are" and not is_ordered:
        with suppress(
            TypeError, ValueError, pa.ArrowException, pl.exceptions.PolarsError
        ):
            return TYPES[name](plain(labels))
    return labels


def with_column(X: Any, labels: Any) -> Any:
    """Return a frame with a column of labels, or None."""
    if isinstance(X, pl.DataFrame) and isinstance(labels, pl.Series):
        return X.with_columns(era=labels)
    if isinstance(X, pd.DataFrame) and not isinstance(labels, pl.Series):
        return X.assign(era=getattr(labels, "array", plain(labels)))
    return None


# Labels of twenty eras by the calendar, each the next step after the one before.

BERLIN_DAYS = pd.date_range("2024-03-20", periods=AHEAD, tz="Europe/Berlin")
# Weekdays of a year's end, without holidays.
TRADED = pd.bdate_range("2023-12-11", periods=30).difference(
    pd.to_datetime(["2023-12-25", "2023-12-26"])
)[:AHEAD]
DAYS = pd.date_range("2023-12-20", periods=AHEAD)
SHIFTS = pd.date_range("2023-12-30", periods=AHEAD, freq="8h")


RIGHT = {
    **{name: KINDS[name] for name in (
        "integers", "YYYYMM", "YYYYMMDD", "YYYYWW", "YYYYQ", "datetime64[M]", "periods",
        "quarters", "text of months", "text of weeks")},
    "YYYYMM as text": of(np.array(MONTHS.strftime("%Y%m").tolist())),
    "YYYYMmm": each(MONTHS.strftime("%YM%m")),
    "YYYYWW as text": texts("{}{:02}", ISO),
    "YYYYWww": texts("{}W{:02}", ISO),
    "YYYYQq": each(QUARTERS.astype(str)),
    "YYYY-Qq": each(QUARTERS.strftime("%Y-Q%q")),
    "YYYYMMDD of days": of(np.array(DAYS.strftime("%Y%m%d").astype(int))),
    "YYYYMMDD as text": each(DAYS.strftime("%Y%m%d")),
    "YYYY-MM-DD": each(DAYS.strftime("%Y-%m-%d")),
    "YYYY-MM-DD hh:mm:ss": each(SHIFTS.strftime("%Y-%m-%d %H:%M:%S")),
    "YYYY-MM-DDThhZ": each(SHIFTS.strftime("%Y-%m-%dT%HZ")),
    "YYYYDDD": of(np.array(DAYS.strftime("%Y%j").astype(int))),
    "dates": each(DAYS.date),
    "traded days": of(TRADED),
    "traded days as YYYYMMDD": of(np.array(TRADED.strftime("%Y%m%d").astype(int))),
    "traded days as text": each(TRADED.strftime("%Y-%m-%d")),
    "time zone with summer time": lambda codes: pd.Series(BERLIN_DAYS)[codes],
    "UTC datetimes": each(
        day.replace(tzinfo=UTC) + timedelta(hours=8) for day in DAYS.to_pydatetime()
    ),
    "Timestamps": lambda codes: [MONTHS[i] for i in codes],
    "weekly periods": of(WEEKS.to_period("W")),
    "datetime64[D] of weeks": of(WEEKS.to_numpy().astype("M8[D]")),
    "years": of(np.arange(2005, 2005 + AHEAD)),
}  # fmt: skip
# Text that does not sort as its dates do, or may be names.
REFUSED = {
    "YYYY-M": each(f"{x.year}-{x.month}" for x in MONTHS),
    "YYYY-Ww": texts("{}-W{}", ISO),
    "YYYY-MM-DD hh:mm+hh:mm": each(SHIFTS.strftime("%Y-%m-%d %H:%M+01:00")),
    "MM/YYYY": each(MONTHS.strftime("%m/%Y")),
    "Qq YYYY": each(QUARTERS.strftime("Q%q %Y")),
    "months by name": each(MONTHS.strftime("%b %Y")),
}
