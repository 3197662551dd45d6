"""The three scenarios of Liao, Wu and Yan (2024), section 5.3, on real data.

A data set comes in environments, of which some train and another one tests. In scenario
1 nothing is tuned, and the training rows have no environments. In scenario 2 one more
environment is there for tuning; scenario 3 is the same with the training rows'
environments.

Where the rows have none, subsets with little correlation among features are made eras.
The paper names the method (Decorr), but no number: here they are two, as many as
environments train in the regression tasks. With tuning, RF and boosters take the depth
of least loss on that environment, and IRF the penalty of least loss among 0, 1, 5 and
10 at RF's depth.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from experiments import _liao as liao
from experiments.common import seed_of
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


class Protocol(NamedTuple):
    """What is fitted: the task, the forests and settings of scenario 1, and the tuning.
    With `quick`, few trees learn from the first choice of environments.
    """

    is_class: bool
    n_train: int
    cases: Sequence[liao.Case]
    depths: Sequence[int]
    n_trees_tuned: int
    loss: Callable[[Any, Part], float]
    number: int
    quick: bool

    def untuned_models(self, data: Part) -> Iterator[tuple[dict[str, str], Any, Part]]:
        """Yield names, models and rows to test of scenario 1, RF first."""
        baselines, settings = self._baselines(liao.N_TREES)
        depth = liao.DEPTH[self.is_class]
        for train, test in islice(splits_to_test(data, self.n_train), self._most()):
            for name, model in baselines.items():
                fitted = clone(model).set_params(max_depth=depth).fit(train.X, train.y)
                yield _names("1", name), fitted, test
            made = self._made(train)
            for case in self.cases:
                eras = train.environments if case.eras == GIVEN else made
                forest = liao.make_forest(self.is_class, case, **settings)
                forest.fit(train.X, train.y, eras=eras)
                yield {"scenario": "1", **case.names()}, forest, test

    def tuned_models(self, data: Part) -> Iterator[tuple[dict[str, str], Any, Part]]:
        """Yield the same of scenarios 2 and 3, tuned on a split's second part.
        Baselines are tuned in their depth and are the same in both scenarios; the
        invariant forest is tuned in its penalty, at the depth of RF.
        """
        baselines, settings = self._baselines(self.n_trees_tuned)
        splits = splits_to_tune(data, self.n_train)
        for train, validation, test in islice(splits, self._most()):
            for name, model in baselines.items():
                of_depths = [
                    clone(model).set_params(max_depth=depth).fit(train.X, train.y)
                    for depth in self.depths
                ]
                best = self._least_loss(of_depths, validation)
                if name == liao.RANDOM_FOREST:
                    settings["max_depth"] = best.max_depth
                for scenario in ERAS_OF_SCENARIO:
                    yield _names(scenario, name), best, test
            for scenario, kind in ERAS_OF_SCENARIO.items():
                eras = train.environments if kind == GIVEN else self._made(train)
                forests = [
                    liao.make_forest(self.is_class, liao.Case(penalty), **settings)
                    for penalty in (0, *liao.PENALTIES)
                ]
                for forest in forests:
                    forest.fit(train.X, train.y, eras=eras)
                yield _names(scenario, liao.irf(0)), forests[0], test
                best = self._least_loss(forests, validation)
                case = {"statistic": "effect", "coverage": liao.EVERY_ERA, "eras": kind}
                yield _names(scenario, CHOSEN) | case, best, test

    def _least_loss(self, models: Iterable[Any], validation: Part) -> Any:
        """The first of the best models."""
        return min(models, key=lambda model: self.loss(model, validation))

    def _baselines(self, n_trees: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Baselines, and the settings that forests share with RF."""
        settings = {
            "n_estimators": 2 if self.quick else n_trees,
            "random_state": seed_of("forest", self.number),
        }
        models = liao.make_baselines(self.is_class, self.number, self.quick, **settings)
        return models, settings

    def _most(self) -> int | None:
        return 1 if self.quick else None

    def _made(self, train: Part) -> NDArray[np.intp]:
        seed = seed_of("eras", self.number)
        return decorrelated_partition(train.X, N_MADE_ERAS, random_state=seed)


def _names(scenario: str, model: str) -> dict[str, str]:
    names = {"scenario": scenario, "model": model}
    return {**names, "statistic": "", "coverage": "", "eras": ""}
