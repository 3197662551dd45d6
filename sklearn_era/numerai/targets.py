"""What a target's name says: which one it is, and how far it looks ahead."""

import re
from collections.abc import Sequence

from sklearn_era.numerai.errors import ConfigError

# Weekly eras left out between training and validation, by the horizon in business days.
# The targets of 20 days span 4 weeks and those of 60 days 12; the rest is for what else
# neighbouring eras share. Numerai's documentation gives both numbers (models.md).
_PURGE = {20: 8, 60: 16}

_HORIZON = re.compile(r"target_\w+_(\d+)")


def check_target(target: str, known: Sequence[str] | None = None) -> str:
    """Check that a name says which target is meant.

    Parameters
    ----------
    target : str
        The name of a column.

    known : sequence of str, default=None
        The targets of the data, from its ``features.json``.

    Returns
    -------
    target : str
        The same.

    Raises
    ------
    ConfigError
        If it is the alias ``"target"``, which means another target from one version of
        the data to the next; or if the data have no such target.
    """
    named = [name for name in known or () if name != "target"]
    shown = f" Those of the data: {', '.join(named)}." if named else ""
    if target == "target":
        raise ConfigError(
            "target = 'target' is an alias, and which target it stands for has changed "
            "within a version of the data: name the target itself, such as "
            f"'target_ender_60'.{shown}"
        )
    if not target:
        raise ConfigError(f"target is not set: name one, as 'target_ender_60'.{shown}")
    if known is not None and target not in named:
        raise ConfigError(f"The data have no target {target!r}.{shown}")
    return target


def horizon_of(target: str) -> int:
    """The business days that a target looks ahead, from the end of its name.

    Raises
    ------
    ConfigError
        If the name does not end in a number of days.
    """
    match = _HORIZON.fullmatch(target)
    if match is None:
        raise ConfigError(
            f"The name of target {target!r} does not end in its horizon, as "
            "'target_ender_60' does: set train.purge to the number of eras to leave "
            "out between training and validation."
        )
    return int(match[1])


def purge_of(target: str, purge: int | None = None) -> int:
    """How many eras to leave out after training, before the first to validate on.

    Parameters
    ----------
    target : str
        The target's name, which ends in its horizon.

    purge : int, default=None
        A number that was set, and is returned as it is.

    Returns
    -------
    purge : int
        8 eras for 20 business days, 16 for 60.

    Raises
    ------
    ConfigError
        If the horizon is another one, or the name does not tell.
    """
    if purge is not None:
        return purge
    horizon = horizon_of(target)
    if horizon not in _PURGE:
        raise ConfigError(
            f"Target {target!r} looks {horizon} business days ahead; how many eras to "
            "leave out is known for 20 and 60. Set train.purge."
        )
    return _PURGE[horizon]


__all__ = ["check_target", "horizon_of", "purge_of"]
