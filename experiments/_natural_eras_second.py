"""A second group of public data on which nothing was chosen, by the rules of the first.

Targets, eras and what is left out were written down before any model was fitted.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments._natural_eras_data import Columns, Scenario, packaged, quarter
from experiments._natural_eras_fresh import columns_of


def _batting(data_dir: Path | None) -> Columns:
    rows = packaged("plyr", "baseball")
    rows = rows[rows["year"].between(1921, 2005)]
    rows["hr"] = np.log1p(rows["hr"])
    # A home run is a run, and bats one in.
    return columns_of(rows, "hr", (rows["year"] - 1) // 5, "id year r rbi")


def _abortion(data_dir: Path | None) -> Columns:
    rows = packaged("stevedata", "gss_abortion")
    others = "abany abdefect abnomore abhlth abpoor abrape"
    return columns_of(rows, "absingle", rows["year"], f"id year {others}")


def _parties(data_dir: Path | None) -> Columns:
    rows = packaged("stevedata", "anes_partytherms")
    left_out = "uid year therm_gop therm_bmp mpti"
    return columns_of(rows, "therm_dem", rows["year"], left_out)


def _football(data_dir: Path | None) -> Columns:
    rows = packaged("vcd", "Bundesliga")
    rows["won"] = rows["HomeGoals"] > rows["AwayGoals"]
    return columns_of(rows, "won", rows["Year"], "HomeGoals AwayGoals Year Date")


def _rodents(data_dir: Path | None) -> Columns:
    rows = packaged("ratdat", "complete")
    rows["weight"] = np.log(rows["weight"])
    return columns_of(rows, "weight", rows["year"], "record_id day year")


def _diseases(data_dir: Path | None) -> Columns:
    rows = packaged("dslabs", "us_contagious_diseases")
    rows = rows[(rows["weeks_reporting"] > 0) & rows["population"].notna()]
    rows["count"] = np.log1p(1e5 * rows["count"] / rows["population"])
    return columns_of(rows, "count", rows["year"], "year")


def _tweets(data_dir: Path | None) -> Columns:
    rows = packaged("dslabs", "trump_tweets")
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
    eras = quarter(times.dt.year, times.dt.month)
    # The years before have few, and the table ends with the first day of 2018.
    known = times.dt.year.between(2012, 2017)
    return columns_of(rows[known], "retweet_count", eras, left_out)


def _polls(data_dir: Path | None) -> Columns:
    rows = packaged("dslabs", "polls_us_election_2016")
    begin, end = (pd.to_datetime(rows[name]) for name in ("startdate", "enddate"))
    rows["days"] = (end - begin).dt.days
    others = ["clinton", "johnson", "mcmullin"]
    shares = [*(f"rawpoll_{x}" for x in others), *rows.filter(like="adjpoll")]
    left_out = f"startdate enddate {' '.join(shares)}"
    return columns_of(rows, "rawpoll_trump", 12 * end.dt.year + end.dt.month, left_out)


def _house(data_dir: Path | None) -> Columns:
    rows = packaged("causaldata", "close_elections_lmb")
    # The score is of votes in the House that was elected.
    left_out = "id year score democrat"
    return columns_of(rows, "demvoteshare", rows["year"], left_out)


def _infections(data_dir: Path | None) -> Columns:
    rows = packaged("causaldata", "abortion")
    return columns_of(rows, "lnr", rows["year"], "year t ir fa")


def _market(data_dir: Path | None) -> Columns:
    rows = packaged("gt", "sp500").sort_values("date", ignore_index=True)
    days = pd.to_datetime(rows["date"])
    spread = np.log((rows["high"] - rows["low"]) / rows["close"] + 1e-4)
    returns = np.log(rows["close"]).diff()
    X = pd.DataFrame({
        "target": spread,
        **{f"spread {lag}": spread.shift(lag) for lag in (1, 2, 3, 4, 5)},
        **{f"spread of {n}": spread.shift(1).rolling(n).mean() for n in (5, 22, 66)},
        **{f"return {lag}": returns.shift(lag) for lag in (1, 2, 3)},
        **{f"returns of {n}": returns.shift(1).rolling(n).sum() for n in (5, 22)},
        "gap": np.log(rows["open"] / rows["close"].shift(1)),
        "volume": np.log(rows["volume"]).diff().shift(1),
        "weekday": days.dt.day_of_week,
        "month": days.dt.month,
    })  # fmt: skip
    # Openings were no prices of their own before.
    recent = days.dt.year >= 1983
    return columns_of(X[recent], "target", days.dt.year)


def _infected(data_dir: Path | None) -> Columns:
    rows = packaged("medicaldata", "covid_testing")
    rows = rows[rows["result"] != "invalid"]
    rows["result"] = rows["result"] == "positive"
    # The first and the last weeks have few.
    weeks = (rows["pan_day"] // 7).clip(2, 14)
    after = "ct_result col_rec_tat rec_ver_tat"
    names = "subject_id fake_first_name fake_last_name"
    return columns_of(rows, "result", weeks, f"{names} pan_day test_id {after}")


def _rain(data_dir: Path | None) -> Columns:
    rows = packaged("crch", "RainIbk")
    rows["rain"] = np.sqrt(rows["rain"])
    return columns_of(rows, "rain", pd.Series(np.arange(len(rows)) // 183, rows.index))


def _cars(data_dir: Path | None) -> Columns:
    rows = packaged("DAAG", "nassCDS")
    rows = rows[rows["yearVeh"].notna()]
    rows["dead"] = rows["dead"] == "dead"
    left_out = "weight yearacc yearVeh injSeverity caseid"
    return columns_of(rows, "dead", rows["yearVeh"].clip(1980, 2002), left_out)


def _graduates(data_dir: Path | None) -> Columns:
    rows = packaged("causaldata", "scorecard")
    rows["earnings_med"] = np.log(rows["earnings_med"])
    left_out = "unitid inst_name state_abbr"
    return columns_of(rows, "earnings_med", rows["state_abbr"], left_out)


def _pupils(data_dir: Path | None) -> Columns:
    rows = packaged("mlmRev", "star")
    return columns_of(rows, "math", rows["sch"], "id sch tch read birthq")


def _taxis(data_dir: Path | None) -> Columns:
    rows = packaged("modeldata", "taxi")
    rows["tip"] = rows["tip"] == "yes"
    return columns_of(rows, "tip", rows["company"], "company")


def _birds(data_dir: Path | None) -> Columns:
    rows = packaged("openintro", "birds").dropna(subset="state")
    dates = pd.to_datetime(rows["date"], format="%m/%d/%Y 0:00:00")
    rows["effect"] = rows["effect"].notna()
    rows = rows.assign(year=dates.dt.year, month=dates.dt.month)
    return columns_of(rows, "effect", rows["state"], "opid remarks date state")


def _young_men(data_dir: Path | None) -> Columns:
    rows = packaged("plm", "Males")
    return columns_of(rows, "wage", rows["industry"], "nr industry")


def _insured(data_dir: Path | None) -> Columns:
    rows = packaged("sampleSelection", "RandHIE")
    rows["meddol"] = np.log1p(rows["meddol"])
    costs = "outpdol drugdol suppdol mentdol inpdol lnmeddol binexp"
    visits = "totadm inpmis mentvis mdvis notmdvis"
    return columns_of(rows, "meddol", rows["site"], f"site zper {costs} {visits}")


SECOND = {
    "home runs, five years": Scenario(_batting, "regression", "time"),
    "views of abortion, surveys": Scenario(_abortion, "classification", "time"),
    "views of a party, surveys": Scenario(_parties, "regression", "time"),
    "football, seasons": Scenario(_football, "classification", "time"),
    "desert rodents, years": Scenario(_rodents, "regression", "time"),
    "contagious diseases, years": Scenario(_diseases, "regression", "time"),
    "tweets, quarters": Scenario(_tweets, "regression", "time"),
    "polls, months": Scenario(_polls, "regression", "time"),
    "elections to the House, years": Scenario(_house, "regression", "time"),
    "infections in states, years": Scenario(_infections, "regression", "time"),
    "range of the S&P 500, years": Scenario(_market, "regression", "time"),
    "tests for COVID-19, weeks": Scenario(_infected, "classification", "time"),
    "rain in Innsbruck, half years": Scenario(_rain, "regression", "time"),
    "deaths in cars, model years": Scenario(_cars, "classification", "time"),
    "earnings of graduates, states": Scenario(_graduates, "regression", "groups"),
    "pupils in mathematics, schools": Scenario(_pupils, "regression", "groups"),
    "tips in taxis, companies": Scenario(_taxis, "classification", "groups"),
    "bird strikes, states": Scenario(_birds, "classification", "groups"),
    "wages of young men, industries": Scenario(_young_men, "regression", "groups"),
    "costs of the insured, sites": Scenario(_insured, "regression", "groups", 6),
}
