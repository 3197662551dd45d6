"""Take all steps of a round that are due.

The submission comes first: a round is open for an hour, while training takes hours and
validation minutes. A run submits with the existing fits, trains the fits that are out
of date, submits again, and validates and exports at the end.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from sklearn_era.numerai import errors, submit
from sklearn_era.numerai.api import TournamentRound
from sklearn_era.numerai.config import Model
from sklearn_era.numerai.download import OPTIONAL, NotPublishedError, wanted
from sklearn_era.numerai.http import HttpFailure
from sklearn_era.numerai.steps import Steps

# A round's files: required ones, and those to compare predictions with.
_LIVE = ("features", "live")
_COMPARED = frozenset(name for name in OPTIONAL if name.startswith("live"))
_POLL = 60.0  # seconds


class Run:
    """Brings all models up to date; waits up to `wait` minutes for a round's data."""

    def __init__(self, steps: Steps, upload: bool, retrain: bool, wait: float) -> None:
        self.steps, self.upload, self.retrain = steps, upload, retrain
        self.client, self.workspace = steps.client, steps.workspace
        self.data, self.models = steps.config.data, steps.config.models
        self.report, self.failures = steps.reporter.step, list[tuple[str, Exception]]()
        self._deadline = monotonic() + 60 * wait
        self._submitted, self._number, self._n_before = set[str](), 0, 0

    def __call__(self) -> list[tuple[str, Exception]]:
        """Run all steps; return the failures that did not end the run."""
        self.steps.check_parameters()
        if self.upload:
            known = self.client.models()
            for model in self.models:
                self.client.model_id(model.name, known)
        if self.retrain:
            with self._going_on("requesting the training"):
                self.steps.request_training(self.models)
        self._begin_round(self._patiently(self._open_round))
        with self._going_on("downloading"):
            self._fetch_rest()
        for model in self.models:
            with self._going_on("training", model):
                self._train(model)
        for model in self.models:
            with self._going_on("validating", model):
                self._validate(model)
            with self._going_on("exporting", model):
                if self.steps.wants_export(model) and not self.steps.is_exported(model):
                    self.steps.export(model)
        return self.failures

    def plan(self) -> Iterator[str]:
        """Yield sentences on the steps that a run would take; write nothing."""
        self.steps.check_parameters()
        number, of = None, "the current round"
        try:
            self.client.check_keys()
        except errors.ConfigError as error:
            yield f"Would submit nothing: {error}"
        try:
            current = self.client.current_round()
        except errors.ApiError as error:
            yield f"The current round is unknown: {error}"
            yield "Would download the files that are missing."
        else:
            number, of = current.number, f"round {current.number}"
            yield f"{submit.round_state(current, self.client.http.now())}."
            for name, reason in wanted(self.workspace, self.data, number).items():
                yield f"Would download {name}: {reason}."
        for model in self.models:
            name = repr(model.name)
            due = self._due_fits(model)
            for shown, reason in due.items():
                yield f"Would train {shown}: {reason}."
            record = None if number is None else self._record(model, number)
            text = f"Would predict and submit {name} for {of}."
            if record is not None and record.state == "submitted":
                then = "submit again if the predictions change"
                then = then if record.model_sha256 else "leave it alone"
                text = f"{name} has submission {record.submission_id} for {of}; would "
                text += f"{then}."
            elif record is not None and not record.model_sha256:
                text = f"Would look for {record.file} at Numerai: its upload for "
                text += f"{name} was interrupted."
            yield text
            if due or not self.steps.is_validated(model):
                yield f"Would validate {name}."
            wants_export = self.steps.wants_export(model)
            if wants_export and (due or not self.steps.is_exported(model)):
                yield f"Would export {name}."

    def _due_fits(self, model: Model) -> dict[str, str]:
        return self.steps.reasons_to_train(model, restart=self.retrain)

    def _record(self, model: Model, number: int) -> submit.SubmissionRecord | None:
        folder = self.workspace.round_dir(number, model.name)
        return submit.read_submission_record(folder / "submission.json")

    @contextmanager
    def _going_on(self, step: str, model: Model | None = None) -> Iterator[None]:
        """Record an error in the ``with`` block as a failure of the step, and let the
        run go on. If the same error comes twice for a model, record it once.
        """
        of = "" if model is None else f" {model.name!r}"
        try:
            yield
        except errors.NoModelError:
            pass  # its training failed, which is recorded
        except MemoryError:
            raise
        except Exception as error:
            earlier = (x.args for what, x in self.failures if what.endswith(of))
            if error.args not in earlier:
                self.failures.append((step + of, error))

    def _patiently(self, attempt: Callable[[], Any]) -> Any:
        """Return `attempt`'s result; retry transient failures until the deadline."""
        last = ""
        while True:
            try:
                return attempt()
            except (NotPublishedError, HttpFailure) as error:
                passes = getattr(error, "transient", True)
                if not passes or monotonic() >= self._deadline:
                    raise
                if str(error) != last:
                    last = str(error)
                    self.report(last)
            sleep(min(_POLL, max(self._deadline - monotonic(), 0.0)))

    def _open_round(self) -> TournamentRound:
        """Return the current round. If it has closed, and the run may wait for the next
        one, raise NotPublishedError.
        """
        current = self.client.current_round()
        if not current.is_open and monotonic() < self._deadline:
            text = f"Round {current.number} has closed; waiting for the next one."
            raise NotPublishedError(text)
        return current

    def _begin_round(self, current: TournamentRound) -> None:
        """Download a round's live files, and submit predictions of existing fits."""
        names, number = self.data.files, current.number
        live = [name for name in names if name in _LIVE]
        self._patiently(lambda: self.steps.download(live, number))
        for name in _COMPARED.intersection(names):
            try:
                self.steps.download([name], number)
            except (errors.ApiError, errors.DataError) as error:
                errors.warn(str(error))  # must not prevent the submission
        self._number = number
        self._submitted.clear()
        self._n_before = len(self.failures)
        for model in self.models:
            with self._going_on("submitting", model):
                self._deliver_what_is_there(model)

    def _fetch_rest(self) -> None:
        """Download files other than live ones, if a file or a model is out of date."""
        names = [name for name in self.data.files if name not in (*_LIVE, *_COMPARED)]
        due = (self._due_fits(x) or not self.steps.is_validated(x) for x in self.models)
        if wanted(self.workspace, self.data, self._number).keys() & names or any(due):
            self.steps.download(names, self._number)

    def _deliver_what_is_there(self, model: Model) -> None:
        """Predict and submit by the existing fits. If a fit is missing or is of another
        data version, only report it.
        """
        version, waits_for = self.workspace.version, ""
        try:
            records = self.steps.read_records(model)
            if any(record.version not in ("", version) for record in records):
                waits_for = f"it is trained on {version}"
        except errors.NoModelError:
            waits_for = "all of its fits are trained"
        if waits_for:
            self.report(f"{model.name!r} will be submitted once {waits_for}.")
            return
        for shown, reason in self.steps.reasons_to_train(model).items():
            text = "the existing fit predicts until the new one is trained"
            self.report(f"{shown} is out of date ({reason}): {text}.")
        self._deliver(model)

    def _deliver(self, model: Model) -> None:
        """Predict and submit, unless the user has submitted a file of their own."""
        given = self.steps, model.name, self._number
        own = submit.own_submission(*given) if self.upload else None
        if own is not None:
            text = f"was submitted from your file {own.file}; leaving it alone"
            self.report(f"Round {self._number}: {model.name!r} {text}.")
        else:
            self.steps.predict(model, self._number)
            if self.upload:
                submit.submit(*given)
        self._submitted.add(model.name)
        # Failures of earlier rounds stay.
        of_round = self.failures[self._n_before :]
        passed = f"submitting {model.name!r}"
        self.failures[self._n_before :] = [x for x in of_round if x[0] != passed]

    def _train(self, model: Model) -> None:
        if not self._due_fits(model):
            return
        try:
            self.steps.train(model, restart=self.retrain)
        except errors.BusyError as error:
            if model.name not in self._submitted:
                raise
            self.report(f"{error} A later run submits its model.")
            return
        current = self._follow_rounds()
        if current and (current.is_open or model.name not in self._submitted):
            self._deliver(model)
        elif current:
            text = f"the new {model.name!r} will be submitted in the next one"
            self.report(f"Round {current.number} has closed: {text}.")

    def _validate(self, model: Model) -> None:
        if self.steps.is_validated(model):
            return
        try:
            self.steps.validate(model)
        except errors.BusyError as error:
            self.report(str(error))
        else:
            self._follow_rounds()

    def _follow_rounds(self) -> TournamentRound | None:
        """Return the current round; if it is new, begin it and return None."""
        current = self.client.current_round()
        if current.number == self._number:
            return current
        self._begin_round(current)
        return None
