"""Load and generate data sets with eras, for examples, tests and benchmarks."""

from typing import TYPE_CHECKING

from sklearn_era._warnings import renamed
from sklearn_era.datasets._bike_sharing import load_bike_sharing
from sklearn_era.datasets._numerai_like import make_numerai_like
from sklearn_era.datasets._synthetic_memorization import make_synthetic_memorization

__all__ = ["load_bike_sharing", "make_numerai_like", "make_synthetic_memorization"]

if not TYPE_CHECKING:
    _MOVED = (
        "make_anticausal_intervention", "make_colored_digits",
        "make_cows_versus_camels", "make_liao_classification", "make_liao_regression",
        "make_moneda_drift", "make_shifted_sine_wave", "make_shortcut_classification",
        "make_small_invariant_margin",
    )  # fmt: skip
    __getattr__ = renamed(
        __name__, dict.fromkeys(_MOVED, "experiments/_paper_data.py of the repository")
    )
