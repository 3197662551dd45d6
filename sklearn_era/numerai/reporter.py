"""Define the protocol of reporters, such as the terminal."""

from pathlib import Path
from typing import Any, Protocol

from sklearn_era.numerai.config import Model


class Reporter(Protocol):
    """Receives messages, the progress of stages, and scores of validations."""

    def step(self, text: str) -> None: ...
    def progress(self, stage: str, done: int, total: int) -> None: ...
    def validated(self, model: Model, results: Any, files: list[Path]) -> None: ...
