"""Colours, axes and ticks of the display classes."""

from collections.abc import Sequence
from typing import Any

from sklearn_era._optional import import_optional

# Okabe & Ito's colours, distinct to colour-blind readers.
BLUE = "#0072b2"
ORANGE = "#d55e00"
GRAY = "0.35"

# Numbers of labels on an axis of eras.
_MOST_LABELS = 12
_FEWEST_LABELS = 6


def axes_or_new(ax: Any) -> Any:
    """Return the given axes, or those of a new pyplot figure."""
    pyplot = import_optional("matplotlib.pyplot", extra="plot")
    return pyplot.subplots(layout="constrained")[1] if ax is None else ax


def label_eras(ax: Any, texts: Sequence[str]) -> None:
    """Label an axis of eras at 0, 1, ..., as many as fit, upright where few would."""
    properties = import_optional("matplotlib.font_manager", extra="plot").FontProperties
    text_path = import_optional("matplotlib.textpath", extra="plot").TextPath
    tick_size = import_optional("matplotlib", extra="plot").rcParams["xtick.labelsize"]
    font = properties(size=tick_size)
    size = font.get_size_in_points()
    # All in points. The widest label is among the longest; a space separates labels.
    width = 72 * ax.get_position().width * ax.figure.get_size_inches()[0]
    longest = sorted({x for x in texts if x.strip()}, key=len)[-_MOST_LABELS:]
    widths = [text_path((0, 0), x, prop=font).get_extents().width for x in longest]
    widest = max(widths, default=0.0)
    room = int(width / (widest + 1.5 * size))
    style: dict[str, Any] = {}
    if room < min(len(texts), _FEWEST_LABELS):
        room = int(width / (1.5 * size))
        style = {"rotation": 90}
    step = -(-len(texts) // max(1, min(room, _MOST_LABELS)))
    ax.set_xticks(range(len(texts))[::step], texts[::step], **style)
    ax.set_xlabel("era")
