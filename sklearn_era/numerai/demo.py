"""Synthetic files in Numerai's layout, to try everything without an account."""

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

DEMO_TARGETS = ("target_amber_20", "target_birch_20")
# The meaning of the alias "target": not one of the demo's targets, so that training on
# the alias is a visible mistake, as with Numerai's data.
ALIASED_TARGET = "target_amber_60"
_TARGETS = (*DEMO_TARGETS, ALIASED_TARGET, "target_birch_60")

_N_UNKNOWN = {"20": 4, "60": 12}  # newest eras with unknown returns, by horizon
_META_MODEL_DELAY = 4  # eras between the start of validation and of the meta model
_BENCHMARK_NOISE, _META_NOISE = 0.5, 1.0  # in standard deviations of a regression

_Array = NDArray[Any]
_ADJECTIVES = ("agile", "brisk", "calm", "dapper", "eager", "frosty", "gentle", "icy")
_NOUNS = ("anchor", "beacon", "canyon", "delta", "ember", "fjord", "glacier", "inlet")


@dataclass(frozen=True)
class DemoData:
    """Files by name, the eras after the live one, and the features with effects."""

    paths: dict[str, Path]
    future: Path
    stable_features: list[str]
    unstable_features: list[str]


def write_demo_data(
    workspace: Workspace, *, n_train_eras: int = 100, n_validation_eras: int = 52,
    n_future_eras: int = 20, rows_per_era: int = 400, n_features: int = 60,
) -> DemoData:  # fmt: skip
    """Write a round 1 of `make_numerai_like`, and noisy regressions as others."""
    pandas = import_optional("pandas", extra="numerai")
    last = n_train_eras + n_validation_eras
    data = make_numerai_like(
        last, rows_per_era, n_features, n_fading_eras=n_validation_eras,
        n_live_eras=1 + n_future_eras, n_targets=len(_TARGETS), random_state=0,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    words = product(["feature"], _ADJECTIVES, _ADJECTIVES, _NOUNS)
    known = ["_".join(x) for x in words]
    names = rng.choice(known, n_features, replace=False).tolist()
    parts = [(data[name], data[f"{name}_live"]) for name in ("X", "y", "eras")]
    X, y, eras = map(np.concatenate, parts)
    # 60 bits, so that no two are equal.
    ids = [f"n{number:015x}" for number in rng.integers(2**60, size=eras.size)]
    index = pandas.Index(ids, name="id", dtype="str")
    is_live = eras == last + 1
    targets = pandas.DataFrame(y, index, _TARGETS)
    for name in _TARGETS:  # the newest returns are unknown
        is_known = (eras <= last - _N_UNKNOWN[name[-2:]]) | (eras > last + 1)
        targets[name] = targets[name].where(is_known)
    targets.insert(0, "target", targets[ALIASED_TARGET])
    in_train = eras <= n_train_eras
    in_validation = ~in_train & (eras <= last)
    is_test = in_validation & targets["target"].isna()
    kinds = {"train": in_train, "live": is_live, "test": is_test}
    head = pandas.DataFrame({
        "era": np.where(is_live, "X", np.char.zfill(eras.astype(str), 4)),
        "data_type": np.select([*kinds.values()], [*kinds], "validation"),
    }, index, dtype=str)  # fmt: skip
    frame = pandas.concat([head, pandas.DataFrame(X, index, names), targets], axis=1)
    models = _other_models(X, y, eras, n_train_eras // 2, workspace.version, rng)
    others = pandas.concat([head, pandas.DataFrame(models, index)], axis=1)
    has_meta = in_validation & (eras > n_train_eras + _META_MODEL_DELAY)
    tables = {
        "train": frame[in_train], "validation": frame[in_validation],
        "live": frame[is_live], "future": frame[eras > last + 1],
        "meta_model": others.loc[has_meta, [*head, META_MODEL_COLUMN]],
    }  # fmt: skip
    for part, rows in (("validation", in_validation), ("live", is_live)):
        benchmarks = [*others.columns[-len(_TARGETS) :]]
        tables[f"{part}_benchmark_models"] = others.loc[rows, ["era", *benchmarks]]
        tables[f"{part}_example_preds"] = others.loc[rows, ["prediction"]]
    paths = {name: workspace.data_file(name, 1) for name in (*tables, "features")}
    for name, table in tables.items():
        with replacing(paths[name]) as partial:
            table.to_parquet(partial)
    sets = {
        "small": names[: n_features // 5], "medium": names[: n_features // 2],
        "all": names, "fncv3_features": names[n_features // 4 : 3 * n_features // 4],
    }  # fmt: skip
    write_json(paths["features"], {"feature_sets": sets, "targets": [*targets]})
    lasting = [names[j] for j in data.stable_features]
    fading = [names[j] for j in data.unstable_features]
    return DemoData(paths, paths.pop("future"), lasting, fading)


def _other_models(
    X: _Array, y: _Array, eras: _Array, last_seen: int, version: str, rng: Any
) -> dict[str, _Array]:
    """Ranks of the example, the meta model and, last, the benchmark models."""
    seen, models = eras <= last_seen, {}
    fits = np.linalg.lstsq(X[seen] - 2.0, y[seen] - 0.5)[0].T
    wanted = [("prediction", fits[0], 0.0), (META_MODEL_COLUMN, fits[0], _META_NOISE)]
    for target, fit in zip(_TARGETS, fits, strict=True):
        name = ValidateSection().benchmark_of(version, target)
        wanted += [(name, fit, _BENCHMARK_NOISE)]
    for name, fit, noise in wanted:
        values = X @ fit
        drawn = noise * values.std() * rng.standard_normal(values.size)
        models[name] = rank_normalize(values + drawn, eras=eras)
    return models
