"""Demonstrate all criteria on a spiral. Heavy imports wait until the command runs."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sklearn_era._optional import import_optional
from sklearn_era.cli import _ui
from sklearn_era.cli._ui import SEED, option

_FIGURE = option("FILE", "Figure: PNG, PDF or SVG.", "--out", "-o")


def demo(
    out: Annotated[Path, _FIGURE] = Path("sklearn-era-demo.png"),
    max_iter: Annotated[int, option("INT", "Boosting iterations.", min=1)] = 50,
    random_state: Annotated[int | None, SEED] = 0,
) -> None:
    """Fit every criterion to a spiral and draw the predictions.

    In each of 16 eras, a different shortcut separates the two classes; only the spiral
    holds in all of them. In the test rows, the shortcut is noise.
    """
    import numpy as np

    from sklearn_era.criteria._criteria import CRITERIA
    from sklearn_era.datasets import make_synthetic_memorization
    from sklearn_era.ensemble import HistGradientBoostingRegressor

    figures = import_optional("matplotlib.figure", extra="plot")
    _ui.check_output(out, (".png", ".pdf", ".svg"))
    data = make_synthetic_memorization(random_state=random_state)
    X, y = data.X_train, data.y_train
    # A grid over the spiral's plane, with the shortcut at 0.
    axes = [np.linspace(x.min(), x.max(), 300) for x in X[:, :2].T]
    plane = np.zeros((300 * 300, X.shape[1]))
    plane[:, :2] = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    # Without pyplot, which chooses a backend for the whole process.
    n_rows = -(-len(CRITERIA) // 3)
    figure = figures.Figure(figsize=(12, 0.5 + 3.2 * n_rows), layout="constrained")
    typer.echo(f"{'criterion':12}  train accuracy  test accuracy  fit time")
    for place, (name, criterion) in enumerate(CRITERIA.items(), 1):
        ax = figure.add_subplot(n_rows, 3, place)
        # By default the shortcut's gain would shortlist the splits.
        rule: dict[str, Any] = {} if name == "gain" else {"rule": "every_era"}
        if name == "era":
            rule["boltzmann_alpha"] = -1.0
        # Deep trees and full steps: a few trees can then follow the spiral.
        model = HistGradientBoostingRegressor(
            split_criterion=criterion(**rule),
            max_iter=max_iter, max_depth=10, max_leaf_nodes=32, learning_rate=1,
            early_stopping=False, random_state=random_state,
        )  # fmt: skip
        start = time.perf_counter()
        model.fit(X, y, eras=data.eras_train)
        seconds = time.perf_counter() - start
        train = ((model.predict(X) > 0.5) == y).mean()
        test = ((model.predict(data.X_test) > 0.5) == data.y_test).mean()
        typer.echo(f"{name:12}  {train:14.1%}  {test:13.1%}  {seconds:6.2f} s")
        predicted = model.predict(plane).reshape(300, 300)
        ax.pcolormesh(*axes, predicted, cmap="coolwarm", vmin=-0.5, vmax=1.5)
        ax.set(xlabel=data.feature_names[0], ylabel=data.feature_names[1])
        ax.scatter(*X[::8, :2].T, c=y[::8], cmap="coolwarm", s=2)
        ax.label_outer()
        ax.set_title(f"{name}: {test:.1%}")
    figure.suptitle("Predictions over the spiral, and accuracy on the test rows")
    with _ui.writable(out):
        figure.savefig(out, dpi=120)
    _ui.echo(f"Wrote {out}.")
