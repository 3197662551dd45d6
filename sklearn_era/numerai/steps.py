"""The steps of a round, each for one model, as the configuration says."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from scipy.stats import spearmanr

from sklearn_era.numerai import export, validation
from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.blend import load_blend
from sklearn_era.numerai.config import (
    Config,
    Model,
    TrainSection,
    Workspace,
    check_target,
)
from sklearn_era.numerai.data import (
    read_column_names,
    read_columns,
    read_features,
    read_ids,
)
from sklearn_era.numerai.errors import DataError, NoModelError
from sklearn_era.numerai.files import Record, file_sha256, lock, utc_now
from sklearn_era.numerai.prediction import predict_live
from sklearn_era.numerai.report import write_report
from sklearn_era.numerai.store import ModelRecord, read_record
from sklearn_era.numerai.submission import (
    check_submission,
    make_submission,
    write_submission,
)
from sklearn_era.numerai.submit import SubmissionRecord, submit
from sklearn_era.numerai.training import gain_settings, make_estimator, train, why_train

if TYPE_CHECKING:
    import pandas as pd


class Reporter(Protocol):
    """What is told of the work: sentences, how far a stage has come, and scores."""

    def step(self, text: str) -> None: ...

    def progress(self, stage: str, done: int, total: int) -> None: ...

    def validated(
        self,
        model: Model,
        results: Mapping[str, validation.ValidationResult],
        files: Sequence[Path],
    ) -> None: ...


class PredictionRecord(Record):
    """What made ``predictions.csv``, beside it."""

    predictions_sha256: str
    model_sha256: str
    version: str = ""
    neutralize_proportion: float = 0.0
    created: str = ""


# Fits ---------------------------------------------------------------------------------


def features_of(workspace: Workspace, settings: TrainSection) -> list[str]:
    """The columns that a fit learns from, once it is sure that the target exists."""
    metadata = read_features(workspace.need("features"))
    check_target(settings.target, metadata.targets)
    return metadata.features(settings.feature_set)


def check_parameters(config: Config, workspace: Workspace) -> None:
    """Check all fits' parameters, before gigabytes are fetched and hours spent.

    What names features is checked once their names are here.
    """
    for model in config.models:
        for settings in (model.train, *(member.train for member in model.members)):
            try:
                features = features_of(workspace, settings)
            except DataError:  # of a file that is to be downloaded, again perhaps
                features = None
            make_estimator(settings, features)
            if config.validation.compare_with_gain:
                gain_settings(settings)


def reasons_to_train(workspace: Workspace, model: Model) -> dict[str, str]:
    """For each member whose fit is not the one configured, why.

    Without features.json, a fit is only known to be there.
    """
    reasons = {}
    folder, version = workspace.model_dir(model.name), workspace.version
    known = workspace.newest("features") is not None
    for member in model.members:
        train, reason = member.train, None
        if known:
            reason = why_train(
                train,
                folder,
                member.name,
                files=train.files,
                features=features_of(workspace, train),
                version=version,
            )
        else:
            try:
                read_record(folder, member.name)
            except NoModelError:
                reason = "there is no model yet"
        if reason is not None:
            reasons[member.name] = reason
    return reasons


def train_model(
    workspace: Workspace, model: Model, told: Reporter, *, restart: bool = False
) -> None:
    """Train the members whose fits are not those configured; all of them to restart."""
    folder = workspace.model_dir(model.name)
    what = f"training {model.name!r}"
    with lock(workspace.lock_file(f"train-{model.name}"), what):
        reasons = reasons_to_train(workspace, model)
        for member in model.members:
            if not restart and member.name not in reasons:
                continue
            shown = spell(model, member.name)
            reason = reasons.get(member.name, "as requested")
            told.step(f"Training {shown}: {reason}.")
            record = train(
                member.train,
                files=[workspace.need(name) for name in member.train.files],
                features=features_of(workspace, member.train),
                folder=folder,
                name=member.name,
                model_name=model.name,
                version=workspace.version,
                restart=restart,
                on_progress=told.progress,
            )
            told.step(_describe(shown, record))


def spell(model: Model, member: str) -> str:
    """What messages call a member of a model."""
    return repr(model.name) + ("" if member == "model" else f" member {member!r}")


def _describe(shown: str, record: ModelRecord) -> str:
    text = (
        f"Trained {shown} on {record.n_rows:,} rows of {record.n_eras:,} eras "
        f"({record.first_era} to {record.last_era}) and {len(record.features):,} "
        f"features, for {record.target}."
    )
    n_trees, n_grown = record.n_trees, record.n_trees_with_splits
    if n_trees is not None and n_grown is not None and n_grown < n_trees:
        text += (
            f" Only {n_grown:,} of {n_trees:,} trees have splits, the last of them "
            f"tree {record.last_tree_with_splits:,}: more trees would change nothing."
        )
    return text


# A round ------------------------------------------------------------------------------


def live_round(workspace: Workspace, round_number: int | None) -> int:
    """The round to predict: the newest whose live file is here, if none is named."""
    workspace.need("live")
    rounds = workspace.rounds_of("live")
    if round_number is None:
        return rounds[-1]
    if round_number not in rounds:
        raise DataError(
            f"{workspace.data_dir} has no live file of round {round_number}; the "
            f"newest is of round {rounds[-1]}."
        )
    return round_number


def predict_model(
    config: Config,
    workspace: Workspace,
    model: Model,
    round_number: int,
    told: Reporter,
) -> Path:
    """Predict a round's live file, check the submission and write it."""
    blend, records = load_blend(workspace.model_dir(model.name), model)
    live = workspace.data_file("live", round_number)
    neutralizers: list[str] = []
    if model.predict.neutralize_proportion:
        name = model.predict.neutralize_feature_set
        neutralizers = (
            read_features(workspace.need("features")).features(name)
            if name
            else blend.features
        )
    predictions = predict_live(
        blend,
        records,
        live,
        version=workspace.version,
        predict=model.predict,
        neutralizers=neutralizers,
    )
    frame = make_submission(predictions.index, predictions)
    check_submission(frame, read_ids(live))
    path = workspace.round_dir(round_number, model.name) / "predictions.csv"
    digest = write_submission(frame, path)
    PredictionRecord(
        predictions_sha256=digest,
        model_sha256="+".join(record.sha256 for record in records),
        version=workspace.version,
        neutralize_proportion=model.predict.neutralize_proportion,
        created=utc_now(),
    ).write(path.with_suffix(".json"))
    told.step(
        f"Round {round_number}: {len(frame):,} predictions of {model.name!r} from "
        f"{predictions.min():.4f} to {predictions.max():.4f}: {path}"
    )
    for name, correlation in _correlations(
        config, workspace, model, round_number, predictions
    ):
        told.step(f"Rank correlation with {name}: {correlation:.3f}")
    return path


def _correlations(
    config: Config,
    workspace: Workspace,
    model: Model,
    round_number: int,
    predictions: "pd.Series[float]",
) -> Iterator[tuple[str, float]]:
    """Rank correlations with others' predictions, as far as their files are here.

    A number far from those of other rounds is worth a look before an upload.
    """
    target = model.train.target
    benchmark = config.validation.benchmark_of(workspace.version, target)
    for name, column, shown in (
        ("live_example_preds", "prediction", "Numerai's example predictions"),
        ("live_benchmark_models", benchmark, benchmark),
    ):
        path = workspace.data_file(name, round_number)
        try:
            if not path.exists() or column not in read_column_names(path):
                continue
            other = read_columns(path, [column])[column].reindex(predictions.index)
        except DataError as error:
            # Of a file to compare with, which is no reason not to submit.
            warnings.warn(str(error), UserWarning, stacklevel=2)
            continue
        known = other.notna().to_numpy()
        if known.sum() > 1:
            yield shown, float(spearmanr(predictions[known], other[known]).statistic)


def submit_model(
    client: Numerai,
    config: Config,
    workspace: Workspace,
    model: Model,
    round_number: int,
    told: Reporter,
    *,
    require_open: bool | None = None,
    force: bool = False,
) -> SubmissionRecord:
    """Upload a round's predictions, confirm and record it."""
    folder = workspace.round_dir(round_number, model.name)
    path = folder / "predictions.csv"
    if not path.exists():
        raise DataError(f"There is no {path}: run 'sklearn-era numerai predict' first.")
    return submit(
        client,
        model_name=model.name,
        submission=path,
        live=workspace.data_file("live", round_number),
        record=folder / "submission.json",
        round_number=round_number,
        version=workspace.version,
        model_sha256=_model_of(path),
        require_open=config.submit.require_open
        if require_open is None
        else require_open,
        force=force,
        on_step=told.step,
    )


def _model_of(path: Path) -> str:
    """The digest of the model that made a submission; "" if it was changed since."""
    try:
        origin = PredictionRecord.read(path.with_suffix(".json"), advice="")
    except DataError:
        origin = None
    if origin is not None and origin.predictions_sha256 == file_sha256(path):
        return origin.model_sha256
    warnings.warn(
        f"{path} is not what 'predict' wrote: it is submitted as it is.",
        UserWarning,
        stacklevel=2,
    )
    return ""


# After it -----------------------------------------------------------------------------


def validate_model(
    config: Config, workspace: Workspace, model: Model, told: Reporter
) -> None:
    """Score the model in eras that it has not seen, and write the report."""
    what = f"validating {model.name!r}"
    with lock(workspace.lock_file(f"validate-{model.name}"), what):
        records = read_records(workspace, model)
        results = validation.validate(
            config, workspace, model, on_progress=told.progress, on_step=told.step
        )
        files = write_report(config, workspace, model, records, results)
    told.validated(model, results, files)


def export_model(
    workspace: Workspace,
    model: Model,
    told: Reporter,
    *,
    path: Path | None = None,
    python: str | None = None,
) -> Path:
    """Write the model as a pickle for Numerai's upload, once it ran as they run it."""
    blend, records = load_blend(workspace.model_dir(model.name), model)
    path = path or workspace.model_dir(model.name) / export.PORTABLE
    live = workspace.need("live")
    check = export.export_model(
        blend, records, path, live, predict=model.predict, python=python
    )
    told.step(
        f"Portable model of {model.name!r}: {path} ({path.stat().st_size / 1e6:,.1f} "
        f"MB), which predicted {check.rows:,} rows in {check.seconds:.1f} s, using "
        f"{check.peak_bytes / 1e9:.2f} GB of memory."
    )
    return path


def read_records(workspace: Workspace, model: Model) -> list[ModelRecord]:
    """The records of a model's fits, in the order of its members."""
    folder = workspace.model_dir(model.name)
    return [read_record(folder, member.name) for member in model.members]


def is_validated(config: Config, workspace: Workspace, model: Model) -> bool:
    """Whether the report is of these very fits, or none can be made here."""
    return "validation" not in config.data.files or validation.report_is_current(
        config, workspace, model, read_records(workspace, model)
    )


def is_exported(config: Config, workspace: Workspace, model: Model) -> bool:
    """Whether the pickle is of these very fits, or none is wanted."""
    if not config.export.automatic or model.predict.neutralize_proportion > 0:
        return True
    return has_export(workspace, model)


def has_export(workspace: Workspace, model: Model) -> bool:
    """Whether there is a pickle of these very fits."""
    path = workspace.model_dir(model.name) / export.PORTABLE
    records = read_records(workspace, model)
    weights = [member.weight for member in model.members]
    try:
        return export.export_is_current(path, records, weights)
    except DataError:
        return False  # a damaged record is written anew
