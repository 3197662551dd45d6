"""Write the validation report as JSON and figures, and compare live scores with it.

``report.json`` holds, with null for undefined numbers::

    format                   2
    about                    created, members (sha256 of each fit), files (their sizes),
                             train (settings of scored fits) and configured settings
    models.<row>             "model", "gain", a benchmark model, "example predictions"
      target, way, folds, n_rows, neutralize_proportion, skipped, notes
      summary.<metric>       mean, std, sharpe, max_drawdown, n_eras
      scores.<metric>        eras, scores, n_samples: lists with one value per era
      exposures              the mean correlation with each feature, the largest first
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_era import inspection
from sklearn_era._optional import import_optional
from sklearn_era._plotting import BLUE, GRAY, ORANGE, label_eras
from sklearn_era.inspection import SplitAgreementDisplay, split_statistics
from sklearn_era.numerai.api import Numerai, Query
from sklearn_era.numerai.config import BlendMember, Config, Model, Workspace
from sklearn_era.numerai.data import read_rows, select_eras
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import Record, plain, utc_now, write_whole
from sklearn_era.numerai.score_table import FILES, ValidationResult, name_of_row
from sklearn_era.numerai.store import ModelRecord, load_fit
from sklearn_era.numerai.validation import GAIN, MODEL, Validation, purge_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT_NAME = "report.json"
_FIGURES = "cumulative_corr", "corr_by_era", "feature_exposure", "split_agreement"
_N_SAMPLE_ERAS = 24

# Colours of the table's rows, four at most, or of models.
_COLORS = (BLUE, ORANGE, "#009e73", "#cc79a7", GRAY)
_LINES = ("-", "-.", ":")
_MOST_FEATURES, _MOST_BARS = 20, 200
_DPI = 120
_LEGEND: Any = {"loc": "outside right upper", "fontsize": "small"}

# Names of scores, such as canon_corr, v2_corr20, mmc60 and fnc_v3.
_SCORE = re.compile(r"(canon_|v2_|)(corr|mmc|bmc|fnc)(?:_v3)?(\d*)")
_OFFICIAL = ("", "v2_", "canon_")
_HORIZON = 60  # business days, of the scores that Numerai pays for

_CALL = "submissionScores($modelId: ID! $tournament: Int $lastNRounds: Int)"
_NAMED = {"displayName": str, "roundNumber": int, "day": int | None}
_VALUE = {"value": float | None, "resolved": bool | None}
SCORES = Query("Looking up the scores", _CALL, [_NAMED | _VALUE], keys=False)

# The rows of the table by their names in figures, the model's first.
Rows = Mapping[str, ValidationResult]


class Report(Record):
    """The contents of ``report.json``."""

    format: int = 2
    about: dict[str, Any]
    models: dict[str, Any]


class RoundScore(NamedTuple):
    """A model's scores in one round; a score that is not known yet is None."""

    round_number: int
    model: str
    resolved: bool
    corr: float | None = None
    mmc: float | None = None
    bmc: float | None = None
    fnc: float | None = None


def report_is_current(
    config: Config, workspace: Workspace, model: Model, records: list[ModelRecord]
) -> bool:
    """Return whether the report was made from these fits, files and settings."""
    path = workspace.report_dir(model.name) / REPORT_NAME
    with suppress(DataError):
        if report := Report.read(path, advice="Validate again."):
            wanted = identify(config, workspace, model, records)
            if report.format == 1:  # of a single fit, by its name
                wanted = {"model_sha256": records[0].sha256, "purge": wanted["purge"]}
            return wanted.items() <= report.about.items()
    return False


def identify(
    config: Config, workspace: Workspace, model: Model, fits: list[ModelRecord]
) -> dict[str, Any]:
    """Return the facts that identify a report: the sha256 of its fits, the names and
    sizes of the data files, and the configured settings.
    """
    members = zip(model.members, fits, strict=True)
    names = {"validation", *FILES.values()}
    names |= {name for member in model.members for name in member.train.files}
    paths = filter(None, map(workspace.newest, sorted(names)))
    return {
        "members": {member.name: record.sha256 for member, record in members},
        "version": config.data.version, "target": model.train.target,
        "purge": purge_of(config, model), "predict": model.predict.model_dump(),
        "weights": [member.weight for member in model.members],
        "configured": [member.train.model_dump() for member in model.members],
        "files": {path.name: path.stat().st_size for path in paths},
        "validate": config.validation.model_dump(),
    }  # fmt: skip


def write_report(validation: Validation, results: Rows) -> list[Path]:
    """Write figures and ``report.json``; return the report's and the figures' paths."""
    model, records = validation.model, validation.records
    workspace, member = validation.workspace, model.members[0]
    folder = workspace.report_dir(model.name)
    own = name_of_row(model.name, results)
    rows = {own if k == MODEL else k: result for k, result in results.items()}
    fits = {own: validation.folder}
    if GAIN in results and results[MODEL].way == "hold-out":
        fits[GAIN] = validation.folder / GAIN
    of = "" if len(records) == 1 else f", member {member.name}"
    loaded = {f"{x}{of}": load_fit(fits[x], member.name)[0] for x in fits}
    estimators = dict(map(with_splits, loaded, loaded.values()))
    sample = read_training_sample(workspace, member, records[0])
    agreement = split_agreement(estimators, *sample)
    drawn = *corr_figures(rows), feature_exposure(rows), agreement
    paths = [folder / f"{name}.png" for name in _FIGURES]
    for path, figure in zip(paths, drawn, strict=True):
        write_whole(path, as_png(figure))
    given = validation.config, workspace, model, records
    about = {"created": utc_now(), **identify(*given), "train": validation.settings()}
    models = {name: _plain(result) for name, result in results.items()}
    Report(about=about, models=models).write(folder / REPORT_NAME)
    return [folder / REPORT_NAME, *paths]


def read_training_sample(
    workspace: Workspace, member: BlendMember, record: ModelRecord
) -> tuple[pd.DataFrame, NDArray[Any], int]:
    """Return (X, y, n_eras): the features of evenly spaced training eras, with the eras
    as index; the targets of these eras; and the number of all training eras.
    """
    files = [workspace.need(name) for name in member.train.files]
    settings = member.train.model_copy(update={"last_era": record.last_era})
    trained = sorted(select_eras(files, settings)[0])
    places = np.linspace(0, len(trained) - 1, min(_N_SAMPLE_ERAS, len(trained)))
    chosen = {x: x for x in (trained[i] for i in places.round().astype(int))}
    X, y, eras = read_rows(files, record.features, record.target, chosen)
    return X.set_axis(eras), y, len(trained)


def _plain(result: ValidationResult) -> Any:
    """Return a result in the form of JSON, with null for undefined numbers."""
    named: dict[str, Any] = {"folds": [fold._asdict() for fold in result.folds]}
    lists = ("eras", "scores", "n_samples")
    scores = result.scores.items()
    named["scores"] = {m: {x: getattr(one, x) for x in lists} for m, one in scores}
    text = json.dumps(vars(result) | named, default=plain)
    return json.loads(text, parse_constant=lambda _: None)


def with_splits(name: str, model: Any) -> tuple[str, Any]:
    """Return (name, model), where `model` has splits to draw. If `model` is an average,
    return the member with the largest weight among the members that have trees, and a
    longer name; otherwise return the arguments.
    """
    of: Mapping[str, float] = getattr(model, "weights_", {})
    for member in sorted(of, key=lambda x: -of[x]):  # by their weights
        if hasattr(found := model.members_.get(member), "_predictors"):
            return f"{name}, {member} ({of[member]:.0%} of the average)", found
    return name, model


def corr_figures(rows: Rows) -> "tuple[Figure, Figure]":
    """Return two figures: the cumulative CORR, with a line for each row of the score
    table, and CORR by era, with axes for each row. Both cover the eras in all rows.
    """
    scored = {name: result.scores["corr"] for name, result in rows.items()}
    columns = {name: pd.Series(x.scores, x.eras) for name, x in scored.items()}
    corr = pd.concat(columns, axis=1, join="inner")
    common = corr.dropna()  # as in the summaries
    first = next(iter(rows.values()))
    title = f"CORR{{}}, {first.target}, {first.way}"
    total, by_era = _new_figure(4.2), _new_figure(0.8 + 1.8 * len(rows))
    by_era.suptitle(title.format(" by era"))
    top = total.subplots()
    label_eras(top, corr.index.tolist())
    top.set_ylabel("cumulative CORR")
    top.set_title(f"Cumulative {title.format('')}")
    style: Any = {"kind": "line", "linestyle": "none", "markersize": 3}
    if len(corr) <= _MOST_BARS:
        style = {"kind": "bar"}
    axes = by_era.subplots(len(rows), sharex=True, sharey=True, squeeze=False)[:, 0]
    for ax, color, (name, scores) in zip(axes, _COLORS, corr.items(), strict=False):
        label = f"{name}, mean {common[name].mean():.4f}"
        top.plot(scores.fillna(0).cumsum().to_numpy(), color=color, label=label)
        if scores.notna().any():
            of: Any = {"era_labels": corr.index, "score_name": "CORR"}
            inspection.EraScoreDisplay(scores=scores, **of).plot(ax, **style)
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        ax.set_title(name)
        ax.label_outer()
    for ax in (top, *axes):
        ax.axhline(0, color=GRAY, linewidth=0.8)
    total.legend(**_LEGEND)
    return total, by_era


def feature_exposure(rows: Rows) -> "Figure":
    """Return a figure of the exposures to features in each row of the score table. Show
    the features with the largest absolute exposures in the first row that has any.
    """
    followed = {name: x.exposures for name, x in rows.items() if x.exposures}
    exposures, first = pd.DataFrame(followed), next(iter(followed))
    shown = exposures[exposures[first].notna()].head(_MOST_FEATURES)
    n_shown, height = len(shown), 0.8 / len(followed)
    figure = _new_figure(1.8 + 0.26 * max(n_shown, 4))
    ax = figure.subplots()
    for i, (color, name) in enumerate(zip(_COLORS, followed, strict=False)):
        places = np.arange(n_shown) + (i - (len(followed) - 1) / 2) * height
        ax.barh(places, shown[name], height, color=color, label=name)
    ax.axvline(0, color=GRAY, linewidth=0.8)
    ax.set_yticks(range(n_shown), shown.index, fontsize="small")
    ax.set_ylim(max(n_shown, 1) - 0.4, -0.6)
    ax.set_xlabel(
        "exposure: correlation of ranked predictions with the feature, mean over eras\n"
        "(below 0, predictions are high where the feature is low)"
    )
    ax.set_title(
        f"The {n_shown} of {len(exposures)} features with the largest exposure,\n"
        f"sorted by the absolute exposure of {first}"
    )
    figure.legend(**_LEGEND)
    return figure


def split_agreement(
    estimators: Mapping[str, Any], X: pd.DataFrame, y: NDArray[Any], n_trained: int
) -> "Figure":
    """Draw the agreement of eras on splits, with axes per fit; return the figure."""
    figure, eras = _new_figure(5.0, max(8.0, 5.5 * len(estimators))), X.index
    figure.suptitle(
        f"Split agreement in {eras.nunique()} of {n_trained} training eras: 1 "
        "if all go the same way, 0 if half do"
    )
    figure.supxlabel(
        "Each bubble is all splits of one depth and agreement; its area is their share "
        "of the model's gain.\nDepth 0 is the first split of a tree.",
        fontsize="small",
    )
    axes = figure.subplots(1, len(estimators), squeeze=False, sharey=True)[0]
    for ax, (name, estimator) in zip(axes, estimators.items(), strict=True):
        statistics = split_statistics(estimator, X, y, eras=eras)
        if np.any(statistics.gain > 0):
            SplitAgreementDisplay(statistics).plot(ax)
        else:
            ax.set_axis_off()
            text = "no split has a gain on these rows"
            ax.text(0.5, 0.5, text, ha="center", transform=ax.transAxes)
        ax.set_title(name)
        ax.label_outer()
    return figure


def live_scores(
    client: Numerai, ids: Mapping[str, str], n_rounds: int, horizons: Mapping[str, Any]
) -> list[RoundScore]:
    """Return the scores of each model in its last `n_rounds` rounds. Use the scores for
    the horizon of the model's target or, if missing, scores without a horizon.
    """
    rows = []
    for model, model_id in ids.items():
        horizon = str(horizons.get(model) or _HORIZON)
        found = []
        for score in client.ask(SCORES, model_id, n_rounds):
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


def promised_scores(workspace: Workspace, models: Sequence[str]) -> dict[str, Any]:
    """Return each model's mean validation scores by metric, from its report."""
    promised = {}
    for model in models:
        path = workspace.report_dir(model) / REPORT_NAME
        with suppress(DataError, AttributeError, LookupError, TypeError):  # damaged
            if report := Report.read(path, advice="Validate again."):
                summary = report.models[MODEL]["summary"].items()
                means = ((metric, values["mean"]) for metric, values in summary)
                promised[model] = {x: y for x, y in means if isinstance(y, float)}
    return promised


def draw_live_scores(rows: Sequence[RoundScore], promised: dict[str, Any]) -> "Figure":
    """Return a figure of CORR and MMC by round, with a line for each model and a dashed
    line at its mean in validation.
    """
    figure = _new_figure(6.0)
    top, bottom = figure.subplots(2, 1, sharex=True)
    models = pd.DataFrame(rows).groupby("model", sort=False)
    for ax, metric in ((top, "corr"), (bottom, "mmc")):
        for i, (model, own) in enumerate(models):
            style: Any = {"color": _COLORS[i % len(_COLORS)]}
            line = _LINES[i // len(_COLORS) % len(_LINES)]
            numbers, scores = own["round_number"], own[metric].astype(float)
            ax.plot(numbers, scores, line, marker=".", label=model, **style)
            late = scores.mask(own["resolved"])
            ax.plot(numbers, late, "o", markerfacecolor="white", **style)
            if (mean := promised.get(str(model), {}).get(metric)) is not None:
                ax.axhline(mean, linestyle="--", linewidth=1, **style)
        ax.axhline(0, color=GRAY, linewidth=0.8)
        ax.set(title=f"{metric.upper()} by round", ylabel=metric.upper())
        ax.xaxis.get_major_locator().set_params(integer=True)
    bottom.set_xlabel("round")
    top.plot([], [], color=GRAY, linestyle="--", label="mean in validation")
    top.plot([], [], "o", color=GRAY, markerfacecolor="white", label="not final")
    figure.legend(*top.get_legend_handles_labels(), loc=_LEGEND["loc"])
    return figure


def as_png(figure: "Figure") -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def _new_figure(height: float, width: float = 9.0) -> "Figure":
    """Return a new figure. It is made without pyplot, which keeps global state."""
    figure_class = import_optional("matplotlib.figure", extra="plot").Figure
    return figure_class(figsize=(width, height), layout="constrained")
