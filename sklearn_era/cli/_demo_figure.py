"""The figure of ``sklearn-era demo``: what each criterion takes for the spiral."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from sklearn.utils import Bunch

    from sklearn_era.cli._demo import FittedCriterion

_EXTENT = 2.7  # The spiral's outermost points are 2.4 from the origin.
_RESOLUTION = 400
_N_COLUMNS = 3
_N_POINTS = 1500  # More would hide the surface below.
# Blue and orange, which colour-blind readers tell apart; pale for the surface, so that
# the dots stand out on it wherever the two disagree.
_SURFACE = LinearSegmentedColormap.from_list(
    "classes", ["#8fbde0", "#f7f7f7", "#fbb26a"]
)
_CLASS_COLORS = ("#08519c", "#a63603")


def draw_decision_surfaces(
    fitted: Sequence["FittedCriterion"], data: "Bunch", path: Path
) -> None:
    """Draw what models predict over the plane of the spiral.

    Parameters
    ----------
    fitted : sequence of FittedCriterion
        The models, row by row from left to right.

    data : Bunch
        What `make_synthetic_memorization` returned.

    path : Path
        Where to write; the suffix tells the format.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    axis = np.linspace(-_EXTENT, _EXTENT, _RESOLUTION)
    grid = np.zeros((_RESOLUTION**2, data.X_train.shape[1]))
    grid[:, :2] = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    # Without pyplot, which would choose a backend for the whole process.
    n_rows = -(-len(fitted) // _N_COLUMNS)
    figure = Figure(figsize=(12.6, 0.6 + 4.4 * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(n_rows, _N_COLUMNS, sharex=True, sharey=True, squeeze=False)
    for ax in axes.flat[len(fitted) :]:
        ax.set_axis_off()
    points = slice(None, None, max(1, data.y_train.size // _N_POINTS))
    for ax, one in zip(axes.flat, fitted, strict=False):
        surface = one.estimator.predict(grid).reshape(_RESOLUTION, _RESOLUTION)
        ax.imshow(
            surface,
            origin="lower",
            extent=(-_EXTENT, _EXTENT, -_EXTENT, _EXTENT),
            cmap=_SURFACE,
            vmin=0,
            vmax=1,
            interpolation="nearest",
        )
        for label, color in enumerate(_CLASS_COLORS):
            arm = data.X_train[points][data.y_train[points] == label]
            ax.scatter(arm[:, 0], arm[:, 1], s=3, color=color, linewidth=0)
        ax.set_title(one.name, fontsize=15, fontweight="bold", pad=24)
        ax.annotate(
            f"test accuracy {one.test_accuracy:.1%}",
            xy=(0.5, 1),
            xycoords="axes fraction",
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=12,
        )
        ax.set_xticks([-2, 0, 2])
        ax.set_yticks([-2, 0, 2])
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelcolor="0.4")
    for ax in axes[-1]:
        ax.set_xlabel(data.feature_names[0])
    for ax in axes[:, 0]:
        ax.set_ylabel(data.feature_names[1])
    bar = figure.colorbar(
        axes[0, 0].images[0], ax=axes, shrink=0.8, pad=0.015, aspect=25
    )
    bar.set_label("prediction, clipped to [0, 1]")
    bar.set_ticks([0, 0.5, 1])
    bar.outline.set_visible(False)
    figure.supxlabel(
        "Predictions over the two features of the spiral, with the "
        f"{data.X_train.shape[1] - 2} shortcut features at 0. "
        "Dots: training rows, by class.",
        fontsize=10,
        color="0.3",
    )
    figure.savefig(path, dpi=150)
