"""The rows that compare the time of two fits, or of two models' predictions."""

from dataclasses import dataclass, replace

from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from benchmarks.common import (
    LIGHTGBM,
    RANDOM_FOREST,
    SKLEARN,
    Learner,
    Task,
    Timing,
    era_learner,
    forest_learner,
    interleave,
    interleave_predictions,
    limit_threads,
)

from .results import NotPossibleHere, Result, Row, Settings


class _Ratio:
    """Seconds of ours over those of a reference."""

    reference: Learner

    def time(self, settings: Settings) -> list[Timing]:
        raise NotImplementedError

    def measure(self, settings: Settings) -> Result:
        if not self.reference.is_installed:
            raise NotPossibleHere(f"{self.reference.name} is not installed")
        ours, reference = self.time(settings)
        return Result(
            f"{ours.seconds / reference.seconds:.2f}",
            f"{ours.leaves:.1f} / {reference.leaves:.1f}",
            f"{ours.seconds:.3f} s / {reference.seconds:.3f} s",
        )


@dataclass(frozen=True)
class Ratio(_Ratio):
    """Time of a fit of ours over that of a reference."""

    task: Task
    ours: Learner
    reference: Learner

    def case(self, settings: Settings) -> str:
        return (
            f"{self.ours.name} over {self.reference.name}: {settings.resize(self.task)}"
        )

    def time(self, settings: Settings) -> list[Timing]:
        return interleave(
            [self.ours, self.reference],
            settings.resize(self.task),
            settings.repeats,
            [settings.n_threads],
        )


@dataclass(frozen=True)
class PredictRatio(_Ratio):
    """Time of predictions by a model of ours over those of a reference."""

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
class SpeedUp:
    """Time of a fit in one thread over that in several."""

    task: Task
    learner: Learner
    n_threads: int

    def case(self, settings: Settings) -> str:
        task = settings.resize(self.task)
        return f"{self.learner.name}, {self.n_threads} threads for 1: {task}"

    def measure(self, settings: Settings) -> Result:
        with limit_threads(self.n_threads):
            available = _openmp_effective_n_threads()
        if available < self.n_threads:
            raise NotPossibleHere(f"OpenMP starts {available} threads at most")
        one, several = interleave(
            [self.learner, self.learner],
            settings.resize(self.task),
            settings.repeats,
            [1, self.n_threads],
        )
        return Result(
            f"{one.seconds / several.seconds:.2f} times as fast",
            f"{several.leaves:.1f}",
            f"{several.seconds:.2f} s / {one.seconds:.2f} s",
        )


ERA = era_learner("era")
DIRECTIONAL = era_learner("directional")
FAST_GAIN = era_learner("gain", fast_gain=True)
NUMERAI = Task(n_eras=574)  # the eras of its training set
OTHERS = Task(400_000, n_features=50)
BYTES = Task(300_000, n_eras=1, n_bins=255, n_trees=200, dtype="uint8")
FLOATS = Task(300_000, n_eras=1, n_bins=255, n_trees=200, dtype="float64")
FOREST = Task(20_000, n_bins=255, n_features=20, n_trees=10)


def over_sklearn(n_rows: int, n_bins: int) -> list[Ratio]:
    """What eras cost: the criteria that need a sum over eras, over no eras at all."""
    return [
        Ratio(Task(n_rows, n_eras, n_bins), ours, SKLEARN)
        for ours in (DIRECTIONAL, ERA)
        for n_eras in (5, 100, 1000)
    ]


def over_era(n_rows: int) -> list[Ratio]:
    """What the criteria cost that need more than a sum over eras."""
    others = (
        era_learner("era", boltzmann_alpha=-1.0),
        era_learner("time_robust"),
        era_learner("invariant"),
    )
    return [Ratio(Task(n_rows), ours, ERA) for ours in others]


def over_random_forest() -> list[Ratio]:
    """Forests of full depth, over one that compares no eras and does not bin."""
    return [
        Ratio(FOREST, forest_learner(name, "full, default coverage"), RANDOM_FOREST)
        for name in ("era", "time_robust", "invariant")
    ]


# Those of the README.
SPEED_HEADLINES: tuple[Row, ...] = (
    Ratio(Task(n_eras=100), DIRECTIONAL, SKLEARN),
    Ratio(Task(n_eras=1000), DIRECTIONAL, SKLEARN),
    Ratio(Task(100_000, n_bins=255, dtype="float64"), DIRECTIONAL, SKLEARN),
    Ratio(replace(OTHERS, kind="classes"), DIRECTIONAL, SKLEARN),
    Ratio(NUMERAI, DIRECTIONAL, LIGHTGBM),
    Ratio(Task(n_eras=1), FAST_GAIN, LIGHTGBM),
    PredictRatio(FLOATS, "C order", LIGHTGBM),
)
SPEED_ROWS: tuple[Row, ...] = (
    *over_sklearn(1_000_000, n_bins=5),
    *over_sklearn(100_000, n_bins=5),
    *over_sklearn(1_000_000, n_bins=255),
    *over_era(1_000_000),
    *over_era(100_000),
    *over_random_forest(),
    Ratio(replace(OTHERS, kind="weights"), DIRECTIONAL, SKLEARN),
    Ratio(NUMERAI, era_learner("directional", colsample_bytree=0.1), DIRECTIONAL),
    Ratio(Task(n_eras=1, n_bins=255), FAST_GAIN, LIGHTGBM),
    Ratio(Task(n_eras=1), era_learner("gain"), SKLEARN),
    Ratio(Task(n_eras=1, dtype="float64"), era_learner("gain"), SKLEARN),
    PredictRatio(FLOATS, "C order", SKLEARN),
    PredictRatio(BYTES, "Fortran order", SKLEARN),
    PredictRatio(FLOATS, "data frame", SKLEARN),
    SpeedUp(NUMERAI, DIRECTIONAL, n_threads=2),
    SpeedUp(NUMERAI, DIRECTIONAL, n_threads=16),
)
