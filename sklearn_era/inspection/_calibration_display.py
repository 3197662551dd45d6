"""Draw the calibration of each era as forest plots."""

from typing import Any, Self

import numpy as np

from .._optional import import_optional
from .._plotting import GRAY
from ..calibration import era_calibration
from ..metrics import EraScoreForecast, EraScores
from ._era_score_display import EraScoreDisplay

# Names of values, and what they are without an error.
_VALUES = {
    "in_the_large": ("calibration in the large", 0), "intercept": ("intercept", 0),
    "slope": ("calibration slope", 1), "ratio": ("observed / expected", 1),
}  # fmt: skip


class EraCalibrationDisplay:
    """Forest plots of calibration in each era, pooled over eras, and for the next era.

    Parameters
    ----------
    calibration : EraScores
        The result of `sklearn_era.calibration.era_calibration`.

    Attributes
    ----------
    displays_ : dict of str to EraScoreDisplay
        The forest plot of each value.
    figure_ : matplotlib Figure
        The figure of the plots.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.inspection import EraCalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> p, clinics = rng.uniform(size=4000), np.repeat(["a", "b", "c", "d"], 1000)
    >>> y = rng.uniform(size=4000) < p
    >>> EraCalibrationDisplay.from_predictions(y, p, eras=clinics)  # doctest: +SKIP
    """

    def __init__(self, calibration: EraScores) -> None:
        self.calibration = calibration

    def plot(
        self, axes: Any = None, *, values: Any = ("in_the_large", "slope"),
        **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Draw a forest plot of each value, with a line at perfect calibration.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            The axes for each value; None makes a figure.
        values : sequence of str, default=("in_the_large", "slope")
            The values to draw, side by side: any of "in_the_large", "slope",
            "intercept" and "ratio". `EraScoreForecast` pools each value over the eras
            with a known error; it pools the logarithm of the ratio.
        **kwargs : dict
            Passed to :meth:`EraScoreDisplay.plot`, such as `numbers` and `next_error`.

        Returns
        -------
        display : EraCalibrationDisplay
            This object.

        Raises
        ------
        ValueError
            If `values` has an unknown name, or `axes` and `values` differ in length.
        """
        if unknown := [x for x in values if x not in _VALUES]:
            raise ValueError(f"values has {unknown[0]!r}: pass some of {[*_VALUES]}.")
        table: Any = self.calibration.scores
        n_eras = len(self.calibration)
        if axes is None:
            pyplot = import_optional("matplotlib.pyplot", extra="plot")
            size = 5.5 * len(values), max(3.0, 1 + 0.25 * n_eras)
            _, axes = pyplot.subplots(
                1, len(values), figsize=size, layout="constrained", squeeze=False
            )
        axes = np.ravel(axes)
        if axes.size != len(values):
            raise ValueError(f"axes are {axes.size}, and values {len(values)}.")
        self.displays_, self.figure_ = {}, axes[0].figure
        for ax, value in zip(axes, values, strict=True):
            found, errors = table[value], table[f"{value}_error"]
            known = np.where(np.isnan(errors), np.nan, found)
            forecast = None
            if np.count_nonzero(np.isfinite(known)) > 1:
                bounds = (0, None) if value == "ratio" else None
                forecast = EraScoreForecast("none", bounds=bounds).fit(known, errors)
            name, exact = _VALUES[value]
            display = EraScoreDisplay(
                scores=found, era_labels=self.calibration.eras, score_name=name,
                standard_errors=errors, n_samples=self.calibration.n_samples,
            )  # fmt: skip
            display.plot(ax, kind="forest", forecast=forecast, **kwargs)
            ax.axvline(exact, color=GRAY, linewidth=1)
            self.displays_[value] = display
        return self

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, eras: Any, pos_label: Any = None,
        sample_weight: Any = None, axes: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Estimate the calibration of probabilities by era, and draw it.

        Parameters
        ----------
        y_true, y_prob, eras, pos_label, sample_weight :
            As in `sklearn_era.calibration.era_calibration`.
        axes, **kwargs :
            Passed to :meth:`plot`.

        Returns
        -------
        display : EraCalibrationDisplay
        """
        found = era_calibration(
            y_true, y_prob, eras=eras, pos_label=pos_label, sample_weight=sample_weight
        )
        return cls(found).plot(axes, **kwargs)
