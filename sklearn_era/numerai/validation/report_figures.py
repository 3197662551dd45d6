"""The figures of a report, without pyplot and its state of the whole process."""

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from sklearn_era._optional import import_optional
from sklearn_era._plotting import BLUE, GRAY, ORANGE, label_places
from sklearn_era.inspection import SplitAgreementDisplay, split_statistics
from sklearn_era.metrics import EraScores
from sklearn_era.numerai.validation.scoring import ValidationResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sklearn_era.numerai.validation.report import TrainingSample

_COLORS = (BLUE, ORANGE, GRAY, "#009e73", "#cc79a7")
_MOST_FEATURES = 20
_DPI = 120


def cumulative_corr(results: Mapping[str, ValidationResult]) -> "Figure":
    """Draw the running sum of CORR over the eras, a line a model."""
    figure, ax = _new_figure()
    labels = _all_labels(results)
    at = {label: i for i, label in enumerate(labels)}
    for color, (name, result) in zip(
        _colors(len(results)), results.items(), strict=True
    ):
        scores = result.scores["corr"]
        ax.plot(
            [at[str(era)] for era in scores.eras],
            np.cumsum(np.nan_to_num(scores.scores)),
            color=color,
            label=f"{name}, mean {_mean(scores)}",
        )
    ax.axhline(0, color=GRAY, linewidth=0.8)
    _label_eras(ax, labels)
    ax.set_ylabel("cumulative CORR")
    ax.legend()
    return figure


def corr_by_era(results: Mapping[str, ValidationResult]) -> "Figure":
    """Draw the CORR of each era: bars of the first model, and points of the others."""
    figure, ax = _new_figure()
    labels = _all_labels(results)
    at = {label: i for i, label in enumerate(labels)}
    colors = _colors(len(results))
    for i, (name, result) in enumerate(results.items()):
        scores = result.scores["corr"]
        places = [at[str(era)] for era in scores.eras]
        style: dict[str, Any] = {"color": colors[i], "label": name}
        if i == 0:
            ax.bar(places, np.nan_to_num(scores.scores), width=0.8, **style)
            if np.isfinite(scores.scores).any():
                mean = np.nanmean(scores.scores)
                line = {"color": colors[i], "linestyle": "--", "linewidth": 1}
                ax.axhline(mean, label=f"{name}, mean {_mean(scores)}", **line)
        else:
            ax.plot(places, scores.scores, ".", **style)
    ax.axhline(0, color=GRAY, linewidth=0.8)
    _label_eras(ax, labels)
    ax.set_ylabel("CORR")
    ax.legend()
    return figure


def feature_exposure(results: Mapping[str, ValidationResult]) -> "Figure":
    """Draw how models follow single features, those that the first follows most."""
    first = next(iter(results.values()))
    names = [x for x, value in first.exposures.items() if np.isfinite(value)]
    names = names[:_MOST_FEATURES]
    figure, ax = _new_figure(height=1.6 + 0.26 * max(len(names), 4))
    places = np.arange(len(names))
    height = 0.8 / len(results)
    colors = _colors(len(results))
    for i, (name, result) in enumerate(results.items()):
        values = [result.exposures.get(x, np.nan) for x in names]
        offset = (i - (len(results) - 1) / 2) * height
        ax.barh(places + offset, values, height, color=colors[i], label=name)
    ax.axvline(0, color=GRAY, linewidth=0.8)
    ax.set_yticks(places, names, fontsize="small")
    ax.invert_yaxis()
    ax.set_xlabel("mean correlation of ranked predictions with the feature")
    ax.legend()
    return figure


def split_agreement(
    estimators: Mapping[str, Any], sample: "TrainingSample"
) -> "Figure":
    """Draw how far the eras of a sample agree on the splits, an axes a model.

    A model of which no split has a gain on these rows has a sentence instead.
    """
    figure, axes = _new_figure(columns=len(estimators))
    for ax, (name, estimator) in zip(axes, estimators.items(), strict=True):
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


def _new_figure(*, columns: int | None = None, height: float = 4.2) -> tuple[Any, Any]:
    """A figure with axes; an array of them if there is a number of columns."""
    figure_class = import_optional("matplotlib.figure", extra="plot").Figure
    agg = import_optional("matplotlib.backends.backend_agg", extra="plot")
    width = 8.0 if columns is None else max(8.0, 5.5 * columns)
    figure = figure_class(figsize=(width, height), layout="constrained")
    agg.FigureCanvasAgg(figure)
    if columns is None:
        return figure, figure.subplots()
    return figure, figure.subplots(1, columns, squeeze=False, sharey=True)[0]


def _colors(n: int) -> list[str]:
    return [_COLORS[i % len(_COLORS)] for i in range(n)]


def _all_labels(results: Mapping[str, ValidationResult]) -> list[str]:
    """The eras of all models, in their order."""
    return sorted({str(x) for one in results.values() for x in one.scores["corr"].eras})


def _label_eras(ax: Any, labels: list[str]) -> None:
    ax.set_xlim(-0.6, len(labels) - 0.4)
    step, style = label_places(ax, labels)
    places = np.arange(0, len(labels), step)
    ax.set_xticks(places, [labels[i] for i in places], **style)
    ax.set_xlabel("era")


def _mean(scores: EraScores) -> str:
    defined = scores.scores[np.isfinite(scores.scores)]
    return f"{defined.mean():.4f}" if defined.size else "undefined"


__all__ = [
    "as_png",
    "corr_by_era",
    "cumulative_corr",
    "feature_exposure",
    "split_agreement",
]
