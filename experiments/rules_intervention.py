"""Example 1 of Du et al. (2025): rules before and after an intervention.

Numbers of rows and functions are the defaults of `make_anticausal_intervention`, as the
paper gives none. The graph term is made as a user would: `invariant_features` looks at
the graph, and `feature_penalties` at the training rows. docs/papers/decision-rules.md
has the tables, and why the paper's rates are compared with those of the rows after the
intervention, `minority`. Rules take whole Newton steps, or tenths ("small steps"), with
which more rules speak for what the first one has found. λ is that of the graph term.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from experiments import _du as du
from experiments._paper_data import make_anticausal_intervention
from experiments.common import bars, seed_of
from sklearn_era.causal import (
    feature_penalties,
    invariant_features,
    mutual_information_ratios,
)

TITLE = "Du et al. (2025), example 1: figures 3, 4 and 6, tables I, II and IV"
N_RUNS = 10

ACCURACIES = "accuracy (figures 3 and 6, table IV)"
RATES = "five best rules (tables I and II)"
RULES = "rules of the first run, small steps, largest coefficients"
BY_RATIO = "accuracy in the minority's test rows (figure 4)"

# (invariant_strength, mediator_std): the noise of A, then fainter invariant features,
# since no noise of A makes the ratio larger than 5.
REALIZATIONS = (
    *((0.82, std) for std in (6.0, 3.0, 2.0, 1.0, 0.5)),
    *((strength, 0.5) for strength in (0.58, 0.47)),
)

STEPS = {"whole steps": 1.0, "small steps": 0.1}
SCALES = (1.0, 2.0)

BEST = {"largest coefficients": "coefficient", "best rates in training": "rates"}

# The means of five rules each: by model, set of rows and rate.
_TABLES_I_II = {
    (du.PLAIN, "train", "TPR"): 0.802,
    (du.PLAIN, "minority", "TPR"): 0.156,
    (du.graph(1.0), "train", "TPR"): 0.714,
    (du.graph(1.0), "train", "FPR"): 0.150,
    (du.graph(1.0), "test", "TPR"): 0.634,
    (du.graph(1.0), "test", "FPR"): 0.220,
}
PAPER = {
    (du.SKLEARN, ACCURACIES, "", "", "", "test", "accuracy"): 0.5235,
    **{
        (model, RATES, "small steps", "", rule, part, measure): rate
        for (model, part, measure), rate in _TABLES_I_II.items()
        for rule in BEST
    },
}

draw = bars("part", "model", table=ACCURACIES, steps=["", "small steps"])


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has 5 rounds and two realizations."""
    rows: list[dict] = []
    for number in range(n_runs):
        rows += _example(number, quick)
        for case in REALIZATIONS[:: 3 if quick else 1]:
            rows += _realization(number, *case, quick)
    by = ["model", "table", "steps", "case", "rule", "part", "measure"]
    return du.summarize_rules(rows, by, PAPER)


def _penalties(data: Bunch) -> NDArray[np.float64]:
    """The graph term: Y acts on each invariant feature, and on the others through A."""
    edges = [("Y", "A")]
    for name, is_invariant in zip(data.feature_names, data.is_invariant, strict=True):
        edges.append(("Y" if is_invariant else "A", name))
    names = invariant_features(
        nx.DiGraph(edges), "Y", manipulable=["A"], features=data.feature_names
    )
    X = pd.DataFrame(data.X_train, columns=data.feature_names)
    return feature_penalties(X, data.y_train, names)


def _parts(data: Bunch) -> dict[str, tuple[NDArray, NDArray]]:
    """All sets of rows that models are tested on."""
    parts = {}
    for part in ("train", "test"):
        X, y, eras = (data[f"{name}_{part}"] for name in ("X", "y", "eras"))
        parts[part] = X, y
        for era, name in enumerate(("majority", "minority")):
            prefix = "" if part == "test" else "train, "
            parts[f"{prefix}{name}"] = X[eras == era], y[eras == era]
    return parts


def _example(number: int, quick: bool) -> Iterator[dict]:
    """Accuracies and rates of rules in one draw of the example."""
    data = make_anticausal_intervention(seed_of("example", number))
    seed, penalties = seed_of("rules", number), _penalties(data)
    parts = _parts(data)
    accuracies = partial(
        du.accuracies, parts=parts, run=number, table=ACCURACIES, measure="accuracy"
    )
    for steps, learning_rate in STEPS.items():
        models = du.graph_models(
            penalties, SCALES, seed, quick, learning_rate=learning_rate
        )
        for name, model in models.items():
            model.fit(data.X_train, data.y_train)
            yield from accuracies(model, model=name, steps=steps)
            named = ("train", "test", "minority")
            tables = {part: model.rule_table(*parts[part]) for part in named}
            case = {"run": number, "model": name}
            for rule, by in BEST.items():
                means = du.mean_rates(du.rates_of_best(tables, by))
                for part in ("test", "minority"):
                    fall = means["train", "TPR"] - means[part, "TPR"]
                    means[part, "fall of TPR"] = fall
                names = {**case, "table": RATES, "steps": steps, "rule": rule}
                for (part, measure), value in means.items():
                    yield {**names, "part": part, "measure": measure, "value": value}
            if number == 0 and learning_rate < 1:
                for row in du.rates_of_best(tables, "coefficient"):
                    yield {**case, "table": RULES, **row}
    model = du.make_sklearn(seed, quick=quick).fit(data.X_train, data.y_train)
    yield from accuracies(model, model=du.SKLEARN, steps="")


def _realization(
    number: int, strength: float, mediator_std: float, quick: bool
) -> Iterator[dict]:
    """Accuracy after the intervention, and the ratio of mutual information."""
    functions: dict[str, Any] = {
        "invariant_strength": strength,
        "mediator_std": mediator_std,
    }
    data = make_anticausal_intervention(seed_of("realization", number), **functions)
    # Many rows, as the ratio is one of the realization, and not of the run.
    rows: dict[str, Any] = {"n_samples": 20_000, "n_samples_test": 0}
    many = make_anticausal_intervention(0, **rows, **functions)
    ratios = mutual_information_ratios(many.X_train, many.y_train, range(5))
    case = {"run": number, "table": BY_RATIO, "steps": "whole steps"}
    case |= {"case": f"ratio {ratios[~many.is_invariant].mean():.1f}"}
    case |= {"part": "minority", "measure": "accuracy"}
    X, y = _parts(data)["minority"]
    seed, penalties = seed_of("rules", number), _penalties(data)
    models = du.graph_models(penalties, SCALES[-1:], seed, quick)
    for name, model in models.items():
        model.fit(data.X_train, data.y_train)
        yield {**case, "model": name, "value": model.score(X, y)}


def show(frame: pd.DataFrame) -> str:
    """The tables as text."""
    return du.format_blocks(
        frame,
        block="table",
        index=["rule", "model", "steps", "case"],
        columns=["measure", "part"],
    )
