"""Code shared by the experiments on Du et al. (2025).

The paper's settings are 100 rounds, a beam of 30 rules, depth 2 and 8 bins of equal
width. It does not give the steps of the coefficients: ours are Newton's, whole ones
(`learning_rate=1.0`) unless stated otherwise.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.utils import Bunch

from experiments.common import coverage_of_papers, rows_of, summarize_beside
from sklearn_era.ensemble import HistGradientBoostingClassifier
from sklearn_era.rules import RuleEnsembleClassifier

PLAIN = "plain"
SKLEARN = "scikit-learn's boosting"

N_ROUNDS = 100
# Whose rates the paper's tables I to III have: five rules of an ensemble.
N_BEST = 5

_NUMBERS = ["mean", "minus_plain", "minus_plain_se"]


def graph(scale: float) -> str:
    """The name of rules with the graph term at a lambda."""
    return f"graph term, λ = {scale:g}"


def make_rules(seed: int, *, quick: bool, **parameters: Any) -> RuleEnsembleClassifier:
    """Make an ensemble of rules with the paper's settings; `quick` has 5 rounds."""
    settings = {
        "n_estimators": 5 if quick else N_ROUNDS,
        "max_depth": 2,
        "beam_width": 30,
        "n_bins": 8,
        "binning": "uniform",
        "learning_rate": 1.0,
        "n_jobs": 1,  # the data are so small that threads would wait
        "random_state": seed,
    }
    return RuleEnsembleClassifier(**{**settings, **parameters})


def graph_models(
    penalties: NDArray[np.float64],
    scales: Sequence[float],
    seed: int,
    quick: bool,
    **parameters: Any,
) -> dict[str, RuleEnsembleClassifier]:
    """Plain rules, and rules with the graph term at each lambda, by name."""
    given = {"quick": quick, "feature_penalty": penalties, **parameters}
    return {
        graph(scale) if scale else PLAIN: make_rules(
            seed, feature_penalty_scale=scale, **given
        )
        for scale in (0.0, *scales)
    }


def make_booster(
    quick: bool, criterion: str = "gain", **parameters: Any
) -> HistGradientBoostingClassifier:
    """Make a booster of as many trees of depth 2 as there are rounds of rules."""
    return HistGradientBoostingClassifier(
        split_criterion=criterion,
        max_iter=5 if quick else N_ROUNDS,
        max_depth=2,
        early_stopping=False,
        **coverage_of_papers(criterion),
        **parameters,
    )


def make_sklearn(seed: int, *, quick: bool) -> GradientBoostingClassifier:
    """Make scikit-learn's boosting with its defaults, 100 trees of depth 3."""
    return GradientBoostingClassifier(
        n_estimators=5 if quick else 100, random_state=seed
    )


def parts_of(data: Bunch) -> dict[str, tuple[NDArray, NDArray]]:
    """The parts of generated data that models are tested on."""
    parts = ("train", "test", "ood")
    return {part: (data[f"X_{part}"], data[f"y_{part}"]) for part in parts}


def accuracies(
    fitted: ClassifierMixin, parts: Mapping[str, tuple[NDArray, NDArray]], **case: Any
) -> list[dict]:
    """A row of a case for the accuracy on each part."""
    scores = {part: fitted.score(X, y) for part, (X, y) in parts.items()}
    return rows_of(scores, "part", **case)


def rates_of_best(tables: Mapping[str, Bunch], by: str) -> list[dict[str, Any]]:
    """Each rate of the five best rules on each set of rows, as rows of a table. Best in
    training are the largest coefficients, or differences of the two rates.
    """
    train = tables["train"]
    size = train.coefficient if by == "coefficient" else train.tpr - train.fpr
    best = np.argsort(-np.abs(size), kind="stable")[:N_BEST]
    return [
        {
            "rule": f"{rank}. {table.text[place]}",
            "part": part,
            "measure": measure,
            "value": table[measure.lower()][place],
        }
        for rank, place in enumerate(best, start=1)
        for part, table in tables.items()
        for measure in ("TPR", "FPR")
    ]


def mean_rates(rates: list[dict[str, Any]]) -> dict[Any, float]:
    """The means over rules, by set of rows and measure."""
    groups = pd.DataFrame(rates).groupby(["part", "measure"], sort=False)
    return groups["value"].mean().to_dict()


def summarize_rules(
    rows: list[dict], by: list[str], paper: Mapping[Any, float]
) -> pd.DataFrame:
    """Summarise runs beside those of plain rules; rows may lack columns of `by`."""
    runs = pd.DataFrame(rows).reindex(columns=["run", *by, "value"])
    runs[by] = runs[by].fillna("")
    table = summarize_beside(runs, by=by, reference=PLAIN, paper=paper)
    return table.drop(columns="runs")


def format_blocks(
    frame: pd.DataFrame, *, block: str, index: list[str], columns: list[str]
) -> str:
    """Text of a table of means, one block below the other, without empty columns. In
    brackets stands the difference to the plain rules of the same runs, with its
    standard error.
    """
    texts = []
    for name, rows in frame.groupby(block, sort=False):
        lines = [column for column in index if (rows[column] != "").any()]
        cells = rows.assign(
            text=[
                f"{mean:.3f}"
                if math.isnan(error)
                else f"{mean:.3f} ({difference:+.3f} ± {error:.3f})"
                for mean, difference, error in rows[_NUMBERS].to_numpy()
            ]
        )
        shown = cells.pivot_table("text", lines, columns, aggfunc="first", sort=False)
        texts.append(f"{name}\n{shown.to_string(na_rep='')}")
    return "\n\n".join(texts)
