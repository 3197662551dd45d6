"""Files as Numerai's, of data made up for the purpose.

For trying out everything between a download and a submission without an account, and
without gigabytes. What they hold is :func:`~sklearn_era.datasets.make_numerai_like`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.datasets import make_numerai_like
from sklearn_era.numerai.data.dataset import META_MODEL_COLUMN
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.metrics.ranks import rank_normalize
from sklearn_era.numerai.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

LIVE_ERA = "X"

DEMO_TARGET = "target_amber_20"
# What the alias "target" of the demo stands for: not the target of the demo, so that
# who trains on the alias trains on something else, as with Numerai's.
ALIASED_TARGET = "target_amber_60"
_TARGETS = ("target_amber_20", "target_amber_60", "target_birch_20", "target_birch_60")

# The newest eras whose returns are not known yet, by the target's horizon in days: a
# week each, and the two days until trading begins.
_N_UNKNOWN = {"20": 4, "60": 12}

# The meta model begins so many eras after the validation data do.
_META_MODEL_DELAY = 4
# Benchmark and meta model are a regression, and noise of these standard deviations.
_BENCHMARK_NOISE, _META_MODEL_NOISE = 0.5, 1.0

_ADJECTIVES = (
    "agile", "brisk", "calm", "dapper", "eager", "frosty", "gentle", "hollow", "icy",
    "jolly", "keen", "lucid", "mellow", "nimble", "ornate", "placid",
)  # fmt: skip
_NOUNS = (
    "anchor", "beacon", "canyon", "delta", "ember", "fjord", "glacier", "harbor",
    "inlet", "jetty", "kiln", "lagoon", "meadow", "nectar", "orchard", "pebble",
)  # fmt: skip

# Multiplied by an odd number modulo a power of two, no two numbers become one.
_ID_BITS = 60
_ID_STEP = 0x9E3779B97F4A7C15 % 2**_ID_BITS


@dataclass(frozen=True)
class DemoData:
    """The files of the demo, and what is hidden in them.

    Attributes
    ----------
    paths : dict of str to Path
        The files that Numerai would offer, by name: "train" for one.
    live_targets : Path
        The targets of the live era, which nobody has who predicts it.
    future : Path
        Eras that follow the live one, with targets, in the columns of the validation
        file: for a live score that is not of one era only.
    target : str
        The target to train on.
    stable_features, unstable_features : list of str
        The features whose effect lasts, and those whose effect does not.
    """

    paths: dict[str, Path]
    live_targets: Path
    future: Path
    target: str
    stable_features: list[str]
    unstable_features: list[str]


def write_demo_data(
    workspace: Workspace,
    *,
    round_number: int = 1,
    n_train_eras: int = 100,
    n_validation_eras: int = 52,
    n_future_eras: int = 20,
    rows_per_era: int = 400,
    n_features: int = 60,
    random_state: int = 0,
) -> DemoData:
    """Write files with the layout of Numerai's data, version 5.

    That is ``features``, ``train``, ``validation``, ``live``, ``meta_model``, for the
    three parts ``<part>_benchmark_models``, and ``validation_example_preds`` and
    ``live_example_preds``. Eras are labelled ``"0001"`` and so on, the live one
    ``"X"``; ids are the index; features are int8 and targets float32. The newest eras
    of the validation file have no targets yet: 4 of the targets of 20 days, 12 of those
    of 60. Their `data_type` is "test" where the alias ``target`` is missing.

    Features have the effects of :func:`~sklearn_era.datasets.make_numerai_like`: the
    eras of the train file are training eras, those of the validation file fading ones,
    and the live era and the future ones are live.

    Columns are called after models as Numerai's are (``v53_lgbm_amber20``), but the
    benchmark models, example predictions and meta model are all a least-squares
    regression on the first half of the train eras, with noise.

    Parameters
    ----------
    workspace : Workspace
        Where the files go, and the version of the data.

    round_number : int, default=1
        The round to name them by.

    n_train_eras : int, default=100
        Eras of the train file, 2 at least.

    n_validation_eras : int, default=52
        Eras of the validation file, 13 at least: 12 lack targets.

    n_future_eras : int, default=20
        Eras of the future file.

    rows_per_era : int, default=400
        Rows of each era, the live one too.

    n_features : int, default=60
        Number of features, 20 to 4096; 6 are stable and 12 unstable.

    random_state : int, default=0
        Seed of all that is drawn.

    Returns
    -------
    data : DemoData

    Raises
    ------
    ConfigError
        If a number is out of its range.
    DataError
        If one of the files exists already.
    """
    import_optional("pyarrow", extra="numerai")
    ranges = {
        "n_train_eras": (n_train_eras, 2, 8000),
        "n_validation_eras": (n_validation_eras, max(_N_UNKNOWN.values()) + 1, 1000),
        "n_future_eras": (n_future_eras, 1, 900),
        "rows_per_era": (rows_per_era, 20, 10**6),
        "n_features": (n_features, 20, len(_ADJECTIVES) ** 2 * len(_NOUNS)),
    }
    for name, (value, low, high) in ranges.items():
        if not low <= value <= high:
            raise ConfigError(f"{name} = {value!r} must be from {low} to {high:,}.")

    writer = _DemoWriter(workspace, round_number)
    writer.check_nothing_is_there()
    data = make_numerai_like(
        n_train_eras + n_validation_eras,
        rows_per_era,
        n_features,
        n_fading_eras=n_validation_eras,
        n_live_eras=1 + n_future_eras,
        n_targets=len(_TARGETS),
        random_state=random_state,
    )
    rng = np.random.default_rng(random_state)
    names = _feature_names(n_features, rng)
    X = np.concatenate([data.X, data.X_live])
    y = np.concatenate([data.y, data.y_live])
    eras = np.concatenate([data.eras, data.eras_live])

    frame = _frame(X, y, eras, names, rng)
    others = _other_models(X, y, eras, n_train_eras, workspace.version, rng)
    others.index = frame.index
    last = n_train_eras + n_validation_eras
    parts = {
        "train": eras <= n_train_eras,
        "validation": (eras > n_train_eras) & (eras <= last),
        "live": eras == last + 1,
        "future": eras > last + 1,
    }
    targets = ["target", *_TARGETS]
    writer.write_features(names, targets)
    writer.write("train", frame[parts["train"]].assign(data_type="train"))
    validation = _without_newest_targets(frame[parts["validation"]])
    writer.write("validation", validation)
    live = frame[parts["live"]].assign(era=LIVE_ERA, data_type="live")
    live_path = writer.write("live_targets", live[targets])
    writer.write("live", live.assign(**dict.fromkeys(targets, np.float32(np.nan))))
    future = frame[parts["future"]].assign(data_type="validation")
    future_path = writer.write("future", future)

    benchmark = [column for column in others if column.startswith("v")]
    # The regression has seen the targets of the eras before.
    has_benchmark = eras > n_train_eras // 2
    labels = frame[["era"]].assign(era=frame["era"].where(~parts["live"], LIVE_ERA))
    models = labels.join(others[benchmark])
    for part in ("train", "validation", "live"):
        writer.write(f"{part}_benchmark_models", models[parts[part] & has_benchmark])
    example = others[["example"]].rename(columns={"example": "prediction"})
    for part in ("validation", "live"):
        writer.write(f"{part}_example_preds", example[parts[part]])
    has_meta = parts["validation"] & (eras > n_train_eras + _META_MODEL_DELAY)
    meta = others.loc[has_meta, [META_MODEL_COLUMN]]
    writer.write("meta_model", validation[["era", "data_type"]].join(meta, how="right"))

    hidden = (live_path, future_path)
    return DemoData(
        paths={k: path for k, path in writer.written.items() if path not in hidden},
        live_targets=live_path,
        future=future_path,
        target=DEMO_TARGET,
        stable_features=[names[j] for j in data.stable_features],
        unstable_features=[names[j] for j in data.unstable_features],
    )


_FILES = (
    "features", "train", "validation", "live", "train_benchmark_models",
    "validation_benchmark_models", "live_benchmark_models", "validation_example_preds",
    "live_example_preds", "meta_model", "live_targets", "future",
)  # fmt: skip


class _DemoWriter:
    """Writes the files of a round, and remembers where."""

    def __init__(self, workspace: Workspace, round_number: int) -> None:
        self._paths = {x: workspace.data_file(x, round_number) for x in _FILES}
        self.written: dict[str, Path] = {}

    def check_nothing_is_there(self) -> None:
        for path in self._paths.values():
            if path.exists():
                raise DataError(
                    f"{path} exists already, and the demo's made-up data are not "
                    "written over it: choose another folder or round number."
                )

    def write(self, name: str, frame: "pd.DataFrame") -> Path:
        path = self._paths[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(path)
        self.written[name] = path
        return path

    def write_features(self, names: Sequence[str], targets: Sequence[str]) -> None:
        n = len(names)
        document = {
            "feature_sets": {
                "small": list(names[: n // 5]),
                "medium": list(names[: n // 2]),
                "all": list(names),
                "fncv3_features": list(names[n // 4 : 3 * n // 4]),
            },
            "targets": list(targets),
        }
        path = self._paths["features"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
        self.written["features"] = path


def _frame(
    X: NDArray[np.int8],
    y: NDArray[np.float32],
    eras: NDArray[np.int64],
    names: Sequence[str],
    rng: np.random.Generator,
) -> Any:
    """All rows as Numerai's frames have them, but for the type of the data."""
    pandas = import_optional("pandas", extra="numerai")
    index = pandas.Index(_make_ids(eras.size, rng), name="id", dtype="str")
    head = pandas.DataFrame(
        {"era": [f"{era:04d}" for era in eras], "data_type": ""}, index=index, dtype=str
    )
    features = pandas.DataFrame(X, columns=list(names), index=index)
    targets = pandas.DataFrame(y, columns=list(_TARGETS), index=index)
    targets.insert(0, "target", targets[ALIASED_TARGET])
    return pandas.concat([head, features, targets], axis=1)


def _without_newest_targets(validation: "pd.DataFrame") -> "pd.DataFrame":
    """Forget the targets that are not known yet, and say so in the type of the data."""
    newest = int(validation["era"].iloc[-1])
    age = newest - validation["era"].astype(int)
    for target in _TARGETS:
        is_known = age >= _N_UNKNOWN[target[-2:]]
        validation = validation.assign(**{target: validation[target].where(is_known)})
    alias = validation[ALIASED_TARGET]
    data_type = np.where(alias.notna(), "validation", "test")
    return validation.assign(target=alias, data_type=data_type)


def _make_ids(n_rows: int, rng: np.random.Generator) -> list[str]:
    """Make ids that look drawn at random, none of them twice: n and 15 digits."""
    start = int(rng.integers(2**_ID_BITS))
    return [f"n{(start + i * _ID_STEP) % 2**_ID_BITS:015x}" for i in range(n_rows)]


def _feature_names(n_features: int, rng: np.random.Generator) -> list[str]:
    """Draw different names of two adjectives and a noun."""
    n_adjectives, n_nouns = len(_ADJECTIVES), len(_NOUNS)
    drawn = rng.permutation(n_adjectives**2 * n_nouns)[:n_features]
    firsts, rest = np.divmod(drawn, n_adjectives * n_nouns)
    seconds, nouns = np.divmod(rest, n_nouns)
    return [
        f"feature_{_ADJECTIVES[i]}_{_ADJECTIVES[j]}_{_NOUNS[k]}"
        for i, j, k in zip(firsts, seconds, nouns, strict=True)
    ]


def _other_models(
    X: NDArray[np.int8],
    y: NDArray[np.float32],
    eras: NDArray[np.int64],
    last_train: int,
    version: str,
    rng: np.random.Generator,
) -> Any:
    """What the benchmark models, the meta model and the example predict for all rows.

    Returns
    -------
    others : DataFrame of shape (n_rows, n_targets + 2)
        Ranks within eras.
    """
    pandas = import_optional("pandas", extra="numerai")
    seen = eras <= last_train // 2
    centered = X[seen] - 2.0
    columns = {}
    for j, target in enumerate(_TARGETS):
        weights = np.linalg.lstsq(centered, y[seen, j] - 0.5)[0]
        short = target.removeprefix("target_").replace("_", "")
        name = f"{version.replace('.', '')}_lgbm_{short}"
        columns[name] = _noisy_ranks(X @ weights, eras, _BENCHMARK_NOISE, rng)
        if target == DEMO_TARGET:
            columns["example"] = rank_normalize(X @ weights, eras)
            columns[META_MODEL_COLUMN] = _noisy_ranks(
                X @ weights, eras, _META_MODEL_NOISE, rng
            )
    return pandas.DataFrame(columns)


def _noisy_ranks(
    values: NDArray[np.float64],
    eras: NDArray[np.int64],
    noise: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Rank values with noise, in units of their standard deviation, within eras."""
    drawn = noise * values.std() * rng.standard_normal(values.size)
    return rank_normalize(values + drawn, eras)


__all__ = ["DEMO_TARGET", "DemoData", "write_demo_data"]
