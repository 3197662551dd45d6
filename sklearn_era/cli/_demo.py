"""``sklearn-era demo``: the criteria side by side where a shortcut misleads."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
)
from rich.table import Table
from rich.text import Text

from sklearn_era._criterion_table import CRITERIA
from sklearn_era.cli._errors import InputError, not_nan, one_sentence

if TYPE_CHECKING:
    from sklearn.utils import Bunch

    from sklearn_era.ensemble import HistGradientBoostingRegressor

_FIGURE_SUFFIXES = (".png", ".pdf", ".svg")

# In the order in which they are fitted and drawn; times are compared with the first.
_CRITERIA = tuple(CRITERIA)

# Deep trees and full steps: with these, a few trees can follow the spiral.
_TREE_PARAMETERS: dict[str, Any] = {
    "max_depth": 10,
    "learning_rate": 1.0,
    "max_leaf_nodes": 32,
    # All criteria get the same number of trees, and all training rows.
    "early_stopping": False,
}


@dataclass(frozen=True)
class FittedCriterion:
    """A criterion, the estimator fitted with it, and how well that does.

    Attributes
    ----------
    name : str
        The criterion, as `split_criterion` has it.
    estimator : HistGradientBoostingRegressor
        The fitted estimator.
    train_accuracy, test_accuracy : float
        The share of rows whose rounded prediction is their class.
    n_splits : int
        The number of splits in all trees.
    seconds : float
        The time that the fit took.
    """

    name: str
    estimator: "HistGradientBoostingRegressor"
    train_accuracy: float
    test_accuracy: float
    n_splits: int
    seconds: float


def demo(
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="PNG", help="The figure to write: PNG, PDF or SVG."
        ),
    ] = Path("sklearn-era-demo.png"),
    max_iter: Annotated[int, typer.Option(min=1, help="Boosting iterations.")] = 50,
    boltzmann_alpha: Annotated[
        float, typer.Option(callback=not_nan, help="How 'era' averages over eras.")
    ] = -1.0,
    random_state: Annotated[
        int,
        typer.Option(min=0, max=2**32 - 1, help="Seed of the data set and the models."),
    ] = 0,
) -> None:
    """Fit every criterion on a spiral that a shortcut hides; draw what they learn.

    In each of 16 eras an easy shortcut tells the two classes apart, but another one in
    each; only the spiral holds in all of them. At test the shortcut is noise.
    """
    from sklearn_era._optional import import_optional
    from sklearn_era.cli._tables import check_output
    from sklearn_era.datasets import make_synthetic_memorization

    import_optional("matplotlib", extra="plot")
    from sklearn_era.cli._demo_figure import draw_decision_surfaces

    if out.suffix.lower() not in _FIGURE_SUFFIXES:
        raise InputError(
            f"--out: the suffix of '{out}' does not tell a figure; use '.png', '.pdf' "
            "or '.svg'."
        )
    check_output(out, "--out", inputs=[])

    console = Console(highlight=False)
    data = make_synthetic_memorization(random_state=random_state)
    n_train, n_features = data.X_train.shape
    console.print(
        f"Training on {n_train:,} rows of {data.eras_train[-1] + 1} eras, with "
        f"{n_features} features: the two of a spiral that every era shares, and "
        f"{n_features - 2} of a shortcut that differs from era to era.\n"
        f"Testing on {data.X_test.shape[0]:,} rows without the shortcut.\n"
    )
    criteria: dict[str, dict[str, Any]] = {name: {} for name in _CRITERIA}
    for name, traits in CRITERIA.items():
        if "min_era_coverage" in traits.parameters:
            # By default the shortcut's gain would decide which splits are compared.
            criteria[name]["min_era_coverage"] = 1.0
    criteria["era"]["boltzmann_alpha"] = boltzmann_alpha
    parameters = {
        **_TREE_PARAMETERS,
        "max_iter": max_iter,
        "random_state": random_state,
    }
    fitted = _fit_criteria(data, criteria, parameters)
    console.print(_table(fitted))
    console.print(
        "Guessing is right half the time. Fit times are those of one fit each; gain's "
        "trees stop growing once they know the shortcut by heart.\n"
        f"Splits cover all eras, and era has boltzmann_alpha={boltzmann_alpha:g}; all "
        "else of a criterion is at its default, which need not be its best here."
    )
    try:
        draw_decision_surfaces(fitted, data, out)
    except OSError as error:
        raise InputError(
            f"--out: cannot write '{out}': {one_sentence(error)}."
        ) from error
    typer.echo(f"\nDecision surfaces: {out}")


class _SecondsColumn(ProgressColumn):
    """The time since a task began: rich's own column counts whole seconds."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.finished_time or task.elapsed or 0:6.2f} s")


def _fit_criteria(
    data: "Bunch", criteria: dict[str, dict[str, Any]], parameters: dict[str, Any]
) -> list[FittedCriterion]:
    """Fit an estimator with each criterion, and show on a terminal that it goes on."""
    from sklearn_era.ensemble import HistGradientBoostingRegressor

    # The first fit of a process starts its threads, which is none of gain's doing.
    HistGradientBoostingRegressor(max_iter=1).fit(data.X_train, data.y_train)

    fitted = []
    with Progress(
        SpinnerColumn(finished_text="[green]✓[/green]"),
        TextColumn("{task.description:12}"),
        BarColumn(bar_width=30),
        _SecondsColumn(),
        TextColumn("{task.fields[result]}"),
        console=Console(highlight=False),
    ) as progress:
        for name, criterion_parameters in criteria.items():
            task = progress.add_task(name, total=None, result="fitting")
            estimator = HistGradientBoostingRegressor(
                split_criterion=name, **criterion_parameters, **parameters
            )
            start = time.perf_counter()
            estimator.fit(data.X_train, data.y_train, eras=data.eras_train)
            seconds = time.perf_counter() - start
            fitted.append(_evaluate(name, estimator, data, seconds))
            result = f"test accuracy {fitted[-1].test_accuracy:.1%}"
            progress.update(task, total=1, completed=1, result=result)
    return fitted


def _evaluate(
    name: str,
    estimator: "HistGradientBoostingRegressor",
    data: "Bunch",
    seconds: float,
) -> FittedCriterion:
    # A prediction beyond 1 or below 0 rounds to the nearer class.
    accuracy = {
        part: float(((estimator.predict(X) > 0.5) == y).mean())
        for part, X, y in (
            ("train", data.X_train, data.y_train),
            ("test", data.X_test, data.y_test),
        )
    }
    return FittedCriterion(
        name=name,
        estimator=estimator,
        train_accuracy=accuracy["train"],
        test_accuracy=accuracy["test"],
        n_splits=sum(
            tree.get_n_leaf_nodes() - 1
            for iteration in estimator._predictors
            for tree in iteration
        ),
        seconds=seconds,
    )


def _table(fitted: list[FittedCriterion]) -> Table:
    table = Table()
    table.add_column("Criterion")
    for heading in ("Train accuracy", "Test accuracy", "Splits", "Fit time", "vs gain"):
        table.add_column(heading, justify="right")
    best = max(fitted, key=lambda one: one.test_accuracy)
    for one in fitted:
        table.add_row(
            one.name,
            f"{one.train_accuracy:.1%}",
            f"{one.test_accuracy:.1%}",
            f"{one.n_splits:,}",
            f"{one.seconds:.2f} s",
            f"{one.seconds / fitted[0].seconds:.1f}",
            style="bold" if one is best else None,
        )
    return table
