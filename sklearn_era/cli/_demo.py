"""``sklearn-era demo``: the criteria side by side where a shortcut misleads."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sklearn_era._criterion_table import CRITERIA
from sklearn_era._optional import import_optional
from sklearn_era.cli import _errors
from sklearn_era.cli._errors import option

_OUT = option("FILE", "Figure: PNG, PDF or SVG.", "--out", "-o")


def demo(
    out: Annotated[Path, _OUT] = Path("sklearn-era-demo.png"),
    max_iter: Annotated[int, option("INT", "Boosting iterations.", min=1)] = 50,
    random_state: _errors.SeedOption = 0,
) -> None:
    """Fit every criterion to a spiral and draw what they learn.

    In each of 16 eras, a different shortcut separates the two classes; only the spiral
    holds in all of them. In the test rows, the shortcut is noise.
    """
    from sklearn_era.datasets import make_synthetic_memorization
    from sklearn_era.ensemble import HistGradientBoostingRegressor
    from sklearn_era.inspection import DecisionSurfaceDisplay

    figures = import_optional("matplotlib.figure", extra="plot")
    _errors.check_output(out, (".png", ".pdf", ".svg"))
    data = make_synthetic_memorization(random_state=random_state)
    X, y = data.X_train, data.y_train
    shortcut: dict[int | str, Any] = dict.fromkeys(range(2, X.shape[1]), 0.0)
    # Without pyplot, which would choose a backend for the whole process.
    n_rows = -(-len(CRITERIA) // 4)
    figure = figures.Figure(figsize=(12, 0.5 + 3.2 * n_rows), layout="constrained")
    typer.echo(f"{'criterion':12}  train accuracy  test accuracy  fit time")
    for place, (name, traits) in enumerate(CRITERIA.items(), 1):
        ax = figure.add_subplot(n_rows, 4, place)
        parameters: dict[str, Any] = {"boltzmann_alpha": -1.0} if name == "era" else {}
        if "min_era_coverage" in traits.parameters:
            # By default the shortcut's gain would decide which splits are compared.
            parameters["min_era_coverage"] = 1.0
        # Deep trees and full steps: with these, a few trees can follow the spiral.
        model = HistGradientBoostingRegressor(
            split_criterion=name, max_iter=max_iter, max_depth=10, max_leaf_nodes=32,
            learning_rate=1, early_stopping=False, random_state=random_state,
            **parameters,
        )  # fmt: skip
        start = time.perf_counter()
        model.fit(X, y, eras=data.eras_train)
        seconds = time.perf_counter() - start
        train = ((model.predict(X) > 0.5) == y).mean()
        test = ((model.predict(data.X_test) > 0.5) == data.y_test).mean()
        typer.echo(f"{name:12}  {train:14.1%}  {test:13.1%}  {seconds:6.2f} s")
        DecisionSurfaceDisplay.from_estimator(
            model, X, (0, 1), fixed=shortcut, grid_resolution=300, ax=ax,
            plot_method="pcolormesh", cmap="coolwarm", vmin=-0.5, vmax=1.5,
            xlabel=data.feature_names[0], ylabel=data.feature_names[1],
        )  # fmt: skip
        ax.scatter(*X[::8, :2].T, c=y[::8], cmap="coolwarm", s=2)
        ax.label_outer()
        ax.set_title(f"{name}: {test:.1%}")
    figure.suptitle("Predictions over the spiral, and accuracy on the test rows")
    with _errors.writable(out):
        figure.savefig(out, dpi=120)
    typer.echo(f"Wrote {out}.")
