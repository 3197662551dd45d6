from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

NUMBERS: dict[str, int]

class InvarianceStatistic(IntEnum):
    EFFECT = 0
    CHANGING_RATE = 1
    RATIO = 2

class SplitRank(NamedTuple):
    primary: float
    secondary: float
    gain: float
    expansion: float

class Criterion:
    def __init__(
        self,
        name: str,
        *,
        l2_regularization: float = 0.0,
        boltzmann_alpha: float = 0.0,
        min_direction_agreement: float = 0.0,
        min_samples_per_era: int = 1,
        min_covered_eras: int = 1,
        normalize_era_gain: bool = False,
        takes_worst_era: bool = True,
        invariance_penalty: float = 1.0,
        invariance_statistic: InvarianceStatistic = ...,
        min_impurity_decrease: float = 0.0,
        min_gain_share: float = 0.0,
        weights: dict[str, float] | None = None,
    ) -> None: ...
    def rank(
        self,
        left: ArrayLike,
        right: ArrayLike,
        *,
        gain: float,
        impurities: ArrayLike | None = None,
        era_sizes: ArrayLike | None = None,
        gradient_variance: float = 1.0,
        groups: ArrayLike | None = None,
    ) -> SplitRank | None: ...

class EraComparison(NamedTuple):
    gains: NDArray[np.float64]
    directions: NDArray[np.int8]
    covered: NDArray[np.bool_]
    values_left: NDArray[np.float64]
    values_right: NDArray[np.float64]

def compare_sides(
    left: ArrayLike,
    right: ArrayLike,
    *,
    l2_regularization: float = 0.0,
    min_samples_per_era: int = 1,
) -> EraComparison: ...
def agreement(directions: NDArray[np.int8]) -> NDArray[np.float64]: ...
def weighted_impurity(gradients: ArrayLike, hessians: ArrayLike) -> float: ...
def boltzmann_mean(values: NDArray[np.float64], alpha: float) -> float: ...
