"""Draw a model's tree, with an arrow for each era under each split."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._era_columns import take_era_column
from .._era_labels import label_texts
from .._eras import read_eras
from .._optional import import_optional
from .._plotting import BLUE, ORANGE, axes_or_new, text_width
from .._typing import Eras, Estimator, Table
from ._tree_text import Node, describe_tree

_MOST_ARROWS = 30  # beyond them, eras are counted
_N_BARS = 10  # of either side
_LINE = 26  # letters
_SIZE, _LEVEL = 8.0, 1.7  # a font's in points, a level's in inches
# Shares of a level from its top: the end of its text, the start and end of its eras.
_TEXT, _TOP, _BOTTOM = 0.40, 0.44, 0.84


def plot_tree(
    estimator: Estimator, X: Table, y: ArrayLike, *, eras: Eras,
    sample_weight: ArrayLike | None = None, tree: int = 0, max_depth: int = 3,
    ax: Any = None,
) -> Any:  # fmt: skip
    """Draw a tree of a booster or forest, with an arrow for each era under each split.

    Rows that meet a split's condition go to the left. An era's arrow points to the side
    that predicts more in the era. The arrow's length is the square root of the era's
    gain per row, divided by the split's largest one. If there are more than 30 eras, a
    histogram is drawn. Thresholds have six digits, or more where a column's thresholds
    would look the same; `export_text` has all digits.

    Parameters
    ----------
    estimator, X, y, eras, sample_weight, tree :
        As in `export_text`, but `X`, `y` and `eras` are required.
    max_depth : int, default=3
        The depth of the deepest splits to draw, where the root has depth 0.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure that has room for all texts.

    Returns
    -------
    ax : matplotlib Axes
        The axes of the tree; the figure is ``ax.figure``.

    Raises
    ------
    ValueError, MissingPackageError
        As `export_text`, or if there are no rows, or matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import plot_tree
    >>> X, eras = np.arange(200.0)[:, np.newaxis], np.arange(200) % 4
    >>> model = HistGradientBoostingRegressor(max_iter=1).fit(X, X[:, 0])
    >>> plot_tree(model, X, X[:, 0], eras=eras)  # doctest: +SKIP
    """
    if X is None or y is None or eras is None:
        raise ValueError("X, y and eras: plot_tree draws eras, and needs all three.")
    nodes = describe_tree(estimator, X, y, eras, sample_weight, tree, max_depth, False)
    places: dict[int, float] = {}  # by node
    n_columns = _place(nodes, 0, places, 0)
    texts = {i: _text(nodes[i]) for i in places}
    lines = "\n".join(texts.values()).split("\n")
    widest = text_width(max(lines, key=len), size=_SIZE)
    ends = [nodes[i].depth + (_BOTTOM if nodes[i].children else _TEXT) for i in places]
    height = max(ends) + 0.05
    is_new, ax = ax is None, axes_or_new(ax)
    if is_new:
        width = max(6.0, n_columns * (widest / 72 + 0.35))
        ax.figure.set_size_inches(width, height * _LEVEL)
    room = 72 * ax.get_position().width * ax.figure.get_size_inches()[0] / n_columns
    color = import_optional("matplotlib", extra="plot").rcParams["text.color"]
    style = {"fontsize": _SIZE * min(1.0, 0.85 * room / widest), "ha": "center"}
    style |= {"va": "bottom", "parse_math": False}  # a $ in a name is no formula
    box = {"boxstyle": "round", "facecolor": ax.get_facecolor(), "edgecolor": color}
    ax.set(xlim=(-0.5, n_columns - 0.5), ylim=(height, 0))
    ax.set_axis_off()
    for i, x in places.items():
        level = nodes[i].depth
        ax.text(x, level + _TEXT, texts[i], bbox=box, **style)
        if nodes[i].children:
            draw_eras(ax, x, level, nodes[i].effects, color)
            for child in nodes[i].children:
                ends = [level + _BOTTOM, level + 1 + _TEXT]
                ax.plot([x, places[child]], ends, color=color, linewidth=0.8, zorder=0)
    labels = label_texts(read_eras(take_era_column(X, eras)[1], X).labels)
    title = f"Tree {tree}: left if true; eras point to the side that predicts more"
    if len(labels) <= _MOST_ARROWS:
        title += f", {labels[0]} on top and {labels[-1]} at the bottom"
    ax.set_title(f"{title}.", fontsize=style["fontsize"], parse_math=False)
    return ax


def draw_eras(ax: Any, x: float, level: float, effects: Any, color: Any) -> None:
    """Draw an arrow for each era, the first on top; for many eras, draw a histogram."""
    top, height, n_eras = level + _TOP, _BOTTOM - _TOP, effects.size
    lengths = -0.4 * effects / (np.abs(effects).max() or 1.0)
    ax.vlines(x, top, top + height, color=color, linewidth=0.5, alpha=0.5)
    if n_eras > _MOST_ARROWS:
        counts, edges = np.histogram(
            lengths[lengths != 0], np.linspace(-0.4, 0.4, 2 * _N_BARS + 1)
        )
        heights = -height * counts / max(1, counts.max())
        colors = np.repeat([BLUE, ORANGE], _N_BARS)
        ax.bar(x + edges[:-1], heights, edges[1] - edges[0], top + height,
               align="edge", color=colors)  # fmt: skip
        return
    steps, nothing = (np.arange(n_eras) + 0.5) / n_eras, np.zeros(n_eras)
    heads = dict.fromkeys(("headwidth", "headlength", "headaxislength"), 3.5)
    ax.quiver(
        nothing + x, top + steps * height, lengths, nothing, angles="xy",
        color=np.where(lengths < 0, BLUE, ORANGE), scale_units="xy", scale=1,
        units="inches", width=min(0.35 * _LEVEL * height / n_eras, 0.03),
        minlength=0.5, zorder=2, **heads,
    )  # fmt: skip


def _place(nodes: list[Node], i: int, places: dict[int, float], n: int) -> int:
    """Set the `places` of node `i` and of all nodes below it. A node without children
    gets the next free column, from `n` on; any other node gets the mean place of its
    children. Return the column that is free next.
    """
    for child in nodes[i].children:
        n = _place(nodes, child, places, n)
    columns = [places[child] for child in nodes[i].children] or [n]
    places[i] = sum(columns) / len(columns)
    return n if nodes[i].children else n + 1


def _text(node: Node) -> str:
    texts = (node.left, *node.facts) if node.children else (node.value,)
    return "\n".join(textwrap.fill(text, _LINE) for text in texts)
