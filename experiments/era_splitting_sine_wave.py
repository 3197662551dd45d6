"""The shifted sine wave: DeLise (2023), sections 5.1 and 6, table 3.

Eight eras of a sine wave with standard normal noise, each shifted by a number of its
own, train a model; a ninth, with another shift, tests it. No model can know that shift:
beside the noise's variance of 1, the test error has the square of the distance between
the test era's shift and the training eras' mean. With shifts of variance 1 that is
2.125 to be expected, 1 + 1 + 1/8, and another number for each test era. The row "the
sine itself" is what a model has that knows the sine and takes the training eras' level,
which is the best guess there is. The error of the shape is without shift and noise: the
variance of the prediction's distance from the sine, which can be 0.

The paper takes the best of 30 random configurations by the test score, which is a
choice that nobody could make. Beside it stands the configuration that leaving one
training era out at a time chooses.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.utils import Bunch

from experiments._era_splitting import (
    BY_ERAS,
    BY_TEST,
    CRITERIA,
    N_CONFIGURATIONS,
    draw_configurations,
    fit,
)
from experiments._paper_data import make_shifted_sine_wave
from experiments.common import draw_bars, seed_of, summarize_beside

TITLE = "DeLise (2023), table 3: shifted sine wave, mean squared error"
DATA_FILES: tuple[str, ...] = ()
N_RUNS = 10

ORACLE = "the sine itself"
MSE = "MSE"
SHAPE = "MSE of the shape"
PAPER = {
    ("gain", BY_TEST, MSE): 1.79,
    ("era", BY_TEST, MSE): 1.71,
    ("directional", BY_TEST, MSE): 1.75,
}


def run(
    *, data_dir: Path | None = None, n_runs: int = N_RUNS, quick: bool = False
) -> pd.DataFrame:
    """Measure the table; `quick` has 3 configurations instead of 30.

    Returns
    -------
    table : DataFrame
        A row for each criterion, way of choosing a configuration and score.
    """
    n_configurations = 3 if quick else N_CONFIGURATIONS
    rows: list[dict] = []
    for number in range(n_runs):
        rows += _one_run(number, n_configurations)
    by = ["criterion", "chosen", "score"]
    return summarize_beside(pd.DataFrame(rows), by=by, reference="gain", paper=PAPER)


def _one_run(number: int, n_configurations: int) -> list[dict]:
    """Both choices for each criterion, of the same data and configurations."""
    data = make_shifted_sine_wave(random_state=seed_of("data", number))
    configurations = draw_configurations(
        n_configurations, seed_of("configurations", number)
    )
    level = np.mean(data.y_train - data.signal_train)
    known = np.mean((data.y_test - data.signal_test - level) ** 2)
    rows: list[dict] = [
        {"criterion": ORACLE, "chosen": "", "score": MSE, "value": known}
    ]
    for criterion in CRITERIA:
        predictions = [
            fit(
                criterion, drawn, data.X_train, data.y_train, data.eras_train, number
            ).predict(data.X_test)
            for drawn in configurations
        ]
        errors = [np.mean((data.y_test - predicted) ** 2) for predicted in predictions]
        held_out = [
            _held_out_error(criterion, drawn, data, number) for drawn in configurations
        ]
        for chosen, by in ((BY_TEST, errors), (BY_ERAS, held_out)):
            rows += _scores(criterion, chosen, predictions[np.argmin(by)], data)
    return [{"run": number, **row} for row in rows]


def _held_out_error(
    criterion: str, configuration: dict, data: Bunch, seed: int
) -> float:
    """The mean error in each training era of a model that has not seen it."""
    errors = []
    splits = LeaveOneGroupOut().split(data.X_train, groups=data.eras_train)
    for train, held_out in splits:
        model = fit(
            criterion,
            configuration,
            data.X_train[train],
            data.y_train[train],
            data.eras_train[train],
            seed,
        )
        residuals = data.y_train[held_out] - model.predict(data.X_train[held_out])
        errors.append(np.mean(residuals**2))
    return float(np.mean(errors))


def _scores(
    criterion: str, chosen: str, predicted: NDArray[np.float64], data: Bunch
) -> list[dict]:
    """The paper's score, and the error of the shape, where shift and noise are out."""
    values = {
        MSE: np.mean((data.y_test - predicted) ** 2),
        SHAPE: np.var(data.signal_test - predicted),
    }
    return [
        {"criterion": criterion, "chosen": chosen, "score": score, "value": value}
        for score, value in values.items()
    ]


def draw(frame: pd.DataFrame, figure: Figure) -> None:
    """Draw the scores side by side, with the sine's own as a dashed line."""
    models = frame[frame["criterion"] != ORACLE]
    panels = dict(zip((MSE, SHAPE), figure.subplots(1, 2), strict=True))
    for score, axes in panels.items():
        draw_bars(
            axes, models[models["score"] == score], label="criterion", group="chosen"
        )
        axes.set_title(score)
    known = frame.loc[frame["criterion"] == ORACLE, "mean"].item()
    panels[MSE].axhline(known, color="0.35", linestyle="--", linewidth=1)
    figure.suptitle("Shifted sine wave (dashed: the sine itself)")
