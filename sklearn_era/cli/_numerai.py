"""Define the commands of ``numerai``. Heavy imports wait until a command runs."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.prompt import Prompt

from sklearn_era.cli import _ui
from sklearn_era.cli._ui import InputError, echo, number, option, print_table
from sklearn_era.numerai.errors import ApiError, ConfigError, ExportError, NumeraiError

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Model
    from sklearn_era.numerai.steps import Steps

_PACKAGES = ("filelock", "lightgbm", "numerai-tools", "pandas", "pyarrow", "pydantic")
check_packages = partial(_ui.check_packages, "numerai", *_PACKAGES, "requests")
_Text = str | None
_TOML = Path("numerai.toml")
_CONFIG = option("TOML", "Configuration; files go next to it.", "--config", "-c")
_Config = Annotated[Path, _CONFIG]
_Model = Annotated[_Text, option("NAME", "Only this model.", "--model", "-m")]
_DRY_RUN = typer.Option("--dry-run", help="Print what would be done and exit.")
_NO_SUBMIT = typer.Option("--no-submit", help="Skip the upload; needs no keys.")
_RETRAIN = typer.Option("--retrain", help="Also train models that are up to date.")
_WAIT = option("MIN", "Minutes to wait for the round to open and its data.", min=0)
_DEMO = typer.Option("--demo", help="Try it on made-up data: no keys, no network.")
_FOLDER = typer.Option(metavar="FOLDER", help="Folder for --demo.", file_okay=False)
_REFRESH = option("NAME", "A file to download again, like 'train'; repeatable.")
_RESTART = typer.Option("--restart", help="Start again from the first tree.")
_FILE = typer.Argument(metavar="FILE", help="Predictions, as CSV or Parquet.")
_QUEUE = "Fail if the round is closed, or let Numerai queue the upload."
_OPEN = typer.Option("--require-open/--allow-closed", help=_QUEUE)
_FORCE = typer.Option("--force", help="Upload even if already submitted.")
_PICKLE = option("PICKLE", "By default, export's output.", "--file", exists=True)
_FIGURE = option("PNG", "Figure, if not scores.png.", "--out", "-o")
_ASSIGN = "Let it make the submissions; Numerai then refuses predictions."

numerai = typer.Typer(
    name="numerai", no_args_is_help=True,
    help="Train, validate and submit models for the Numerai tournament.",
    epilog="Exit codes: 0 success, 1 missing package or memory, 2 configuration or "
    "arguments, 3 files, 4 Numerai's API, 5 invalid submission, 6 upload failed or "
    "unconfirmed, 7 export failed, 130 interrupted.",
)  # fmt: skip


@contextmanager
def opened(path: Path, *, needed: bool = True) -> "Iterator[Steps]":
    """Yield `Steps` that report to the terminal and use the configuration at `path` or,
    if this file is missing and not `needed`, an empty configuration.
    """
    check_packages()
    from sklearn_era.numerai.config import Config, SubmitSection, Workspace, load_config

    if needed or path.exists():
        config, workspace = load_config(path)
    else:  # a file of predictions can be submitted without a configuration
        from sklearn_era.numerai.api import Numerai
        from sklearn_era.numerai.download import latest_version

        root = path.absolute().parent
        version = latest_version(Numerai.from_environment(root).datasets())
        config = Config.model_construct(models=(), submit=SubmitSection())
        workspace = Workspace(root, version or "")
    from sklearn_era.numerai.steps import Steps

    terminal = _ui.Terminal()
    with terminal.bars:
        yield Steps(config, workspace, terminal)


def chosen(steps: "Steps", name: str | None) -> "Sequence[Model]":
    """Return a list of the model with this name, or of all models if `name` is None."""
    return steps.config.models if name is None else [steps.config.model(name)]


@numerai.command()
def init(
    name: Annotated[_Text, option("NAME", "Your model's name at Numerai.")] = None,
    target: Annotated[_Text, option("COL", "Target, like 'target_ender_60'.")] = None,
    version: Annotated[_Text, option("V", "Data version, if not the latest.")] = None,
    config: _Config = _TOML,
) -> None:
    """Write a configuration file that explains every default.

    Without --name or --target, the command lists your models or the targets, and asks.
    """
    check_packages()
    from sklearn_era.numerai.api import Numerai
    from sklearn_era.numerai.config import DataSection, check_target, write_config
    from sklearn_era.numerai.data import read_features
    from sklearn_era.numerai.download import Fetch, latest_version, served_name

    client, served = Numerai.from_environment(config.absolute().parent), list[str]()
    try:
        served = client.datasets()
    except ApiError as error:
        if target is None:
            raise
        if version is None:
            text = "Warning: The latest version of the data is unknown."
            echo(f"{text} {error}", err=True)
    version = version or latest_version(served) or DataSection().version
    targets = list[str]()
    if served:
        versions = sorted({file.partition("/")[0] for file in served if "/" in file})
        if version not in versions:
            raise InputError(f"--version: Numerai only has {', '.join(versions)}.")
        with TemporaryDirectory(prefix="sklearn-era-") as folder:
            path, file = Path(folder, "features.json"), served_name(version, "features")
            Fetch(client, file, path)()
            targets = read_features(path).targets
    if target is None:
        named = [one for one in targets if one != "target"]
        target = _ask("--target", f"Targets of {version}", named)
    check_target(target, targets)
    if name is None:
        name = _ask("--name", "Your models", sorted(client.models()))
    elif served:
        with suppress(ConfigError):  # without keys, the name is not checked
            client.model_id(name)
    write_config(config, name=name, target=target, version=version)
    tip = "'sklearn-era numerai run --dry-run' shows what would be done"
    echo(f"Wrote {config} for {target} of {version}. Edit it as you like; {tip}.")


def _ask(option: str, what: str, choices: Sequence[str]) -> str:
    listed = f"{what}: {', '.join(choices) or 'none'}."
    if not choices or not sys.stdin.isatty():
        raise InputError(f"{option} is required. {listed}")
    echo(listed)
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
    config: _Config = _TOML,
) -> None:
    """Bring everything up to date for the current round.

    The command first submits the round with the existing models. Then it trains models
    that are missing or whose settings changed, and submits these models again. Run it
    as often as you like: it repeats no finished step, and resumes interrupted steps.
    """
    if demo:
        if dry_run or no_submit or retrain or wait:
            raise InputError("--demo can only be combined with --demo-folder.")
        check_packages()
        from sklearn_era.cli._numerai_demo import make_folder, run_demo

        with opened(make_folder(demo_folder)) as steps:
            run_demo(steps)
        echo("Nothing was uploaded (--demo).")
        return
    with opened(config) as steps:
        from sklearn_era.numerai.pipeline import Run

        work = Run(steps, upload=not no_submit, retrain=retrain, wait=wait)
        if dry_run:
            for line in work.plan():
                echo(line)
            return
        failures = work()
    if no_submit:
        echo("Nothing was uploaded (--no-submit).")
    for what, error in failures[1:]:
        echo(f"Error: While {what}: {error}", err=True)
    for what, error in failures[:1]:
        if not isinstance(error, NumeraiError):
            raise error
        raise type(error)(f"While {what}: {error}")


@numerai.command()
def download(
    refresh: Annotated[list[str] | None, _REFRESH] = None, config: _Config = _TOML
) -> None:
    """Download missing files and the live files of the current round."""
    with opened(config) as steps:
        names = [*steps.config.data.files, *(refresh or [])]
        steps.download(names, steps.client.current_round().number, refresh or [])


@numerai.command()
def train(
    model: _Model = None,
    restart: Annotated[bool, _RESTART] = False,
    config: _Config = _TOML,
) -> None:
    """Train the models that are not up to date; resume an interrupted training."""
    with opened(config) as steps:
        steps.check_parameters()
        steps.workspace.need("features")  # by which a fit may be out of date
        if restart:
            steps.request_training(chosen(steps, model))
        for one in chosen(steps, model):
            if steps.reasons_to_train(one, restart=restart):
                steps.train(one, restart=restart)
            else:
                echo(f"{one.name!r} is up to date; use --restart to train it.")


def _warn_of_age(steps: Any, model: Any) -> None:
    for shown, reason in steps.reasons_to_train(model).items():
        echo(f"Warning: {shown} is out of date: {reason}.", err=True)


@numerai.command()
def validate(model: _Model = None, config: _Config = _TOML) -> None:
    """Score models and the benchmark era by era; write report.json and figures."""
    with opened(config) as steps:
        for one in chosen(steps, model):
            steps.validate(one)
            _warn_of_age(steps, one)


@numerai.command()
def predict(model: _Model = None, config: _Config = _TOML) -> None:
    """Predict the live era and write the submission."""
    with opened(config) as steps:
        number = steps.live_round()
        for one in chosen(steps, model):
            steps.predict(one, number)
            _warn_of_age(steps, one)


@numerai.command()
def submit(
    file: Annotated[Path | None, _FILE] = None,
    model: _Model = None,
    require_open: Annotated[bool | None, _OPEN] = None,
    force: Annotated[bool, _FORCE] = False,
    config: _Config = _TOML,
) -> None:
    """Check and upload predictions, and confirm that they arrived.

    Without FILE, the command submits the predictions that 'predict' wrote. Set
    NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY in the environment or in a file .env next
    to the configuration. After an error, run it again: nothing is submitted twice.
    """
    if file is not None and model is None:
        raise InputError("--model: name the model to submit FILE for.")
    with opened(config, needed=file is None) as steps:
        from sklearn_era.numerai.submit import submit

        steps.client.check_keys()
        if file is not None and model is not None:
            names, number = [model], steps.client.current_round().number
        else:
            names = [one.name for one in chosen(steps, model)]
            number = steps.live_round()
        for name in names:
            of = steps, name, number, file
            record = submit(*of, require_open=require_open, force=force)
            text = f"has submission {record.submission_id}"
            echo(f"Round {number}: {name!r} {text}.")


@numerai.command()
def export(
    model: _Model = None,
    python: Annotated[_Text, option("PROGRAM", "Python to test it with.")] = None,
    config: _Config = _TOML,
) -> None:
    """Write a portable model, a pickle, and test it as Numerai runs it."""
    with opened(config) as steps:
        for one in chosen(steps, model):
            steps.export(one, python=python)
            _warn_of_age(steps, one)


@numerai.command()
def upload(
    model: _Model = None,
    file: Annotated[Path | None, _PICKLE] = None,
    image: Annotated[_Text, option("NAME", "Docker image, if not the default.")] = None,
    wait: Annotated[float, option("MIN", "Minutes to wait.", min=0)] = 30.0,
    assign: Annotated[bool, typer.Option(help=_ASSIGN)] = False,
    config: _Config = _TOML,
) -> None:
    """Upload a portable model and wait until Numerai has run it.

    The uploaded file makes no submissions until it is assigned to your Numerai model,
    with --assign or on Numerai's website.
    """
    with opened(config) as steps:
        from sklearn_era.numerai import export
        from sklearn_era.numerai.export_check import check_portable_model

        one = steps.config.model(model)
        path = file or steps.portable(one)
        if file is None and (reason := export.why_not_portable(one)):
            raise ExportError(reason)
        if file is None and not steps.is_exported(one):
            text = "is missing or out of date: run 'sklearn-era numerai export' first"
            raise InputError(f"{path} {text}.")
        steps.client.check_keys()
        check_portable_model(path, steps.workspace.need("live"))
        echo(f"{path.name} runs within Numerai's limits.")
        export.upload_pickle(
            steps.client, one.name, path, image=image, assign=assign, wait=60 * wait,
            data_version=steps.workspace.version, on_step=echo,
        )  # fmt: skip


@numerai.command()
def scores(
    model: _Model = None,
    rounds: Annotated[int, option("INT", "Number of rounds to show.", min=1)] = 60,
    out: Annotated[Path | None, _FIGURE] = None,
    config: _Config = _TOML,
) -> None:
    """Show your models' live scores next to their validation scores."""
    with opened(config) as steps:
        from sklearn_era.numerai import report
        from sklearn_era.numerai.config import horizon_of
        from sklearn_era.numerai.files import write_whole

        known, models = steps.client.models(), chosen(steps, model)
        ids = {one.name: steps.client.model_id(one.name, known) for one in models}
        horizons = {one.name: horizon_of(one.train.target) for one in models}
        found = report.live_scores(steps.client, ids, rounds, horizons)
        promised = report.promised_scores(steps.workspace, [*ids])
        if not found:
            echo("Numerai has no scores for these models yet.")
            return
        metrics, rows = ("corr", "mmc", "bmc", "fnc"), list[list[str]]()
        for score in found:
            cells = (number(getattr(score, metric)) for metric in metrics)
            state = "" if score.resolved else "not final"
            rows.append([str(score.round_number), score.model, *cells, state])
        for name, means in promised.items():
            cells = (number(means.get(metric)) for metric in metrics)
            rows.append(["report", name, *cells, "validation"])
        headings = ("Round", "Model", *map(str.upper, metrics), "")
        print_table("Scores at Numerai", headings, rows)
        out = out or steps.workspace.root / "scores.png"
        write_whole(out, report.as_png(report.draw_live_scores(found, promised)))
        echo(f"Figure: {out}")
