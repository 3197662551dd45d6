"""Exchange values between the processes of a fit. Each process holds its own eras.

Processes grow the same trees at the same time, each on its own rows, and take decisions
from sums, maxima and merged values that are equal in all processes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Exchange:
    """Compute sums and maxima over the processes of a fit; this class is for one
    process. With a subclass for several processes, all processes call the same methods
    in the same order, with arrays of the same shape, and get bit-identical results.
    """

    is_alone = True
    rank = 0  # of this process
    n_processes = 1

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sums over processes, element by element."""
        return values

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the maxima over processes, element by element."""
        return values

    def gather(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an array with one row per process: the values of that process."""
        of_all = np.zeros((self.n_processes, *values.shape))
        of_all[self.rank] = values
        return self.sum(of_all)

    def sum_of(self, *values: Any) -> tuple[float, ...]:
        """Return, for each number passed, its sum over processes."""
        return tuple(self.sum(np.array(values, dtype=np.float64)).tolist())

    def max_of(self, *values: Any) -> tuple[float, ...]:
        """Return, for each number passed, its maximum over processes."""
        return tuple(self.max(np.array(values, dtype=np.float64)).tolist())


ALONE = Exchange()
