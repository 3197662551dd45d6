"""Public data with natural eras: each way of training against the plain gain.

Which model predicts eras best that it has not seen? The protocol is
docs/natural-eras.md, and was written before anything was measured. A script measures
other models than `MODELS` on the same splits by `measure`, such as those of `PREPARED`,
and prints what `show(compare_all(scores))` has of them.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import sklearn.ensemble
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline, make_union

from experiments._natural_eras_controls import (
    AnchorBoosting,
    CatBoost,
    GPBoost,
    LightGBM,
    OtherBooster,
    TunedByEras,
)
from experiments._natural_eras_data import FILES, QUICK, SCENARIOS, Task, check_files
from experiments._natural_eras_fresh import FRESH, SECOND
from experiments._natural_eras_measure import (
    ALL,
    ALL_FRESH,
    LOSS,
    REFERENCE,
    SCORES,
    Factory,
    compare,
    measure,
    tally,
)
from experiments.common import bars, kind_of, markdown
from sklearn_era import auto, ensemble
from sklearn_era._optional import import_optional
from sklearn_era.effects import Intercepts, Recency
from sklearn_era.preprocessing import (
    EraRankTransformer,
    EraStandardScaler,
    EraTargetRegressor,
)

TITLE = "Natural eras: differences of R² or ROC AUC to the plain gain, out of era"
DATA_FILES = FILES
# Seeds.
N_RUNS = 1

PARTS = {ALL: SCENARIOS, ALL_FRESH: FRESH, "all second fresh scenarios": SECOND}
# Searches that others are compared with, beside `REFERENCE`.
_BY_ERAS = ("LightGBM", "CatBoost", "AnchorBoosting", "CatBoost's own rate", "GPBoost")
TUNED = (
    *("AutoEra without eras", "tuned", "tuned by eras", "LightGBM tuned"),
    *(f"{name} by eras" for name in _BY_ERAS),
)


def _of(module: ModuleType, name: str, **parameters: Any) -> Factory:
    """A model of either task."""

    def make(task: Task, seed: int) -> Any:
        kind = kind_of(module, name, task == "classification")
        return kind(random_state=seed, **parameters)

    return make


def booster(**parameters: Any) -> Factory:
    """The package's booster, of 100 trees whatever the number of rows."""
    return _of(ensemble, "HistGradientBoosting", early_stopping=False, **parameters)


def _lightgbm(task: Task, seed: int) -> Any:
    """LightGBM's with the parameters of `booster`, most of which are its defaults."""
    lightgbm = import_optional("lightgbm", extra="benchmark")
    kind = kind_of(lightgbm, "LGBM", task == "classification")
    return kind(min_child_samples=20, max_bin=255, n_jobs=1, verbosity=-1)


def _tuned(make: Factory, **grid: list) -> Factory:
    """The best of a grid in folds of rows, shuffled: as without eras."""

    def search(task: Task, seed: int) -> Any:
        folds = KFold(5, shuffle=True, random_state=seed)
        scoring = None if task == "regression" else "roc_auc"
        return GridSearchCV(make(task, seed), grid, cv=folds, scoring=scoring)

    return search


def _tuned_by_eras(make: Factory, **grid: list) -> Factory:
    """The best of a grid in folds of whole eras."""
    return lambda task, seed: TunedByEras(task, make(task, seed), grid)


def _other(kind: type[OtherBooster]) -> Factory:
    return lambda task, _: kind(task)


def _auto(task: Task, seed: int) -> Any:
    """The package's search by eras, of boosters with the parameters of `booster`."""
    return kind_of(auto, "AutoEra", task == "classification")(booster()(task, seed))


def _shuffled(task: Task, seed: int) -> Any:
    """AutoEra without what it knows of eras: such members, and folds of them."""
    members = ["additive", "symmetric", "large", "leaves_4", "linear"]
    folds = KFold(3, shuffle=True, random_state=seed)
    return _auto(task, seed).set_params(members=members, cv=folds)


_CRITERIA = ("era", "directional", "time_robust", "invariant", "vrex")
# By the gain, as `REFERENCE`.
_EFFECTS = {
    "intercepts": booster(era_effects="intercept"),
    "levels": booster(era_effects=Intercepts(forecast="auto")),
    "mean intercepts": booster(era_effects=Intercepts(forecast="mean")),
    "leaf shrinkage": booster(leaf_shrinkage="eras"),
    "equal eras": booster(era_weighting="equal"),
    "recency": booster(era_weighting=Recency(half_life=0.25)),
}

_LEAVES, _RATES = [8, 15, 31, 63], [0.05, 0.1]

MODELS: dict[str, Factory] = {
    REFERENCE: booster(),
    "AutoEra": _auto,
    "AutoEra without eras": _shuffled,
    "tuned": _tuned(booster(), max_leaf_nodes=_LEAVES, learning_rate=_RATES),
    # The number of trees too, up to 400.
    "tuned by eras": _tuned_by_eras(
        booster(max_iter=400), max_leaf_nodes=[4, *_LEAVES], learning_rate=_RATES
    ),
    **{name: booster(split_criterion=name) for name in _CRITERIA},
    **_EFFECTS,
    "EraForest": _of(
        ensemble, "EraForest", split_criterion="time_robust", min_samples_leaf=20
    ),
    # The papers' rule, every era on both sides. The preset's 100 rows of each era are
    # more than half of most eras here have.
    "TimeRobustForest": _of(ensemble, "TimeRobustForest", min_samples_per_era=10),
    "InvariantForest": _of(ensemble, "InvariantForest"),
    "RandomForest": _of(sklearn.ensemble, "RandomForest", min_samples_leaf=20),
    "ExtraTrees": _of(sklearn.ensemble, "ExtraTrees", min_samples_leaf=20),
}
if find_spec("lightgbm") is not None:
    MODELS["LightGBM"] = _lightgbm
    MODELS["LightGBM tuned"] = _tuned(
        _lightgbm, num_leaves=_LEAVES, learning_rate=_RATES
    )
# Other packages' boosters, which have categories of their own.
_FEWER_LEAVES = {"max_leaf_nodes": [4, 8, 15, 31]}
_ANCHORS: dict[str, list] = {"max_leaf_nodes": [4, 15], "gamma": [2.0, 8.0]}
_OWN_RATE: dict[str, list] = {
    "max_leaf_nodes": [64],
    "max_iter": [1_000],
    "learning_rate": [None],
}
_OTHERS: dict[str, tuple[type[OtherBooster], dict[str, list]]] = {
    "LightGBM": (LightGBM, _FEWER_LEAVES),
    "CatBoost": (CatBoost, {"max_leaf_nodes": [8, 16, 64], "max_iter": [300]}),
    "AnchorBoosting": (AnchorBoosting, _ANCHORS),
    "GPBoost": (GPBoost, _FEWER_LEAVES),
    "CatBoost's own rate": (CatBoost, _OWN_RATE),
}
for _name, (_kind, _grid) in _OTHERS.items():
    if find_spec(_kind.__name__.lower()) is not None:
        MODELS[f"{_name} by eras"] = _tuned_by_eras(_other(_kind), **_grid)


def _more_than_ten(X: NDArray[np.float64]) -> list[int]:
    """The columns of more than ten values."""
    return [j for j, x in enumerate(X.T) if np.unique(x[~np.isnan(x)]).size > 10]


def _beside(transformer: Any) -> Factory:
    """The plain booster of raw columns and of what a transformer makes of them."""
    transformed = make_column_transformer((transformer, _more_than_ten))
    union = make_union("passthrough", transformed)
    return lambda task, seed: make_pipeline(union, booster()(task, seed))


def _of_target(task: Task, seed: int) -> Any:
    return EraTargetRegressor(booster()(task, seed)) if task == "regression" else None


PREPARED: dict[str, Factory] = {
    "ranks beside": _beside(EraRankTransformer()),
    "standardised beside": _beside(EraStandardScaler()),
    "standardised target": _of_target,
}

draw = bars(
    "model", panel="scenario", scenario=[*PARTS], score=SCORES[0], reference=REFERENCE
)


def run(
    data_dir: Path | None,
    n_runs: int,
    quick: bool,
    cache: Path | None = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Measure the table; `quick` has two scenarios, two splits and few rows."""
    check_files(data_dir)
    scenarios, models = SCENARIOS | FRESH | SECOND, MODELS
    if quick:
        scenarios = QUICK
        models = {name: MODELS[name] for name in MODELS if "CatBoost" not in name}
    options: dict[str, Any] = {"quick": quick, "cache": cache, "n_jobs": n_jobs}
    scores = measure(scenarios, models, data_dir=data_dir, n_runs=n_runs, **options)
    return compare_all(scores)


def compare_all(scores: pd.DataFrame) -> pd.DataFrame:
    """The table of `run`, from scores that need not have all models."""
    references = [x for x in (REFERENCE, *TUNED) if (scores["model"] == x).any()]
    tables = [compare(scores, PARTS, reference=name) for name in references]
    return pd.concat(tables, ignore_index=True)


def show(frame: pd.DataFrame) -> str:
    """Differences ± s.e., bold beyond two of them, and how they are spread."""
    beside_gain = frame[frame["reference"] == REFERENCE]
    texts = []
    for name in dict.fromkeys(beside_gain["part"]):
        rows = beside_gain[beside_gain["part"] == name]
        measured = [x for x in dict.fromkeys(rows["model"]) if x != REFERENCE]
        first = [x for x in ("AutoEra", *TUNED, *_CRITERIA) if x in measured]
        effects = [x for x in _EFFECTS if x in measured]
        others = [x for x in measured if x not in [*first, *effects]]
        texts += [
            _markdown(rows, SCORES[0], part, name)
            for part in (first, effects, others)
            if part
        ]
        worst = _markdown(rows, SCORES[1], measured, name, only_all=True)
        texts += ["The worst era of each test:", worst]
    texts += [_spread(rows) for _, rows in frame.groupby("reference", sort=False)]
    fits = beside_gain[beside_gain["scenario"] == ALL]
    fits = fits[fits["score"] == SCORES[0]]
    seconds = (f"{x.model} {x.fit_seconds:.1f}" for x in fits.itertuples())
    return "\n\n".join([*texts, f"Seconds a fit: {', '.join(seconds)}."])


def _spread(table: pd.DataFrame) -> str:
    """A line for each part and model: scores, then losses, beside one reference."""
    reference = table["reference"].iat[0]
    columns = ["median", "ahead / behind (p)", "by over 2 s.e.", "mean but largest"]
    head = ["scenarios", f"beside `{reference}`", *(f"score: {x}" for x in columns)]
    head += [f"log ratio of losses: {x}" for x in columns]
    lines = [head]
    of_scores, of_losses = tally(table, SCORES[0]), tally(table, LOSS)
    for part, model in of_scores.index.tolist():
        if model != reference:
            of_score, of_loss = (x.loc[part].loc[model] for x in (of_scores, of_losses))
            n = f"{of_score['n']:.0f}"
            lines.append([f"{part} ({n})", model, *_cells(of_score), *_cells(of_loss)])
    return markdown(lines)


def _cells(row: pd.Series) -> Iterator[str]:
    yield f"{row['median']:+.4f}"
    yield f"{row['ahead']:.0f} / {row['behind']:.0f} ({row['p']:.2g})"
    yield f"{row['clearly_ahead']:.0f} / {row['clearly_behind']:.0f}"
    yield f"{row['mean_but_largest']:+.4f}"


def _markdown(
    frame: pd.DataFrame,
    kind: str,
    models: list[str],
    name_of_all: str,
    only_all: bool = False,
) -> str:
    """A line for each scenario, and those over all of them."""
    rows = frame[frame["score"] == kind].set_index(["scenario", "model"])
    names = [*dict.fromkeys(rows.index.get_level_values("scenario"))]
    lines = [["difference to `gain` ± s.e.", *models]]
    for name in [name_of_all] if only_all else names:
        level = f"{rows.loc[(name, REFERENCE), 'level']:.3f}"
        cells = [_cell(*rows.loc[(name, model), ["mean", "se"]]) for model in models]
        lines.append([name if name == name_of_all else f"{name} ({level})", *cells])
    counts = tally(frame, kind).loc[name_of_all]
    ahead, behind = counts["clearly_ahead"], counts["clearly_behind"]
    cells = [f"{ahead[model]} / {behind[model]}" for model in models]
    lines.append(["ahead / behind by over 2 s.e.", *cells])
    return markdown(lines)


def _cell(mean: float, se: float) -> str:
    text = f"{mean:+.3f} ± {se:.3f}".replace("0.", ".")
    return f"**{text}**" if abs(mean) > 2 * se else text
