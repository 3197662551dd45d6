"""The commands about the account: its models, submissions, pickles and scores."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.table import Table

from sklearn_era.cli._errors import InputError
from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    ModelOption,
    chosen,
    load,
    make_client,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn_era.cli.numerai._terminal import Terminal
    from sklearn_era.numerai.api import Numerai


class Choice(NamedTuple):
    """What `init` writes."""

    name: str
    target: str
    version: str


def choose(
    client: "Numerai", *, name: str | None, target: str | None, version: str | None
) -> Choice:
    """What was given, else what Numerai lists: asked for on a terminal, or an error."""
    from sklearn_era.numerai.config import DataSection, check_target
    from sklearn_era.numerai.download import latest_version
    from sklearn_era.numerai.errors import ApiError, ConfigError

    served: list[str] = []
    try:
        served = client.datasets()
        version = version or latest_version(served)
    except ApiError as error:
        if target is None:
            raise
        if version is None:
            typer.echo(
                f"Warning: The latest version of the data is not known. {error}",
                err=True,
            )
    version = version or DataSection.model_fields["version"].default
    versions = sorted({file.partition("/")[0] for file in served if "/" in file})
    if served and version not in versions:
        raise InputError(f"--version: Numerai has {', '.join(versions)}.")
    targets = _targets(client, version) if served else []
    if target is None:
        named = [one for one in targets if one != "target"]
        target = _ask("--target", f"The targets of {version}", named)
    check_target(target, targets)
    if name is not None and served:
        with suppress(ConfigError):  # without keys, the name is taken as it is
            client.check_keys()
            client.model_id(name)
    if name is None:
        client.check_keys()
        name = _ask("--name", "Your models", sorted(client.models()))
    return Choice(name, target, version)


def _targets(client: "Numerai", version: str) -> list[str]:
    """The targets of a version, by its features.json."""
    from tempfile import TemporaryDirectory

    from sklearn_era.numerai.data import read_features
    from sklearn_era.numerai.download import served_name

    with TemporaryDirectory(prefix="sklearn-era-") as folder:
        path = Path(folder) / "features.json"
        client.download(served_name(version, "features"), path, round_number=None)
        return read_features(path).targets


def _ask(option: str, what: str, choices: "Sequence[str]") -> str:
    listed = f"{what}: {', '.join(choices) or 'none'}."
    if not choices or not sys.stdin.isatty():
        raise InputError(f"{option} is needed. {listed}")
    typer.echo(listed)
    while (answer := typer.prompt(option.removeprefix("--"))) not in choices:
        typer.echo(f"{answer!r} is not in the list.")
    return answer


def submit_file(
    file: Path,
    model: str | None,
    config: Path,
    told: "Terminal",
    *,
    require_open: bool,
    force: bool,
) -> None:
    """Submit a file of predictions of any model, with or without a configuration."""
    from sklearn_era.numerai.config import DataSection, Workspace
    from sklearn_era.numerai.download import latest_version
    from sklearn_era.numerai.submit import submit

    if model is None:
        raise InputError("--model: name the model to submit FILE for.")
    if config.exists():
        settings, workspace = load(config)
        client = make_client(workspace.root, settings)
        require_open = require_open or settings.submit.require_open
    else:
        root = config.absolute().parent
        client = make_client(root)
        version = latest_version(client.datasets())
        default = DataSection.model_fields["version"].default
        workspace = Workspace(root, version or default)
    client.check_keys()
    client.model_id(model)  # before a folder is called by its name
    number = client.current_round().number
    record = submit(
        client,
        model_name=model,
        submission=file,
        live=None,
        record=workspace.round_dir(number, model) / "submission.json",
        round_number=number,
        version=workspace.version,
        require_open=require_open,
        force=force,
        on_step=told.step,
    )
    told.step(f"Round {number}: {model!r} has submission {record.submission_id}.")


def upload(
    model: ModelOption = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="PICKLE", help="By default what export wrote."),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Docker image; by default Numerai's."),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(min=0, metavar="MIN", help="Minutes to wait for the result."),
    ] = 30.0,
    assign: Annotated[
        bool,
        typer.Option(
            "--assign/--no-assign",
            help="Once it has run, let it make the submissions of this model from now "
            "on. Numerai then refuses predictions for it.",
        ),
    ] = False,
    config: ConfigOption = CONFIG,
) -> None:
    """Upload an exported model, and wait until Numerai has run it.

    It makes no submissions before it is assigned to the model: with --assign, or at
    Numerai's website.
    """
    settings, workspace = load(config)
    from sklearn_era.cli.numerai._terminal import terminal
    from sklearn_era.numerai import steps
    from sklearn_era.numerai.export import PORTABLE
    from sklearn_era.numerai.export_check import check_portable_model
    from sklearn_era.numerai.pickle_upload import upload_pickle

    one = settings.model(model)
    path = file or workspace.model_dir(one.name) / PORTABLE
    if file is None and not steps.has_export(workspace, one):
        raise InputError(
            f"There is no {path} of the present model: run 'sklearn-era numerai "
            "export' first."
        )
    if not path.is_file():
        raise InputError(f"--file: '{path}' does not exist.")
    client = make_client(workspace.root, settings)
    client.check_keys()
    with terminal() as told:
        check_portable_model(path, workspace.need("live"))
        told.step(f"{path.name} runs as it will at Numerai.")
        upload_pickle(
            client,
            one.name,
            path,
            image=image,
            data_version=workspace.version,
            wait=60 * wait,
            assign=assign,
            on_step=told.step,
        )


def scores(
    model: ModelOption = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="How many rounds to look back.")
    ] = 60,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="PNG", help="The figure to write.")
    ] = Path("scores.png"),
    config: ConfigOption = CONFIG,
) -> None:
    """Show live scores of your models next to their validation."""
    settings, workspace = load(config)
    from sklearn_era.cli.numerai._terminal import number, print_table, terminal
    from sklearn_era.numerai.config import horizon_of
    from sklearn_era.numerai.figures import as_png
    from sklearn_era.numerai.files import write_whole
    from sklearn_era.numerai.scores import draw_scores, live_scores, promised_scores

    client = make_client(workspace.root, settings)
    client.check_keys()
    known = client.models()
    models = chosen(settings, model)
    ids = {one.name: client.check_model(one.name, known) for one in models}
    horizons = {one.name: horizon_of(one.train.target) for one in models}
    with terminal() as told:
        rows = live_scores(client, ids, rounds, horizons)
        promised = promised_scores(workspace, list(ids))
        table = Table(title="Scores at Numerai")
        for heading in ("Round", "Model", "CORR", "MMC", "BMC", "FNC", ""):
            table.add_column(heading, justify="left" if heading == "Model" else "right")
        for row in rows:
            values = (row.corr, row.mmc, row.bmc, row.fnc)
            state = "" if row.resolved else "not final"
            table.add_row(str(row.round_number), row.model, *map(number, values), state)
        for name, means in promised.items():
            shown = (means.get(metric) for metric in ("corr", "mmc", "bmc", "fnc"))
            table.add_row("report", name, *map(number, shown), "validation")
        if not rows:
            told.step("Numerai has no scores of these models yet.")
            return
        print_table(table)
        write_whole(out, as_png(draw_scores(rows, promised)))
        told.step(f"Figure: {out}")
