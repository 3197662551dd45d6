"""The figures of a report, without pyplot and its state of the whole process."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era._plotting import BLUE, GRAY, ORANGE, label_places
from sklearn_era.inspection import (
    EraScoreDisplay,
    SplitAgreementDisplay,
    split_statistics,
)
from sklearn_era.numerai.score_table import ValidationResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Of the rows of the table, of which there are four at most.
_COLORS = (BLUE, ORANGE, "#009e73", "#cc79a7")
_MOST_FEATURES, _MOST_BARS = 20, 200
_DPI = 120
_LEGEND: Any = {"loc": "outside right upper", "fontsize": "small"}

# The rows of the table, by what they are called.
Rows = Sequence[tuple[str, ValidationResult]]


class Sample(NamedTuple):
    """Rows of a training, with their eras as the index, and how many eras it has."""

    X: "pd.DataFrame"
    y: NDArray[Any]
    n_trained: int


def cumulative_corr(rows: Rows) -> "Figure":
    """Draw the running sum of CORR over the eras that all rows have, a line a row."""
    figure, corr = _new_figure(4.2), _corr_of(rows)
    ax = figure.subplots()
    for color, (name, scores) in zip(_COLORS, corr.items(), strict=False):
        label = f"{name}, mean {scores.mean():.4f}"
        ax.plot(scores.fillna(0).cumsum().to_numpy(), color=color, label=label)
    ax.axhline(0, color=GRAY, linewidth=0.8)
    step, style = label_places(ax, corr.index.tolist())
    ax.set_xticks(range(0, len(corr), step), corr.index[::step], **style)
    ax.set(xlabel="era", ylabel="cumulative CORR")
    ax.set_title(f"Cumulative CORR, {rows[0][1].target}, {rows[0][1].way}")
    figure.legend(**_LEGEND)
    return figure


def corr_by_era(rows: Rows) -> "Figure":
    """Draw the CORR of each era that all rows have, an axes a row."""
    figure, corr = _new_figure(0.8 + 1.8 * len(rows)), _corr_of(rows)
    figure.suptitle(f"CORR by era, {rows[0][1].target}, {rows[0][1].way}")
    axes = figure.subplots(len(rows), sharex=True, sharey=True, squeeze=False)[:, 0]
    for ax, (name, scores) in zip(axes, corr.items(), strict=True):
        ax.set_title(name)
        if scores.notna().any():
            display = EraScoreDisplay(
                scores=scores, era_labels=corr.index, score_name="CORR"
            )
            if len(corr) <= _MOST_BARS:
                display.plot(ax)
            else:
                display.plot(ax, kind="line", linestyle="none", markersize=3)
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        ax.axhline(0, color=GRAY, linewidth=0.8)
        ax.label_outer()
    return figure


def feature_exposure(rows: Rows) -> "Figure":
    """Draw how models follow single features, those that the first follows most."""
    rows = [(name, result) for name, result in rows if result.exposures]
    exposures = rows[0][1].exposures
    names = [x for x, value in exposures.items() if np.isfinite(value)][:_MOST_FEATURES]
    figure = _new_figure(1.8 + 0.26 * max(len(names), 4))
    ax = figure.subplots()
    places, height = np.arange(len(names)), 0.8 / len(rows)
    for i, (color, (name, result)) in enumerate(zip(_COLORS, rows, strict=False)):
        values = [result.exposures.get(x, np.nan) for x in names]
        offset = (i - (len(rows) - 1) / 2) * height
        ax.barh(places + offset, values, height, color=color, label=name)
    ax.axvline(0, color=GRAY, linewidth=0.8)
    ax.set_yticks(places, names, fontsize="small")
    ax.set_ylim(max(len(names), 1) - 0.4, -0.6)
    ax.set_xlabel(
        "exposure: correlation of ranked predictions with the feature, mean over eras\n"
        "(below 0, predictions are high where the feature is low)"
    )
    ax.set_title(
        f"The {len(names)} of {len(exposures)} features with the largest exposure,\n"
        f"sorted by the absolute exposure of {rows[0][0]}"
    )
    figure.legend(**_LEGEND)
    return figure


def split_agreement(estimators: Sequence[tuple[str, Any]], sample: Sample) -> "Figure":
    """Draw how far the eras of a sample agree on the splits, an axes a fit."""
    figure = _new_figure(5.0, max(8.0, 5.5 * len(estimators)))
    n_eras = sample.X.index.nunique()
    figure.suptitle(
        f"Split agreement in {n_eras} of {sample.n_trained} training eras: 1 if all go "
        "the same way, 0 if half do"
    )
    figure.supxlabel(
        "Each bubble is all splits of one depth and agreement; its area is their share "
        "of the model's gain.\nDepth 0 is the first split of a tree.",
        fontsize="small",
    )
    axes = figure.subplots(1, len(estimators), squeeze=False, sharey=True)[0]
    for ax, (name, estimator) in zip(axes, estimators, strict=True):
        eras = sample.X.index
        statistics = split_statistics(estimator, sample.X, sample.y, eras=eras)
        if np.any(statistics.gain > 0):
            SplitAgreementDisplay.from_statistics(statistics, ax=ax)
        else:
            ax.set_axis_off()
            text = "no split has a gain on these rows"
            ax.text(0.5, 0.5, text, ha="center", transform=ax.transAxes)
        ax.set_title(name)
        ax.label_outer()
    return figure


def as_png(figure: "Figure") -> bytes:
    """Encode a figure."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def _new_figure(height: float, width: float = 9.0) -> "Figure":
    figure_class = import_optional("matplotlib.figure", extra="plot").Figure
    figure: Figure = figure_class(figsize=(width, height), layout="constrained")
    return figure


def _corr_of(rows: Rows) -> "pd.DataFrame":
    """The CORR of each row, in the eras that all have."""
    pandas = import_optional("pandas", extra="numerai")
    corr = ((name, result.scores["corr"]) for name, result in rows)
    columns = {name: pandas.Series(x.scores, x.eras) for name, x in corr}
    table: pd.DataFrame = pandas.concat(columns, axis=1, join="inner")
    return table
