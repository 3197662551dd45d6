"""Warn at the user's line, and raise errors that state new names for old ones."""

import difflib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn, TypeVar

_T = TypeVar("_T")


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line that called this package, however deep the call."""
    frame, stacklevel = sys._getframe(), 1
    while frame.f_back is not None:
        package = frame.f_globals.get("__name__", "").split(".")[0]
        if package not in ("sklearn_era", "sklearn", "contextlib"):
            break
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, category, stacklevel=stacklevel)


@contextmanager
def warned_once() -> Iterator[list[warnings.WarningMessage]]:
    """Yield a list of the block's warnings; after the block, warn of each text once."""
    with warnings.catch_warnings(record=True) as caught:
        yield caught
    for warning in {str(x.message): x for x in caught}.values():
        warn_user(warning.message)


def listed(values: Iterable[Any], n_most: int = 5) -> str:
    """Return values as text for a message: the first few, and "…" if there are more."""
    texts = [*map(str, values)]
    return ", ".join(texts[:n_most]) + (", …" if len(texts) > n_most else "")


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """Return a `__getattr__` for a module, which raises ImportError for a former name,
    with the new name in the message: ``from ... import`` drops other errors' messages.
    """

    def __getattr__(name: str) -> NoReturn:
        if name in names:
            raise ImportError(
                f"{module}.{name} is gone: use {names[name]}.", name=module
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" with the closest known name; "" if none is close."""
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def refuse_moved(names: Mapping[str, str], given: Any, owner: str) -> None:
    """Raise TypeError, which states the new name, for a former name in `given`."""
    for name in given:
        if name in names:
            raise TypeError(
                f"{name} is no parameter of {owner} any more: use {names[name]}."
            )


def refuses_moved(**names: str) -> Callable[[_T], _T]:
    """Decorate a class to raise TypeError for former names of its parameters."""

    def decorate(cls: Any) -> Any:
        init = cls.__init__

        @wraps(init)
        def __init__(self: object, *args: Any, **kwargs: Any) -> None:
            refuse_moved(names, kwargs, type(self).__name__)
            init(self, *args, **kwargs)

        cls.__init__ = __init__
        return cls

    return decorate
