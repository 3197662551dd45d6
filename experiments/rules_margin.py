"""Du et al. (2025) on two unit tests of invariance: a small margin, and cows.

Figures 7 and 8 and tables III and IV: see docs/papers/decision-rules.md. `test` has
other rows of the same eras, `ood` rows of ten new ones (of cows and camels: backgrounds
exchanged). Scrambled features are rotated by one matrix, and no column is invariant:
nothing is left for the graph term.

Groups, `cells`, are by the side of its median on which each of the five invariant
features is, 32 labels; of a class, those of fewer than ten rows become one. They are
made before the features are scrambled. λ = 3, of the score's variance, was chosen among
1, 3 and 6 at K = 5, and 3 and 6 at K = 7 and 10, and eras of one size in place of a
majority of 50 or 90 %, on data sets of the seeds 900 to 903, which are not among those
reported here.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.utils import Bunch

from experiments import _du as du
from experiments._paper_data import make_cows_versus_camels, make_small_invariant_margin
from experiments.common import bars, seed_of
from sklearn_era.causal import feature_penalties
from sklearn_era.effects import GroupDRO
from sklearn_era.ensemble import JustTrainTwice

TITLE = "Du et al. (2025), unit tests: figures 7 and 8, tables III and IV"
N_RUNS = 10

N_ROWS = 600
N_OOD_ERAS = 10
N_INVARIANT = 5
SCALES = (1.0, 2.0)
PENALTY = 3.0

MARGIN, COWS = "small invariant margin", "cows versus camels"
SCRAMBLED = ", scrambled"
RULES = "rules of the first run, with or, largest coefficients"
MEAN_RATES = "five such rules (table III)"

VARIANCE = "variance of score, cells"
BOOSTER = "booster"

# Table IV numbers its rows 13, 15, 17 and 10, read here as K = 3, 5, 7 and 10.
PAPER = {
    (du.SKLEARN, MARGIN, f"K = {k}", "", "ood"): accuracy
    for k, accuracy in {3: 0.516, 5: 0.5432, 7: 0.3009, 10: 0.5318}.items()
}
# Of the five rules in table III; the measured rates are means of five, too.
TABLE_3 = {
    "train TPR": (0.97, 0.98, 0.98, 0.98, 0.91),
    "train FPR": (0.003, 0.02, 0.06, 0.03, 0.01),
    "test TPR": (0.55, 0.68, 0.63, 0.65, 0.63),
    "test FPR": (0.32, 0.27, 0.31, 0.33, 0.33),
}
PAPER |= {
    (du.graph(1.0), MEAN_RATES, "K = 3", "", part): fmean(rates)
    for part, rates in TABLE_3.items()
}


class Case(NamedTuple):
    """A generator, its eras, and whether all models are fitted."""

    data: str
    n_eras: int
    has_all: bool = False
    majority_share: float | None = None

    def make(self, number: int) -> Bunch:
        """Draw the data of a run."""
        settings: dict[str, Any] = {
            "n_eras": self.n_eras,
            "n_samples_per_era": N_ROWS,
            "n_invariant": N_INVARIANT,
            "majority_share": self.majority_share,
            "scramble": self.data.endswith(SCRAMBLED),
            "random_state": seed_of("data", self.n_eras, number),
        }
        if self.data.startswith(MARGIN):
            return make_small_invariant_margin(n_ood_eras=N_OOD_ERAS, **settings)
        return make_cows_versus_camels(**settings)


CASES = (
    Case(MARGIN, 3, has_all=True),
    Case(MARGIN, 5, has_all=True),
    Case(MARGIN, 7),
    Case(MARGIN, 10),
    Case(f"{MARGIN}, 90 % of one era", 5, majority_share=0.9),
    Case(MARGIN + SCRAMBLED, 3),
    Case(COWS, 3),
    Case(COWS + SCRAMBLED, 3),
)

draw = bars("eras", "model", "data", part="ood", rule="")


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has 5 rounds, K = 3 and two data sets."""
    rows: list[dict] = []
    for case in (CASES[0], CASES[-1]) if quick else CASES:
        for number in range(n_runs):
            data = case.make(number)
            parts = du.parts_of(data)
            seed = seed_of("rules", number)
            names = {"run": number, "data": case.data, "eras": f"K = {case.n_eras}"}
            for model_name, model, arguments in _models(case, data, seed, quick):
                # Where its first classifier is right, JustTrainTwice is the booster.
                model.fit(data.X_train, data.y_train, **arguments)
                rows += du.accuracies(model, parts, model=model_name, **names)
            if case == CASES[0]:
                found = _rules(data, seed, quick, show=number == 0)
                rows += [{**names, **row} for row in found]
    by = ["model", "data", "eras", "rule", "part"]
    return du.summarize_rules(rows, by, PAPER)


def _models(
    case: Case, data: Bunch, seed: int, quick: bool
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Name, model and arguments of its fit."""
    eras = {"eras": data.eras_train}
    penalties = np.zeros(data.is_invariant.size)
    scales: tuple[float, ...] = ()
    if data.is_invariant.any():
        penalties = feature_penalties(data.X_train, data.y_train, data.is_invariant)
        scales = SCALES
    for name, model in du.graph_models(penalties, scales, seed, quick).items():
        yield name, model, {}
    invariant = (data.X_train @ data.rotation.T)[:, :N_INVARIANT]
    groups = {"groups": merge_rare(cells(invariant), data.y_train)}
    yield VARIANCE, _with_variance(seed, quick), groups
    yield du.SKLEARN, du.make_sklearn(seed, quick=quick), {}
    if not case.has_all:
        return
    yield "variance of loss, cells", _with_variance(seed, quick, "loss"), groups
    yield "variance of score, eras", _with_variance(seed, quick), eras
    clusters = KMeans(2, n_init=1, random_state=seed).fit_predict(invariant)
    groups = {"groups": merge_rare(clusters, data.y_train)}
    yield "variance of score, k-means", _with_variance(seed, quick), groups
    booster = partial(du.make_booster, quick, n_jobs=1)
    for criterion in ("gain", "era", "directional", "invariant"):
        name = f"{BOOSTER}, {criterion}"
        yield name, booster(criterion=criterion), eras
    for scale in SCALES:
        name = f"{BOOSTER}, {du.graph(scale)}"
        yield name, booster(feature_penalty=scale * penalties), {}
    yield f"{BOOSTER}, group_dro", booster(era_weighting=GroupDRO()), eras
    yield f"{BOOSTER}, JustTrainTwice", JustTrainTwice(booster()), {}


def cells(invariant: NDArray[np.float64]) -> NDArray[np.int64]:
    """Labels of rows that are on the same sides of all medians."""
    sides = invariant > np.median(invariant, axis=0)
    return sides @ (1 << np.arange(invariant.shape[1]))


def merge_rare(
    labels: NDArray[np.integer], y: NDArray[np.int64], n_least: int = 10
) -> NDArray[np.int64]:
    """A class's groups of fewer rows become one, of the label -1."""
    merged = labels.astype(np.int64)
    for value in (0, 1):
        groups, counts = np.unique(labels[y == value], return_counts=True)
        order = np.argsort(counts, kind="stable")
        ascending = counts[order]
        n_merged = np.count_nonzero(ascending < n_least)
        if 0 < ascending[:n_merged].sum() < n_least:
            n_merged += 1  # they are too few even together
        rare = np.isin(labels, groups[order[:n_merged]])
        merged[rare & (y == value)] = -1
    return merged


def _with_variance(seed: int, quick: bool, of: str = "score") -> Any:
    return du.make_rules(seed, quick=quick, variance_penalty=PENALTY, variance_of=of)


def _rules(
    data: Bunch, seed: int, quick: bool, *, show: bool
) -> Iterator[dict[str, Any]]:
    """Rates of the best rules with *or*, plain and with the graph term, or their mean.
    Each rule has rows of its own with `show`.
    """
    parts = du.parts_of(data)
    penalties = feature_penalties(data.X_train, data.y_train, data.is_invariant)
    models = du.graph_models(penalties, SCALES, seed, quick, disjunctions=True)
    for name, model in models.items():
        model.fit(data.X_train, data.y_train)
        tables = {p: model.rule_table(X, y) for p, (X, y) in parts.items()}
        rates = du.rates_of_best(tables, "coefficient")
        rows = [{**row, "part": f"{row['part']} {row['measure']}"} for row in rates]
        for (part, measure), value in du.mean_rates(rates).items():
            case = {"model": name, "data": MEAN_RATES, "part": f"{part} {measure}"}
            yield {**case, "value": value}
        if show:
            yield from ({**row, "model": name, "data": RULES} for row in rows)


def show(frame: pd.DataFrame) -> str:
    """The tables as text."""
    return du.format_blocks(
        frame, block="data", index=["eras", "rule", "model"], columns=["part"]
    )
