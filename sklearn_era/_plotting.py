"""Set colours, axes and ticks for the display classes."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from ._optional import import_optional
from ._typing import Axes

# Okabe & Ito's colours, distinct to colour-blind readers.
BLUE = "#0072b2"
ORANGE = "#d55e00"
GRAY = "0.35"

# Numbers of labels on an axis of eras; up to the first one, all have names.
_MOST_NAMES = 40
_MOST_LABELS = 12
_FEWEST_LABELS = 6
_COMPACT: dict[str, Any] = {
    "fontsize": "small", "handlelength": 1.2, "columnspacing": 1.0,
    "borderaxespad": 0.2,
}  # fmt: skip
_SMALLEST_SIZE = 5.0  # of the labels of rows, in points


def axes_or_new(ax: Axes | None, n_rows: int = 0) -> Any:
    """Return `ax` or, if it is None, axes of a new figure, high enough for `n_rows`."""
    pyplot = import_optional("matplotlib.pyplot", extra="plot")
    if ax is not None:
        return ax
    width, height = pyplot.rcParams["figure.figsize"]
    size = width, max(height, 1 + 0.25 * n_rows)
    return pyplot.subplots(layout="constrained", figsize=size)[1]


def text_width(text: str, **font: Any) -> float:
    """Return the width of a line of text in points; a $ does not start a formula."""
    text_path = import_optional("matplotlib.textpath", extra="plot").TextPath
    return text_path((0, 0), text.replace("$", r"\$"), **font).get_extents().width


def _font(size: str) -> Any:
    """Return a font of the size in matplotlib's setting of the name `size`."""
    settings = import_optional("matplotlib", extra="plot").rcParams
    fonts = import_optional("matplotlib.font_manager", extra="plot")
    return fonts.FontProperties(size=settings[size])


def label_eras(ax: Any, texts: Sequence[str]) -> None:
    """Label the ticks 0, 1, ... of a horizontal axis by eras. If not all labels fit,
    turn them upright and make them smaller, and show only as many labels as fit.
    """
    font = _font("xtick.labelsize")
    size = font.get_size_in_points()
    # All in points. The widest label is among the longest; a space separates labels.
    width = 72 * ax.get_position().width * ax.figure.get_size_inches()[0]
    longest = sorted({x for x in texts if x.strip()}, key=len)[-_MOST_LABELS:]
    widest = max((text_width(x, prop=font) for x in longest), default=0.0)
    room = int(width / (widest + 1.5 * size))
    style: dict[str, Any] = {"parse_math": False}
    is_few = len(texts) <= _MOST_NAMES
    if room < (len(texts) if is_few else _FEWEST_LABELS):
        if is_few:  # a line is about 1.2 of its size high
            size = min(size, max(_SMALLEST_SIZE, width / (1.2 * len(texts))))
        room = int(width / (1.2 * size) + 1e-9)
        style |= {"rotation": 90, "fontsize": size}
    step = -(-len(texts) // max(1, room if is_few else min(room, _MOST_LABELS)))
    ax.set_xticks(range(len(texts))[::step], texts[::step], **style)
    ax.set_xlabel("era")


def label_rows(ax: Any, texts: Sequence[str]) -> None:
    """Label rows at 0, 1, ... from the top. Wrap labels at two fifths of the figure's
    width, and make them as large as fits. If not even the smallest size fits, label
    only some of the rows.
    """
    size = _font("ytick.labelsize").get_size_in_points()
    width, height = 72 * ax.figure.get_size_inches()
    height *= ax.get_position().height
    while True:  # a letter is about 0.6 of its size wide, and a line 1.3 high
        lines = [wrap(text, max(8, int(width * 0.4 / (0.6 * size)))) for text in texts]
        needed = 1.3 * size * max(map(len, lines), default=1) * len(texts)
        if needed <= height or size <= _SMALLEST_SIZE:
            break
        size -= 1
    step = max(1, -int(-needed // height)) if size <= _SMALLEST_SIZE else 1
    shown = ["\n".join(x) for x in lines[::step]]
    style: dict[str, Any] = {"fontsize": size, "parse_math": False}
    ax.set_yticks(range(len(texts))[::step], shown, **style)
    ax.set_ylim(len(texts) - 0.4, -0.6)


def legend_above(ax: Axes, low: float, high: float) -> None:
    """Draw a legend above the values from `low` to `high`. To make room, extend the
    vertical axis of `ax` and of all axes that share it.
    """
    n_entries = len(ax.get_legend_handles_labels()[0])
    ax.figure.figure.draw_without_rendering()  # which lays out the figure
    whole = ax.get_window_extent()
    for n_columns in (n_entries, 2, 1):
        legend = ax.legend(loc="upper center", ncols=n_columns, **_COMPACT)
        legend.set_in_layout(False)  # it is inside
        size = legend.get_window_extent()
        if size.width <= whole.width:
            break
    share = min(0.5, size.height / whole.height)
    ax.dataLim.intervaly = low, high + (high - low) * share / (1 - share)
    ax.autoscale_view(scalex=False)
