"""What the processes of a fit, each with other eras, tell each other.

They grow the same trees in lockstep, each on its own rows, and every decision is taken
from numbers that all of them have. So what is exchanged is what those are made of: sums
and maxima, and what each of them has where these are merged in another way.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Exchange:
    """Sums and maxima over a fit's processes; of one alone, its own values. All call
    the same methods in the same order, with arrays of one shape, and get the same bits.
    """

    is_alone = True
    rank = 0  # of this process, among
    n_processes = 1

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sums over processes, element by element."""
        return values

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        """The largest of all processes, element by element."""
        return values

    def gather(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of each process, as the rows of one array."""
        of_all = np.zeros((self.n_processes, *values.shape))
        of_all[self.rank] = values
        return self.sum(of_all)

    def sum_of(self, *values: Any) -> tuple[float, ...]:
        """The sum of each number."""
        return tuple(self.sum(np.array(values, dtype=np.float64)).tolist())

    def max_of(self, *values: Any) -> tuple[float, ...]:
        """The largest of each number."""
        return tuple(self.max(np.array(values, dtype=np.float64)).tolist())


ALONE = Exchange()

__all__ = ["ALONE", "Exchange"]
