"""Files made up like Numerai's, to try everything without an account or gigabytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.datasets import make_numerai_like
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.data import META_MODEL_COLUMN
from sklearn_era.numerai.files import replacing, write_json
from sklearn_era.numerai.metrics import rank_normalize

LIVE_ERA = "X"
DEMO_TARGETS = ("target_amber_20", "target_birch_20")
# What the alias "target" stands for: no target of the demo's, so that whoever trains on
# the alias trains on something else, as with Numerai's.
ALIASED_TARGET = "target_amber_60"
_TARGETS = (*DEMO_TARGETS, ALIASED_TARGET, "target_birch_60")

# The newest eras whose returns are not known yet, by the target's horizon in days.
_N_UNKNOWN = {"20": 4, "60": 12}
# The meta model begins so many eras after the validation data do.
_META_MODEL_DELAY = 4
# Benchmark and meta model are a regression with noise of these standard deviations.
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
    """The files by name, eras that follow the live one, and what is hidden in them."""

    paths: dict[str, Path]
    future: Path
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
    """Write the files of a round with the layout of Numerai's data, version 5.

    The rows are those of `make_numerai_like`: the eras of the train file are training
    eras, those of the validation file fading ones, the live and the future ones live.
    Other models are a regression on the first half of the train eras, with noise.
    """
    last = n_train_eras + n_validation_eras
    data = make_numerai_like(
        last,
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
    parts = {
        "train": eras <= n_train_eras,
        "validation": (eras > n_train_eras) & (eras <= last),
        "live": eras == last + 1,
        "future": eras > last + 1,
    }
    targets = ["target", *_TARGETS]
    validation = _without_newest_targets(frame[parts["validation"]])
    live = frame[parts["live"]].assign(era=LIVE_ERA, data_type="live")
    tables = {
        "train": frame[parts["train"]].assign(data_type="train"),
        "validation": validation,
        "live": live.assign(**dict.fromkeys(targets, np.float32(np.nan))),
        "future": frame[parts["future"]].assign(data_type="validation"),
    }
    labels = frame[["era"]].assign(era=frame["era"].where(~parts["live"], LIVE_ERA))
    benchmark = [column for column in others if column.startswith("v")]
    for part in ("validation", "live"):
        rows = parts[part]
        tables[f"{part}_benchmark_models"] = labels[rows].join(others[benchmark])
        example = others.loc[rows, ["example"]]
        tables[f"{part}_example_preds"] = example.set_axis(["prediction"], axis=1)
    has_meta = parts["validation"] & (eras > n_train_eras + _META_MODEL_DELAY)
    meta = others.loc[has_meta, [META_MODEL_COLUMN]]
    tables["meta_model"] = validation[["era", "data_type"]].join(meta, how="right")
    paths = {name: workspace.data_file(name, round_number) for name in tables}
    for name, table in tables.items():
        with replacing(paths[name]) as partial:
            table.to_parquet(partial)
    paths["features"] = workspace.data_file("features", round_number)
    sets = {
        "small": names[: n_features // 5],
        "medium": names[: n_features // 2],
        "all": names,
        "fncv3_features": names[n_features // 4 : 3 * n_features // 4],
    }
    write_json(paths["features"], {"feature_sets": sets, "targets": targets})
    return DemoData(
        paths=paths,
        future=paths.pop("future"),
        stable_features=[names[j] for j in data.stable_features],
        unstable_features=[names[j] for j in data.unstable_features],
    )


def _frame(
    X: NDArray[np.int8],
    y: NDArray[np.float32],
    eras: NDArray[np.int64],
    names: Sequence[str],
    rng: np.random.Generator,
) -> Any:
    """All rows as Numerai's frames have them, but for the type of the data."""
    pandas = import_optional("pandas", extra="numerai")
    # Ids that look drawn at random, none of them twice: n and 15 digits.
    start = int(rng.integers(2**_ID_BITS))
    ids = [f"n{(start + i * _ID_STEP) % 2**_ID_BITS:015x}" for i in range(eras.size)]
    index = pandas.Index(ids, name="id", dtype="str")
    head = pandas.DataFrame(
        {"era": [f"{era:04d}" for era in eras], "data_type": ""}, index=index, dtype=str
    )
    features = pandas.DataFrame(X, columns=list(names), index=index)
    targets = pandas.DataFrame(y, columns=list(_TARGETS), index=index)
    targets.insert(0, "target", targets[ALIASED_TARGET])
    return pandas.concat([head, features, targets], axis=1)


def _without_newest_targets(validation: Any) -> Any:
    """Forget the targets that are not known yet, and say so in the type of the data."""
    age = int(validation["era"].iloc[-1]) - validation["era"].astype(int)
    for target in _TARGETS:
        is_known = age >= _N_UNKNOWN[target[-2:]]
        validation = validation.assign(**{target: validation[target].where(is_known)})
    alias = validation[ALIASED_TARGET]
    data_type = np.where(alias.notna(), "validation", "test")
    return validation.assign(target=alias, data_type=data_type)


def _feature_names(n_features: int, rng: np.random.Generator) -> list[str]:
    """Draw different names of two adjectives and a noun."""
    shape = (len(_ADJECTIVES), len(_ADJECTIVES), len(_NOUNS))
    drawn = rng.permutation(np.prod(shape))[:n_features]
    return [
        f"feature_{_ADJECTIVES[i]}_{_ADJECTIVES[j]}_{_NOUNS[k]}"
        for i, j, k in zip(*np.unravel_index(drawn, shape), strict=True)
    ]


def _other_models(
    X: NDArray[np.int8],
    y: NDArray[np.float32],
    eras: NDArray[np.int64],
    last_train: int,
    version: str,
    rng: np.random.Generator,
) -> Any:
    """Ranks within eras of the benchmark models, the meta model and the example."""
    pandas = import_optional("pandas", extra="numerai")
    seen = eras <= last_train // 2
    centered = X[seen] - 2.0

    def ranks(values: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
        drawn = noise * values.std() * rng.standard_normal(values.size)
        return rank_normalize(values + drawn, eras)

    columns = {}
    for j, target in enumerate(_TARGETS):
        values = X @ np.linalg.lstsq(centered, y[seen, j] - 0.5)[0]
        short = target.removeprefix("target_").replace("_", "")
        columns[f"{version.replace('.', '')}_lgbm_{short}"] = ranks(
            values, _BENCHMARK_NOISE
        )
        if j == 0:
            columns["example"] = ranks(values, 0.0)
            columns[META_MODEL_COLUMN] = ranks(values, _META_MODEL_NOISE)
    return pandas.DataFrame(columns)
