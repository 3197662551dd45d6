"""Whether a shelter's animal is adopted in 30 days: Moneda (2021), chapter 6.

Intakes of 2014 to 2016 are in time, and those from 2017 on are the holdout, where the
thesis has 2014 to 2017 and 2018 to 2021. docs/papers/time-robust-forest.md says how
target and ages are read.
"""

from pathlib import Path

import pandas as pd

from experiments import _moneda_years as moneda
from experiments.common import bars, find_data_file

TITLE = "Moneda (2021), tables 6.2, 6.3 and 6.6: animal shelter, ROC AUC"
DATA_FILES = ("animal_shelter.parquet",)
N_RUNS = 3

PAPER = moneda.paper_of((0.794, 0.787, 0.789), (0.790, 0.783, 0.787), (0.684, 0.859))

_DAYS = 30

draw = bars("model", "part", "chosen", part=moneda.PARTS)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the table; `quick` has few rows, trees and candidates."""
    frame = pd.read_parquet(find_data_file(*DATA_FILES, data_dir))
    # 2013 has one quarter.
    frame = frame[frame["intake_year"] >= 2014]
    of_intake = "intake_type intake_condition animal_type sex_upon_intake breed color"
    is_early = frame["time_in_shelter_days"] < _DAYS
    table = moneda.make_year_table(
        frame[["age_upon_intake_(days)"]],
        frame[of_intake.split()],
        y=(frame["outcome_type"] == "Adoption") & is_early,
        years=frame["intake_year"],
        last_year_in_time=2016,
    )
    return moneda.measure_years(table, n_runs, quick, PAPER)
