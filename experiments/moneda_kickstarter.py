"""Whether a Kickstarter campaign succeeds: Moneda (2021), chapter 6, tables 6.2 to 6.6.

Projects that were launched from 2010 to 2013 are in time, those from 2014 to 2017 are
the holdout. The file is a sample of 5.3 % of the thesis' rows.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments import _moneda_years as moneda
from experiments.common import bars, find_data_file

TITLE = "Moneda (2021), tables 6.2, 6.3 and 6.6: Kickstarter, ROC AUC"
DATA_FILES = ("kickstarter_sample.csv.gz",)
N_RUNS = 5

PAPER = moneda.paper_of((0.700, 0.688, 0.620), (0.689, 0.681, 0.648), (0.843, 0.611))

draw = bars("model", "part", "chosen", part=moneda.PARTS)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the table; `quick` has few rows, trees and candidates."""
    frame = pd.read_csv(find_data_file(*DATA_FILES, data_dir))
    years = pd.to_datetime(frame["launched"]).dt.year
    # 2009 and 2018 are a few rows, and 1970 is no date.
    frame, years = frame[years.between(2010, 2017)], years[years.between(2010, 2017)]
    table = moneda.make_year_table(
        frame[["goal"]].apply(np.floor),
        frame[["country", "currency", "category", "main_category"]],
        y=frame["state"] == "successful",
        years=years,
        last_year_in_time=2013,
    )
    return moneda.measure_years(table, n_runs, quick, PAPER)
