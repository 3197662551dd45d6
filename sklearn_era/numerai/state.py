"""What of a week's work is done already, and need not be done again."""

import json
from typing import Any

from sklearn_era.numerai.config import Config
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.steps import PORTABLE, REPORTED_MODEL, read_features
from sklearn_era.numerai.training.checkpoints import checkpoint_folder, read_checkpoint
from sklearn_era.numerai.training.fitting import GAIN, MODEL
from sklearn_era.numerai.training.model_store import model_file, read_record
from sklearn_era.numerai.validation.report import REPORT_NAME
from sklearn_era.numerai.workspace import Workspace


def reason_to_train(config: Config, workspace: Workspace) -> str | None:
    """Why the model in the workspace is not the one configured, None if it is."""
    if has_checkpoint(workspace):
        return "a training was interrupted"
    section = config.train
    names = [MODEL, *([GAIN] if section.compare_with_gain else [])]
    try:
        records = [read_record(workspace.model_dir, name) for name in names]
    except DataError:
        return "there is no model yet"
    metadata = read_features(config, workspace)
    wanted: dict[str, Any] = {
        "version": config.data.version,
        "target": section.target,
        "feature_set": section.feature_set,
        "features": metadata.features(section.feature_set),
        "every_nth_era": section.every_nth_era,
        "era_groups": section.era_groups,
        "era_bounds": [section.first_era or None, section.last_era or None],
        "purge": config.purge,
        "random_state": section.random_state,
        "parameters": section.parameters,
    }
    for key, value in wanted.items():
        if getattr(records[0], key) != value:
            # The two bounds are one entry of the record, and two of the file.
            shown = "first_era or last_era" if key == "era_bounds" else key
            return f"{shown} is not what the model was trained with"
    trained_on = [name.rpartition("_")[0] for name in records[0].files]
    if trained_on != section.files:
        return "files is not what the model was trained with"
    return None


def has_checkpoint(workspace: Workspace) -> bool:
    """Whether a training was interrupted, and can be continued."""
    return any(
        read_checkpoint(checkpoint_folder(workspace.model_dir, name)) is not None
        for name in (MODEL, GAIN)
    )


def has_report(workspace: Workspace) -> bool:
    """Whether there is a report, and of this very model."""
    try:
        text = (workspace.report_dir / REPORT_NAME).read_text(encoding="utf-8")
        about = json.loads(text)["about"]
    except (OSError, ValueError, KeyError):
        return False
    model = read_record(workspace.model_dir, MODEL)
    return about.get(REPORTED_MODEL) == model.sha256


def has_export(workspace: Workspace) -> bool:
    """Whether the model was exported, and not trained since."""
    path = workspace.model_dir / PORTABLE
    model = model_file(workspace.model_dir, MODEL)
    return path.exists() and path.stat().st_mtime >= model.stat().st_mtime
