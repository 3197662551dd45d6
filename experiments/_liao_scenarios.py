"""The three scenarios of Liao, Wu and Yan (2024), section 5.3, on real data.

A data set comes in environments, of which some train and another one tests:

- in scenario 1 nothing is tuned, and the training rows have no environments;
- in scenario 2 one more environment is there for tuning, and the training rows have no
  environments;
- scenario 3 is scenario 2 with the training rows' environments.

Where the rows have none, subsets with little correlation among features are made eras.
The paper names the method (Decorr), but no number: here they are two, as many as
environments train in the regression tasks.

With tuning, RF and boosters take the depth of least loss on that environment, and IRF
the penalty of least loss among 0, 1, 5 and 10 at RF's depth.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments._liao import PENALTIES, RANDOM_FOREST, irf
from sklearn_era.environments import decorrelated_partition

N_MADE_ERAS = 2

MADE = "decorrelated"
GIVEN = "the environments"
# By scenario with tuning.
ERAS_OF_SCENARIO = {"2": MADE, "3": GIVEN}

CHOSEN = "IRF (chosen)"


@dataclass(frozen=True)
class Part:
    """Rows of some environments."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    environments: NDArray[np.intp]

    def of(self, chosen: Iterable[int]) -> "Part":
        """The rows of some of its environments."""
        rows = np.isin(self.environments, list(chosen))
        return Part(self.X[rows], self.y[rows], self.environments[rows])

    def thinned(self, step: int) -> "Part":
        """Every so-manyth row."""
        return Part(self.X[::step], self.y[::step], self.environments[::step])


def training_eras(train: Part, eras: str, seed: int) -> NDArray[np.intp]:
    """The labels that IRF gets: `MADE` or `GIVEN`."""
    if eras == GIVEN:
        return train.environments
    return decorrelated_partition(train.X, N_MADE_ERAS, random_state=seed)


def splits_to_test(data: Part, n_train: int) -> Iterator[tuple[Part, Part]]:
    """Every choice of `n_train` environments to train, and the others to test."""
    every = np.unique(data.environments).tolist()
    for chosen in combinations(every, n_train):
        yield data.of(chosen), data.of(set(every) - set(chosen))


def splits_to_tune(data: Part, n_train: int) -> Iterator[tuple[Part, Part, Part]]:
    """Every choice of environments to train, and of one to tune and one to test."""
    every = np.unique(data.environments).tolist()
    for chosen in combinations(every, n_train):
        for tuning, testing in permutations(sorted(set(every) - set(chosen)), 2):
            yield data.of(chosen), data.of([tuning]), data.of([testing])


def least_loss(
    candidates: Iterable[Any],
    fit: Callable[[Any], Any],
    loss: Callable[[Any, Part], float],
    validation: Part,
) -> tuple[Any, Any]:
    """The candidate whose model has the least loss, the first of equals, and it."""
    fitted = ((candidate, fit(candidate)) for candidate in candidates)
    return min(fitted, key=lambda pair: loss(pair[1], validation))


def tuned_models(
    splits: Iterable[tuple[Part, Part, Part]],
    makers: Mapping[str, Callable[[int], Any]],
    make_forest: Callable[..., Any],
    depths: Iterable[int],
    loss: Callable[[Any, Part], float],
    seed: int,
) -> Iterator[tuple[str, str, Any, Part]]:
    """Yield a name, a scenario, a model tuned on a split's second part, and its third.

    Baselines, RF the first, are made of a depth and are the same in both scenarios; the
    invariant forest is made of a penalty and ``max_depth``.
    """
    for train, validation, test in splits:
        depth_of = {}
        for name, make in makers.items():

            def fit(depth: int, make: Any = make, train: Part = train) -> Any:
                return make(depth).fit(train.X, train.y)

            depth_of[name], model = least_loss(depths, fit, loss, validation)
            for scenario in ERAS_OF_SCENARIO:
                yield name, scenario, model, test
        for scenario, kind in ERAS_OF_SCENARIO.items():
            eras, fits = training_eras(train, kind, seed), {}
            for penalty in (0, *PENALTIES):
                forest = make_forest(penalty, max_depth=depth_of[RANDOM_FOREST])
                fits[penalty] = forest.fit(train.X, train.y, eras=eras)
            yield irf(0), scenario, fits[0], test
            _, chosen = least_loss(fits, fits.__getitem__, loss, validation)
            yield CHOSEN, scenario, chosen, test
