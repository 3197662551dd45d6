"""How a model does in eras that it has not seen, beside others in the same eras.

Where the validation file has eras with known targets after the model's training and
the purge, the submitted fits are scored in them ("hold-out"). A model that has seen all
eras is judged by its recipe ("walk-forward"): the eras are cut into folds, and those of
each fold are scored by fits trained on the eras before it, less the purge.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_era._tables.parquet import ParquetColumns
from sklearn_era.model_selection import EraWalkForwardSplit
from sklearn_era.numerai.blend import Blend, load_blend
from sklearn_era.numerai.config import Config, Model, TrainSection, Workspace
from sklearn_era.numerai.data import era_number, read_features
from sklearn_era.numerai.eras import (
    columns_missing_values,
    era_runs,
    open_columns,
    read_blocks,
)
from sklearn_era.numerai.errors import DataError, first_names
from sklearn_era.numerai.files import Record
from sklearn_era.numerai.metrics import neutralize_ranks
from sklearn_era.numerai.score_table import (
    EXAMPLE,
    MIN_SHARE,
    Fold,
    OtherModels,
    Row,
    ScoredEra,
    ValidationResult,
    Way,
    make_results,
)
from sklearn_era.numerai.store import ModelRecord, load_fit, read_record
from sklearn_era.numerai.training import gain_settings, train, why_train

MODEL, GAIN = "model", "gain"
REPORT_NAME = "report.json"
_FNC_FEATURE_SET = "fncv3_features"
# With fewer eras than this held out, walking forward says more.
_MIN_HELD_OUT = 4

Progress = Callable[[str, int, int], None]
Block = NDArray[Any]


class Source(NamedTuple):
    """A file, and its eras with known targets, by label, in its order."""

    path: Path
    columns: ParquetColumns
    eras: dict[str, ScoredEra]


def validate(
    config: Config,
    workspace: Workspace,
    model: Model,
    *,
    on_progress: Progress = lambda *_: None,
    on_step: Callable[[str], object] = str,
) -> dict[str, ValidationResult]:
    """Score a model and, as configured and as far as here, "gain", the benchmark model
    and the example predictions, in the same eras. Fits that are missing are trained.
    """
    return _Validation(config, workspace, model, on_progress, on_step).run()


def purge_of(config: Config, model: Model) -> int:
    """Eras to leave out: as many as the longest of the model's targets asks for."""
    targets = {model.train.target, *(member.train.target for member in model.members)}
    return max(config.validation.purge_of(target) for target in targets)


class Report(Record):
    """What ``report.json`` holds; the docstring of ``report`` has its keys."""

    format: int = 2
    about: dict[str, Any]
    models: dict[str, Any]


def report_is_current(
    config: Config, workspace: Workspace, model: Model, records: Sequence[ModelRecord]
) -> bool:
    """Whether the report is of these fits, judged as the configuration says."""
    path = workspace.report_dir(model.name) / REPORT_NAME
    try:
        report = Report.read(path, advice="Validate again.")
    except DataError:
        return False
    wanted = identify(config, model, records)
    if report is not None and report.format == 1:  # of a single fit, by its name
        purge = wanted["purge"]
        wanted = {"model_sha256": records[0].sha256, "purge": purge}
    return report is not None and wanted.items() <= report.about.items()


def identify(
    config: Config, model: Model, records: Sequence[ModelRecord]
) -> dict[str, Any]:
    """What a report is of: the fits, and what was asked of the validation."""
    members = zip(model.members, records, strict=True)
    return {
        "members": {member.name: record.sha256 for member, record in members},
        "version": config.data.version,
        "target": model.train.target,
        "purge": purge_of(config, model),
        "weights": [member.weight for member in model.members],
        "train": [member.train.model_dump() for member in model.members],
        "validate": config.validation.model_dump(),
        "predict": model.predict.model_dump(),
    }


@dataclass
class _Validation:
    """The validation of one model."""

    config: Config
    workspace: Workspace
    model: Model
    on_progress: Progress
    on_step: Callable[[str], object]

    def __post_init__(self) -> None:
        self.metadata = read_features(self.workspace.need("features"))
        self.folder = self.workspace.model_dir(self.model.name)
        self.records = [read_record(self.folder, x.name) for x in self.model.members]
        version, self.target = self.config.data.version, self.model.train.target
        self.benchmark = self.config.validation.benchmark_of(version, self.target)
        self.others = OtherModels(self.workspace, self.benchmark)
        self.notes: list[str] = []
        self.sources: dict[str, Source] = {}
        self.way, self.folds = self._plan()

    def run(self) -> dict[str, ValidationResult]:
        """Score all rows of the table, an era at a time."""
        models = [MODEL, GAIN] if self.config.validation.compare_with_gain else [MODEL]
        # The rows of others' predictions, by what these are used for.
        uses = {"bmc": self.benchmark, EXAMPLE: EXAMPLE}
        names = {use: row for use, row in uses.items() if use in self.others.columns}
        rows = {name: Row() for name in (*models, *names.values())}
        labels = [label for source in self.sources.values() for label in source.eras]
        n_all, n_done = sum(fold.has(x) for fold in self.folds for x in labels), 0
        features = self.records[0].features
        for number, fold in enumerate(self.folds, 1):
            blends = {name: self._fits(number, name == GAIN) for name in models}
            features = _unique(*(blend.features for blend in blends.values()))
            for era, block, linear, by in self._blocks(fold, features):
                predictions = {row: era.others[use] for use, row in names.items()}
                for name, blend in blends.items():
                    ranks = blend.ranks(block, features)
                    predictions[name] = self._neutralized(ranks, by, era.run.label)
                for name, row in rows.items():
                    row.add(era, predictions[name], linear)
                    if name in blends:
                        row.add_exposures(era.run.label, predictions[name], block)
                n_done += 1
                self.on_progress("validation eras", n_done, n_all)
        return make_results(
            rows,
            skipped=self.others.skipped,
            notes=self.notes,
            features=features,
            target=self.target,
            way=self.way,
            folds=self.folds,
            neutralize_proportion=self.model.predict.neutralize_proportion,
        )

    def _plan(self) -> tuple[Way, list[Fold]]:
        """Hold out if enough eras are left for it, and else walk forward."""
        purge = purge_of(self.config, self.model)
        last = max(record.last_era for record in self.records)
        held_out, seen = list[str](), era_number(last)
        if self.workspace.newest("validation") is not None and seen is not None:
            eras = self._read("validation").eras
            held_out = sorted(era for era in eras if int(era) > seen + purge)
        if len(held_out) < _MIN_HELD_OUT:
            usable, n_folds = self._eras_to_walk(), self.config.validation.folds
            split: list[Any] = []
            with suppress(ValueError):  # too few eras
                split += EraWalkForwardSplit(n_folds, purge=purge).split_eras(usable)
            folds = [Fold(*map(str, (x[-1], y[0], y[-1]))) for x, y in split]
            if folds:
                self.notes.insert(
                    0,
                    f"Walked forward through eras {folds[0].first} to {folds[-1].last} "
                    f"in {n_folds} folds: each was scored by fits on all earlier eras "
                    f"but the last {purge} (purge).",
                )
                return "walk-forward", folds
            if not held_out:
                raise DataError(
                    f"There is nothing to validate on: {self.target!r} is not known in "
                    f"an era after {last} and {purge} purged ones, and {len(usable)} "
                    f"eras are too few to walk forward in {n_folds} folds."
                )
        self.sources = {"validation": self.sources["validation"]}
        self.notes.insert(
            0,
            f"Scored in the {len(held_out)} eras {held_out[0]} to {held_out[-1]}: the "
            f"model was trained up to era {last}, and {purge} eras were purged.",
        )
        return "hold-out", [Fold(last, held_out[0], held_out[-1])]

    def _eras_to_walk(self) -> list[str]:
        """The eras for folds, from the first on that all members learn from."""
        sections = [member.train for member in self.model.members]
        for name in _unique(*(section.files for section in sections)):
            self._read(name)
        usable = sorted(x for source in self.sources.values() for x in source.eras)
        for era, after in pairwise(usable):
            if era == after:
                raise DataError(f"Era {era} is in two files: download them again.")
        for section in sections:
            own = {x for name in section.files for x in self.sources[name].eras}
            first = min((x for x in own if x >= section.first_era), default="none")
            usable = [era for era in usable if era >= first]
        return usable

    def _fits(self, number: int, by_gain: bool) -> Blend:
        """The fits for a fold, trained unless they are there already."""
        folder, what = self.folder, ""
        last_eras = [record.last_era for record in self.records]
        if self.way == "walk-forward":
            folder, what = folder / "folds" / str(number), f" of fold {number}"
            last_eras = [self.folds[number - 1].last_trained] * len(last_eras)
        elif not by_gain:
            return load_blend(folder, self.model)[0]
        if by_gain:
            folder, what = folder / GAIN, f" by plain gain{what}"
        for member, last in zip(self.model.members, last_eras, strict=True):
            until = min(member.train.last_era or last, last)
            settings = member.train.model_copy(update={"last_era": until})
            if groups := settings.era_groups:
                groups = min(groups, self._n_eras(settings))
                settings = settings.model_copy(update={"era_groups": groups})
            if by_gain:
                settings = gain_settings(settings)
            data: dict[str, Any] = {
                "files": [self.workspace.need(name) for name in settings.files],
                "features": self.metadata.features(settings.feature_set),
                "version": self.config.data.version,
            }
            try:
                if (reason := why_train(settings, folder, member.name, **data)) is None:
                    load_fit(folder, member.name)
                    continue
            except DataError:
                reason = "the fit that is there is damaged"
            self.on_step(f"Training {member.name}{what}, up to era {until}: {reason}.")
            train(
                settings,
                folder=folder,
                name=member.name,
                model_name=self.model.name,
                on_progress=lambda x, *done: self.on_progress(f"{x}{what}", *done),
                **data,
            )
        return load_blend(folder, self.model)[0]

    def _n_eras(self, settings: TrainSection) -> int:
        """How many eras a fit learns from, each of which may be a group."""
        eras = [era for name in settings.files for era in self._read(name).eras]
        first, last = settings.first_era, settings.last_era
        n_eras = sum(first <= era <= last for era in eras)
        return max(n_eras // settings.every_nth_era, 1)

    def _blocks(
        self, fold: Fold, features: list[str]
    ) -> Iterator[tuple[ScoredEra, Block, Block, Block]]:
        """The eras of a fold, one at a time: the model's features, those that FNC takes
        out, and those that the neutralization does.
        """
        fnc, predict = self.config.validation.fnc_feature_set, self.model.predict
        linear, by = list[str](), list[str]()
        if fnc == "auto":
            linear = self.metadata.feature_sets.get(_FNC_FEATURE_SET, features)
        elif fnc:
            linear = self.metadata.features(fnc)
        if predict.neutralize_proportion:
            name = predict.neutralize_feature_set
            by = self.metadata.features(name) if name else features
        names, regressed = _unique(features, linear, by), {*linear, *by}
        places = {name: j for j, name in enumerate(names)}
        at_linear, at_by = ([places[name] for name in part] for part in (linear, by))
        for path, file, eras in self.sources.values():
            inside = [era for label, era in eras.items() if fold.has(label)]
            runs = [era.run for era in inside]
            blocks = read_blocks(file, path, names, runs) if runs else ()
            for era, block in zip(inside, blocks, strict=True):
                counts = columns_missing_values(block, names)
                missing = {x: n for x, n in counts.items() if x in regressed}
                if missing:
                    raise DataError(
                        f"{path}, era {era.run.label}: {sum(missing.values())} values "
                        f"of {len(missing)} features to neutralize by are missing "
                        f"(first: {next(iter(missing))}). Choose others; linear "
                        "regression takes no missing values."
                    )
                own = block[:, : len(features)]
                yield era, own, block[:, at_linear], block[:, at_by]

    def _neutralized(
        self, ranks: NDArray[np.float64], by: Block, era: str
    ) -> NDArray[np.float64]:
        """Ranks as they would be submitted; constant ones are left alone."""
        proportion = self.model.predict.neutralize_proportion
        if not by.size or np.ptp(ranks) == 0:
            return ranks
        try:
            return neutralize_ranks(ranks, by, proportion)
        except ValueError as error:
            raise DataError(f"Predictions of era {era}: {error}") from error

    def _read(self, name: str) -> Source:
        """Open a file, and find the eras in which the target is known."""
        if name in self.sources:
            return self.sources[name]
        path = self.workspace.need(name)
        columns, target = open_columns(path), self.target
        try:
            columns.check_has(target, "target")
            targets = columns.read_numbers(target, "target")
            if n := np.isinf(targets).sum():
                raise ValueError(f"{target!r} is infinite in {n:,} rows.")
        except ValueError as error:
            raise DataError(f"{path} cannot be validated on: {error}") from error
        predictions = self.others.of_rows(path)
        eras, too_few = {}, []
        for run in era_runs(columns, path):
            if era_number(run.label) is None:
                raise DataError(
                    f"{path}: the era {run.label!r} is not a number of four digits: is "
                    "it a live file, which has no targets?"
                )
            rows = slice(run.start, run.stop)
            share = np.mean(~np.isnan(targets[rows]))
            if share >= MIN_SHARE:
                own = {use: values[rows] for use, values in predictions.items()}
                eras[run.label] = ScoredEra(run, targets[rows], own)
            elif share > 0:
                too_few.append(run.label)
        if too_few:
            self.notes.append(
                f"{len(too_few)} eras of {path.name} were left out: less than "
                f"{MIN_SHARE:.0%} of the rows have {target!r}: {first_names(too_few)}."
            )
        self.sources[name] = Source(path, columns, eras)
        return self.sources[name]


def _unique(*names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(names)))
