"""Live scores of models by round, beside what their validation promised."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sklearn_era._optional import import_optional
from sklearn_era._plotting import BLUE, GRAY, ORANGE
from sklearn_era.numerai.api import Numerai, RoundScore
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.validation import MODEL, REPORT_NAME, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLORS = (BLUE, ORANGE, "#009e73", "#cc79a7", GRAY)
_LINES = ("-", "-.", ":")
# Business days; that of the scores that Numerai pays for.
_HORIZON = 60


def live_scores(
    client: Numerai,
    ids: Mapping[str, str],
    n_rounds: int,
    horizons: Mapping[str, int | None],
) -> list[RoundScore]:
    """The scores of models in their last rounds, by round and model.

    `ids` and `horizons`, those of the targets in business days, are by model name.
    """
    rows = [
        row._replace(model=model)
        for model, key in ids.items()
        for row in client.round_scores(key, n_rounds, horizons.get(model) or _HORIZON)
    ]
    return sorted(rows, key=lambda row: row.round_number)


def promised_scores(
    workspace: Workspace, models: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The mean scores by metric in the validation reports that there are, by model."""
    promised = {}
    for model in models:
        path = workspace.report_dir(model) / REPORT_NAME
        try:
            report = Report.read(path, advice="Validate again.")
            summary = report.models[MODEL]["summary"].items() if report else ()
            means = {metric: values["mean"] for metric, values in summary}
        except (DataError, AttributeError, LookupError, TypeError):
            continue  # one that is damaged promises nothing
        promised[model] = {x: y for x, y in means.items() if isinstance(y, float)}
    return promised


def draw_scores(
    rows: Sequence[RoundScore], promised: Mapping[str, Mapping[str, float]]
) -> "Figure":
    """Draw CORR and MMC by round, a line a model, dashed at what was promised."""
    figure_class = import_optional("matplotlib.figure", extra="plot").Figure
    figure: Figure = figure_class(figsize=(9.0, 6.0), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    models = list(dict.fromkeys(row.model for row in rows))
    for ax, metric in ((top, "corr"), (bottom, "mmc")):
        for i, model in enumerate(models):
            style: dict[str, Any] = {"color": _COLORS[i % len(_COLORS)]}
            line = _LINES[i // len(_COLORS) % len(_LINES)]
            own = [row for row in rows if row.model == model]
            numbers = [row.round_number for row in own]
            scores = [getattr(row, metric) for row in own]
            scores = [math.nan if score is None else score for score in scores]
            ax.plot(numbers, scores, line, marker=".", label=model, **style)
            pairs = zip(own, scores, strict=True)
            late = [math.nan if row.resolved else score for row, score in pairs]
            ax.plot(numbers, late, "o", markerfacecolor="white", **style)
            if (mean := promised.get(model, {}).get(metric)) is not None:
                ax.axhline(mean, linestyle="--", linewidth=1, **style)
        ax.axhline(0, color=GRAY, linewidth=0.8)
        ax.set(title=f"{metric.upper()} by round", ylabel=metric.upper())
        ax.xaxis.get_major_locator().set_params(integer=True)
    bottom.set_xlabel("round")
    handles = [line for line in top.get_lines() if line.get_label() in models]
    lines = import_optional("matplotlib.lines", extra="plot").Line2D
    handles += [
        lines([], [], color=GRAY, linestyle="--", label="mean in validation"),
        lines([], [], color=GRAY, marker="o", ls="", mfc="white", label="not final"),
    ]
    figure.legend(handles=handles, loc="outside right upper")
    return figure
