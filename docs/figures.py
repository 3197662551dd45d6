"""Draw the pictures of the pages: ``python docs/figures.py [NAME]``.

A picture below a block of code on a page is drawn by that code; the README's picture
and the tree of questions are drawn here.
"""

import re
import sys
from io import BytesIO
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.metrics import r2_score

from sklearn_era.auto import AutoEraRegressor
from sklearn_era.criteria import Directional, Gain
from sklearn_era.datasets import load_bike_sharing, make_synthetic_memorization
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.metrics import era_scores

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
_BLOCK = re.compile(
    r"```python\n(.*?)```|!\[[^\]]*\]\((images/[\w-]+\.png)\)", re.DOTALL
)


def draw_front() -> Figure:
    """Draw the effects of a shortcut on two criteria, and of a drift on two models."""
    figure = plt.figure(figsize=(12, 3.6), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.35])
    _draw_spirals(axes[:2])
    _draw_months(axes[2])
    return figure


def _draw_spirals(axes: list) -> None:
    """Draw accuracies with the shortcut as noise, and predictions over the spiral."""
    data = make_synthetic_memorization(random_state=0)
    X, y = data.X_train, data.y_train
    # A grid over the plane of the spiral, with the shortcut at 0.
    sides = [np.linspace(1.05 * x.min(), 1.05 * x.max(), 200) for x in X[:, :2].T]
    plane = np.zeros((200 * 200, X.shape[1]))
    plane[:, :2] = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    criteria = {"gain": Gain(), "directional": Directional(rule="every_era")}
    for ax, (name, criterion) in zip(axes, criteria.items(), strict=True):
        model = HistGradientBoostingRegressor(
            split_criterion=criterion, max_iter=50, max_depth=10, max_leaf_nodes=32,
            learning_rate=1, early_stopping=False,
        )  # fmt: skip
        model.fit(X, y, eras=data.eras_train)
        accuracy = np.mean((model.predict(data.X_test) > 0.5) == data.y_test)
        predicted = model.predict(plane).reshape(200, 200)
        ax.pcolormesh(*sides, predicted, cmap="coolwarm", vmin=-0.5, vmax=1.5)
        ax.scatter(*X[::8, :2].T, c=y[::8], cmap="coolwarm", s=3, edgecolors="none")
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
        ax.set_title(f'"{name}": {accuracy:.0%} right in new eras')


def _draw_months(ax: plt.Axes) -> None:
    """Draw the scores of two models on the months after training."""
    bikes = load_bike_sharing()
    past = bikes.dates < np.datetime64("2012-07")
    X, y, months = bikes.data, np.log1p(bikes.target), bikes.dates.astype("M8[M]")
    plain = HistGradientBoostingRegressor(early_stopping=False)
    auto = AutoEraRegressor(plain).fit(X[past], y[past], eras=months[past])
    plain.fit(X[past], y[past])
    for name, model, color in (("AutoEra", auto, "C0"), ("plain", plain, "C1")):
        found = era_scores(
            y[~past], model.predict(X[~past]), eras=months[~past], metric=r2_score
        )
        mean = f"{name}, mean {found.mean():.2f}"
        ax.plot(found.eras.astype(str), found.scores, "o-", color=color, label=mean)
    ax.set(ylabel="R²", title="Bicycle rentals, months after the training")
    ax.tick_params("x", labelrotation=30)
    ax.grid(axis="y", alpha=0.3)
    ax.legend(loc="lower left")


# Questions of which-criterion.md, with the answer to each.
QUESTIONS = (
    (
        "Are the eras to predict\namong those of training?",
        'yes: split_criterion="gain"',
    ),
    ("Do you know what goes\nwrong between eras?", "no: AutoEra"),
    ("Does a level move, while\neffects stay the same?", "yes: Intercepts"),
    ("Do single features mislead?", 'by sign: "directional"\nby size: "invariant"'),
    ("Do a few eras dominate?", 'yes: era_weighting="equal"'),
)


def draw_questions() -> Figure:
    """Draw the questions from top to bottom, each with the answer that ends them."""
    figure = plt.figure(figsize=(7, 4.4), layout="constrained")
    ax = figure.subplots()
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.35"}
    answer = box | {"facecolor": "#dbe9f6", "edgecolor": "#0072b2"}
    arrow = {"arrowstyle": "->", "color": "0.35"}
    for place, (question, ends) in enumerate(QUESTIONS):
        at = {"ha": "center", "va": "center"}
        ax.annotate(ends, (0.3, -place), (0.72, -place), arrowprops=arrow, bbox=answer,
                    **at)  # fmt: skip
        if place:
            ax.annotate("", (0.3, 0.35 - place), (0.3, 0.65 - place), arrowprops=arrow)
        ax.text(0.3, -place, question, bbox=box, **at)
    ax.set(xlim=(0, 1), ylim=(0.5 - len(QUESTIONS), 0.5))
    ax.axis("off")
    return figure


# Pictures that no page's code draws.
DRAWN_HERE = {"front": draw_front, "questions": draw_questions}


def draw_page(page: Path) -> dict[Path, Figure]:
    """Run a page's code, and return the current figure at each picture."""
    names: dict = {}
    figures = {}
    for code, picture in _BLOCK.findall(page.read_text("utf-8")):
        if picture:
            figures[page.parent / picture] = plt.gcf()
        else:
            exec(compile(code, page.name, "exec"), names)
    return figures


def save(figure: Figure, path: Path) -> None:
    """Write a PNG with few colours, to keep it small."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=110)
    colors = Image.open(buffer).convert("RGB").quantize(96)
    IMAGES.mkdir(exist_ok=True)
    colors.save(path, optimize=True)
    print(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1e3:.0f} kB")


def main(*names: str) -> None:
    """Draw the pictures with these names, or all."""
    matplotlib.use("agg")
    for name, draw in DRAWN_HERE.items():
        if not names or name in names:
            save(draw(), IMAGES / f"{name}.png")
    for page in sorted(DOCS.rglob("*.md")):
        pictures = {
            Path(path).stem for _, path in _BLOCK.findall(page.read_text("utf-8"))
        }
        pictures -= {"", *DRAWN_HERE}
        if pictures and (not names or pictures & {*names}):
            for path, figure in draw_page(page).items():
                save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
