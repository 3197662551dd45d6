"""Live scores of models by round, beside what their validation promised."""

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn_era._optional import import_optional
from sklearn_era._plotting import BLUE, GRAY, ORANGE
from sklearn_era.numerai import queries
from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.report import REPORT_NAME, Report
from sklearn_era.numerai.validation import MODEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Names of scores, such as canon_corr, v2_corr20, mmc60 and fnc_v3.
_SCORE = re.compile(r"(canon_|v2_|)(corr|mmc|bmc|fnc)(?:_v3)?(\d*)")
_OFFICIAL = ("", "v2_", "canon_")
# Business days; that of the scores that Numerai pays for.
_HORIZON = 60
_COLORS = (BLUE, ORANGE, "#009e73", "#cc79a7", GRAY)
_LINES = ("-", "-.", ":")


class RoundScore(NamedTuple):
    """The scores of a model in a round, None where there is none (yet)."""

    round_number: int
    model: str
    resolved: bool
    corr: float | None = None
    mmc: float | None = None
    bmc: float | None = None
    fnc: float | None = None


def live_scores(
    client: Numerai,
    ids: Mapping[str, str],
    n_rounds: int,
    horizons: Mapping[str, int | None],
) -> list[RoundScore]:
    """The latest scores of models in their last rounds, by round and model.

    `ids` and `horizons`, those of the targets in business days, are by model name. A
    score that names its horizon counts before the official one.
    """
    rows = []
    for model, model_id in ids.items():
        horizon = str(horizons.get(model) or _HORIZON)
        found = []
        for score in client.ask(queries.SCORES, model_id, n_rounds):
            match = _SCORE.fullmatch(score.displayName)
            if score.value is not None and match and match[3] in ("", horizon):
                rank = bool(match[3]), _OFFICIAL.index(match[1]), score.day or 0
                found.append((rank, match[2], score))
        rounds: dict[int, dict[str, Any]] = {}
        for _, metric, score in sorted(found, key=itemgetter(0)):
            rounds.setdefault(score.roundNumber, {})[metric] = score
        for number, best in sorted(rounds.items())[-n_rounds:]:
            resolved = all(score.resolved for score in best.values())
            values = {metric: score.value for metric, score in best.items()}
            rows.append(RoundScore(number, model, resolved, **values))
    return sorted(rows, key=itemgetter(0))


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
    pandas = import_optional("pandas", extra="numerai")
    figure: Figure = figure_class(figsize=(9.0, 6.0), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    models = pandas.DataFrame(rows).groupby("model", sort=False)
    for ax, metric in ((top, "corr"), (bottom, "mmc")):
        for i, (model, own) in enumerate(models):
            style: dict[str, Any] = {"color": _COLORS[i % len(_COLORS)]}
            line = _LINES[i // len(_COLORS) % len(_LINES)]
            numbers, scores = own["round_number"], own[metric].astype(float)
            ax.plot(numbers, scores, line, marker=".", label=model, **style)
            late = scores.mask(own["resolved"])
            ax.plot(numbers, late, "o", markerfacecolor="white", **style)
            if (mean := promised.get(model, {}).get(metric)) is not None:
                ax.axhline(mean, linestyle="--", linewidth=1, **style)
        ax.axhline(0, color=GRAY, linewidth=0.8)
        ax.set(title=f"{metric.upper()} by round", ylabel=metric.upper())
        ax.xaxis.get_major_locator().set_params(integer=True)
    bottom.set_xlabel("round")
    top.plot([], [], color=GRAY, linestyle="--", label="mean in validation")
    top.plot([], [], "o", color=GRAY, markerfacecolor="white", label="not final")
    figure.legend(*top.get_legend_handles_labels(), loc="outside right upper")
    return figure
