"""The folders beside the configuration, and the files of the data in them."""

import re
from pathlib import Path

from sklearn_era.numerai.errors import DataError


class Workspace:
    """Where the files lie, beside the configuration.

    ::

        data/<version>/<name>_<round>.parquet   as downloaded; features_<round>.json
        models/<model>/                         fits, records, checkpoints, folds
        reports/<model>/                        validation: JSON and PNG
        rounds/<round>/<model>/                 the submission and its record

    Files of the data are named by the round in which they were downloaded: Numerai
    changes files in place, and an old one is never taken for a new one.
    """

    def __init__(self, root: Path, version: str, toml: Path | None = None) -> None:
        here = Path.cwd()  # from which messages see the files
        self.root = root.relative_to(here) if root.is_relative_to(here) else root
        self.version = version
        self.toml = toml or self.root / "numerai.toml"
        self.data_dir = self.root / "data" / version

    def model_dir(self, model: str) -> Path:
        return self.root / "models" / model

    def report_dir(self, model: str) -> Path:
        return self.root / "reports" / model

    def round_dir(self, round_number: int, model: str) -> Path:
        return self.root / "rounds" / str(round_number) / model

    def lock_file(self, name: str) -> Path:
        return self.root / "locks" / f"{name}.lock"

    def data_file(self, name: str, round_number: int) -> Path:
        """A file of the data as of a round; "features" is ``features.json``."""
        suffix = "json" if name == "features" else "parquet"
        return self.data_dir / f"{name}_{round_number}.{suffix}"

    def rounds_of(self, name: str) -> list[int]:
        """The rounds of which a file is here, ascending."""
        pattern = re.compile(rf"{re.escape(name)}_(\d+)\.(json|parquet)")
        matches = (pattern.fullmatch(path.name) for path in self.data_dir.glob("*"))
        return sorted(int(match[1]) for match in matches if match)

    def newest(self, name: str) -> Path | None:
        """The newest file of a name, None if there is none."""
        rounds = self.rounds_of(name)
        return self.data_file(name, rounds[-1]) if rounds else None

    def need(self, name: str) -> Path:
        """The newest file of a name, or an error that says how to get one."""
        path = self.newest(name)
        if path is None:
            raise DataError(
                f"{self.data_dir} has no {name}_<round> file: add {name!r} to [data] "
                "files and run 'sklearn-era numerai download'."
            )
        return path
