"""Files made up like Numerai's, to try everything without an account or gigabytes."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.datasets import make_numerai_like
from sklearn_era.numerai.config import ValidateSection, Workspace
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
    n_train_eras: int = 100,
    n_validation_eras: int = 52,
    n_future_eras: int = 20,
    rows_per_era: int = 400,
    n_features: int = 60,
) -> DemoData:
    """Write the files of round 1 with the layout of Numerai's data, version 5.

    The rows are those of `make_numerai_like`: the eras of the train file are training
    eras, those of the validation file fading ones, the live and the future ones live.
    Other models are a regression on the first half of the train eras, with noise.
    """
    pandas = import_optional("pandas", extra="numerai")
    last = n_train_eras + n_validation_eras
    data = make_numerai_like(
        last,
        rows_per_era,
        n_features,
        n_fading_eras=n_validation_eras,
        n_live_eras=1 + n_future_eras,
        n_targets=len(_TARGETS),
        random_state=0,
    )
    rng = np.random.default_rng(0)
    known = [
        f"feature_{'_'.join(x)}" for x in product(_ADJECTIVES, _ADJECTIVES, _NOUNS)
    ]
    names = [known[i] for i in rng.permutation(len(known))[:n_features]]
    X = np.concatenate([data.X, data.X_live])
    y = np.concatenate([data.y, data.y_live])
    eras = np.concatenate([data.eras, data.eras_live])
    # Ids that look drawn at random, none of them twice: n and 15 digits.
    start = int(rng.integers(2**_ID_BITS))
    ids = [f"n{(start + i * _ID_STEP) % 2**_ID_BITS:015x}" for i in range(eras.size)]
    index = pandas.Index(ids, name="id", dtype="str")
    is_live = eras == last + 1
    targets = pandas.DataFrame(y, index, _TARGETS)
    for name in _TARGETS:  # the newest returns are not known yet
        age = last - eras
        is_known = (age >= _N_UNKNOWN[name[-2:]]) | (age < -1)
        targets[name] = targets[name].where(is_known)
    targets.insert(0, "target", targets[ALIASED_TARGET])
    in_train, in_validation = (
        eras <= n_train_eras,
        (eras > n_train_eras) & (eras <= last),
    )
    is_test = in_validation & targets["target"].isna()
    kinds = {"train": in_train, "live": is_live, "test": is_test}
    head = {
        "era": np.where(is_live, LIVE_ERA, np.char.zfill(eras.astype(str), 4)),
        "data_type": np.select([*kinds.values()], [*kinds], "validation"),
    }
    head = pandas.DataFrame(head, index, dtype=str)
    frame = pandas.concat([head, pandas.DataFrame(X, index, names), targets], axis=1)
    benchmarks, others = _other_models(X, y, eras, n_train_eras, workspace.version, rng)
    others = pandas.concat([head, others.set_index(index)], axis=1)
    has_meta = in_validation & (eras > n_train_eras + _META_MODEL_DELAY)
    tables = {
        "train": frame[in_train],
        "validation": frame[in_validation],
        "live": frame[is_live],
        "future": frame[eras > last + 1],
        "meta_model": others.loc[has_meta, [*head, META_MODEL_COLUMN]],
    }
    for part, rows in (("validation", in_validation), ("live", is_live)):
        own = others[rows]
        tables[f"{part}_benchmark_models"] = own[["era", *benchmarks]]
        tables[f"{part}_example_preds"] = own[["prediction"]]
    paths = {name: workspace.data_file(name, 1) for name in (*tables, "features")}
    for name, table in tables.items():
        with replacing(paths[name]) as partial:
            table.to_parquet(partial)
    sets = {
        "small": names[: n_features // 5],
        "medium": names[: n_features // 2],
        "all": names,
        "fncv3_features": names[n_features // 4 : 3 * n_features // 4],
    }
    write_json(paths["features"], {"feature_sets": sets, "targets": [*targets]})
    return DemoData(
        paths=paths,
        future=paths.pop("future"),
        stable_features=[names[j] for j in data.stable_features],
        unstable_features=[names[j] for j in data.unstable_features],
    )


def _other_models(
    X: NDArray[np.int8],
    y: NDArray[np.float32],
    eras: NDArray[np.int64],
    last_train: int,
    version: str,
    rng: np.random.Generator,
) -> tuple[list[str], Any]:
    """The benchmark models, and ranks of these, the meta model and the example."""
    pandas = import_optional("pandas", extra="numerai")
    seen = eras <= last_train // 2
    centered = X[seen] - 2.0

    def ranks(values: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
        drawn = noise * values.std() * rng.standard_normal(values.size)
        return rank_normalize(values + drawn, eras)

    benchmarks, others = {}, {}
    for j, target in enumerate(_TARGETS):
        values = X @ np.linalg.lstsq(centered, y[seen, j] - 0.5)[0]
        name = ValidateSection().benchmark_of(version, target)
        benchmarks[name] = ranks(values, _BENCHMARK_NOISE)
        if j == 0:
            others["prediction"] = ranks(values, 0.0)
            others[META_MODEL_COLUMN] = ranks(values, _META_MODEL_NOISE)
    return [*benchmarks], pandas.DataFrame({**benchmarks, **others})
