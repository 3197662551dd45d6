"""Which files of Numerai's data are fetched: those missing, and those of the round."""

import re
import warnings
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.config import DataSection, Workspace
from sklearn_era.numerai.data import ADVICE, check_parquet, read_features, read_ids
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError, alternatives
from sklearn_era.numerai.files import lock
from sklearn_era.numerai.http import HttpFailure
from sklearn_era.numerai.submission import read_predictions

if TYPE_CHECKING:
    from sklearn_era.numerai.steps import Reporter


class NotPublishedError(ApiError):
    """The live data of a round are not there yet."""


_WITHOUT_ERAS = frozenset({"live_example_preds", "validation_example_preds"})
# Files that only a comparison needs: a version of the data may lack them.
OPTIONAL = _WITHOUT_ERAS | {
    "live_benchmark_models",
    "meta_model",
    "validation_benchmark_models",
}
# Another run may be fetching the same files: as long as a live file takes, and more.
_LOCK_WAIT = 600.0


def served_name(version: str, name: str) -> str:
    """What Numerai calls a file, ``"v5.3/live.parquet"`` for one."""
    return f"{version}/{name}.{'json' if name == 'features' else 'parquet'}"


def wanted(
    workspace: Workspace, data: DataSection, round_number: int
) -> dict[str, str]:
    """Why each of the files is to be fetched, for those that are.

    Live files are fetched in every round, again and again, the others once, or once a
    round where they are to be refreshed.
    """
    reasons = {}
    for name in data.files:
        rounds = workspace.rounds_of(name)
        if name.startswith("live"):
            reasons[name] = f"needed for round {round_number}"
        elif not rounds:
            reasons[name] = "not downloaded yet"
        elif name in data.refresh and rounds[-1] < round_number:
            reasons[name] = f"the local file is from round {rounds[-1]}"
    return reasons


def download(
    client: Numerai,
    workspace: Workspace,
    data: DataSection,
    round_number: int,
    told: "Reporter",
) -> None:
    """Fetch the files that are wanted, and those that turn out to be damaged here.

    A file appears under its name once it is whole and checked.
    """
    # The files of a round do not wait for gigabytes of others.
    is_small = {name.startswith("live") or name == "features" for name in data.files}
    what = f"downloading to {workspace.data_dir}"
    with ExitStack() as locks:
        for small in sorted(is_small, reverse=True):
            path = workspace.lock_file("live" if small else "data")
            locks.enter_context(lock(path, what, wait=_LOCK_WAIT))
        reasons = wanted(workspace, data, round_number)
        for name in dict.fromkeys(data.files):
            if name in reasons:
                continue
            path = workspace.need(name)
            try:
                _check(name, path)
            except DataError:
                reasons[name] = "the local file was damaged"
            else:
                told.step(f"Kept {path.name}.")
        for name in _served(client, workspace.version, reasons) if reasons else ():
            path = workspace.data_file(name, round_number)
            _adopt_partials(path, name)
            try:
                client.download(
                    served_name(workspace.version, name),
                    path,
                    round_number=round_number if name.startswith("live") else None,
                    check=partial(_check_new, workspace, name, round_number),
                    on_bytes=partial(told.progress, name),
                )
            except ApiError as error:
                if name != "live" or isinstance(error, HttpFailure):
                    raise
                # Numerai does not offer it: not yet.
                raise NotPublishedError(str(error)) from None
            reason = reasons[name]
            again = f" ({reason})" if reason.startswith("the local file") else ""
            told.step(f"Downloaded {path.name}{again}.")


def _adopt_partials(path: Path, name: str) -> None:
    """Let a download go on with what an earlier round's has left of the file.

    That is safe, since the storage says whether it still is the same file.
    """
    pattern = re.compile(rf"{re.escape(name)}_\d+\{path.suffix}(\..+\.partial)")
    left = sorted(path.parent.glob("*.partial"), key=lambda one: one.stat().st_mtime)
    mine = [(match[1], x) for x in left if (match := pattern.fullmatch(x.name))]
    for _, older in mine[:-1]:
        older.unlink()
    for rest, newest in mine[-1:]:
        newest.replace(path.with_name(path.name + rest))


def check_is_published(
    workspace: Workspace, round_number: int, ids: Sequence[str]
) -> None:
    """Refuse the live ids of a round that has passed as those of a new one.

    A round may open before its live file is there, and the old one still is.
    """
    live = {x: workspace.data_file("live", x) for x in workspace.rounds_of("live")}
    # Where the live files are not kept from one run to the next, submissions are.
    found = workspace.root.glob("rounds/*/*/predictions.csv")
    sent = {int(x.parts[-3]): x for x in found if x.parts[-3].isdecimal()}
    for paths in (live, sent):
        older = max((x for x in paths if x < round_number), default=None)
        if older is None:
            continue
        known = list[str]()
        with suppress(DataError):  # a damaged file of an old round says nothing
            path = paths[older]
            known = read_ids(path) if paths is live else [*read_predictions(path)["id"]]
        if set(known) == set(ids):
            raise NotPublishedError(
                f"The live data of round {round_number} are not published yet: Numerai "
                f"still serves those of round {older}. Run this command again in a few "
                "minutes."
            )


def check_sent(version: str, name: str, path: Path) -> None:
    """Check a file that has just come in, of which nothing is kept if it is wrong."""
    try:
        _check(name, path)
    except DataError as error:
        sent = f"Numerai's {served_name(version, name)}"
        told = str(error).replace(str(path), sent)
        raise DataError(told.replace(ADVICE, "Run this command again.")) from None


def _check_new(workspace: Workspace, name: str, round_number: int, path: Path) -> None:
    check_sent(workspace.version, name, path)
    if name == "live":
        check_is_published(workspace, round_number, read_ids(path))


def _check(name: str, path: Path) -> None:
    if name == "features":
        read_features(path)
    else:
        live, needs_era = name.startswith("live"), name not in _WITHOUT_ERAS
        check_parquet(path, live=live, needs_era=needs_era)


def _served(client: Numerai, version: str, names: Iterable[str]) -> list[str]:
    """The files that Numerai has: an optional one may be missing, with a warning."""
    served = client.datasets()
    known = sorted(Path(x).stem for x in served if x.startswith(f"{version}/"))
    if not known:
        latest = latest_version(served) or "unknown"
        raise DataError(
            f"Numerai no longer serves {version}; the latest version is {latest}. Set "
            f"version = {latest!r} in [data], and train again."
        )
    missing = [name for name in names if served_name(version, name) not in served]
    for name in missing:
        told = f"Numerai has no {served_name(version, name)}"
        if name not in OPTIONAL:
            raise ConfigError(f"{told}; {alternatives(name, known)}")
        told += f": comparisons with it are left out. Remove {name!r} from [data] files"
        warnings.warn(f"{told} to silence this warning.", UserWarning, stacklevel=3)
    return [name for name in names if name not in missing]


def latest_version(served: Sequence[str]) -> str | None:
    """The newest version of the data among the files that Numerai serves."""
    matches = (re.match(r"v(\d+)\.(\d+)/", file) for file in served)
    found = [(int(match[1]), int(match[2])) for match in matches if match]
    return "v{}.{}".format(*max(found)) if found else None
