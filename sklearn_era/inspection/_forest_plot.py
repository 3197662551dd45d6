"""Draw a forest plot: one row with the score of each era, and summaries of all eras."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._plotting import BLUE, GRAY, ORANGE, label_rows
from .._typing import Axes
from ..metrics import EraScoreForecast

_Values = NDArray[np.float64]
_SPACE = "\u2007"  # as wide as a digit


def next_text(forecast: EraScoreForecast, error: float | None) -> str:
    """Return a note for a figure: whether the next era's interval is for a measured
    score, which has a sampling error, or for the true score.
    """
    if error is None:
        return ", measured" if forecast.sampling_error_ > 0 else ""
    return f", error {error:.2g}" if error > 0 else ", true score"


def draw_forest(
    ax: Axes, scores: _Values, errors: _Values | None, texts: list[str],
    forecast: EraScoreForecast | None, style: Any, *, counts: Any = None,
    numbers: bool = True, next_error: float | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Draw scores with error bars, and a forecast's pooled mean (a diamond) and next
    era (a band). If `numbers`, print all values, and `counts` of rows, at the right.
    Return the artists of the scores, the error bars and the next era.
    """
    rows = np.arange(scores.size)
    style = {"color": BLUE, "marker": "s", "linestyle": "none", "zorder": 3} | style
    (line,) = ax.plot(scores, rows, **style)
    half = np.full(scores.size, np.nan) if errors is None else errors
    ends = [scores - half, scores + half]
    if forecast is not None:  # on its scale, within its bounds
        ends = forecast._intervals_of(scores, half)
    table = [*zip(scores, *ends, strict=True)]
    bars = next_era = None
    if errors is not None:
        sides = abs(np.subtract(ends, scores))
        bars = ax.errorbar(scores, rows, xerr=sides, fmt="none", ecolor=BLUE)
    if forecast is not None:
        low, high = forecast.interval(0.95, of="mean")
        # The median of the same distribution.
        middle, row = forecast.interval(1e-6, of="mean")[0], scores.size
        ax.fill(
            [low, middle, high, middle], row + np.array([0, 0.3, 0, -0.3]), color=GRAY
        )
        ax.axvline(middle, color=GRAY, linestyle="--", linewidth=1)
        wide, near = (
            forecast.interval(x, standard_error=next_error) for x in (0.95, 0.8)
        )
        ax.axvspan(*wide, color=ORANGE, alpha=0.1, linewidth=0)
        ax.hlines(row + 1, *wide, color=ORANGE, linewidth=1)
        ax.hlines(row + 1, *near, color=ORANGE, linewidth=4)
        (next_era,) = ax.plot(forecast.mean_, row + 1, "D", color=ORANGE)
        texts = [*texts, "pooled", f"next era{next_text(forecast, next_error)}"]
        table += [(middle, low, high), (forecast.mean_, *wide)]
    label_rows(ax, texts)
    if numbers:
        _print_numbers(ax, np.array(table), counts)
    return line, bars, next_era


def _filled(text: str, widest: str) -> str:
    """Return the text, behind spaces that make it as wide as the text `widest`."""
    missing = widest[: max(0, len(widest) - len(text))]
    return "".join(_SPACE if x.isdigit() else " " for x in missing) + text


def _print_numbers(ax: Any, table: _Values, counts: Any) -> None:
    """Print `counts` of rows, scores and intervals at the right of a forest plot."""
    widths = table[:, 2] - table[:, 1]
    width = np.nanmedian(widths) if (widths > 0).any() else np.nanmax(abs(table[:, 0]))
    n_decimals = max(0, int(np.floor(2.5 - np.log10(width)))) if width > 0 else 1
    texts = [[f"{x:.{n_decimals}f}" for x in row] for row in table]
    widest = max((x for row in texts for x in row if x != "nan"), key=len)
    columns = []
    for row in texts:
        score, low, high = (_filled(x, widest) for x in row)
        interval = "" if "nan" in low else f" [{low}, {high}]"
        columns.append("" if "nan" in score else score + interval)
    header = "score [95 %]" if any("[" in x for x in columns) else "score"
    if counts is not None:  # first, as no spaces are as wide as an interval
        shown = ["n", *(f"{n:,}" for n in counts)]
        shown += [""] * (len(columns) - len(counts))  # of all eras
        widest = max(shown, key=len)
        rows = zip(shown, [header, *columns], strict=True)
        header, *columns = (f"{_filled(n, widest)}  {text}" for n, text in rows)
    places = np.asarray(ax.get_yticks(), dtype=int)
    right, size = ax.secondary_yaxis("right"), ax.get_yticklabels()[0].get_fontsize()
    right.set_yticks(places, [columns[i] for i in places], fontsize=size)
    right.tick_params(length=0)
    above: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(header, (1, 1), xytext=(4, 3), fontsize=size, **above)
