"""All that is to be done for a round, as far as it is not done yet.

The submission comes first: a round is open for an hour, while a training takes hours
and a validation minutes. So a run submits with the fits that are there, then trains
what is to be trained and submits again, and validates and exports at the end.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from sklearn_era.numerai.api import Numerai, Round
from sklearn_era.numerai.config import Config, Model, Workspace
from sklearn_era.numerai.download import OPTIONAL, NotPublishedError, download, wanted
from sklearn_era.numerai.errors import (
    ApiError,
    BusyError,
    ConfigError,
    DataError,
    NoModelError,
)
from sklearn_era.numerai.http import HttpFailure
from sklearn_era.numerai.steps import (
    Reporter,
    check_parameters,
    export_model,
    is_exported,
    is_validated,
    predict_model,
    read_records,
    reasons_to_train,
    spell,
    submit_model,
    train_model,
    validate_model,
)
from sklearn_era.numerai.submit import read_submission_record

_T = TypeVar("_T")

# Files of a round: those without which nothing can be predicted, and those that the
# predictions are compared with.
_LIVE = ("features", "live")
_COMPARED = frozenset(name for name in OPTIONAL if name.startswith("live"))
# Seconds between two questions whether a round has opened, or its data are there.
_POLL = 60.0


@dataclass(frozen=True)
class Failure:
    """A part of a run that failed, while the others went on."""

    what: str
    error: Exception


class Run:
    """Brings everything up to date; what fails does not stop the rest.

    A round that is to open, and data that are to come, are waited for `wait` minutes.
    """

    def __init__(
        self,
        client: Numerai,
        config: Config,
        workspace: Workspace,
        told: Reporter,
        *,
        upload: bool = True,
        retrain: bool = False,
        wait: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self.config = config
        self.workspace = workspace
        self.told = told
        self.upload = upload
        self.retrain = retrain
        self.sleep = sleep
        self.failures: list[Failure] = []
        self._deadline = time.monotonic() + 60 * wait
        self._submitted: set[str] = set()
        self._number = 0

    def __call__(self) -> list[Failure]:
        """Do it all.

        Raises what stops all of it: a wrong configuration, key or model name, and an
        API or live data that cannot be had.
        """
        check_parameters(self.config, self.workspace)
        if self.upload:
            self.client.check_keys()
            known = self.client.models()
            for model in self.config.models:
                self.client.check_model(model.name, known)
        self._begin_round(self._patiently(self._open_round))
        with self._going_on("downloading"):
            self._fetch_rest()
        for model in self.config.models:
            with self._going_on(f"training {model.name!r}"):
                self._train_if_due(model)
        for model in self.config.models:
            with self._going_on(f"validating {model.name!r}"):
                self._validate_if_due(model)
            with self._going_on(f"exporting {model.name!r}"):
                if not is_exported(self.config, self.workspace, model):
                    export_model(self.workspace, model, self.told)
        return self.failures

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
            if not any(failure.error.args == error.args for failure in self.failures):
                self.failures.append(Failure(what, error))

    def _patiently(self, attempt: Callable[[], _T]) -> _T:
        """Call until it succeeds: what may pass is waited for, as long as it may be."""
        said = ""
        while True:
            try:
                return attempt()
            except (NotPublishedError, HttpFailure) as error:
                passes = isinstance(error, NotPublishedError) or error.transient
                if not passes or time.monotonic() >= self._deadline:
                    raise
                if str(error) != said:
                    said = str(error)
                    self.told.step(said)
            self.sleep(min(_POLL, max(self._deadline - time.monotonic(), 0.0)))

    def _open_round(self) -> Round:
        """The current round, once it is open or has been waited for long enough."""
        current = self.client.current_round()
        if current.is_open or time.monotonic() >= self._deadline:
            return current
        opening = self.client.next_opening()
        shown = f" It opens at {opening:%Y-%m-%d %H:%M} UTC." if opening else ""
        raise NotPublishedError(
            f"Round {current.number} has closed; waiting for the next.{shown}"
        )

    def _begin_round(self, current: Round) -> None:
        """Fetch a round's files, and submit with the fits that are there."""
        files = self.config.data.files
        names = [name for name in files if name in _LIVE]
        self._patiently(lambda: self._download(names, current.number))
        for name in files:
            if name in _COMPARED:
                try:
                    self._download([name], current.number)
                except (ApiError, DataError) as error:
                    # No reason not to submit.
                    warnings.warn(str(error), UserWarning, stacklevel=2)
        self._number = current.number
        self._submitted.clear()
        for model in self.config.models:
            with self._going_on(f"submitting {model.name!r}"):
                self._deliver_what_is_there(model)

    def _download(self, names: list[str], round_number: int) -> None:
        download(
            self.client,
            self.workspace,
            names,
            refresh=self.config.data.refresh,
            round_number=round_number,
            on_step=self.told.step,
            on_progress=self.told.progress,
        )

    def _fetch_rest(self) -> None:
        """Fetch what a training or a validation needs, where anything is missing."""
        files, refresh = self.config.data.files, self.config.data.refresh
        names = [name for name in files if name not in (*_LIVE, *_COMPARED)]
        due = wanted(self.workspace, names, refresh, self._number)
        if due or any(not self._is_done(model) for model in self.config.models):
            self._download(names, self._number)

    def _is_done(self, model: Model) -> bool:
        return (
            not self.retrain
            and not reasons_to_train(self.workspace, model)
            and is_validated(self.config, self.workspace, model)
        )

    def _deliver_what_is_there(self, model: Model) -> None:
        """Submit with the fits that are there, unless they are of other data."""
        name, version = repr(model.name), self.workspace.version
        try:
            records = read_records(self.workspace, model)
        except NoModelError:
            self.told.step(f"{name} is submitted once all of its fits are trained.")
            return
        if any(record.version not in ("", version) for record in records):
            self.told.step(f"{name} is submitted once it is trained on {version}.")
            return
        for member, reason in reasons_to_train(self.workspace, model).items():
            self.told.step(
                f"{spell(model, member)} is not the one configured ({reason}): the one "
                "that is there predicts until it is trained."
            )
        self._deliver(model)

    def _deliver(self, model: Model) -> None:
        """Predict and submit, unless a file of the user's was submitted."""
        folder = self.workspace.round_dir(self._number, model.name)
        record = read_submission_record(folder / "submission.json")
        if self.upload and record is not None and not record.model_sha256:
            self.told.step(
                f"Round {self._number}: {model.name!r} was submitted from a file of "
                f"yours, {record.file}: it is left alone."
            )
            return
        predict_model(self.config, self.workspace, model, self._number, self.told)
        if self.upload:
            submit_model(
                self.client, self.config, self.workspace, model, self._number, self.told
            )
        self._submitted.add(model.name)

    def _train_if_due(self, model: Model) -> None:
        if not self.retrain and not reasons_to_train(self.workspace, model):
            return
        try:
            train_model(self.workspace, model, self.told, restart=self.retrain)
        except BusyError as error:
            if model.name not in self._submitted:
                raise
            self.told.step(f"{error} Its model is for the next run.")
            return
        current = self._follow_rounds()
        if current is None:
            return
        if current.is_open or model.name not in self._submitted:
            self._deliver(model)
        else:
            self.told.step(
                f"Round {current.number} has closed: {model.name!r} as trained now is "
                "for the next."
            )

    def _validate_if_due(self, model: Model) -> None:
        if is_validated(self.config, self.workspace, model):
            return
        try:
            validate_model(self.config, self.workspace, model, self.told)
        except BusyError as error:
            self.told.step(str(error))
            return
        self._follow_rounds()

    def _follow_rounds(self) -> Round | None:
        """The round, after hours of work; a new one is submitted, and None returned."""
        current = self.client.current_round()
        if current.number == self._number:
            return current
        self._begin_round(current)
        return None


def plan(
    client: Numerai, config: Config, workspace: Workspace, *, retrain: bool = False
) -> Iterator[str]:
    """What a run would do, a sentence each; nothing is written anywhere."""
    check_parameters(config, workspace)
    number = None
    try:
        client.check_keys()
    except ConfigError as error:
        yield f"Would submit nothing: {error}"
    try:
        current = client.current_round()
    except ApiError as error:
        yield f"Numerai cannot be asked for the current round: {error}"
    else:
        number = current.number
        state = "is open" if current.is_open else "has closed"
        closes = f" until {current.closes:%Y-%m-%d %H:%M} UTC" if current.closes else ""
        yield f"Round {number} {state}{closes if current.is_open else ''}."
        reasons = wanted(workspace, config.data.files, config.data.refresh, number)
        for name, reason in reasons.items():
            yield f"Would download {name}: {reason}."
    for model in config.models:
        name = repr(model.name)
        due = reasons_to_train(workspace, model)
        if retrain:
            due = {member.name: "as requested" for member in model.members} | due
        for member, reason in due.items():
            yield f"Would train {spell(model, member)}: {reason}."
        if number is not None:
            path = workspace.round_dir(number, model.name) / "submission.json"
            record = read_submission_record(path)
            if record is not None and record.state == "submitted":
                yield (
                    f"{name} has submission {record.submission_id} for round {number}; "
                    "would submit again only if the predictions differ."
                )
            else:
                yield f"Would predict and submit {name} for round {number}."
        if due or not is_validated(config, workspace, model):
            yield f"Would validate {name}."
        if config.export.automatic and (
            due or not is_exported(config, workspace, model)
        ):
            yield f"Would export {name}."
