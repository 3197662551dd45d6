"""The commands that make, judge and submit models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from sklearn_era.cli._errors import InputError, warnings_printed
from sklearn_era.cli.numerai import _account
from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    ModelOption,
    RoundOption,
    check_packages,
    chosen,
    load,
    make_client,
)
from sklearn_era.numerai.errors import NumeraiError, SubmissionError


class _Group(typer.core.TyperGroup):
    """Commands whose interruption loses nothing, and that say so."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            told = "Interrupted. Run the command again to go on"
            typer.echo(f"{told}, without --restart or --retrain.", err=True)
            raise typer.Exit(130) from None
        except MemoryError:
            message = "There is not enough memory: use fewer features or eras."
            typer.echo(f"Error: {message}", err=True)
            raise typer.Exit(1) from None


numerai = typer.Typer(
    name="numerai",
    cls=_Group,
    no_args_is_help=True,
    help="Train, validate and submit models for Numerai's Classic tournament.",
    epilog="Exit codes: 0 done, 1 a package or memory is missing, 2 configuration or "
    "arguments, 3 files, 4 Numerai's API, 5 a submission that breaks a rule, 6 an "
    "upload that failed or is unclear, 7 an export, 130 interrupted.",
)


@numerai.command()
def init(
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Your model's name at Numerai."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Target, such as 'target_ender_60'."),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(metavar="V", help="Version of the data; by default the latest."),
    ] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write a configuration file, with every default explained.

    Without --name or --target, it asks Numerai and lists your models and the targets.
    """
    check_packages()
    from sklearn_era.numerai.config import write_config

    client = make_client(config.absolute().parent)
    choice = _account.choose(client, name=name, target=target, version=version)
    write_config(config, name=choice.name, target=choice.target, version=choice.version)
    typer.echo(
        f"Wrote {config}, for {choice.target} of {choice.version}. Edit it as you "
        "like; then 'sklearn-era numerai run --dry-run' shows what is to be done."
    )


@numerai.command()
def run(
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be done, and do nothing."),
    ] = False,
    no_submit: Annotated[
        bool,
        typer.Option("--no-submit", help="Do all but the upload; needs no keys."),
    ] = False,
    retrain: Annotated[
        bool,
        typer.Option("--retrain", help="Train models that are up to date, too."),
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="MIN",
            help="Wait up to MIN minutes for a round to open and its data to appear.",
        ),
    ] = 0.0,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Try it on made-up data: no keys, no network, no upload."
        ),
    ] = False,
    demo_folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of --demo.")
    ] = Path("numerai-demo"),
    config: ConfigOption = CONFIG,
) -> None:
    """Bring everything up to date for the current round.

    The round is submitted first, with the models that are there. Models that are
    missing or whose settings changed are trained after that, and submitted again. Run
    it as often as you like: what is done is not done again, and what was interrupted
    goes on.
    """
    if demo:
        if dry_run or no_submit or retrain or wait:
            raise InputError("--demo can only be combined with --demo-folder.")
        check_packages()
        from sklearn_era.cli.numerai._demo import run_demo

        run_demo(demo_folder)
        return
    settings, workspace = load(config)
    from sklearn_era.cli.numerai._terminal import terminal
    from sklearn_era.numerai.pipeline import Run, plan

    client = make_client(workspace.root, settings)
    if dry_run:
        with warnings_printed():
            for line in plan(client, settings, workspace, retrain=retrain):
                typer.echo(line)
        return
    with terminal() as told:
        failures = Run(
            client,
            settings,
            workspace,
            told,
            upload=not no_submit,
            retrain=retrain,
            wait=wait,
        )()
    if no_submit:
        typer.echo("Nothing was uploaded (--no-submit).")
    _report_failures(failures)


numerai.command("weekly", hidden=True)(run)


def _report_failures(failures: Sequence[Any]) -> None:
    """Raise the first failure, and print the others."""
    for failure in failures[1:]:
        typer.echo(f"Error: While {failure.what}: {failure.error}", err=True)
    if failures:
        first = failures[0]
        if not isinstance(first.error, NumeraiError):
            raise first.error
        raise type(first.error)(f"While {first.what}: {first.error}")


@numerai.command()
def download(
    refresh: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A file to fetch again, such as 'train'; repeatable."
        ),
    ] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Download missing files, and the live files of the round."""
    settings, workspace = load(config)
    from sklearn_era.cli.numerai._terminal import terminal
    from sklearn_era.numerai import download as downloads

    client = make_client(workspace.root, settings)
    names = [*settings.data.files, *(refresh or [])]
    with terminal() as told:
        downloads.download(
            client,
            workspace,
            names,
            refresh=[*settings.data.refresh, *(refresh or [])],
            round_number=client.current_round().number,
            on_step=told.step,
            on_progress=told.progress,
        )


@numerai.command()
def train(
    model: ModelOption = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Train from the first tree, whatever is there.",
        ),
    ] = False,
    config: ConfigOption = CONFIG,
) -> None:
    """Train the models that are not up to date.

    A training that was interrupted goes on from its last checkpoint.
    """
    settings, workspace = load(config)
    from sklearn_era.cli.numerai._terminal import terminal
    from sklearn_era.numerai import steps

    steps.check_parameters(settings, workspace)
    with terminal() as told:
        for one in chosen(settings, model):
            if not restart and not steps.reasons_to_train(workspace, one):
                told.step(f"{one.name!r} is up to date; --restart trains it anyway.")
                continue
            steps.train_model(workspace, one, told, restart=restart)


@numerai.command()
def validate(model: ModelOption = None, config: ConfigOption = CONFIG) -> None:
    """Score models era by era, next to the benchmark.

    Writes report.json and figures for each model.
    """
    settings, workspace = load(config)
    from sklearn_era.cli.numerai._terminal import terminal
    from sklearn_era.numerai import steps

    with terminal() as told:
        for one in chosen(settings, model):
            steps.validate_model(settings, workspace, one, told)


@numerai.command()
def predict(
    model: ModelOption = None,
    round_number: RoundOption = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Predict the live era, and write the submission."""
    settings, workspace = load(config)
    from sklearn_era.cli.numerai._terminal import terminal
    from sklearn_era.numerai import steps

    number = steps.live_round(workspace, round_number)
    with terminal() as told:
        for one in chosen(settings, model):
            steps.predict_model(settings, workspace, one, number, told)
            for member, reason in steps.reasons_to_train(workspace, one).items():
                shown = steps.spell(one, member)
                typer.echo(f"Warning: {shown} is not up to date: {reason}.", err=True)


@numerai.command()
def submit(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Predictions of any model: CSV or Parquet; needs --model.",
        ),
    ] = None,
    model: ModelOption = None,
    round_number: RoundOption = None,
    require_open: Annotated[
        bool | None,
        typer.Option(
            "--require-open/--allow-closed",
            help="Exit with an error if the round is closed, or have it queued.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", "--again", help="Upload what is submitted already."),
    ] = False,
    config: ConfigOption = CONFIG,
) -> None:
    """Check and upload predictions, and confirm that they arrived.

    Without FILE, those that 'predict' wrote. Keys are read from NUMERAI_PUBLIC_ID and
    NUMERAI_SECRET_KEY, in the environment or in a file .env beside the configuration.
    After an error, run it again: nothing is submitted twice.
    """
    from sklearn_era.cli.numerai._terminal import terminal

    if file is not None:
        check_packages()
        if round_number is not None:
            raise InputError("--round: FILE is submitted to the current round.")
        with terminal() as told:
            _account.submit_file(
                file, model, config, told, require_open=bool(require_open), force=force
            )
        return
    settings, workspace = load(config)
    from sklearn_era.numerai import steps

    number = steps.live_round(workspace, round_number)
    client = make_client(workspace.root, settings)
    client.check_keys()
    current = client.current_round().number
    if current != number:
        raise SubmissionError(
            f"The newest live file here is of round {number}, and the current round is "
            f"{current}: run 'sklearn-era numerai run', or download and predict first."
        )
    with terminal() as told:
        for one in chosen(settings, model):
            record = steps.submit_model(
                client,
                settings,
                workspace,
                one,
                number,
                told,
                require_open=require_open,
                force=force,
            )
            told.step(
                f"Round {number}: {one.name!r} has submission {record.submission_id}."
            )


@numerai.command()
def export(
    model: ModelOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PICKLE", help="File to write."),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="PROGRAM", help="Python to check with, such as that of an image."
        ),
    ] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write a model as a pickle that Numerai runs.

    It is tested the way Numerai runs it.
    """
    settings, workspace = load(config)
    from sklearn_era.cli.numerai._terminal import terminal
    from sklearn_era.numerai import steps

    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise InputError(f"--out: '{out}' must be a file in a folder that exists.")
    models = chosen(settings, model)
    if out is not None and len(models) > 1:
        raise InputError("--out: name one model with --model.")
    with terminal() as told:
        for one in models:
            steps.export_model(workspace, one, told, path=out, python=python)


numerai.command()(_account.upload)
numerai.command()(_account.scores)
