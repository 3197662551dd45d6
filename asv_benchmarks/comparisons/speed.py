"""The rows that compare the time of two fits, or of two models' predictions."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.common import (
    LIGHTGBM,
    RANDOM_FOREST,
    SKLEARN,
    Data,
    Learner,
    Task,
    Timing,
    era_booster,
    era_learner,
    forest_learner,
    interleave,
    interleave_predictions,
    limit_threads,
    make_data,
)
from sklearn_era.criteria import Era, Gain

from .results import NotPossibleHere, Result, Row, Settings


class _Ratio(Row):
    """Seconds of ours, one or several, divided by those of a reference."""

    reference: Learner

    def time(self, settings: Settings) -> list[Timing]:
        raise NotImplementedError

    def measure(self, settings: Settings) -> Result:
        if not self.reference.is_installed:
            raise NotPossibleHere(f"{self.reference.name} is not installed")
        *ours, reference = self.time(settings)
        return Result(
            " | ".join(f"{timing.seconds / reference.seconds:.2f}" for timing in ours),
            f"{min(timing.leaves for timing in ours):.1f} / {reference.leaves:.1f}",
            " / ".join(f"{timing.seconds:.3f} s" for timing in (*ours, reference)),
        )


@dataclass(frozen=True)
class Ratio(_Ratio):
    """Time of our fit divided by that of a reference."""

    task: Task
    ours: Learner
    reference: Learner

    def case(self, settings: Settings) -> str:
        return (
            f"{self.ours.name} over {self.reference.name}: {settings.resize(self.task)}"
        )

    def time(self, settings: Settings) -> list[Timing]:
        learners, task = [self.ours, self.reference], settings.resize(self.task)
        return interleave(learners, task, settings.repeats, settings.n_threads)


ERA = era_learner("era")
DIRECTIONAL = era_learner("directional")
FAST_GAIN = era_learner(Gain(splitter="era"))
# As users fit: with default parameters, except for the papers' rule.
BY_DEFAULT = {
    FAST_GAIN.name: FAST_GAIN,
    **{
        f"`{name}`": era_learner(name)
        for name in ("directional", "era", "invariant", "time_robust")
    },
    "papers' rule": era_learner("directional", min_era_coverage=1.0, min_gain_share=0),
}


@dataclass(frozen=True)
class RatiosByDefault(_Ratio):
    """Times of fits with several criteria over that of scikit-learn's plain fit."""

    task: Task
    reference: ClassVar[Learner] = SKLEARN
    learners: ClassVar[dict[str, Learner]] = BY_DEFAULT
    columns: ClassVar[str] = " | ".join(
        ["over scikit-learn's plain fit", *learners, "fewest leaves / theirs"]
    )

    def case(self, settings: Settings) -> str:
        return str(settings.resize(self.task))

    def time(self, settings: Settings) -> list[Timing]:
        learners = [*self.learners.values(), self.reference]
        task = settings.resize(self.task)
        return interleave(learners, task, settings.repeats, settings.n_threads)


@dataclass(frozen=True)
class RatiosOfSmallFits(RatiosByDefault):
    """The same, and of scikit-learn's plain fit, over that of LightGBM's."""

    reference: ClassVar[Learner] = LIGHTGBM
    learners: ClassVar[dict[str, Learner]] = {"scikit-learn": SKLEARN, **BY_DEFAULT}
    columns: ClassVar[str] = " | ".join(
        ["small fits", *learners, "fewest leaves / theirs"]
    )

    def case(self, settings: Settings) -> str:
        return f"over LightGBM: {super().case(settings)}"


@dataclass(frozen=True)
class PredictRatio(_Ratio):
    """Time of our model's predictions divided by those of a reference."""

    task: Task
    layout: str
    reference: Learner

    def case(self, settings: Settings) -> str:
        task = settings.resize(self.task)
        return f"prediction over {self.reference.name}: {task}, {self.layout}"

    def time(self, settings: Settings) -> list[Timing]:
        return interleave_predictions(
            [era_learner("gain"), self.reference],
            settings.resize(self.task),
            self.layout,
            settings.repeats,
            settings.n_threads,
        )


@dataclass(frozen=True)
class OnWorkers(Row):
    """Time of a fit on two workers of a thread each, divided by that of one process."""

    task: Task
    criterion: str

    def case(self, settings: Settings) -> str:
        return f"`{self.criterion}` on two workers: {settings.resize(self.task)}"

    def measure(self, settings: Settings) -> Result:
        try:
            import dask.array as da
            from distributed import Client, LocalCluster

            from sklearn_era.dask import DaskHistGradientBoostingRegressor
        except ImportError as error:
            raise NotPossibleHere(str(error)) from error
        task, made = settings.resize(self.task), []
        limits = {"min_era_coverage": 0.1, "min_gain_share": 0.5}  # the defaults
        data = make_data(task)
        sizes = tuple(np.unique(data.eras, return_counts=True)[1])
        options = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with LocalCluster(2, **options) as cluster, Client(cluster) as client:
            X, y, eras = client.persist([
                da.from_array(x, (sizes, -1)[: x.ndim])
                for x in (np.ascontiguousarray(data.X), data.y, data.eras)
            ])  # fmt: skip

            def fit(data: Data, n_trees: int) -> Any:
                local = era_booster(data, self.criterion, n_trees, **limits)
                model = DaskHistGradientBoostingRegressor(
                    **local.get_params(), client=client
                )
                made.append(model.fit(X, y, eras=eras))
                return model.to_local()

            learners = [Learner("workers", fit), era_learner(self.criterion, **limits)]
            ours, local = interleave(
                learners, task, settings.repeats, settings.n_threads
            )
        sent = made[-1].bytes_exchanged_ / task.n_trees / 1e6
        return Result(
            f"{ours.seconds / local.seconds:.2f}, {sent:.2f} MB a tree and worker",
            f"{ours.leaves:.1f} / {local.leaves:.1f}",
            f"{ours.seconds:.3f} s / {local.seconds:.3f} s",
        )


def in_one_thread(learner: Learner) -> Learner:
    def fit(data: Data, n_trees: int) -> Any:
        with limit_threads(1):
            return learner.fit(data, n_trees)

    return Learner(f"{learner.name} in one thread", fit)


NUMERAI = Task(n_eras=574)  # the eras of its training set
BYTES = Task(300_000, n_eras=1, n_bins=255, n_trees=200, dtype="uint8")
FLOATS = Task(300_000, n_eras=1, n_bins=255, n_trees=200, dtype="float64")
ON_WORKERS = Task(2_000_000, n_trees=20)
FOREST = Task(20_000, n_bins=255, n_features=20, n_trees=10)


def by_default(n_rows: int, n_features: int, n_eras: int) -> RatiosByDefault:
    return RatiosByDefault(Task(n_rows, n_eras, None, n_features, n_trees=20))


def over_sklearn(n_rows: int, n_eras: int, n_bins: int = 5) -> Ratio:
    """Return the cost of eras, relative to no eras."""
    return Ratio(Task(n_rows, n_eras, n_bins), DIRECTIONAL, SKLEARN)


def over_random_forest(split_criterion: str) -> Ratio:
    """Return a forest of full depth, relative to one without eras and bins."""
    ours = forest_learner(split_criterion, "full, default coverage")
    return Ratio(FOREST, ours, RANDOM_FOREST)


# The rows of the README.
HEADLINES: tuple[Row, ...] = (
    by_default(10_000, 20, n_eras=50),
    by_default(100_000, 100, n_eras=100),
    by_default(500_000, 50, n_eras=100),
    over_sklearn(1_000_000, n_eras=100),
    Ratio(NUMERAI, DIRECTIONAL, LIGHTGBM),
    PredictRatio(FLOATS, "C order", LIGHTGBM),
)
SPEED_ROWS: tuple[Row, ...] = (
    *(
        RatiosOfSmallFits(Task(n_rows, n_eras, None, n_features, n_trees=100))
        for n_rows, n_features, n_eras in (
            (2_000, 10, 20),
            (10_000, 20, 50),
            (50_000, 30, 100),
            (100_000, 50, 100),
        )
    ),
    by_default(100_000, 100, n_eras=20),
    by_default(100_000, 100, n_eras=1000),
    over_sklearn(1_000_000, n_eras=5),
    over_sklearn(1_000_000, n_eras=1000),
    over_sklearn(100_000, n_eras=100),
    over_sklearn(100_000, n_eras=1000),
    over_sklearn(1_000_000, n_eras=1000, n_bins=255),
    Ratio(Task(), ERA, SKLEARN),
    # The cost of criteria that need more than a sum over eras.
    Ratio(Task(), era_learner(Era(boltzmann_alpha=-1.0)), ERA),
    Ratio(Task(), era_learner("time_robust"), ERA),
    Ratio(Task(), era_learner("invariant"), ERA),
    over_random_forest("era"),
    over_random_forest("time_robust"),
    over_random_forest("invariant"),
    Ratio(Task(400_000, n_features=50, kind="weights"), DIRECTIONAL, SKLEARN),
    Ratio(NUMERAI, era_learner("directional", colsample_bytree=0.1), DIRECTIONAL),
    Ratio(Task(n_eras=1, n_bins=255), FAST_GAIN, LIGHTGBM),
    Ratio(Task(n_eras=1), era_learner("gain"), SKLEARN),
    PredictRatio(FLOATS, "C order", SKLEARN),
    PredictRatio(BYTES, "Fortran order", SKLEARN),
    PredictRatio(FLOATS, "data frame", SKLEARN),
    Ratio(NUMERAI, DIRECTIONAL, in_one_thread(DIRECTIONAL)),
    *(OnWorkers(ON_WORKERS, name) for name in ("gain", "era", "invariant")),
)
