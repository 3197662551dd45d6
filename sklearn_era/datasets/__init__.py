"""Data sets with eras, for examples, tests and benchmarks: real and generated."""

from sklearn_era.datasets._aubin import (
    make_cows_versus_camels,
    make_small_invariant_margin,
)
from sklearn_era.datasets._bike_sharing import load_bike_sharing
from sklearn_era.datasets._du import (
    make_anticausal_intervention,
    make_colored_digits,
)
from sklearn_era.datasets._liao import make_liao_classification, make_liao_regression
from sklearn_era.datasets._moneda_motivating_example import (
    make_moneda_motivating_example,
)
from sklearn_era.datasets._moneda_periods import make_moneda_drift, make_moneda_support
from sklearn_era.datasets._numerai_like import make_numerai_like
from sklearn_era.datasets._shifted_sine_wave import make_shifted_sine_wave
from sklearn_era.datasets._shortcut_classification import make_shortcut_classification
from sklearn_era.datasets._synthetic_memorization import make_synthetic_memorization

__all__ = [
    "load_bike_sharing",
    "make_anticausal_intervention",
    "make_colored_digits",
    "make_cows_versus_camels",
    "make_liao_classification",
    "make_liao_regression",
    "make_moneda_drift",
    "make_moneda_motivating_example",
    "make_moneda_support",
    "make_numerai_like",
    "make_shifted_sine_wave",
    "make_shortcut_classification",
    "make_small_invariant_margin",
    "make_synthetic_memorization",
]
