"""Warnings that point to the user's line."""

import sys
import warnings


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, however deep the call."""
    frame, stacklevel = sys._getframe(), 1
    while frame.f_back is not None:
        package = frame.f_globals.get("__name__", "").split(".")[0]
        if package not in ("sklearn_era", "sklearn"):
            break
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, category, stacklevel=stacklevel)
