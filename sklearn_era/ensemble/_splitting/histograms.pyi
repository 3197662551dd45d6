import numpy as np
from numpy.typing import NDArray

STORE_BUDGET: int

class HistogramStore:
    budget: int
    allocated: int
    def __init__(self, budget: int = ...) -> None: ...
    def lend(self, n_integers: int) -> NDArray[np.int64] | None: ...
    def take_back(self, buffer: NDArray[np.int64]) -> None: ...
