"""The columns that scenarios leave out by hand, put back: numbers, dates and codes.

A table as it comes has the numbers of its rows, dates, years, names and codes of sites.
What is made from the target, or known after it, stays out.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from experiments import _natural_eras_data as data
from experiments._natural_eras_data import Columns, Scenario


def _days(times: pd.Series) -> pd.Series:
    return (times - pd.Timestamp("1970-01-01")).dt.total_seconds() / 86_400


def _bike(data_dir: Path | None) -> pd.DataFrame:
    rows = data._file("bike_sharing_hourly.csv.gz", data_dir, parse_dates=["dteday"])
    return rows[["instant", "yr"]].assign(date=_days(rows["dteday"]))


def _flights(data_dir: Path | None) -> pd.DataFrame:
    rows = data._flights()[1]
    days = _days(pd.to_datetime(rows[["year", "month", "day"]]))
    known = rows[["month", "day", "flight", "tailnum", "carrier"]]
    return known.assign(date=days, number=np.arange(len(rows)))


def _energy(data_dir: Path | None) -> pd.DataFrame:
    dates = data._energy(data_dir)[2]
    week = dates.dt.isocalendar().week.astype(int)
    X = pd.DataFrame({"date": _days(dates), "hour": dates.dt.hour, "week": week})
    return X.assign(number=np.arange(len(dates)))


def _air(data_dir: Path | None) -> pd.DataFrame:
    rows = data._file("air1_beijing_pm25.csv.gz", data_dir)
    return rows[["No", "year", "month", "day"]]


def _kickstarter(data_dir: Path | None) -> pd.DataFrame:
    rows = data._kickstarter(data_dir)[1]
    days = {name: _days(rows[name]) for name in ("launched", "deadline")}
    return rows[["ID", "name"]].assign(**days, year=rows["launched"].dt.year)


def _of_file(name: str, *columns: str) -> Callable[[Path | None], pd.DataFrame]:
    """Columns of a file, or the numbers of its rows."""

    def read(data_dir: Path | None) -> pd.DataFrame:
        rows = data._file(name, data_dir)
        return rows[list(columns)] if columns else pd.DataFrame({"number": rows.index})

    return read


_CLIENT = ("RowNumber", "CustomerId", "Surname", "Geography", "Gender")
_LEFT_OUT = {
    "bike rentals, months": _bike,
    "ELEC2, 30 days": _of_file("electricity_nsw.csv.gz"),
    "Bellevue weather, 730 days": _of_file("weather_bellevue.csv.gz"),
    "flights, half months": _flights,
    "flights, carriers": _flights,
    "power use, weeks": _energy,
    "power use, hours": _energy,
    "Beijing air, months": _air,
    "Beijing air, calendar months": _air,
    "Adult, occupations": _of_file("adult.csv.gz", "fnlwgt", "education", "occupation"),
    "bank clients, countries and sexes": _of_file("churn_modelling.csv.gz", *_CLIENT),
    "Kickstarter, quarters": _kickstarter,
}


def _with_columns(name: str) -> Scenario:
    def read(data_dir: Path | None) -> Columns:
        X, y, eras = data.SCENARIOS[name].read(data_dir)
        others = _LEFT_OUT[name](data_dir).loc[X.index]
        return X.assign(**others[others.columns.difference(X.columns)]), y, eras

    return data.SCENARIOS[name]._replace(read=read)


# The first twelve scenarios, in the order of their list.
RAW = {name: _with_columns(name) for name in _LEFT_OUT}
