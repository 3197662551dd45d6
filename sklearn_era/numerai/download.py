"""Which files of Numerai's data are fetched: those missing, and those of the round."""

import difflib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.data import check_parquet, read_features, read_ids
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError
from sklearn_era.numerai.files import lock
from sklearn_era.numerai.http import HttpFailure
from sklearn_era.numerai.submission import read_predictions


class NotPublishedError(ApiError):
    """The live data of a round are not there yet."""


# Files that only a comparison needs: a version of the data may lack them.
OPTIONAL = frozenset(
    {
        "live_benchmark_models",
        "live_example_preds",
        "meta_model",
        "validation_benchmark_models",
        "validation_example_preds",
    }
)
_WITHOUT_ERAS = frozenset({"live_example_preds", "validation_example_preds"})
# Another run may be fetching the same files: as long as a live file takes, and more.
_LOCK_WAIT = 600.0


def served_name(version: str, name: str) -> str:
    """What Numerai calls a file, ``"v5.3/live.parquet"`` for one."""
    return f"{version}/{name}.{'json' if name == 'features' else 'parquet'}"


def wanted(
    workspace: Workspace,
    names: Sequence[str],
    refresh: Sequence[str],
    round_number: int,
) -> dict[str, str]:
    """Why each of the files is to be fetched, for those that are.

    Live files are fetched in every round, again and again, the others once, or once a
    round where they are to be refreshed.
    """
    reasons = {}
    for name in dict.fromkeys(names):
        rounds = workspace.rounds_of(name)
        if name.startswith("live"):
            reasons[name] = f"the file of round {round_number}"
        elif not rounds:
            reasons[name] = "there is none yet"
        elif name in refresh and rounds[-1] < round_number:
            reasons[name] = f"the one here is of round {rounds[-1]}"
    return reasons


def download(
    client: Numerai,
    workspace: Workspace,
    names: Sequence[str],
    *,
    round_number: int,
    refresh: Sequence[str] = (),
    on_step: Callable[[str], None] = lambda text: None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Fetch the files that are wanted, and those that turn out to be damaged here.

    A file appears under its name once it is whole and checked.
    """
    folder = workspace.data_dir
    # The files of a round do not wait for gigabytes of others.
    is_small = [name.startswith("live") or name == "features" for name in names]
    kinds = [*(["live"] if any(is_small) else []), *([] if all(is_small) else ["data"])]
    with ExitStack() as locks:
        for kind in kinds:
            path, what = workspace.lock_file(kind), f"downloading to {folder}"
            locks.enter_context(lock(path, what, wait=_LOCK_WAIT))
        reasons = wanted(workspace, names, refresh, round_number)
        for name in dict.fromkeys(names):
            newest = workspace.newest(name)
            if name in reasons or newest is None:
                continue
            try:
                _check(name, newest)
            except DataError:
                reasons[name] = "the one here is damaged"
            else:
                on_step(f"Kept {newest.name}.")
        if not reasons:
            return
        served = client.datasets()
        for name in _not_served(served, workspace.version, list(reasons)):
            del reasons[name]
        for name, reason in reasons.items():
            path = workspace.data_file(name, round_number)
            is_live = name.startswith("live")
            check = partial(_check, name, shown_as=str(path))
            if name == "live":
                check = partial(
                    _check_live, workspace, round_number, shown_as=str(path)
                )
            _adopt_partials(path, name)
            on_bytes = None if on_progress is None else partial(on_progress, name)
            try:
                client.download(
                    served_name(workspace.version, name),
                    path,
                    round_number=round_number if is_live else None,
                    check=check,
                    on_bytes=on_bytes,
                )
            except ApiError as error:
                if name != "live" or isinstance(error, HttpFailure):
                    raise
                # Numerai does not offer it: not yet.
                raise NotPublishedError(str(error)) from None
            again = f" ({reason})" if reason.startswith("the one here") else ""
            on_step(f"Downloaded {path.name}{again}.")


def _adopt_partials(path: Path, name: str) -> None:
    """Let a download go on with what an earlier round's has left of the file.

    That is safe, since the storage says whether it still is the same file.
    """
    pattern = re.compile(
        rf"{re.escape(name)}_\d+{re.escape(path.suffix)}(\..+\.partial)"
    )
    left = [(pattern.fullmatch(one.name), one) for one in path.parent.glob("*.partial")]
    mine = [(one.stat().st_mtime, match[1], one) for match, one in left if match]
    for i, (_, rest, one) in enumerate(sorted(mine, reverse=True)):
        if i == 0:
            one.replace(path.with_name(path.name + rest))
        else:
            one.unlink()


def check_is_published(
    workspace: Workspace, round_number: int, ids: Sequence[str]
) -> None:
    """Refuse the live ids of a round that has passed as those of a new one.

    A round may open before its live file is there, and the old one still is.
    """
    for older, path in _older_ids(workspace, round_number):
        try:
            is_csv = path.suffix == ".csv"
            known = read_predictions(path)["id"] if is_csv else read_ids(path)
        except DataError:
            continue  # a damaged file of an old round says nothing
        if set(known) == set(ids):
            raise NotPublishedError(
                f"The live data of round {round_number} are not published yet: Numerai "
                f"still serves those of round {older}. Repeat this command in some "
                "minutes."
            )


def _older_ids(workspace: Workspace, round_number: int) -> Iterator[tuple[int, Path]]:
    """The newest files of earlier rounds that hold live ids, with their rounds."""
    older = [number for number in workspace.rounds_of("live") if number < round_number]
    if older:
        yield older[-1], workspace.data_file("live", older[-1])
    # Where the live files are not kept from one run to the next, submissions are.
    found = [
        (int(path.parent.parent.name), path)
        for path in workspace.root.glob("rounds/*/*/predictions.csv")
        if path.parent.parent.name.isdecimal()
    ]
    before = [(number, path) for number, path in found if number < round_number]
    if before:
        yield max(before)


def _check_live(
    workspace: Workspace, round_number: int, path: Path, *, shown_as: str
) -> None:
    _check("live", path, shown_as=shown_as)
    check_is_published(workspace, round_number, read_ids(path))


def _check(name: str, path: Path, *, shown_as: str | None = None) -> None:
    if name != "features":
        check_parquet(
            path,
            live=name.startswith("live"),
            needs_era=name not in _WITHOUT_ERAS,
            shown_as=shown_as,
        )
        return
    try:
        read_features(path)
    except DataError as error:
        # The path in the message is that of a file that is not complete yet.
        raise DataError(str(error).replace(str(path), shown_as or str(path))) from None


def _not_served(served: Sequence[str], version: str, names: Sequence[str]) -> list[str]:
    """The optional files that Numerai lacks; an error where it lacks a needed one."""
    here = [entry for entry in served if entry.startswith(f"{version}/")]
    if not here:
        latest = latest_version(served) or "unknown"
        raise DataError(
            f"Numerai no longer serves {version}; the latest version is {latest}. Set "
            f"version = {latest!r} in [data], and train again."
        )
    missing = []
    for name in names:
        file = served_name(version, name)
        if file in served:
            continue
        if name not in OPTIONAL:
            known = sorted(Path(entry).stem for entry in here)
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else "."
            raise ConfigError(
                f"Numerai has no {file}{meant} It has {', '.join(known)}."
            )
        missing.append(name)
        warnings.warn(
            f"Numerai has no {file}: comparisons with it are left out. Remove {name!r} "
            "from [data] files to silence this warning.",
            UserWarning,
            stacklevel=3,
        )
    return missing


def latest_version(served: Sequence[str]) -> str | None:
    """The newest version of the data among the files that Numerai serves."""
    pattern = re.compile(r"v\d+\.\d+")
    versions = {entry.partition("/")[0] for entry in served}
    known = [version for version in versions if pattern.fullmatch(version)]
    return max(known, key=lambda v: [int(n) for n in v[1:].split(".")], default=None)
