"""Names that are gone, and an error that gives what replaces each."""

from collections.abc import Callable, Mapping
from typing import NoReturn


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a module of which old names map to new ones.

    They raise ImportError: of an AttributeError, ``from`` would drop the message.
    """

    def __getattr__(name: str) -> NoReturn:
        if name in names:
            raise ImportError(
                f"{module}.{name} is gone: use {names[name]}.", name=module
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
