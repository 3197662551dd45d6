"""The report of a validation: the numbers as JSON, and figures.

``report.json`` holds, with null for what is undefined::

    format                   2
    about                    created, members (sha256 of each fit), and what was asked
    models.<row>             "model", "gain", a benchmark model, "example predictions"
      target, way, folds, n_rows, neutralize_proportion, skipped, notes
      summary.<metric>       mean, std, sharpe, max_drawdown, n_eras
      scores.<metric>        eras, scores, n_samples: lists, a value an era
      exposures              the mean correlation with each feature, the largest first
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_era._optional import import_optional
from sklearn_era.numerai import figures
from sklearn_era.numerai.config import Config, Member, Model, Workspace
from sklearn_era.numerai.eras import era_runs, open_columns, read_blocks, select_eras
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import Record, utc_now, write_whole
from sklearn_era.numerai.score_table import ValidationResult
from sklearn_era.numerai.store import ModelRecord, load_fit
from sklearn_era.numerai.validation import GAIN, MODEL, purge_of

REPORT_NAME = "report.json"
_N_SAMPLE_ERAS = 24


class Report(Record):
    """What ``report.json`` holds."""

    format: int = 2
    about: dict[str, Any]
    models: dict[str, Any]


def report_is_current(
    config: Config, workspace: Workspace, model: Model, records: Sequence[ModelRecord]
) -> bool:
    """Whether the report is of these fits, judged as the configuration says."""
    path = workspace.report_dir(model.name) / REPORT_NAME
    try:
        report = Report.read(path, advice="Validate again.")
    except DataError:
        return False
    wanted = identify(config, model, records)
    if report is not None and report.format == 1:  # of a single fit, by its name
        wanted = {"model_sha256": records[0].sha256, "purge": wanted["purge"]}
    return report is not None and wanted.items() <= report.about.items()


def identify(
    config: Config, model: Model, records: Sequence[ModelRecord]
) -> dict[str, Any]:
    """What a report is of: the fits, and what was asked of the validation."""
    members = zip(model.members, records, strict=True)
    return {
        "members": {member.name: record.sha256 for member, record in members},
        "version": config.data.version,
        "target": model.train.target,
        "purge": purge_of(config, model),
        "weights": [member.weight for member in model.members],
        "train": [member.train.model_dump() for member in model.members],
        "validate": config.validation.model_dump(),
        "predict": model.predict.model_dump(),
    }


def write_report(
    config: Config,
    workspace: Workspace,
    model: Model,
    records: Sequence[ModelRecord],
    results: Mapping[str, ValidationResult],
) -> list[Path]:
    """Write ``report.json`` and the figures, and return their paths in this order.

    ``report.json`` is written last: a report that is current is complete.
    """
    folder, member = workspace.report_dir(model.name), model.members[0]
    rows = [(model.name if k == MODEL else k, result) for k, result in results.items()]
    fits = {model.name: workspace.model_dir(model.name)}
    if GAIN in results and results[MODEL].way == "hold-out":
        fits[GAIN] = fits[model.name] / GAIN
    of = "" if len(records) == 1 else f", member {member.name}"
    estimators = [(f"{x}{of}", load_fit(fits[x], member.name)[0]) for x in fits]
    sample = read_training_sample(workspace, member, records[0])
    drawn = {
        "cumulative_corr": figures.cumulative_corr(rows),
        "corr_by_era": figures.corr_by_era(rows),
        "feature_exposure": figures.feature_exposure(rows),
        "split_agreement": figures.split_agreement(estimators, sample),
    }
    paths = [folder / f"{name}.png" for name in drawn]
    for path, figure in zip(paths, drawn.values(), strict=True):
        write_whole(path, figures.as_png(figure))
    about = {"created": utc_now(), **identify(config, model, records)}
    models = {name: _plain(vars(result)) for name, result in results.items()}
    Report(about=about, models=models).write(folder / REPORT_NAME)
    return [folder / REPORT_NAME, *paths]


def read_training_sample(
    workspace: Workspace, member: Member, record: ModelRecord
) -> figures.Sample:
    """Rows of eras that a fit was trained on, the eras at even distances."""
    pandas = import_optional("pandas", extra="numerai")
    files = [workspace.need(name) for name in member.train.files]
    settings = member.train.model_copy(update={"last_era": record.last_era})
    trained = sorted(select_eras(files, settings).labels)
    places = np.linspace(0, len(trained) - 1, min(_N_SAMPLE_ERAS, len(trained)))
    chosen, parts = {trained[place] for place in places.round().astype(int)}, []
    for path in files:
        columns = open_columns(path)
        runs = [run for run in era_runs(columns, path) if run.label in chosen]
        targets = columns.read_numbers(record.target, "target")
        blocks = read_blocks(columns, path, record.features, runs)
        for run, block in zip(runs, blocks, strict=True):
            y = targets[run.start : run.stop]
            eras = np.full(y.size, run.label)
            X = pandas.DataFrame(block, eras, record.features, copy=False)
            parts.append((X[~np.isnan(y)], y[~np.isnan(y)]))
    frames, values = zip(*parts, strict=True)
    return figures.Sample(pandas.concat(frames), np.concatenate(values), len(trained))


def _plain(value: Any) -> Any:
    """What JSON has for a result: objects, lists, and null for what is undefined."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
