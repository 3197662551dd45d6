"""The steps of a week, each as a configuration says.

Between a configuration and the modules that do the work, which take plain arguments.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sklearn_era.numerai.api.client import NumeraiClient
from sklearn_era.numerai.config import Config
from sklearn_era.numerai.data.dataset import (
    FeatureMetadata,
    read_column_names,
    read_columns,
    read_feature_metadata,
    read_ids,
)
from sklearn_era.numerai.data.download import download
from sklearn_era.numerai.errors import DataError, PortableModelError
from sklearn_era.numerai.files import file_sha256
from sklearn_era.numerai.model_upload.portable import write_portable_model
from sklearn_era.numerai.model_upload.portable_check import (
    PortableCheck,
    check_portable_model,
)
from sklearn_era.numerai.submission.prediction import predict_live
from sklearn_era.numerai.submission.record import utc_now
from sklearn_era.numerai.submission.submission_file import (
    check_submission,
    make_submission,
    write_submission,
)
from sklearn_era.numerai.submission.upload import SubmissionRecord, submit
from sklearn_era.numerai.targets import check_target
from sklearn_era.numerai.training.estimator_parameters import make_estimator
from sklearn_era.numerai.training.fitting import GAIN, MODEL, train
from sklearn_era.numerai.training.model_store import (
    ModelRecord,
    load_trained,
    write_json,
)
from sklearn_era.numerai.validation.report import ReportFiles, write_report
from sklearn_era.numerai.validation.scoring import ValidationResult, validate
from sklearn_era.numerai.validation.training_sample import read_training_sample
from sklearn_era.numerai.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]

_FNC_FEATURE_SET = "fncv3_features"
PORTABLE = "portable.pkl"
# The files without which a week's work can be done.
_COMPARED_WITH = frozenset(
    {
        "live_benchmark_models",
        "live_example_preds",
        "meta_model",
        "validation_benchmark_models",
    }
)
# In the report, the digest of the model that it is of.
REPORTED_MODEL = "model_sha256"


def read_features(config: Config, workspace: Workspace) -> FeatureMetadata:
    """The newest features.json, once it is sure that it has the target."""
    metadata = read_feature_metadata(workspace.newest("features"))
    check_target(config.train.target, metadata.targets)
    return metadata


def check_parameters(config: Config, workspace: Workspace) -> None:
    """Check the model's parameters, before anything is downloaded or read.

    What names features is checked as far as their names are here already.

    Raises
    ------
    ConfigError
        If one is unknown or has a bad value.
    """
    features: list[str] = []
    parameters = dict(config.train.parameters)
    if workspace.rounds_of("features"):
        features = read_features(config, workspace).features(config.train.feature_set)
    else:
        for name in ("monotonic_cst", "interaction_cst"):
            parameters.pop(name, None)
    make_estimator(
        parameters, features=features, random_state=config.train.random_state
    )


def download_files(
    config: Config,
    workspace: Workspace,
    client: NumeraiClient,
    *,
    refresh: Sequence[str] = (),
    on_file: Callable[[str, Path, str], None] | None = None,
    on_bytes: Callable[[str, int, int], None] | None = None,
) -> dict[str, Path]:
    """Download what is not here, and what changes from round to round."""
    names = list(dict.fromkeys([*config.data.files, *refresh]))
    return download(
        client,
        workspace,
        names,
        refresh=[*config.data.refresh, *refresh],
        optional=_COMPARED_WITH,
        on_file=on_file,
        on_bytes=on_bytes,
    )


def train_model(
    config: Config,
    workspace: Workspace,
    *,
    resume: bool = False,
    on_progress: Progress | None = None,
) -> dict[str, ModelRecord]:
    """Train the model, and the plain one beside it if that is configured."""
    metadata = read_features(config, workspace)
    section = config.train
    return train(
        model_dir=workspace.model_dir,
        model_name=config.model.name,
        version=config.data.version,
        files=[workspace.newest(name) for name in section.files],
        features=metadata.features(section.feature_set),
        feature_set=section.feature_set,
        target=section.target,
        purge=config.purge,
        every_nth_era=section.every_nth_era,
        era_groups=section.era_groups,
        first_era=section.first_era or None,
        last_era=section.last_era or None,
        parameters=section.parameters,
        random_state=section.random_state,
        checkpoint_every=section.checkpoint_every,
        resume=resume,
        compare_with_gain=section.compare_with_gain,
        on_progress=on_progress,
    )


def validate_model(
    config: Config, workspace: Workspace, *, on_progress: Progress | None = None
) -> tuple[dict[str, ValidationResult], ReportFiles]:
    """Score the model, and the plain one if it was trained, and write the report."""
    metadata = read_features(config, workspace)
    names = [MODEL, *([GAIN] if config.train.compare_with_gain else [])]
    loaded = {name: load_trained(workspace.model_dir, name) for name in names}
    results = {}
    for name, (estimator, record) in loaded.items():

        def report_progress(
            stage: str, done: int, total: int, name: str = name
        ) -> None:
            if on_progress is not None:
                on_progress(f"{stage} ({name})", done, total)

        results[name] = validate(
            estimator,
            validation=workspace.newest("validation"),
            features=record.features,
            target=record.target,
            after_era=record.last_era,
            purge=record.purge,
            meta_model=_newest_if_any(workspace, "meta_model"),
            benchmark_models=_newest_if_any(workspace, "validation_benchmark_models"),
            benchmark_column=_benchmark_column(config),
            fnc_features=_fnc_features(config, metadata, record),
            neutralize_proportion=config.predict.neutralize_proportion,
            neutralize_features=_neutralizers(config, metadata, record),
            on_progress=report_progress,
        )
    # What the one was trained on, the plain one was too.
    _, model = loaded[MODEL]
    sample = read_training_sample(
        [workspace.newest(name) for name in config.train.files],
        model.features,
        model.target,
        first_era=model.first_era,
        last_era=model.last_era,
        every_nth_era=model.every_nth_era,
    )
    about = {
        REPORTED_MODEL: model.sha256,
        "version": model.version,
        "feature_set": model.feature_set,
        "first_era": model.first_era,
        "last_era": model.last_era,
        "purge": model.purge,
        "created": utc_now(),
    }
    files = write_report(
        workspace.report_dir,
        results,
        estimators={name: estimator for name, (estimator, _) in loaded.items()},
        sample=sample,
        about=about,
    )
    return results, files


@dataclass(frozen=True)
class RoundPrediction:
    """The submission of a round, written and checked.

    Attributes
    ----------
    round_number : int
        The round.
    path : Path
        The CSV file.
    sha256 : str
        Its digest, in hexadecimal digits.
    frame : DataFrame of shape (n_rows, 2)
        Its columns, id and prediction.
    """

    round_number: int
    path: Path
    sha256: str
    frame: "pd.DataFrame"


def live_round(workspace: Workspace, round_number: int | None) -> int:
    """The round to predict: the newest whose live file is here, if none is named.

    Raises
    ------
    DataError
        If there is no such file.
    """
    rounds = workspace.rounds_of("live")
    if not rounds:
        workspace.newest("live")  # says so
    if round_number is None:
        return rounds[-1]
    if round_number not in rounds:
        raise DataError(
            f"{workspace.data_dir} has no live file of round {round_number}; the "
            f"newest is of round {rounds[-1]}."
        )
    return round_number


def predict_round(
    config: Config, workspace: Workspace, *, round_number: int | None = None
) -> RoundPrediction:
    """Predict a round's live file, check the submission, and write it."""
    round_number = live_round(workspace, round_number)
    live = workspace.data_file("live", round_number)
    estimator, record = load_trained(workspace.model_dir, MODEL)
    neutralizers = None
    if config.predict.neutralize_proportion:
        metadata = read_features(config, workspace)
        neutralizers = _neutralizers(config, metadata, record)
    predictions = predict_live(
        estimator,
        record,
        live,
        version=config.data.version,
        neutralize_proportion=config.predict.neutralize_proportion,
        neutralize_features=neutralizers,
    )
    frame = make_submission(predictions.index, predictions)
    check_submission(frame, read_ids(live))
    path = workspace.round_dir(round_number) / "predictions.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = write_submission(frame, path)
    origin = {
        "predictions_sha256": digest,
        "model_sha256": record.sha256,
        "version": config.data.version,
        "neutralize_proportion": config.predict.neutralize_proportion,
        "created": utc_now(),
    }
    write_json(path.with_suffix(".json"), origin)
    return RoundPrediction(round_number, path, digest, frame)


def _model_of(predictions: Path) -> str:
    """The digest of the model that made a submission; "unknown" if it was changed."""
    try:
        origin = json.loads(predictions.with_suffix(".json").read_text("utf-8"))
        if origin["predictions_sha256"] == file_sha256(predictions):
            return str(origin["model_sha256"])
    except (OSError, ValueError, KeyError):
        pass
    warnings.warn(
        f"{predictions} is not what 'predict' wrote: it is submitted as it is, and the "
        "record names no model for it.",
        UserWarning,
        stacklevel=3,
    )
    return "unknown"


def correlations_with_others(
    config: Config, workspace: Workspace, prediction: RoundPrediction
) -> dict[str, float]:
    """Rank correlations of a submission with others for the round, as far as here.

    With ``live_example_preds`` and the benchmark model that BMC compares with. A number
    far from those of other weeks is worth a look before an upload.
    """
    from scipy.stats import spearmanr

    found = {}
    own = prediction.frame.set_index("id")["prediction"]
    others = {
        "live_example_preds": "prediction",
        "live_benchmark_models": _benchmark_column(config),
    }
    for name, column in others.items():
        path = workspace.data_file(name, prediction.round_number)
        if column is None or not path.exists():
            continue
        if column in read_column_names(path):
            values = read_columns(path, [column])[column].reindex(own.index)
            known = values.notna().to_numpy()
            if known.sum() < 2:
                continue
            correlation = spearmanr(own[known], values[known]).statistic
            found[name] = float(np.asarray(correlation))
    return found


def submit_round(
    config: Config,
    workspace: Workspace,
    client: NumeraiClient,
    *,
    round_number: int | None = None,
    require_open: bool | None = None,
    again: bool = False,
    on_step: Callable[[str], None] | None = None,
) -> SubmissionRecord:
    """Upload a round's submission, confirm and record it."""
    round_number = live_round(workspace, round_number)
    folder = workspace.round_dir(round_number)
    path = folder / "predictions.csv"
    if not path.exists():
        raise DataError(f"There is no {path}: run 'sklearn-era numerai predict' first.")
    return submit(
        client,
        model_name=config.model.name,
        submission=path,
        live=workspace.data_file("live", round_number),
        record=folder / "submission.json",
        round_number=round_number,
        version=config.data.version,
        model_hash=_model_of(path),
        require_open=config.submit.require_open
        if require_open is None
        else require_open,
        again=again,
        on_step=on_step,
    )


def export_model(
    config: Config,
    workspace: Workspace,
    *,
    path: Path | None = None,
    python: Path | None = None,
) -> tuple[Path, PortableCheck]:
    """Write the model as a pickle for Numerai's upload, and run it as they would."""
    if config.predict.neutralize_proportion:
        raise PortableModelError(
            "A portable model does not neutralise, and [predict] neutralize_proportion "
            f"is {config.predict.neutralize_proportion:g}: export a model without, or "
            "submit its predictions instead."
        )
    estimator, record = load_trained(workspace.model_dir, MODEL)
    path = path or workspace.model_dir / PORTABLE
    write_portable_model(estimator, path, feature_names=record.features)
    check = check_portable_model(path, workspace.newest("live"), python=python)
    return path, check


def _newest_if_any(workspace: Workspace, name: str) -> Path | None:
    return workspace.newest(name) if workspace.rounds_of(name) else None


def _benchmark_column(config: Config) -> str | None:
    if config.validation.benchmark != "auto":
        return config.validation.benchmark or None
    # v53_lgbm_ender60 for target_ender_60 of v5.3.
    target = config.train.target.removeprefix("target_").replace("_", "")
    return f"{config.data.version.replace('.', '')}_lgbm_{target}"


def _fnc_features(
    config: Config, metadata: FeatureMetadata, record: ModelRecord
) -> list[str] | None:
    name = config.validation.fnc_feature_set
    if name == "auto":
        known = _FNC_FEATURE_SET in metadata.feature_sets
        return metadata.features(_FNC_FEATURE_SET) if known else record.features
    return metadata.features(name) if name else None


def _neutralizers(
    config: Config, metadata: FeatureMetadata, record: ModelRecord
) -> list[str]:
    name = config.predict.neutralize_feature_set
    return metadata.features(name) if name else record.features
