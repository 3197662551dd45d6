"""Checks of the arguments of a training that are no parameters of the estimator."""

from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path

import numpy as np

from sklearn_era.numerai.errors import ConfigError


def check_features(features: Sequence[str], target: str) -> list[str]:
    """The columns to train on as a list.

    Raises
    ------
    ConfigError
        If there is none, one is named twice, or the target is one.
    """
    if isinstance(features, str):
        raise ConfigError(f"features = {features!r} must be a list of names.")
    features = list(features)
    twice = [name for name, count in Counter(features).items() if count > 1]
    fault = None
    if not features:
        fault = "is empty"
    elif twice:
        fault = f"names {twice[0]!r} twice"
    elif target in features:
        fault = f"has the target {target!r} among them"
    if fault is not None:
        raise ConfigError(f"features {fault}: name each column to train on once.")
    return features


def check_files(files: Sequence[str | PathLike[str]]) -> list[Path]:
    """The files to train on as a list of paths.

    Raises
    ------
    ConfigError
        If there is none, or one is named twice.
    """
    if isinstance(files, str | PathLike):
        raise ConfigError(f"files = {str(files)!r} must be a list of files.")
    paths = [Path(file) for file in files]
    if not paths:
        raise ConfigError("files is empty: name one file to train on at least.")
    counts = Counter(path.resolve() for path in paths)
    twice = [path for path, count in counts.items() if count > 1]
    if twice:
        raise ConfigError(
            f"files names {twice[0]} twice, and its rows would count twice."
        )
    return paths


def check_numbers(**given: tuple[int, int]) -> None:
    """Check whole numbers, each given with the least that it may be.

    Raises
    ------
    ConfigError
        If one is something else, or less.
    """
    for name, (value, least) in given.items():
        if (
            not isinstance(value, Integral)
            or isinstance(value, bool | np.bool_)
            or value < least
        ):
            raise ConfigError(
                f"{name} = {value!r} must be a whole number of {least} or more."
            )


__all__ = ["check_features", "check_files", "check_numbers"]
