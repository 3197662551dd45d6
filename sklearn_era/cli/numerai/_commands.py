"""The commands; what they import heavily is imported as they run, for ``--help``."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
from rich.prompt import Prompt

from sklearn_era.cli._errors import InputError, option
from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    ModelOption,
    RoundOption,
    check_packages,
    chosen,
    opened,
)
from sklearn_era.cli.numerai._terminal import number, print_table
from sklearn_era.numerai.errors import ApiError, ConfigError, NumeraiError

if TYPE_CHECKING:
    from sklearn_era.numerai.api import Numerai

_Text = str | None
_DRY_RUN = typer.Option("--dry-run", help="Print what would be done and exit.")
_NO_SUBMIT = typer.Option("--no-submit", help="Skip the upload; needs no keys.")
_RETRAIN = typer.Option("--retrain", help="Also train models that are up to date.")
_WAIT = option("MIN", "Minutes to wait for the round to open and its data.", min=0)
_DEMO = typer.Option("--demo", help="Try it on made-up data: no keys, no network.")
_FOLDER = typer.Option(metavar="FOLDER", help="Folder for --demo.", file_okay=False)
_REFRESH = option("NAME", "A file to download again, like 'train'; repeatable.")
_RESTART = typer.Option("--restart", help="Start again from the first tree.")
_FILE = typer.Argument(metavar="FILE", help="Predictions, as CSV or Parquet.")
_OPEN_HELP = "Fail if the round is closed, or let Numerai queue the upload."
_OPEN = typer.Option("--require-open/--allow-closed", help=_OPEN_HELP)
_FORCE = typer.Option("--force", "--again", help="Upload even if already submitted.")
_PICKLE = option("PICKLE", "By default, export's output.", "--file", exists=True)
_ASSIGN_HELP = "Let it make the submissions; Numerai then refuses predictions."
_ASSIGN = typer.Option("--assign/--no-assign", help=_ASSIGN_HELP)


class _Group(typer.core.TyperGroup):
    """Commands whose interruption loses nothing, and that say so."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            told = "Interrupted. Run the command again to resume"
            typer.echo(f"{told}, without --restart or --retrain.", err=True)
            raise typer.Exit(130) from None
        except MemoryError:
            message = "Out of memory: use fewer features or eras."
            typer.echo(f"Error: {message}", err=True)
            raise typer.Exit(1) from None


numerai = typer.Typer(
    name="numerai",
    cls=_Group,
    no_args_is_help=True,
    help="Train, validate and submit models for the Numerai tournament.",
    epilog="Exit codes: 0 success, 1 missing package or memory, 2 configuration or "
    "arguments, 3 files, 4 Numerai's API, 5 invalid submission, 6 upload failed or "
    "unconfirmed, 7 export failed, 130 interrupted.",
)


@numerai.command()
def init(
    name: Annotated[_Text, option("NAME", "Your model's name at Numerai.")] = None,
    target: Annotated[_Text, option("COL", "Target, like 'target_ender_60'.")] = None,
    version: Annotated[
        _Text, option("V", "Data version; by default the latest.")
    ] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write a configuration file that explains every default.

    Without --name or --target, lists your models or the targets and asks.
    """
    check_packages()
    from sklearn_era.numerai.api import Numerai
    from sklearn_era.numerai.config import DataSection, check_target, write_config
    from sklearn_era.numerai.download import latest_version

    client, served = Numerai.from_environment(config.absolute().parent), list[str]()
    try:
        served = client.datasets()
    except ApiError as error:
        if target is None:
            raise
        if version is None:
            told = f"The latest version of the data is unknown. {error}"
            typer.echo(f"Warning: {told}", err=True)
    default = DataSection.model_fields["version"].default
    version = version or latest_version(served) or default
    versions = sorted({file.partition("/")[0] for file in served if "/" in file})
    if served and version not in versions:
        raise InputError(f"--version: Numerai only has {', '.join(versions)}.")
    targets = _targets(client, version) if served else []
    if target is None:
        named = [one for one in targets if one != "target"]
        target = _ask("--target", f"Targets of {version}", named)
    check_target(target, targets)
    if name is None:
        name = _ask("--name", "Your models", sorted(client.models()))
    elif served:
        with suppress(ConfigError):  # without keys, the name is taken as it is
            client.model_id(name)
    write_config(config, name=name, target=target, version=version)
    typer.echo(
        f"Wrote {config} for {target} of {version}. Edit it as you like, then run "
        "'sklearn-era numerai run --dry-run' to see what would be done."
    )


def _targets(client: "Numerai", version: str) -> list[str]:
    """The targets of a version, by its features.json."""
    from sklearn_era.numerai.data import read_features
    from sklearn_era.numerai.download import served_name

    with TemporaryDirectory(prefix="sklearn-era-") as folder:
        path = Path(folder) / "features.json"
        client.download(served_name(version, "features"), path, round_number=None)
        return read_features(path).targets


def _ask(option: str, what: str, choices: Sequence[str]) -> str:
    listed = f"{what}: {', '.join(choices) or 'none'}."
    if not choices or not sys.stdin.isatty():
        raise InputError(f"{option} is required. {listed}")
    typer.echo(listed)
    return Prompt.ask(option[2:], choices=[*choices], show_choices=False)


@numerai.command()
@numerai.command("weekly", hidden=True)
def run(
    dry_run: Annotated[bool, _DRY_RUN] = False,
    no_submit: Annotated[bool, _NO_SUBMIT] = False,
    retrain: Annotated[bool, _RETRAIN] = False,
    wait: Annotated[float, _WAIT] = 0.0,
    demo: Annotated[bool, _DEMO] = False,
    demo_folder: Annotated[Path, _FOLDER] = Path("numerai-demo"),
    config: ConfigOption = CONFIG,
) -> None:
    """Bring everything up to date for the current round.

    Submits the round first, with the existing models. Then trains models that are
    missing or whose settings changed, and submits those again. Run it as often as you
    like: it repeats nothing that is done, and resumes what was interrupted.
    """
    if demo:
        if dry_run or no_submit or retrain or wait:
            raise InputError("--demo can only be combined with --demo-folder.")
        from sklearn_era.cli.numerai._demo import run_demo

        run_demo(demo_folder)
        return
    with opened(config) as steps:
        from sklearn_era.numerai.pipeline import Run

        work = Run(steps, upload=not no_submit, retrain=retrain, wait=wait)
        if dry_run:
            for line in work.plan():
                typer.echo(line)
            return
        failures = work()
    if no_submit:
        typer.echo("Nothing was uploaded (--no-submit).")
    for what, error in failures[1:]:
        typer.echo(f"Error: While {what}: {error}", err=True)
    for what, error in failures[:1]:
        if not isinstance(error, NumeraiError):
            raise error
        raise type(error)(f"While {what}: {error}")


@numerai.command()
def download(
    refresh: Annotated[list[str] | None, _REFRESH] = None, config: ConfigOption = CONFIG
) -> None:
    """Download missing files and the live files of the current round."""
    with opened(config) as steps:
        names = [*steps.config.data.files, *(refresh or [])]
        number = steps.client.current_round().number
        steps.download(names, number, refresh=refresh or [])


@numerai.command()
def train(
    model: ModelOption = None,
    restart: Annotated[bool, _RESTART] = False,
    resume: Annotated[bool, typer.Option("--resume", hidden=True)] = False,
    config: ConfigOption = CONFIG,
) -> None:
    """Train the models that are not up to date.

    An interrupted training resumes from its last checkpoint.
    """
    if restart and resume:
        raise InputError("--resume cannot be combined with --restart.")
    with opened(config) as steps:
        steps.check_parameters()
        for one in chosen(steps, model):
            if steps.reasons_to_train(one, restart=restart):
                steps.train(one, restart=restart)
            else:
                typer.echo(f"{one.name!r} is up to date; use --restart to train it.")


@numerai.command()
def validate(model: ModelOption = None, config: ConfigOption = CONFIG) -> None:
    """Score models era by era, next to the benchmark.

    Writes report.json and figures for each model.
    """
    with opened(config) as steps:
        for one in chosen(steps, model):
            steps.validate(one)


@numerai.command()
def predict(
    model: ModelOption = None,
    round_number: RoundOption = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Predict the live era and write the submission."""
    with opened(config) as steps:
        number = steps.live_round(round_number)
        for one in chosen(steps, model):
            steps.predict(one, number)
            for shown, reason in steps.reasons_to_train(one).items():
                typer.echo(f"Warning: {shown} is out of date: {reason}.", err=True)


@numerai.command()
def submit(
    file: Annotated[Path | None, _FILE] = None,
    model: ModelOption = None,
    round_number: RoundOption = None,
    require_open: Annotated[bool | None, _OPEN] = None,
    force: Annotated[bool, _FORCE] = False,
    config: ConfigOption = CONFIG,
) -> None:
    """Check and upload predictions, and confirm that they arrived.

    Without FILE, submits what 'predict' wrote. Set NUMERAI_PUBLIC_ID and
    NUMERAI_SECRET_KEY in the environment or in a file .env next to the configuration.
    After an error, run it again: nothing is submitted twice.
    """
    if file is not None and round_number is not None:
        raise InputError("--round: leave it out; FILE goes to the current round.")
    if file is not None and model is None:
        raise InputError("--model: name the model to submit FILE for.")
    with opened(config, needed=file is None) as steps:
        from sklearn_era.numerai.submit import submit

        steps.client.check_keys()
        if file is not None and model is not None:
            names, number = [model], steps.client.current_round().number
        else:
            names = [one.name for one in chosen(steps, model)]
            number = steps.live_round(round_number)
        for name in names:
            record = submit(
                steps, name, number, file, require_open=require_open, force=force
            )
            typer.echo(
                f"Round {number}: {name!r} has submission {record.submission_id}."
            )


@numerai.command()
def export(
    model: ModelOption = None,
    out: Annotated[Path | None, option("PICKLE", "Output.", "--out", "-o")] = None,
    python: Annotated[_Text, option("PROGRAM", "Python to test it with.")] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write a portable model, a pickle that Numerai can run.

    Tests it the way Numerai runs it.
    """
    if out is not None and not out.parent.is_dir():
        raise InputError(f"--out: '{out}' must be in an existing folder.")
    with opened(config) as steps:
        models = chosen(steps, model)
        if out is not None and len(models) > 1:
            raise InputError("--out: choose one model with --model.")
        for one in models:
            steps.export(one, path=out, python=python)


@numerai.command()
def upload(
    model: ModelOption = None,
    file: Annotated[Path | None, _PICKLE] = None,
    image: Annotated[_Text, option("NAME", "Docker image, if not the default.")] = None,
    wait: Annotated[float, option("MIN", "Minutes to wait.", min=0)] = 30.0,
    assign: Annotated[bool, _ASSIGN] = False,
    config: ConfigOption = CONFIG,
) -> None:
    """Upload a portable model and wait until Numerai has run it.

    It makes no submissions until you assign it to the model, with --assign or on
    Numerai's website.
    """
    with opened(config) as steps:
        from sklearn_era.numerai.export_check import check_portable_model
        from sklearn_era.numerai.pickle_upload import upload_pickle

        one = steps.config.model(model)
        path = file or steps.portable(one)
        if file is None and not steps.is_exported(one):
            raise InputError(
                f"{path} is missing or out of date: run 'sklearn-era numerai export' "
                "first."
            )
        steps.client.check_keys()
        check_portable_model(path, steps.workspace.need("live"))
        typer.echo(f"{path.name} runs within Numerai's limits.")
        upload_pickle(
            steps.client,
            one.name,
            path,
            image=image,
            data_version=steps.workspace.version,
            wait=60 * wait,
            assign=assign,
            on_step=typer.echo,
        )


@numerai.command()
def scores(
    model: ModelOption = None,
    rounds: Annotated[int, option("INT", "Number of rounds to show.", min=1)] = 60,
    out: Annotated[Path, option("PNG", "Figure.", "--out", "-o")] = Path("scores.png"),
    config: ConfigOption = CONFIG,
) -> None:
    """Show your models' live scores next to their validation scores."""
    with opened(config) as steps:
        from sklearn_era.numerai import scores
        from sklearn_era.numerai.config import horizon_of
        from sklearn_era.numerai.figures import as_png
        from sklearn_era.numerai.files import write_whole

        known, models = steps.client.models(), chosen(steps, model)
        ids = {one.name: steps.client.model_id(one.name, known) for one in models}
        horizons = {one.name: horizon_of(one.train.target) for one in models}
        found = scores.live_scores(steps.client, ids, rounds, horizons)
        promised = scores.promised_scores(steps.workspace, [*ids])
        rows = []
        for score in found:
            cells = map(number, score[2:6])
            state = "" if score.resolved else "not final"
            rows.append([str(score.round_number), score.model, *cells, state])
        for name, means in promised.items():
            cells = map(number, map(means.get, ("corr", "mmc", "bmc", "fnc")))
            rows.append(["report", name, *cells, "validation"])
        if not found:
            typer.echo("Numerai has no scores for these models yet.")
            return
        headings = ("Round", "Model", "CORR", "MMC", "BMC", "FNC", "")
        print_table("Scores at Numerai", headings, rows)
        write_whole(out, as_png(scores.draw_scores(found, promised)))
        typer.echo(f"Figure: {out}")
