"""Scores of eras as a forest plot: a row an era, and what is said of all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._plotting import BLUE, GRAY, ORANGE, label_rows
from .._typing import Axes
from ..metrics import EraScoreForecast


def draw_forest(
    ax: Axes, scores: NDArray[np.float64], errors: NDArray[np.float64] | None,
    texts: list[str], forecast: EraScoreForecast | None, style: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Draw scores with their errors, and of a forecast the pooled mean as a diamond, as
    wide as its interval of 95 %, and the next era as a band; return these artists.
    """
    rows = np.arange(scores.size)
    style = {"color": BLUE, "marker": "s", "linestyle": "none", "zorder": 3} | style
    (line,) = ax.plot(scores, rows, **style)
    bars = next_era = None
    if errors is not None:
        bars = ax.errorbar(scores, rows, xerr=errors, fmt="none", ecolor=BLUE)
    if forecast is not None:
        low, high = forecast.interval(0.95, of="mean")
        # The median of the same distribution.
        middle, row = forecast.interval(1e-6, of="mean")[0], scores.size
        ax.fill(
            [low, middle, high, middle], row + np.array([0, 0.3, 0, -0.3]), color=GRAY
        )
        ax.axvline(middle, color=GRAY, linestyle="--", linewidth=1)
        ax.axvspan(*forecast.interval(0.95), color=ORANGE, alpha=0.1, linewidth=0)
        ax.hlines(row + 1, *forecast.interval(0.95), color=ORANGE, linewidth=1)
        ax.hlines(row + 1, *forecast.interval(0.8), color=ORANGE, linewidth=4)
        (next_era,) = ax.plot(forecast.mean_, row + 1, "D", color=ORANGE)
        texts = [*texts, "pooled", "next era"]
    label_rows(ax, texts)
    return line, bars, next_era
