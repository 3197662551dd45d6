"""Runs the commands of ``sklearn-era numerai`` against the stand-in for Numerai."""

import io
import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd

from helpers.cli import invoke
from helpers.numerai import server as numerai_server
from sklearn_era.cli._numerai_demo import DEMO_TARGETS, write_demo_data
from sklearn_era.numerai.config import Workspace, load_config, write_config

NAME = "my_model"
SMALL_DEMO = {
    "n_train_eras": 20, "n_validation_eras": 24, "n_future_eras": 2,
    "rows_per_era": 40, "n_features": 20,
}  # fmt: skip
# Changes that make the template small and fast.
SMALL = {
    "feature_set": '"small"', "checkpoint_every": "5", "max_iter": "10",
    "max_depth": "3", "min_samples_leaf": "5", "files": '["train"]', "folds": "2",
    "split_criterion__min_agreement": "0.0", "colsample_bytree": "1.0",
    "compare_with_gain": "false", "timeout": "2.0", "retries": "1",
}  # fmt: skip
BLEND = f"""
[[model.member]]
name = "amber"
[[model.member]]
name = "birch"
target = "{DEMO_TARGETS[1]}"
weight = 0.5
"""
SENT = {"submission_upload_auth": 1, "PUT": 1, "create_submission": 1}


def demo_files(folder: Path) -> dict[str, bytes]:
    data = write_demo_data(Workspace(folder, "v5.3"), **SMALL_DEMO)
    paths = data.paths.items()
    return {f"v5.3/{name}{path.suffix}": path.read_bytes() for name, path in paths}


def shuffled_ids(content: bytes) -> bytes:
    """A live file with other ids, as the next round's has."""
    frame = pd.read_parquet(io.BytesIO(content))
    frame.index = pd.Index([f"n{i:015x}" for i in range(len(frame))], name="id")
    return frame.to_parquet()


class Program:
    """The commands in a folder, whose configuration has one small model."""

    def __init__(self, folder: Path, server: numerai_server.NumeraiServer) -> None:
        self.folder = folder
        self.server = server
        self.said: list[str] = []
        self.data_folder = folder / "data" / "v5.3"
        self.model_folder = folder / "models" / NAME
        self.report_folder = folder / "reports" / NAME
        self.round_folder = folder / "rounds" / "1401" / NAME
        self.toml = folder / "numerai.toml"
        write_config(self.toml, name=NAME, target=DEMO_TARGETS[0], version="v5.3")
        self.change(**SMALL)

    def invoke(self, command: str, *arguments: object):
        result = invoke("numerai", *command.split(), "--config", self.toml, *arguments)
        self.said += [result.stdout, result.stderr]
        if result.exception is not None:
            texts = numerai_server.everything_said(result.exception)
            numerai_server.assert_discreet(self.server, texts)
        return result

    def run(self, command: str, *arguments: object, warned: str = "") -> str:
        """Run a command; return its standard output."""
        result = self.invoke(command, *arguments)
        assert result.exit_code == 0, result.output
        lines = result.stderr.splitlines()
        assert len(lines) == bool(warned), lines
        assert all(x.startswith("Warning: ") and warned in x for x in lines), lines
        return result.stdout

    def fail(self, command: str, *arguments: object, code: int) -> str:
        """Run a command; return the one sentence that it fails with."""
        result = self.invoke(command, *arguments)
        assert result.exit_code == code, result.output
        assert isinstance(result.exception, SystemExit), result.exception
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: ")
        assert line.endswith((".", "?"))
        return line.removeprefix("Error: ")

    def change(self, **values: str) -> None:
        """Set keys of the configuration, in TOML; the last of a name where several."""
        text = self.toml.read_text()
        for key, value in values.items():
            *_, found = re.finditer(rf"(?m)^{key} = (\[[^\]]*\]|.*)$", text)
            text = f"{text[: found.start()]}{key} = {value}{text[found.end() :]}"
        self.toml.write_text(text)

    def add(self, text: str) -> None:
        """Add lines to the model, or tables after it."""
        before, after = self.toml.read_text(), f'name = "{NAME}"\n'
        assert before.count(after) == 1
        self.toml.write_text(before.replace(after, after + text))

    def add_other(self, settings: str = "") -> None:
        self.add(f'\n[[model]]\nname = "other"\n{settings}')

    def begin_round(self) -> None:
        """Let Numerai begin a round, whose live file has other ids."""
        self.server.round_number = 1402
        live = self.server.files["v5.3/live.parquet"]
        self.server.files["v5.3/live.parquet"] = shuffled_ids(live)

    def load(self):
        return load_config(self.toml)

    def model(self, name: str = "model") -> dict:
        return json.loads((self.model_folder / f"{name}.json").read_text())

    def submission(self, number: int = 1401, name: str = NAME) -> dict:
        path = self.folder / "rounds" / str(number) / name / "submission.json"
        return json.loads(path.read_text())

    def assert_submitted_once(self) -> None:
        """Assert that the next attempt succeeds, and that it is the only submission."""
        self.server.faults.clear()
        self.server.unlisted.clear()
        self.run("submit")
        (made,) = self.server.submissions
        assert made["content"] == (self.round_folder / "predictions.csv").read_bytes()
        record = self.submission()
        assert (record["state"], record["submission_id"]) == ("submitted", made["id"])

    @property
    def sent(self) -> Counter:
        """The number of requests for each operation that changes data at Numerai."""
        return Counter(name for name in self.server.operations if name in SENT)
