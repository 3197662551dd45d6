"""Labels of twenty eras by the calendar, each the next step after the one before."""

from datetime import UTC, timedelta

import numpy as np
import pandas as pd

from helpers.era_labels import AHEAD, MONTHS, QUARTERS, WEEKS, each, of

BERLIN_DAYS = pd.date_range("2024-03-20", periods=AHEAD, tz="Europe/Berlin")
# Weekdays of a year's end, without holidays.
TRADED = pd.bdate_range("2023-12-11", periods=30).difference(
    pd.to_datetime(["2023-12-25", "2023-12-26"])
)[:AHEAD]
ISO = [week.isocalendar()[:2] for week in WEEKS]
DAYS = pd.date_range("2023-12-20", periods=AHEAD)


def texts(form, values):
    return each([form.format(*value) for value in values])


RIGHT = {
    "integers": lambda codes: codes,
    "YYYYMM": of(np.array(MONTHS.strftime("%Y%m").astype(int))),
    "YYYYMM as text": of(np.array(MONTHS.strftime("%Y%m").tolist())),
    "YYYY-MM": of(np.array(MONTHS.strftime("%Y-%m").tolist())),
    "YYYYMmm": each(MONTHS.strftime("%YM%m")),
    "YYYYWW": of(np.array([100 * year + week for year, week in ISO])),
    "YYYYWW as text": texts("{}{:02}", ISO),
    "YYYY-Www": texts("{}-W{:02}", ISO),
    "YYYYWww": texts("{}W{:02}", ISO),
    "YYYYQ": of(np.array(QUARTERS.year * 10 + QUARTERS.quarter)),
    "YYYYQq": each(QUARTERS.astype(str)),
    "YYYY-Qq": each(QUARTERS.strftime("%Y-Q%q")),
    "YYYYMMDD": of(np.array(DAYS.strftime("%Y%m%d").astype(int))),
    "YYYYMMDD of months": of(np.array(MONTHS.strftime("%Y%m%d").astype(int))),
    "YYYYMMDD as text": each(DAYS.strftime("%Y%m%d")),
    "YYYY-MM-DD": each(DAYS.strftime("%Y-%m-%d")),
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
    "monthly periods": of(MONTHS.to_period("M")),
    "weekly periods": of(WEEKS.to_period("W")),
    "quarterly periods": of(QUARTERS),
    "datetime64[M]": of(MONTHS.to_numpy().astype("M8[M]")),
    "datetime64[D] of weeks": of(WEEKS.to_numpy().astype("M8[D]")),
    "years": of(np.arange(2005, 2005 + AHEAD)),
}  # fmt: skip
# Text that does not sort as its dates do, or may be names.
REFUSED = {
    "YYYY-M": each(f"{x.year}-{x.month}" for x in MONTHS),
    "YYYY-Ww": texts("{}-W{}", ISO),
    "MM/YYYY": each(MONTHS.strftime("%m/%Y")),
    "Qq YYYY": each(QUARTERS.strftime("Q%q %Y")),
    "months by name": each(MONTHS.strftime("%b %Y")),
}
