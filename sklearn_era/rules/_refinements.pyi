import numpy as np
from numpy.typing import NDArray

OVERFLOW: float

def newton_step(
    sum_residuals: float,
    sum_curvatures: float,
    learning_rate: float,
    l2_regularization: float,
) -> float: ...

class RefinementCounter:
    def __init__(
        self,
        X_binned: NDArray[np.uint8],
        first_condition: NDArray[np.int32],
        lower: NDArray[np.int32],
        upper: NDArray[np.int32],
        is_complement: NDArray[np.uint8],
        n_bins: int,
        n_threads: int,
    ) -> None: ...
    def start_round(
        self,
        weights: NDArray[np.float64],
        is_positive: NDArray[np.uint8],
        curvatures: NDArray[np.float64],
        compares_rates: bool,
        positive_scale: float,
        negative_scale: float,
    ) -> None: ...
    def penalize_variance(
        self,
        groups: NDArray[np.int32],
        first_moments: NDArray[np.float64],
        second_moments: NDArray[np.float64],
        group_totals: NDArray[np.float64],
        is_group_positive: NDArray[np.uint8],
        is_of_loss: bool,
        variance_penalty: float,
        variance_power: float,
        unit: float,
        sum_residuals: float,
        learning_rate: float,
        l2_regularization: float,
    ) -> None: ...
    def measure(
        self,
        rows: NDArray[np.int32],
        is_union: bool,
        covered: tuple[float, float, float, float],
        covered_moments: NDArray[np.float64],
        penalties: NDArray[np.float64],
        min_samples_rule: int,
    ) -> NDArray[np.float64]: ...
