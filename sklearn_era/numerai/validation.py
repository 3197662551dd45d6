"""Score a model and other models' predictions on eras that the model has not seen.

If the validation file has enough eras with targets after the training and the purge,
the submitted fits are scored on them ("hold-out"). Otherwise the training settings are
scored ("walk-forward"): each fold of eras is scored by fits to earlier eras, without
the last eras before the fold (the purge).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sklearn_era._warnings import listed
from sklearn_era.model_selection import EraWalkForwardSplit
from sklearn_era.numerai import data, metrics, score_table, store, training
from sklearn_era.numerai.config import Config, Model, TrainSection, Workspace
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import file_sha256
from sklearn_era.numerai.score_table import EXAMPLE, Fold, ScoredEra

MODEL, GAIN = "model", "gain"
_FNC_FEATURE_SET = "fncv3_features"
_MIN_HELD_OUT = 4  # eras, else walk forward


class Source(NamedTuple):
    """An open file, and its eras with known targets, by label and in file order."""

    file: data.EraFile
    eras: dict[str, ScoredEra]


def purge_of(config: Config, model: Model) -> int:
    """Return how many eras to leave out between training and validation (the purge),
    which is the largest number that a target of the model needs.
    """
    targets = {model.train.target, *(member.train.target for member in model.members)}
    return max(config.validation.purge_of(target) for target in targets)


@dataclass
class Validation:
    """Scores a model, and other models' predictions if their files are found. If
    configured, also scores the same model with the pooled gain as its split criterion.
    """

    config: Config
    workspace: Workspace
    model: Model
    on_progress: Callable[[str, int, int], None] = lambda *_: None
    on_step: Callable[[str], object] = str
    records: list[store.ModelRecord] = field(default_factory=list)  # by default, read

    def __post_init__(self) -> None:
        asked, self.target = self.config.validation, self.model.train.target
        members = self.model.members
        # The training settings of each row of the table that is trained here.
        self.recipes = {MODEL: [member.train for member in members]}
        if asked.compare_with_gain:
            self.recipes[GAIN] = training.gain_settings(self.recipes[MODEL])
        self.metadata = data.read_features(self.workspace.need("features"))
        self.folder = self.workspace.model_dir(self.model.name)
        read = (store.read_record(self.folder, x.name) for x in members)
        self.records = self.records or [*read]
        self.benchmark = asked.benchmark_of(self.config.data.version, self.target)
        given = self.workspace, self.benchmark
        self.others, self.skipped = score_table.read_others(*given)
        self.notes: list[str] = []
        self.sources: dict[str, Source] = {}
        self.way, self.folds = self._plan()

    def run(self) -> dict[str, score_table.ValidationResult]:
        # The rows of others' predictions, by their use.
        uses = {"bmc": self.benchmark, EXAMPLE: EXAMPLE}
        names = {use: row for use, row in uses.items() if use in self.others}
        rows = {name: score_table.Row() for name in (*self.recipes, *names.values())}
        scored = {
            x: era
            for source in self.sources.values()
            for x, era in source.eras.items()
            if any(fold.has(x) for fold in self.folds)
        }
        n_all, n_done = len(scored), 0
        columns_of, checked = self.metadata.features, set[Path]()
        holed = set[str]()  # features that FNC has to do without in some eras
        for number, fold in enumerate(self.folds, 1):
            blends = {name: self._fits(number, name) for name in self.recipes}
            features = _unique(*(blend.features for blend in blends.values()))
            fnc = self.config.validation.fnc_feature_set
            linear = columns_of(fnc) if fnc not in ("auto", "") else []
            if fnc == "auto":
                linear = self.metadata.feature_sets.get(_FNC_FEATURE_SET, features)
            by = self.model.predict.neutralizers(features, columns_of)
            for path, era, block in self._blocks(fold, _unique(features, linear, by)):
                ranks = {row: era.others[use] for use, row in names.items()}
                if path not in checked:  # files, and not eras, have a scale
                    store.check_scale(block, self.records, path)
                    checked.add(path)
                try:
                    for name, blend in blends.items():
                        ranks[name] = self._ranks(blend, block, by)
                    whole = block[linear].dropna(axis=1)
                    holed |= {*linear} - {*whole}
                    for name, row in rows.items():
                        own = block[features] if name in blends else None
                        row.add(era, ranks[name], whole, own)
                except ValueError as error:
                    where = f"{path}, era {era.run.label}"
                    raise DataError(f"{where}: {error}") from error
                n_done += 1
                self.on_progress("validation eras", n_done, n_all)
        if holed:
            self.notes.append(
                "In eras where they have missing values, FNC leaves out features: "
                f"{listed(sorted(holed))}."
            )
        self.notes += score_table.early_ends(scored)
        share = self.model.predict.neutralize_proportion
        return score_table.make_results(
            rows, skipped=self.skipped, notes=self.notes, target=self.target,
            way=self.way, folds=self.folds, neutralize_proportion=share,
        )  # fmt: skip

    def _plan(self) -> tuple[score_table.Way, list[Fold]]:
        """Return the way of validation and its folds. The way is "hold-out" if enough
        eras are unseen, or if some eras are and folds are impossible; otherwise
        "walk-forward". Raise DataError if no era is unseen and folds are impossible.
        """
        purge, n_folds = purge_of(self.config, self.model), self.config.validation.folds
        last = max(record.last_era for record in self.records)
        held_out, usable = list[str](), list[str]()
        if last and self.workspace.newest("validation") is not None:
            eras = self._read("validation").eras
            held_out = sorted(era for era in eras if int(era) > int(last) + purge)
        if len(held_out) < _MIN_HELD_OUT:
            usable = self._eras_to_walk()
            with suppress(ValueError):  # too few eras
                cv = EraWalkForwardSplit(n_folds, gap=purge, era_order="ordered")
                split = cv.split_eras(usable)
                folds = [Fold(*map(str, (x[-1], y[0], y[-1]))) for x, y in split]
                text = (
                    f"Walked forward through eras {folds[0].first} to {folds[-1].last} "
                    f"in {n_folds} folds: each was scored by fits on all earlier eras "
                    f"except the last {purge} (purge)."
                )
                self.notes.insert(0, text)
                return "walk-forward", folds
        if not held_out:
            raise DataError(
                f"There is nothing to validate on: {self.target!r} has no values "
                f"after era {last} and a purge of {purge} eras, and {len(usable)} eras "
                f"are too few for {n_folds} folds: lower [validate] folds."
            )
        text = (
            f"Scored on the {len(held_out)} eras {held_out[0]} to {held_out[-1]}: the "
            f"model was trained up to era {last}, and {purge} eras were purged."
        )
        self.notes.insert(0, text)
        self.sources = {"validation": self.sources["validation"]}
        return "hold-out", [Fold(last, held_out[0], held_out[-1])]

    def _eras_to_walk(self) -> list[str]:
        """Return the eras to make folds of, from the first that all members use."""
        for name in _unique(*(x.files for x in self.recipes[MODEL])):
            self._read(name)
        usable = sorted(x for source in self.sources.values() for x in source.eras)
        for era, after in pairwise(usable):
            if era == after:
                raise DataError(f"Era {era} is in two files: download them again.")
        for recipe in self.recipes[MODEL]:
            own = {x for name in recipe.files for x in self.sources[name].eras}
            first = min((x for x in own if x >= recipe.first_era), default="none")
            usable = [era for era in usable if era >= first]
        return usable

    def settings(self) -> list[dict[str, Any]]:
        """Return, by member, the settings in [train] of the fits that were scored."""
        if self.way == "walk-forward":
            return [recipe.model_dump() for recipe in self.recipes[MODEL]]
        keys = {*TrainSection.model_fields}
        return [record.model_dump(include=keys) for record in self.records]

    @cached_property
    def _files_digest(self) -> str:
        """Return a digest of the files that fits for folds are trained on."""
        names = _unique(*(x.files for x in self.recipes[MODEL]))
        return " ".join(file_sha256(self.workspace.need(name)) for name in names)

    def _fits(self, number: int, row: str) -> store.Blend:
        """Return the blend that predicts the fold `number` for `row`, which is MODEL or
        GAIN. Train the blend's fits if they are missing or out of date.
        """
        folder, text = self.folder, ""
        last_eras = [record.last_era for record in self.records]
        sources = [record.data_fingerprint for record in self.records]
        if self.way == "walk-forward":
            # A fold learns from the present files, plain gain from the rows of the fit.
            folder, text = folder / "folds" / str(number), f" for fold {number}"
            last_eras = [self.folds[number - 1].last_trained] * len(last_eras)
            sources = [self._files_digest] * len(sources)
        elif row == MODEL:
            return store.load_blend(folder, self.model)[0]
        if row == GAIN:
            folder, text = folder / GAIN, f" with plain gain{text}"
        fits, given = [], (self.model.members, self.recipes[row], last_eras, sources)
        for member, recipe, last, source in zip(*given, strict=True):
            until = {"last_era": min(recipe.last_era or last, last)}
            recipe = recipe.model_copy(update=until)
            fit, record = self._fit(member.name, recipe, folder, text, source)
            fits.append(store.WeightedFit(fit, record.features, member.weight))
        return store.Blend(fits)

    def _fit(
        self, name: str, recipe: TrainSection, folder: Path, of: str, source: str
    ) -> tuple[Any, store.ModelRecord]:
        """Return a fit and its record; train a missing or outdated fit first."""
        files = [self.workspace.need(name) for name in recipe.files]
        if groups := recipe.era_groups:
            # There may be fewer eras than groups: then each is a group.
            alone = recipe.model_copy(update={"era_groups": 0})
            groups = min(groups, len(data.select_eras(files, alone)[0]))
            recipe = recipe.model_copy(update={"era_groups": groups})
        plan = training.FitPlan(
            recipe, files, self.metadata.features(recipe.feature_set), folder,
            name=name, model_name=self.model.name, version=self.config.data.version,
            purge=self.config.validation.purge_of(recipe.target), source=source,
        )  # fmt: skip
        try:
            reason = plan.why_train()
            if reason is None:
                return store.load_fit(folder, name)
        except DataError:
            reason = "the existing fit is damaged"
        self.on_step(f"Training {name}{of}, up to era {recipe.last_era}: {reason}.")
        training.train(
            plan, on_progress=lambda x, *done: self.on_progress(f"{x}{of}", *done)
        )
        return store.load_fit(folder, name)

    def _blocks(
        self, fold: Fold, names: list[str]
    ) -> Iterator[tuple[Path, ScoredEra, pd.DataFrame]]:
        """For each era of a fold, yield its file's path, the era and its features."""
        for file, eras in self.sources.values():
            inside = [era for label, era in eras.items() if fold.has(label)]
            blocks = file.blocks(names, [era.run for era in inside]) if inside else ()
            for era, block in zip(inside, blocks, strict=True):
                yield file.path, era, pd.DataFrame(block, columns=names, copy=False)

    def _ranks(self, blend: store.Blend, block: pd.DataFrame, by: list[str]) -> Any:
        """Return an era's ranks; neutralize them by the columns `by`, if there are any
        and the ranks are not all equal.
        """
        ranks = blend.ranks(block)
        if by and np.ptp(ranks) > 0:
            share = self.model.predict.neutralize_proportion
            ranks = metrics.neutralize_ranks(ranks, block[by], proportion=share)
        return ranks

    def _read(self, name: str) -> Source:
        """Open a file once; return it with its eras that have known targets."""
        if name in self.sources:
            return self.sources[name]
        file = data.EraFile(self.workspace.need(name))
        data.check_parquet(file.path)
        targets, runs = file.read_numbers(self.target), file.runs()
        ids = data.read_columns(file.path, []).index if self.others else None
        others = {use: x.reindex(ids).to_numpy() for use, x in self.others.items()}
        eras, too_few = {}, []
        for run in runs:
            rows = slice(run.start, run.stop)
            share = np.mean(~np.isnan(targets[rows]))
            if share >= (least := score_table.MIN_SHARE):
                own = {use: values[rows] for use, values in others.items()}
                eras[run.label] = ScoredEra(run, targets[rows], own)
            elif share > 0:
                too_few.append(run.label)
        if too_few:
            self.notes.append(
                f"Eras left out of {file.path.name} ({len(too_few)}), as fewer than "
                f"{least:.0%} of their rows have {self.target!r}: {listed(too_few)}."
            )
        self.sources[name] = Source(file, eras)
        return self.sources[name]


def _unique(*names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(names)))
