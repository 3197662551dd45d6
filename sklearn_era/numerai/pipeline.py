"""All that is to be done for a round, as far as it is not done yet.

The submission comes first: a round is open for an hour, while a training takes hours
and a validation minutes. So a run submits with the fits that are there, then trains
what is to be trained and submits again, and validates and exports at the end.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeVar

from sklearn_era.numerai.api import Round
from sklearn_era.numerai.config import Model
from sklearn_era.numerai.download import OPTIONAL, NotPublishedError, wanted
from sklearn_era.numerai.errors import (
    ApiError,
    BusyError,
    ConfigError,
    DataError,
    NoModelError,
)
from sklearn_era.numerai.http import HttpFailure
from sklearn_era.numerai.steps import Steps
from sklearn_era.numerai.submit import (
    SubmissionRecord,
    read_submission_record,
    round_state,
    submit,
)

_T = TypeVar("_T")

# Files of a round: those without which nothing can be predicted, and those that the
# predictions are compared with.
_LIVE = ("features", "live")
_COMPARED = frozenset(name for name in OPTIONAL if name.startswith("live"))
# Seconds between two questions whether a round has opened, or its data are there.
_POLL = 60.0


@dataclass
class Run:
    """Brings everything up to date, with `retrain` the fits that are up to date, too.

    A round that is to open, and data that are to come, are waited for `wait` minutes.
    """

    steps: Steps
    upload: bool = True
    retrain: bool = False
    wait: float = 0.0

    def __post_init__(self) -> None:
        self.client = self.steps.client
        self.data = self.steps.config.data
        self.models = self.steps.config.models
        self.workspace = self.steps.workspace
        self.tell = self.steps.told.step
        self.failures: list[tuple[str, Exception]] = []
        self._deadline = monotonic() + 60 * self.wait
        self._submitted = set[str]()
        self._number = 0

    def __call__(self) -> list[tuple[str, Exception]]:
        """Do it all; return what failed, by what it was, while the rest went on.

        Raises what stops all of it: a wrong configuration, key or model name, and an
        API or live data that cannot be had.
        """
        self.steps.check_parameters()
        if self.upload:
            known = self.client.models()
            for model in self.models:
                self.client.model_id(model.name, known)
        self._begin_round(self._patiently(self._open_round))
        with self._going_on("downloading"):
            self._fetch_rest()
        for model in self.models:
            with self._going_on(f"training {model.name!r}"):
                self._train(model)
        for model in self.models:
            with self._going_on(f"validating {model.name!r}"):
                self._validate(model)
            with self._going_on(f"exporting {model.name!r}"):
                if self.steps.wants_export(model) and not self.steps.is_exported(model):
                    self.steps.export(model)
        return self.failures

    def plan(self) -> Iterator[str]:
        """What a run would do, a sentence each; nothing is written anywhere."""
        self.steps.check_parameters()
        number = None
        try:
            self.client.check_keys()
        except ConfigError as error:
            yield f"Would submit nothing: {error}"
        try:
            current = self.client.current_round()
        except ApiError as error:
            yield f"The current round is unknown: {error}"
        else:
            number = current.number
            yield f"{round_state(current, self.client.http.now())}."
            for name, reason in wanted(self.workspace, self.data, number).items():
                yield f"Would download {name}: {reason}."
        for model in self.models:
            name = repr(model.name)
            due = self._due_fits(model)
            for shown, reason in due.items():
                yield f"Would train {shown}: {reason}."
            if number is not None:
                record = self._record(model, number)
                if record is not None and record.state == "submitted":
                    yield (
                        f"{name} has submission {record.submission_id} for round "
                        f"{number}; would submit again only if the predictions change."
                    )
                else:
                    yield f"Would predict and submit {name} for round {number}."
            if not self._is_done(model):
                yield f"Would validate {name}."
            if self.steps.wants_export(model) and (
                due or not self.steps.is_exported(model)
            ):
                yield f"Would export {name}."

    def _due_fits(self, model: Model) -> dict[str, str]:
        return self.steps.reasons_to_train(model, restart=self.retrain)

    def _is_done(self, model: Model) -> bool:
        return not self._due_fits(model) and self.steps.is_validated(model)

    def _record(self, model: Model, number: int) -> SubmissionRecord | None:
        folder = self.workspace.round_dir(number, model.name)
        return read_submission_record(folder / "submission.json")

    @contextmanager
    def _going_on(self, what: str) -> Iterator[None]:
        """Remember an error, which is no reason not to do the rest."""
        try:
            yield
        except NoModelError:
            pass  # its training failed, which is remembered
        except MemoryError:
            raise
        except Exception as error:
            if not any(known.args == error.args for _, known in self.failures):
                self.failures.append((what, error))

    def _patiently(self, attempt: Callable[[], _T]) -> _T:
        """Call until it succeeds: what may pass is waited for, as long as it may be."""
        said = ""
        while True:
            try:
                return attempt()
            except (NotPublishedError, HttpFailure) as error:
                passes = isinstance(error, NotPublishedError) or error.transient
                if not passes or monotonic() >= self._deadline:
                    raise
                if str(error) != said:
                    said = str(error)
                    self.tell(said)
            sleep(min(_POLL, max(self._deadline - monotonic(), 0.0)))

    def _open_round(self) -> Round:
        """The current round, once it is open or has been waited for long enough."""
        current = self.client.current_round()
        if current.is_open or monotonic() >= self._deadline:
            return current
        opening = self.client.next_opening()
        shown = f" It opens at {opening:%Y-%m-%d %H:%M} UTC." if opening else ""
        raise NotPublishedError(
            f"Round {current.number} has closed; waiting for the next one.{shown}"
        )

    def _begin_round(self, current: Round) -> None:
        """Fetch a round's files, and submit with the fits that are there."""
        names, number = self.data.files, current.number
        live = [name for name in names if name in _LIVE]
        self._patiently(lambda: self.steps.download(live, number))
        for name in _COMPARED.intersection(names):
            try:
                self.steps.download([name], number)
            except (ApiError, DataError) as error:
                # No reason not to submit.
                warnings.warn(str(error), UserWarning, stacklevel=2)
        self._number = number
        self._submitted.clear()
        for model in self.models:
            with self._going_on(f"submitting {model.name!r}"):
                self._deliver_what_is_there(model)

    def _fetch_rest(self) -> None:
        """Fetch what a training or a validation needs, where anything is missing."""
        names = [name for name in self.data.files if name not in (*_LIVE, *_COMPARED)]
        due = wanted(self.workspace, self.data, self._number).keys() & names
        if due or not all(map(self._is_done, self.models)):
            self.steps.download(names, self._number)

    def _deliver_what_is_there(self, model: Model) -> None:
        """Submit with the fits that are there, unless they are of other data."""
        name, version = repr(model.name), self.workspace.version
        try:
            records = self.steps.read_records(model)
        except NoModelError:
            self.tell(f"{name} will be submitted once all of its fits are trained.")
            return
        if any(record.version not in ("", version) for record in records):
            self.tell(f"{name} will be submitted once it is trained on {version}.")
            return
        for shown, reason in self.steps.reasons_to_train(model).items():
            self.tell(
                f"{shown} is out of date ({reason}): the existing fit predicts until "
                "the new one is trained."
            )
        self._deliver(model)

    def _deliver(self, model: Model) -> None:
        """Predict and submit, unless a file of the user's was submitted."""
        record = self._record(model, self._number)
        if self.upload and record is not None and not record.model_sha256:
            self.tell(
                f"Round {self._number}: {model.name!r} was submitted from your file "
                f"{record.file}; leaving it alone."
            )
            return
        self.steps.predict(model, self._number)
        if self.upload:
            submit(self.steps, model.name, self._number)
        self._submitted.add(model.name)

    def _train(self, model: Model) -> None:
        if not self._due_fits(model):
            return
        try:
            self.steps.train(model, restart=self.retrain)
        except BusyError as error:
            if model.name not in self._submitted:
                raise
            self.tell(f"{error} The next run submits its model.")
            return
        current = self._follow_rounds()
        if current is None:
            return
        if current.is_open or model.name not in self._submitted:
            self._deliver(model)
        else:
            self.tell(
                f"Round {current.number} has closed: the new {model.name!r} will be "
                "submitted in the next one."
            )

    def _validate(self, model: Model) -> None:
        if self.steps.is_validated(model):
            return
        try:
            self.steps.validate(model)
        except BusyError as error:
            self.tell(str(error))
            return
        self._follow_rounds()

    def _follow_rounds(self) -> Round | None:
        """The round, after hours of work; a new one is submitted, and None returned."""
        current = self.client.current_round()
        if current.number == self._number:
            return current
        self._begin_round(current)
        return None
