"""Numerai's files in the workspace: those that are missing, and those of the round."""

import difflib
import re
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn_era.numerai.data.dataset import (
    check_parquet,
    read_column_names,
    read_feature_metadata,
)
from sklearn_era.numerai.data.locking import alone_in
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.workspace import Workspace

if TYPE_CHECKING:
    from sklearn_era.numerai.api.client import NumeraiClient

# The files with the features; others may lack eras.
_WITH_FEATURES = ("train", "validation", "live")


def download(
    client: "NumeraiClient",
    workspace: Workspace,
    names: Sequence[str],
    *,
    refresh: Sequence[str] = (),
    optional: Collection[str] = (),
    round_number: int | None = None,
    on_file: Callable[[str, Path, str], None] | None = None,
    on_bytes: Callable[[str, int, int], None] | None = None,
) -> dict[str, Path]:
    """Download files of the data, those that are needed.

    A file whose name begins with "live" is fetched anew each time. Another one is
    fetched if there is none here, if the newest one here is damaged, or if it is in
    `refresh` and that of the round is not here yet. A file appears under its name when
    it is complete and checked; one that is bad is fetched once more.

    Parameters
    ----------
    client : NumeraiClient
        The API.

    workspace : Workspace
        Where the files go, and the version of the data.

    names : sequence of str
        Which files: "features", "train", "validation", "live", "meta_model",
        "live_benchmark_models", and so on.

    refresh : sequence of str, default=()
        Those to fetch although an older round's is here. Must be among `names`.

    optional : collection of str, default=()
        Those to leave out, with a warning, if the version has no such file.

    round_number : int, default=None
        The round that the files are named by; the current one by default.

    on_file : callable, default=None
        Called with each name, its path, and what was done, ``"downloaded"`` for one.

    on_bytes : callable, default=None
        Called with the name, the bytes so far, and those announced, 0 if they are not.

    Returns
    -------
    paths : dict of str to Path
        The file of each name, but for optional ones that were left out.

    Raises
    ------
    ConfigError
        If Numerai has no file of a name that is not optional.
    DataError
        If the version is no longer served, a file is bad twice, or the files do not go
        together; or if another run is downloading to the same folder.
    ApiError
        If Numerai cannot be asked, or does not send a file.

    Warns
    -----
    UserWarning
        If an optional file is left out.
    """
    names = list(dict.fromkeys(names))
    for name in refresh:
        if name not in names:
            raise ConfigError(
                f"refresh names {name!r}, which is not among the files to download: "
                f"{', '.join(names)}."
            )
    if round_number is None:
        round_number = client.current_round().number
    kept = {name: _keep(workspace, name, refresh, round_number) for name in names}
    fetched = [name for name in names if kept[name] is None]
    if fetched:
        served = client.list_datasets()
        left_out = _not_served(served, workspace.version, fetched, optional)
        names = [name for name in names if name not in left_out]
        fetched = [name for name in fetched if name not in left_out]
        _check_served(served, workspace.version, fetched)

    paths = {}
    folder = workspace.data_dir
    busy = DataError(f"Another run is downloading to {folder}: wait for its end.")
    # The leftovers of a run that goes on are none.
    with alone_in(folder, busy):
        for name in names:
            path = kept[name]
            told = "kept"
            if path is None:
                path = workspace.data_file(name, round_number)
                told = "downloaded"
                _remove_leftovers(path, name)
                client.download(
                    served_name(workspace.version, name),
                    path,
                    check=partial(_check, name, shown_as=str(path)),
                    on_bytes=None if on_bytes is None else partial(on_bytes, name),
                )
            paths[name] = path
            if on_file is not None:
                on_file(name, path, told)
    _check_together(paths)
    return paths


def served_name(version: str, name: str) -> str:
    """What Numerai calls a file, ``"v5.3/live.parquet"`` for one."""
    return f"{version}/{name}.{'json' if name == 'features' else 'parquet'}"


def _keep(
    workspace: Workspace, name: str, refresh: Sequence[str], round_number: int
) -> Path | None:
    """The file that is here, None if one is to be fetched."""
    rounds = workspace.rounds_of(name)
    if not rounds or name.startswith("live"):
        return None
    if name in refresh and rounds[-1] < round_number:
        return None
    path = workspace.newest(name)
    try:
        _check(name, path)
    except DataError:
        return None
    return path


def _check(name: str, path: Path, *, shown_as: str | None = None) -> None:
    if name == "features":
        # Its own errors name the path, which is that of a file not complete yet.
        try:
            read_feature_metadata(path)
        except DataError as error:
            shown = str(error).replace(str(path), shown_as or str(path))
            raise DataError(shown) from None
        return
    check_parquet(
        path,
        live=name.startswith("live"),
        needs_era=name in _WITH_FEATURES,
        shown_as=shown_as,
    )


def _not_served(
    served: Sequence[str], version: str, names: Sequence[str], optional: Collection[str]
) -> set[str]:
    """The optional files that a version lacks, which is warned of."""
    if not any(entry.startswith(f"{version}/") for entry in served):
        return set()  # it is the version that is missing, which is an error
    left_out = {
        name
        for name in names
        if name in optional and served_name(version, name) not in served
    }
    for name in sorted(left_out):
        warnings.warn(
            f"Numerai serves no {served_name(version, name)}: what is compared with it "
            "is left out. To be rid of this warning, take it out of [data] files.",
            UserWarning,
            stacklevel=3,
        )
    return left_out


def _check_served(served: Sequence[str], version: str, names: Sequence[str]) -> None:
    for name in names:
        file = served_name(version, name)
        if file in served:
            continue
        versions = {entry.partition("/")[0] for entry in served if "/" in entry}
        if version not in versions:
            latest = max(versions, key=_version_key, default="none")
            raise DataError(
                f"{file} is no longer served; latest is {latest}. Retrain on it: set "
                f"version = {latest!r} in [data], and train again."
            )
        here = sorted(
            Path(entry).stem
            for entry in served
            if entry.startswith(f"{version}/") and entry.endswith((".parquet", ".json"))
        )
        close = difflib.get_close_matches(name, here, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        raise ConfigError(
            f"Numerai serves no {file}{meant} Those of {version}: {', '.join(here)}."
        )


def _version_key(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _remove_leftovers(path: Path, name: str) -> None:
    """Remove what runs that were killed left of a file, of any round."""
    leftover = re.compile(
        rf"{re.escape(name)}(_\d+)?{re.escape(path.suffix)}(\.temp|\.\w+\.partial)"
    )
    if path.parent.is_dir():
        for other in path.parent.iterdir():
            if leftover.fullmatch(other.name):
                other.unlink(missing_ok=True)


def _check_together(paths: dict[str, Path]) -> None:
    """Check that features.json is that of the files with features."""
    if "features" not in paths:
        return
    sets = read_feature_metadata(paths["features"]).feature_sets
    features = sets.get("all") or sorted(set().union(*sets.values()))
    for name in _WITH_FEATURES:
        if name not in paths:
            continue
        columns = set(read_column_names(paths[name]))
        missing = [feature for feature in features if feature not in columns]
        if missing:
            raise DataError(
                f"{paths[name]} lacks {len(missing):,} of the {len(features):,} "
                f"features in {paths['features'].name} (first: {missing[0]}): they "
                "are not of the same data. Remove both files, and download them again."
            )


__all__ = ["download", "served_name"]
