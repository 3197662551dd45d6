"""Where the files of a Numerai model lie."""

import re
from dataclasses import dataclass
from pathlib import Path

from sklearn_era.numerai.errors import DataError


@dataclass(frozen=True)
class Workspace:
    """The folders of a model, beside its configuration file.

    ::

        data/<version>/features_<round>.json
        data/<version>/<name>_<round>.parquet   train, validation, live, ...
        models/<model>/                         the trained model and its record
        reports/<model>/                        validation: JSON and PNG
        rounds/<round>/<model>/                 the submission and its record

    Files of the data are named by the round in which they were downloaded: Numerai
    changes files in place, and an old one is never taken for a new one.

    Parameters
    ----------
    root : Path
        The folder of the configuration file.
    version : str
        The version of the data, ``"v5.3"`` for one.
    model : str
        The name of the model.
    """

    root: Path
    version: str
    model: str

    @property
    def data_dir(self) -> Path:
        return self.root / "data" / self.version

    @property
    def model_dir(self) -> Path:
        return self.root / "models" / self.model

    @property
    def report_dir(self) -> Path:
        return self.root / "reports" / self.model

    def round_dir(self, round_number: int) -> Path:
        return self.root / "rounds" / str(round_number) / self.model

    def data_file(self, name: str, round_number: int) -> Path:
        """The path of a file of the data, ``"train"`` for one, as of a round.

        Parameters
        ----------
        name : str
            Its name without the suffix; "features" is ``features.json``.
        round_number : int
            The round in which it was, or is to be, downloaded.
        """
        suffix = "json" if name == "features" else "parquet"
        return self.data_dir / f"{name}_{round_number}.{suffix}"

    def rounds_of(self, name: str) -> list[int]:
        """The rounds of which a file is here, ascending."""
        pattern = re.compile(rf"{re.escape(name)}_(\d+)\.(json|parquet)")
        if not self.data_dir.is_dir():
            return []
        matches = (pattern.fullmatch(path.name) for path in self.data_dir.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def newest(self, name: str) -> Path:
        """The newest file of a name.

        Raises
        ------
        DataError
            If there is none.
        """
        rounds = self.rounds_of(name)
        if not rounds:
            raise DataError(
                f"{self.data_dir} has no {name}_<round> file: run 'sklearn-era numerai "
                f"download' with {name!r} among its files."
            )
        return self.data_file(name, rounds[-1])


__all__ = ["Workspace"]
