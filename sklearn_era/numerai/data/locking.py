"""Folders in which one run works at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sklearn_era.numerai.errors import DataError, NumeraiError


@contextmanager
def alone_in(folder: Path, busy: NumeraiError) -> Iterator[None]:
    """Let no other run work in a folder meanwhile.

    The lock is the system's, and goes with the process, killed or not.

    Parameters
    ----------
    folder : Path
        The folder, which is made if it is not there.
    busy : NumeraiError
        What is raised if another run has the lock.

    Raises
    ------
    DataError
        If there is no such folder, and it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be used as a folder: {error.strerror}."
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        yield
    finally:
        os.close(descriptor)


__all__ = ["alone_in"]
