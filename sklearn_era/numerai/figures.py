"""The figures of a report, without pyplot and its state of the whole process."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era._plotting import BLUE, GRAY, ORANGE, label_places
from sklearn_era.inspection import SplitAgreementDisplay, split_statistics
from sklearn_era.numerai.score_table import ValidationResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of the rows of the table, of which there are four at most.
_COLORS = (BLUE, ORANGE, "#009e73", "#cc79a7")
_MOST_FEATURES = 20
_DPI = 120

# The rows of the table, by what they are called.
Rows = Sequence[tuple[str, ValidationResult]]


class Sample(NamedTuple):
    """Rows of some eras of a training, and how many of its eras these are."""

    X: NDArray[Any]
    y: NDArray[Any]
    eras: NDArray[Any]
    n_eras: int
    n_all: int


def cumulative_corr(rows: Rows) -> "Figure":
    """Draw the running sum of CORR over the eras that all rows have, a line a row."""
    figure, ax, series = _axes_of_eras(rows, "Cumulative CORR")
    for color, (label, scores) in zip(_COLORS, series, strict=False):
        ax.plot(np.cumsum(np.nan_to_num(scores)), color=color, label=label)
    return _with_legend(figure)


def corr_by_era(rows: Rows) -> "Figure":
    """Draw the CORR of each era that all rows have, bars of the first row and points of
    the others, and a line at the mean of each.
    """
    figure, ax, series = _axes_of_eras(rows, "CORR")
    handles: list[Any] = []
    for i, (color, (label, scores)) in enumerate(zip(_COLORS, series, strict=False)):
        if i == 0:
            places, heights = range(scores.size), np.nan_to_num(scores)
            bars = ax.bar(places, heights, color=color, alpha=0.6, label=label)
            handles.append(bars)
        else:
            handles += ax.plot(scores, ".", color=color, label=label)
        if np.isfinite(scores).any():
            ax.axhline(np.nanmean(scores), color=color, linestyle="--", linewidth=1)
    return _with_legend(figure, handles)


def feature_exposure(rows: Rows) -> "Figure":
    """Draw how models follow single features, those that the first follows most."""
    rows = [(name, result) for name, result in rows if result.exposures]
    exposures = rows[0][1].exposures
    names = [x for x, value in exposures.items() if np.isfinite(value)][:_MOST_FEATURES]
    figure = _new_figure(1.6 + 0.26 * max(len(names), 4))
    ax = figure.subplots()
    places, height = np.arange(len(names)), 0.8 / len(rows)
    for i, (color, (name, result)) in enumerate(zip(_COLORS, rows, strict=False)):
        values = [result.exposures.get(x, np.nan) for x in names]
        offset = (i - (len(rows) - 1) / 2) * height
        ax.barh(places + offset, values, height, color=color, label=name)
    ax.axvline(0, color=GRAY, linewidth=0.8)
    ax.set_yticks(places, names, fontsize="small")
    ax.set_ylim(max(len(names), 1) - 0.4, -0.6)
    ax.set_xlabel("mean correlation of ranked predictions with the feature")
    ax.set_title(
        f"The {len(names)} features (of {len(exposures)}) with the largest exposure"
    )
    return _with_legend(figure)


def split_agreement(estimators: Sequence[tuple[str, Any]], sample: Sample) -> "Figure":
    """Draw how far the eras of a sample agree on the splits, an axes a fit."""
    figure = _new_figure(4.4, max(8.0, 5.5 * len(estimators)))
    figure.suptitle(
        f"Agreement on splits over {sample.n_eras} of {sample.n_all} training eras"
    )
    axes = figure.subplots(1, len(estimators), squeeze=False, sharey=True)[0]
    for ax, (name, estimator) in zip(axes, estimators, strict=True):
        ax.set_title(name)
        X: Any = sample.X
        if hasattr(estimator, "feature_names_in_"):
            pandas = import_optional("pandas", extra="numerai")
            X = pandas.DataFrame(X, columns=estimator.feature_names_in_, copy=False)
        statistics = split_statistics(estimator, X, sample.y, eras=sample.eras)
        if np.any(statistics.gain > 0):
            SplitAgreementDisplay.from_statistics(statistics, ax=ax)
        else:
            ax.set_axis_off()
            text = "no split has a gain on these rows"
            ax.text(0.5, 0.5, text, ha="center", transform=ax.transAxes)
    return figure


def as_png(figure: "Figure") -> bytes:
    """Encode a figure."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def _new_figure(height: float, width: float = 9.0) -> "Figure":
    figure_class = import_optional("matplotlib.figure", extra="plot").Figure
    agg = import_optional("matplotlib.backends.backend_agg", extra="plot")
    figure: Figure = figure_class(figsize=(width, height), layout="constrained")
    agg.FigureCanvasAgg(figure)
    return figure


def _axes_of_eras(
    rows: Rows, what: str
) -> tuple["Figure", Any, list[tuple[str, NDArray[np.float64]]]]:
    """A figure, its axes of the eras that all rows have, and a label and the CORR in
    these eras of each row.
    """
    figure = _new_figure(4.2)
    ax = figure.subplots()
    corr = [result.scores["corr"] for _, result in rows]
    labels = sorted(set.intersection(*(set(one.eras.tolist()) for one in corr)))
    series = []
    for (name, result), one in zip(rows, corr, strict=True):
        mean = result.summary["corr"]["mean"]
        shown = "undefined" if mean is None else f"{mean:.4f}"
        scores = one.scores[np.isin(one.eras, labels)]
        series.append((f"{name}, mean {shown}", scores))
    ax.axhline(0, color=GRAY, linewidth=0.8)
    ax.set_xlim(-0.6, len(labels) - 0.4)
    step, style = label_places(ax, labels)
    ax.set_xticks(range(0, len(labels), step), labels[::step], **style)
    ax.set_xlabel("era")
    ax.set_ylabel(what)
    ax.set_title(f"{what} by era, {rows[0][1].target}, {rows[0][1].way}")
    return figure, ax, series


def _with_legend(figure: "Figure", handles: Sequence[Any] | None = None) -> "Figure":
    """The figure with a legend beside the axes, where it covers nothing."""
    figure.legend(handles=handles, loc="outside right upper", fontsize="small")
    return figure
