"""Take the steps of a round for one model, as configured."""

import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from functools import cache, cached_property
from math import isfinite, nan
from pathlib import Path

from sklearn_era.numerai import config, data, export, report, store, submit, training
from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.config import BlendMember, Model, TrainSection, Workspace
from sklearn_era.numerai.download import download
from sklearn_era.numerai.errors import (
    BusyError,
    ConfigError,
    DataError,
    ExportError,
    warn,
)
from sklearn_era.numerai.files import file_sha256, lock, utc_now, write_whole
from sklearn_era.numerai.reporter import Reporter
from sklearn_era.numerai.validation import GAIN, Validation


class Steps:
    """The steps of a round, for each model of a configuration."""

    def __init__(
        self, config: config.Config, workspace: Workspace, reporter: Reporter
    ) -> None:
        self.config, self.workspace, self.reporter = config, workspace, reporter
        self._read_features = cache(data.read_features)

    @cached_property
    def client(self) -> Numerai:
        """The client of the API, with the keys in the environment or ``.env``."""
        own, root = self.config.submit, self.workspace.root
        return Numerai.from_environment(root, own.timeout, own.retries)

    def download(
        self, names: Iterable[str], round_number: int, refresh: Iterable[str] = ()
    ) -> None:
        """Download the files in `names` that are live, missing, damaged, or both old
        and to be refreshed.
        """
        changes = {"files": [*names], "refresh": [*self.config.data.refresh, *refresh]}
        asked = self.config.data.model_copy(update=changes)
        download(self.client, self.workspace, asked, round_number, self.reporter)

    def metadata(self) -> data.FeatureMetadata:
        """Return the contents of the newest features.json; read each file once."""
        return self._read_features(self.workspace.need("features"))

    def features_of(self, settings: TrainSection) -> list[str]:
        """Return the features of a fit; raise ConfigError if its target is unknown."""
        metadata = self.metadata()
        config.check_target(settings.target, metadata.targets)
        return metadata.features(settings.feature_set)

    def check_parameters(self) -> None:
        """Raise ConfigError if any fit has bad parameters, before hours of training."""
        # Against the local features.json, unless a newer one may have other names.
        refreshed = "features" in self.config.data.refresh
        passing = (DataError, ConfigError) if refreshed else (DataError,)
        own = self.config.validation
        for model in self.config.models:
            fits = [member.train for member in model.members]
            try:
                for settings in (model.train, *fits):
                    features = None
                    with suppress(*passing):
                        features = self.features_of(settings)
                    training.make_estimator(settings, features)
                if own.compare_with_gain:
                    training.gain_settings(fits)
                with suppress(*passing):
                    features_of, fnc = self.metadata().features, own.fnc_feature_set
                    model.predict.neutralizers([], features_of)
                    if fnc not in ("auto", ""):
                        features_of(fnc)
                    self._warn_of_validation(model)
            except ConfigError as error:
                raise ConfigError(f"'{self.workspace.toml}': {error}") from error

    def _warn_of_validation(self, model: Model) -> None:
        """Warn if fits are to be trained, but the local files cannot validate the fits,
        as these files have too few eras or lack the benchmark.
        """
        names = {"validation"}.union(*(x.train.files for x in model.members))
        is_here = all(self.workspace.newest(name) for name in names)
        if not is_here or not self.reasons_to_train(model):
            return
        records = []
        for plan in (self._plan(model, member) for member in model.members):
            eras, _ = data.select_eras(plan.files, plan.settings)
            last = {"last_era": max(eras)}
            records.append(plan.record().model_copy(update=last))
        given = self.config, self.workspace, model
        try:
            told = Validation(*given, records=records).skipped.get("bmc", "")
            if self.config.validation.benchmark in ("auto", ""):
                told = ""  # some targets have none
        except DataError as error:
            told = str(error)
        if told:
            warn(f"Validation of {model.name!r}: {told}")

    def reasons_to_train(self, model: Model, restart: bool = False) -> dict[str, str]:
        """Return a dict of the fits to train, from names to reasons: a fit is missing
        or out of date or, for all fits if `restart`, training is "as requested".
        """
        reasons = {
            _spell(model, x): "as requested" if restart else self._why_train(model, x)
            for x in model.members
        }
        return {shown: reason for shown, reason in reasons.items() if reason}

    def _why_train(self, model: Model, member: BlendMember) -> str | None:
        """Return the reason to train a fit, or None if there is none. Without
        features.json, a missing record is the only reason.
        """
        if self.workspace.newest("features") is None:
            folder = self.workspace.model_dir(model.name)
            is_there = (folder / f"{member.name}.json").exists()
            return None if is_there else "not trained yet"
        return self._plan(model, member).why_train()

    def _plan(self, model: Model, member: BlendMember) -> training.FitPlan:
        fit, workspace = member.train, self.workspace
        return training.FitPlan(
            fit, [workspace.newest(name) or Path(name) for name in fit.files],
            self.features_of(fit), workspace.model_dir(model.name), name=member.name,
            model_name=model.name, version=workspace.version,
            purge=self.config.validation.purge_of(fit.target),
        )  # fmt: skip

    def request_training(self, models: Iterable[Model]) -> None:
        """Request that all fits of the models be trained again. If this run is
        interrupted, the request makes the next run train them.
        """
        for model in models:
            folder = self.workspace.model_dir(model.name)
            # A run that is training would take the request for its own, and drop it.
            with suppress(BusyError), self._locked(model):
                for member in model.members:
                    if (folder / f"{member.name}.json").exists():
                        write_whole(store.request_file(folder, member.name), b"")

    def _locked(self, model: Model) -> AbstractContextManager[None]:
        path = self.workspace.lock_file(f"train-{model.name}")
        return lock(path, f"training {model.name!r}")

    def train(self, model: Model, *, restart: bool = False) -> None:
        """Train the members of a model that are missing or out of date."""
        folder = self.workspace.model_dir(model.name)
        with self._locked(model):
            reasons = self.reasons_to_train(model, restart=restart)
            requests = (store.request_file(folder, x.name) for x in model.members)
            if restart or any(x.exists() for x in requests):
                for of_validation in ("folds", GAIN):
                    shutil.rmtree(folder / of_validation, ignore_errors=True)
            for member in model.members:
                if (shown := _spell(model, member)) not in reasons:
                    continue
                self.reporter.step(f"Training {shown}: {reasons[shown]}.")
                for name in member.train.files:
                    data.check_parquet(self.workspace.need(name))
                plan, on_progress = self._plan(model, member), self.reporter.progress
                record = training.train(plan, restart=restart, on_progress=on_progress)
                self.reporter.step(
                    f"Trained {shown} for {record.target} on {record.n_rows:,} rows of "
                    f"{record.n_eras:,} eras ({record.first_era} to {record.last_era}) "
                    f"and {len(record.features):,} features."
                )
                if of := record.weights:
                    weights = ", ".join(f"{x} {of[x]:.2f}" for x in of if of[x])
                    self.reporter.step(f"It averages models by the weights {weights}.")
                if (n := record.n_trees_with_splits) < record.n_trees:
                    tell = warn if 2 * n < record.n_trees else self.reporter.step
                    tell(
                        f"Only {n:,} of {record.n_trees:,} trees have splits: the eras "
                        "agree on too little. Lower split_criterion__min_agreement or "
                        "min_era_coverage."
                    )

    def read_records(self, model: Model) -> list[store.ModelRecord]:
        folder = self.workspace.model_dir(model.name)
        return [store.read_record(folder, member.name) for member in model.members]

    def live_round(self) -> int:
        """Return the newest round for which a live file is here."""
        self.workspace.need("live")
        return self.workspace.rounds_of("live")[-1]

    def predict(self, model: Model, round_number: int) -> None:
        """Predict a round's live file; write the checked submission and its record."""
        blend, records = store.load_blend(self.workspace.model_dir(model.name), model)
        live = self.workspace.data_file("live", round_number)
        asked, version = model.predict, self.workspace.version
        share = asked.neutralize_proportion
        by = asked.neutralizers(blend.features, lambda x: self.metadata().features(x))
        predictions = store.predict_live(blend, records, live, version, by, share)
        frame = data.make_submission(predictions)
        submit.check_submission(frame, data.read_ids(live))
        path = self.workspace.round_dir(round_number, model.name) / "predictions.csv"
        write_whole(path, submit.submission_csv(frame))
        submit.PredictionRecord(
            predictions_sha256=file_sha256(path), version=version, created=utc_now(),
            model_sha256="+".join(record.sha256 for record in records),
            neutralize_proportion=share,
        ).write(path.with_suffix(".json"))  # fmt: skip
        self.reporter.step(
            f"Round {round_number}: {len(frame):,} predictions of {model.name!r}, from "
            f"{predictions.min():.4f} to {predictions.max():.4f}: {path}"
        )
        # A correlation far from that of other rounds is a warning before the upload.
        benchmark = self.config.validation.benchmark_of(version, model.train.target)
        for name, column, shown in (
            ("live_example_preds", "prediction", "Numerai's example predictions"),
            ("live_benchmark_models", benchmark, benchmark),
        ):
            path, correlation = self.workspace.data_file(name, round_number), nan
            try:
                if path.exists() and column in data.read_column_names(path):
                    other = data.read_columns(path, [column])[column]
                    correlation = predictions.corr(other, "spearman", min_periods=2)
            except DataError as error:  # must not prevent the submission
                warn(str(error))
            if isfinite(correlation):
                self.reporter.step(f"Rank correlation with {shown}: {correlation:.3f}")

    def validate(self, model: Model) -> None:
        """Score the model on eras that it has not seen, and write the report."""
        workspace, own = self.workspace, self.reporter
        path = workspace.lock_file(f"validate-{model.name}")
        with lock(path, f"validating {model.name!r}"):
            given = self.config, workspace, model, own.progress, own.step
            results = (validation := Validation(*given)).run()
            files = report.write_report(validation, results)
        own.validated(model, results, files)

    def is_validated(self, model: Model) -> bool:
        """Return whether the report is current; True if no validation is configured."""
        if "validation" not in self.config.data.files:
            return True
        records = self.read_records(model)
        return report.report_is_current(self.config, self.workspace, model, records)

    def portable(self, model: Model) -> Path:
        return self.workspace.model_dir(model.name) / export.PORTABLE

    def export(self, model: Model, *, python: str | None = None) -> None:
        """Write the model as a pickle for Numerai, after a test by Numerai's rules."""
        if reason := export.why_not_portable(model):
            raise ExportError(reason)
        blend, records = store.load_blend(self.workspace.model_dir(model.name), model)
        path, live = self.portable(model), self.workspace.need("live")
        check = export.export_model(blend, records, path, live, python)
        size = path.stat().st_size
        shown = f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
        self.reporter.step(
            f"Portable model of {model.name!r}: {path} ({shown}). It predicted "
            f"{check.rows:,} rows in {check.seconds:.1f} s, using "
            f"{check.peak_bytes / 1e9:.2f} GB of memory."
        )

    def is_exported(self, model: Model) -> bool:
        """Return whether the pickle matches the present fits."""
        records = self.read_records(model)
        weights = [member.weight for member in model.members]
        return export.export_is_current(self.portable(model), records, weights)

    def wants_export(self, model: Model) -> bool:
        """Return whether exports are automatic and a pickle can hold the model."""
        return self.config.export.automatic and not export.why_not_portable(model)


def _spell(model: Model, member: BlendMember) -> str:
    """Return a fit's name in messages: its model's and, in a blend, its member's."""
    of_blend = "" if member.name == "model" else f" member {member.name!r}"
    return f"{model.name!r}{of_blend}"
